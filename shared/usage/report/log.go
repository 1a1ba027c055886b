package report

import (
	"context"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// Log returns one record with its sealed bodies; ok is false if the scope has no record
// with that id. The caller opens the bodies.
func (r *Reader) Log(ctx context.Context, sc store.Scope, id string) (rec usage.Record, ok bool, err error) {
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return usage.Record{}, false, nil // no log can have this id
	}
	at := parsed.Timestamp().UnixMicro()
	cut, err := r.src.archive.Cut(ctx, sc)
	if err != nil {
		return usage.Record{}, false, err
	}
	err = retryMerged(func() (err error) {
		rec, ok, err = r.log(ctx, sc, id, at)
		return err
	})
	if err != nil || !ok {
		return rec, ok, err
	}
	if rec.Start.UnixMicro() < cut.First(rec.Workspace) {
		return usage.Record{}, false, nil
	}
	err = r.src.fetchBodies(ctx, &rec)
	return rec, ok, err
}

func (r *Reader) log(ctx context.Context, sc store.Scope, id string, at int64) (usage.Record, bool, error) {
	until := at + time.Millisecond.Microseconds() - 1
	leave, err := r.src.budget.admit(ctx, 0)
	if err != nil {
		return usage.Record{}, false, err
	}
	defer leave()
	list, err := r.src.archive.List(ctx, sc.Org, at, until)
	if err != nil {
		return usage.Record{}, false, err
	}
	for i := range list {
		f, err := r.src.open(ctx, &list[i])
		if err != nil {
			return usage.Record{}, false, err
		}
		for g := range f.Groups {
			if f.Groups[g].Last < at || f.Groups[g].First > until {
				continue
			}
			if rec, ok, err := r.src.pick(ctx, f, g, id); err != nil || ok {
				if ok && sc.Workspace != "" && rec.Workspace != sc.Workspace {
					return usage.Record{}, false, nil
				}
				return rec, ok, err
			}
		}
	}
	return usage.Record{}, false, nil
}

// find returns the row that has the value, or -1.
func find(s *segment.Strings, value string) int {
	for code, v := range s.Values {
		if v != value {
			continue
		}
		if s.Codes == nil {
			return 0
		}
		return slices.Index(s.Codes, uint32(code))
	}
	return -1
}
