package segment

import (
	"context"
	"fmt"

	"gateway/shared/usage"
)

// recordReader reads the records of one input in order, a part of a group at a time.
type recordReader struct {
	a       *Archive
	m       *Manifest
	start   int64  // start of the current record,
	id      string // and its id
	opened  bool
	file    *File
	group   int
	from    int // row of records[0] in the group
	at      int
	records []usage.Record
	packs   *Strings
	offsets []int64
	lengths []int64
	own     []byte // the segment's pack, if it is in the store
}

// readAhead is the number of decoded records that a reader holds.
const readAhead = 128

func (k *recordReader) open(ctx context.Context) error {
	f, err := k.a.open(ctx, k.m, nil) // no cache: the file is read once and deleted after the merge
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

// load reads the records that begin at group and from.
func (k *recordReader) load(ctx context.Context) (more bool, err error) {
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
	rows := make([]int, 0, readAhead)
	for i := k.from; i < k.file.Groups[k.group].Rows && len(rows) < readAhead; i++ {
		rows = append(rows, i)
	}
	if k.records, err = k.file.Records(ctx, k.group, rows); err != nil {
		return false, err
	}
	k.at = 0
	k.start, k.id = k.records[0].Start.UnixMicro(), k.records[0].ID
	return true, nil
}

func (k *recordReader) next(ctx context.Context) (more bool, err error) {
	if k.at++; k.at < len(k.records) {
		k.start, k.id = k.records[k.at].Start.UnixMicro(), k.records[k.at].ID
		return true, nil
	}
	k.from += len(k.records)
	return k.load(ctx)
}

// ref returns the new location of the current record's bodies: the present one if that is
// in the bucket, otherwise in the new pack.
func (k *recordReader) ref(_ context.Context, pack *[]byte) (bodyRef, error) {
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
		return ref, fmt.Errorf("segment: bodies of %s are truncated", k.m.Name)
	}
	bodies := k.own[ref.offset : ref.offset+ref.length]
	ref.offset = int64(len(*pack))
	*pack = append(*pack, bodies...)
	return ref, nil
}

// readerHeap is a heap of readers, ordered by their current record.
type readerHeap []*recordReader

func (q readerHeap) Len() int { return len(q) }

func (q readerHeap) Less(i, j int) bool {
	if q[i].start != q[j].start {
		return q[i].start < q[j].start
	}
	// An unopened reader comes first, because its id is unknown.
	if q[i].opened != q[j].opened {
		return !q[i].opened
	}
	return q[i].id < q[j].id
}

func (q readerHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *readerHeap) Push(x any) { *q = append(*q, x.(*recordReader)) }

func (q *readerHeap) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil // free its file now, not at the end of the merge
	*q = old[:len(old)-1]
	return last
}
