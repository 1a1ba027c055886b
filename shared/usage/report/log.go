package report

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/blob"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// fetchBodies reads bodies that have their own object in the bucket. They are kept for a
// shorter time than the record.
func (r *Reader) fetchBodies(ctx context.Context, rec *usage.Record) (err error) {
	if rec.Blob == "" {
		return nil
	}
	if rec.Bodies, err = r.bucket.Get(ctx, rec.Blob, 0); errors.Is(err, blob.ErrNotFound) {
		err = nil
	}
	return err
}

// Log returns one record with its sealed bodies; ok is false when the scope has no record
// with that id. The caller opens the bodies.
func (r *Reader) Log(ctx context.Context, sc store.Scope, id string) (rec usage.Record, ok bool, err error) {
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return usage.Record{}, false, nil // no log can have this id
	}
	at := parsed.Timestamp().UnixMicro()
	cut, err := r.archive.Cut(ctx, sc)
	if err != nil {
		return usage.Record{}, false, err
	}
	err = again(func() (err error) {
		rec, ok, err = r.log(ctx, sc, id, at)
		return err
	})
	if err != nil || !ok {
		return rec, ok, err
	}
	if rec.Start.UnixMicro() < cut.First(rec.Workspace) {
		return usage.Record{}, false, nil
	}
	err = r.fetchBodies(ctx, &rec)
	return rec, ok, err
}

func (r *Reader) log(ctx context.Context, sc store.Scope, id string, at int64) (usage.Record, bool, error) {
	until := at + time.Millisecond.Microseconds() - 1
	leave, err := r.room.enter(ctx, 0)
	if err != nil {
		return usage.Record{}, false, err
	}
	defer leave()
	list, err := r.archive.List(ctx, sc.Org, at, until)
	if err != nil {
		return usage.Record{}, false, err
	}
	for i := range list {
		f, err := r.open(ctx, &list[i])
		if err != nil {
			return usage.Record{}, false, err
		}
		for g := range f.Groups {
			if f.Groups[g].Last < at || f.Groups[g].First > until {
				continue
			}
			if rec, ok, err := r.pick(ctx, f, g, id); err != nil || ok {
				if ok && sc.Workspace != "" && rec.Workspace != sc.Workspace {
					return usage.Record{}, false, nil
				}
				return rec, ok, err
			}
		}
	}
	return usage.Record{}, false, nil
}

// pick reads the record with an id, and its bodies, from a group that may contain it.
func (r *Reader) pick(ctx context.Context, f *segment.File, group int, id string) (rec usage.Record, ok bool, err error) {
	need := columns{}
	give, err := r.room.take(ctx, f.Weight()+need.weight(f, group, true)+f.RecordsWeight()+f.BodiesWeight(group))
	if err != nil {
		return usage.Record{}, false, err
	}
	defer give()
	ids, err := f.Strings(ctx, group, segment.ID)
	if err != nil {
		return usage.Record{}, false, err
	}
	row := find(ids, id)
	if row < 0 {
		return usage.Record{}, false, nil
	}
	records, err := f.Records(ctx, group, []int{row})
	if err != nil {
		return usage.Record{}, false, err
	}
	rec = records[0]
	sealed, err := f.Bodies(ctx, group)
	if err != nil {
		return usage.Record{}, false, err
	}
	rec.Bodies, err = sealed.Row(ctx, row)
	return rec, err == nil, err
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
