package report

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"gateway/shared/blob"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// source reads records from an archive, within the memory budget.
type source struct {
	archive *segment.Archive
	bucket  blob.Bucket // of the bodies that records refer to
	budget  *memoryBudget
}

// duplicates returns the sorted hashes of ids that the part skips; nil if none.
func (s *source) duplicates(ctx context.Context, part *segment.Part) ([]uint64, error) {
	if !part.Overlaps() {
		return nil, nil
	}
	give, err := s.budget.acquire(ctx, part.DuplicatesWeight())
	if err != nil {
		return nil, err
	}
	defer give()
	return s.archive.Duplicates(ctx, part)
}

// open opens a segment's file. The memory is released at the end, so a small file that
// waits to be read is not counted. A caller that reads columns must also acquire memory
// for the file's bytes.
func (s *source) open(ctx context.Context, m *segment.Manifest) (*segment.File, error) {
	give, err := s.budget.acquire(ctx, m.OpenWeight())
	if err != nil {
		return nil, err
	}
	defer give()
	return s.archive.File(ctx, m)
}

// read reads the records of the rows, in order, group by group.
func (s *source) read(ctx context.Context, hits []match, bodies bool) ([]usage.Record, error) {
	records := make([]usage.Record, len(hits))
	type place struct {
		part  *segment.Part
		group int
	}
	byGroup := make(map[place][]int) // indexes into hits
	for i, h := range hits {
		k := place{h.part, h.group}
		byGroup[k] = append(byGroup[k], i)
	}
	for k, indexes := range byGroup {
		slices.SortFunc(indexes, func(x, y int) int { return cmp.Compare(hits[x].row, hits[y].row) })
		rows := make([]int, len(indexes))
		for i, at := range indexes {
			rows[i] = hits[at].row
		}
		got, err := s.records(ctx, &k.part.Manifest, k.group, rows, bodies)
		if err != nil {
			return nil, err
		}
		for i, at := range indexes {
			records[at] = got[i]
		}
	}
	return records, nil
}

// records reads records of one group of a segment.
func (s *source) records(ctx context.Context, m *segment.Manifest, group int, rows []int, bodies bool) ([]usage.Record, error) {
	f, err := s.open(ctx, m)
	if err != nil {
		return nil, err
	}
	weight := f.RecordsWeight()
	if bodies {
		weight += f.BodiesWeight(group)
	}
	give, err := s.budget.acquire(ctx, weight)
	if err != nil {
		return nil, err
	}
	defer give()
	records, err := f.Records(ctx, group, rows)
	if err != nil || !bodies {
		return records, err
	}
	sealed, err := f.Bodies(ctx, group)
	if err != nil {
		return nil, err
	}
	for i := range records {
		if err := s.bodies(ctx, sealed, rows[i], &records[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// bodies reads the sealed bodies of one record from their location.
func (s *source) bodies(ctx context.Context, of *segment.Bodies, row int, rec *usage.Record) (err error) {
	if rec.Bodies, err = of.Row(ctx, row); err != nil {
		return err
	}
	return s.fetchBodies(ctx, rec)
}

// fetchBodies reads bodies that are a separate object in the bucket. They may be deleted
// before the record.
func (s *source) fetchBodies(ctx context.Context, rec *usage.Record) (err error) {
	if rec.Blob == "" {
		return nil
	}
	if rec.Bodies, err = s.bucket.Get(ctx, rec.Blob, 0); errors.Is(err, blob.ErrNotFound) {
		err = nil
	}
	return err
}

// pick reads the record with an id, and its bodies, from a group that may contain it.
func (s *source) pick(ctx context.Context, f *segment.File, group int, id string) (rec usage.Record, ok bool, err error) {
	need := columns{}
	give, err := s.budget.acquire(ctx, f.Weight()+need.weight(f, group, true)+f.RecordsWeight()+f.BodiesWeight(group))
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
