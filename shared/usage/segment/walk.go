package segment

import (
	"context"
	"fmt"

	"gateway/shared/usage"
)

// walk goes through the records of one input in order, one piece of a group at a time.
type walk struct {
	a       *Archive
	m       *Manifest
	start   int64  // start of the current record,
	id      string // and its id
	opened  bool
	file    *File
	group   int
	from    int // row in the group where records[0] is
	at      int
	records []usage.Record
	packs   *Strings
	offsets []int64
	lengths []int64
	own     []byte // the segment's own pack, if it is in the store
}

// piece is how many decoded records a walk has at a time.
const piece = 128

func (k *walk) open(ctx context.Context) error {
	f, err := k.a.open(ctx, k.m, nil) // no cache: the file is read once, and is gone after the merge
	if err != nil {
		return err
	}
	k.file, k.opened = f, true
	if k.m.bodies && !k.m.inBucket(bodiesObject) {
		if k.own, err = k.a.objects.get(ctx, k.m, bodiesObject); err != nil {
			return err
		}
	}
	k.group, k.from, k.at = 0, 0, 0
	_, err = k.load(ctx)
	return err
}

// load reads the piece that begins at group and from.
func (k *walk) load(ctx context.Context) (more bool, err error) {
	for k.group < len(k.file.Groups) && k.from >= k.file.Groups[k.group].Rows {
		k.group, k.from = k.group+1, 0
	}
	if k.group == len(k.file.Groups) {
		return false, nil
	}
	if k.from == 0 {
		if k.packs, k.offsets, k.lengths, err = k.file.bodyRefs(ctx, k.group); err != nil {
			return false, err
		}
	}
	rows := make([]int, 0, piece)
	for i := k.from; i < k.file.Groups[k.group].Rows && len(rows) < piece; i++ {
		rows = append(rows, i)
	}
	if k.records, err = k.file.Records(ctx, k.group, rows); err != nil {
		return false, err
	}
	k.at = 0
	k.start, k.id = k.records[0].Start.UnixMicro(), k.records[0].ID
	return true, nil
}

func (k *walk) next(ctx context.Context) (more bool, err error) {
	if k.at++; k.at < len(k.records) {
		k.start, k.id = k.records[k.at].Start.UnixMicro(), k.records[k.at].ID
		return true, nil
	}
	k.from += len(k.records)
	return k.load(ctx)
}

// ref returns where the bodies of the current record will be: where they are now if that is
// in the bucket, otherwise in the new pack.
func (k *walk) ref(_ context.Context, pack *[]byte) (bodyRef, error) {
	i := k.from + k.at
	ref := bodyRef{k.packs.At(i), k.offsets[i], k.lengths[i]}
	if ref.length == 0 || ref.pack != "" {
		return ref, nil
	}
	if k.m.inBucket(bodiesObject) {
		ref.pack = k.m.blobKey(bodiesObject)
		return ref, nil
	}
	if ref.offset+ref.length > int64(len(k.own)) {
		return ref, fmt.Errorf("segment: bodies of %s are cut short", k.m.Name)
	}
	bodies := k.own[ref.offset : ref.offset+ref.length]
	ref.offset = int64(len(*pack))
	*pack = append(*pack, bodies...)
	return ref, nil
}

// walkQueue is a heap of walks, ordered by their current record.
type walkQueue []*walk

func (q walkQueue) Len() int { return len(q) }

func (q walkQueue) Less(i, j int) bool {
	if q[i].start != q[j].start {
		return q[i].start < q[j].start
	}
	// A walk that is not open yet comes first, because its id is not known until it is
	// opened.
	if q[i].opened != q[j].opened {
		return !q[i].opened
	}
	return q[i].id < q[j].id
}

func (q walkQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *walkQueue) Push(x any) { *q = append(*q, x.(*walk)) }

func (q *walkQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil // its file is freed now, not at the end of the merge
	*q = old[:len(old)-1]
	return last
}
