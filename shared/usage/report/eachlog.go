package report

import (
	"context"

	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// EachLog calls visit with the logs of a page, in order, until visit returns false. If
// the query requests bodies, it reads those of one log at a time, so memory holds the
// records of one page and the bodies of one log. next is the cursor after the last
// visited log; it is empty at the end, and after an error the position at which to
// continue.
func (r *Reader) EachLog(ctx context.Context, sc store.Scope, q *LogQuery, visit func(*usage.Record) (more bool, err error)) (next string, err error) {
	rest := *q
	p, err := r.plan(ctx, sc, &q.Filter)
	if err != nil {
		return rest.Cursor, err
	}
	err = retryMerged(func() (err error) { // starts after the logs that were visited
		next, err = r.eachLog(ctx, p, &rest, visit)
		return err
	})
	if err != nil {
		return rest.Cursor, err
	}
	return next, nil
}

// eachLog records its progress in the query.
func (r *Reader) eachLog(ctx context.Context, p *plan, rest *LogQuery, visit func(*usage.Record) (bool, error)) (next string, err error) {
	before, err := rest.position()
	if err != nil {
		return "", err
	}
	leave, err := r.src.budget.admit(ctx, rest.weight())
	if err != nil {
		return "", err
	}
	defer leave()
	hits, behind, err := r.matches(ctx, p, before, rest)
	if err != nil {
		return "", err
	}
	records, err := r.src.read(ctx, hits, false)
	if err != nil {
		return "", err
	}
	sealed := openBodies{src: &r.src}
	defer sealed.close()
	for i := range records {
		if rest.Bodies {
			if err := sealed.load(ctx, &hits[i], &records[i]); err != nil {
				return "", err
			}
		}
		more, err := visit(&records[i])
		if err != nil {
			return "", err
		}
		records[i] = usage.Record{} // releases its bodies
		last := i == len(records)-1
		rest.Cursor, rest.Limit, rest.Offset = hits[i].cursor().String(), rest.Limit-1, 0
		if !more && !last {
			return rest.Cursor, nil
		}
	}
	if !behind {
		return "", nil
	}
	return rest.Cursor, nil
}

// openBodies holds the bodies of the group that contained the last record.
type openBodies struct {
	src    *source
	part   *segment.Part
	group  int
	bodies *segment.Bodies
	give   func()
}

func (o *openBodies) load(ctx context.Context, at *match, rec *usage.Record) error {
	if o.bodies == nil || o.part != at.part || o.group != at.group {
		o.close()
		f, err := o.src.open(ctx, &at.part.Manifest)
		if err != nil {
			return err
		}
		if o.give, err = o.src.budget.acquire(ctx, f.BodiesWeight(at.group)); err != nil {
			return err
		}
		if o.bodies, err = f.Bodies(ctx, at.group); err != nil {
			return err
		}
		o.part, o.group = at.part, at.group
	}
	return o.src.bodies(ctx, o.bodies, at.row, rec)
}

func (o *openBodies) close() {
	if o.give != nil {
		o.give()
	}
	o.give, o.bodies = nil, nil
}
