package segment

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// merge writes one segment with all records of the inputs and swaps the manifests. If
// another compactor was faster, nothing changes.
func (a compactor) merge(ctx context.Context, inputs []Manifest, tier Tier, hour int64) error {
	w := &merger{a: a.archive, cube: newCubeBuilder(), e: smallEncoders.Get().(*encoder), seen: make(map[string]struct{})}
	defer smallEncoders.Put(w.e)
	w.e.reset()
	id, err := w.run(ctx, inputs)
	if err != nil {
		if errors.Is(err, ErrDeleted) {
			return nil // another compactor has merged them
		}
		return err
	}
	m := Manifest{Org: inputs[0].Org, ID: id, Tier: tier, Hour: hour, Min: w.min, Max: w.max, Records: w.records, Created: a.archive.o.Clock()}
	actions := make([]store.Action, 0, len(inputs)+2)
	left := make([]string, 0, len(inputs))
	standing := false // an input already is the result of the merge
	put := store.IfAbsent()
	for i := range inputs {
		in := &inputs[i]
		if in.key() == m.key() {
			if standing = !a.archive.needsFile(in); !standing { // the row of the input gets the name of the new file
				put = store.IfEqual(store.At("name"), in.Name)
				left = append(left, in.deletionNote())
			}
			continue
		}
		actions = append(actions, store.Action{Table: store.Usage, Delete: &store.Delete{Key: in.key(), If: []store.Cond{store.IfEqual(store.At("name"), in.Name)}}})
		left = append(left, in.deletionNote())
	}
	if !standing {
		if err := w.save(ctx, &m); err != nil {
			return err
		}
		actions = append(actions, store.Action{Table: store.Usage, Put: &store.Put{Row: store.Row{Key: m.key(), Item: m.item()}, If: []store.Cond{put}}})
	}
	actions = append(actions, a.archive.scheduleDeletion(m.Org, m.ID+strconv.Itoa(int(tier)), left))
	err = a.archive.store.Transact(ctx, actions...)
	if _, lost := store.AsCondition(err); lost || errors.Is(err, store.ErrContended) {
		if standing {
			return nil
		}
		// If this same transaction succeeded before, it fails now: then nothing is left
		// to do.
		item, _, err := a.archive.table.Get(ctx, m.key(), true)
		if err != nil || item.String("name") == m.Name {
			return err
		}
		return a.archive.objects.drop(ctx, &m, false)
	}
	if err != nil {
		return fmt.Errorf("segment: swap: %w", err)
	}
	return nil
}

// flushRows is the number of rows passed to the encoder together. It is well below a page
// of events, so that pages keep their size.
const flushRows = 128

// merger writes the records of several segments as one segment, in order and without
// duplicates.
type merger struct {
	a        *Archive
	cube     *cubeBuilder
	e        *encoder
	rows     []row
	arena    []byte
	pack     []byte
	seen     map[string]struct{} // ids in the current millisecond
	seenAt   int64
	records  int64
	min, max int64
	out      *removal // records to remove; nil if none
}

func (w *merger) run(ctx context.Context, inputs []Manifest) (id string, err error) {
	hash := sha256.New()
	queue := make(readerHeap, 0, len(inputs))
	for i := range inputs {
		queue = append(queue, &recordReader{a: w.a, m: &inputs[i], start: inputs[i].Min}) // opened when it is first needed
	}
	heap.Init(&queue)
	for len(queue) > 0 {
		top := queue[0]
		if !top.opened {
			if err := top.open(ctx); err != nil {
				return "", err
			}
			heap.Fix(&queue, 0)
			continue
		}
		if err := w.add(ctx, top, hash.Write); err != nil {
			return "", err
		}
		more, err := top.next(ctx)
		if err != nil {
			return "", err
		}
		if more {
			heap.Fix(&queue, 0)
		} else {
			heap.Pop(&queue)
		}
	}
	if err := w.flush(); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// add adds the reader's current record unless it is a duplicate.
func (w *merger) add(ctx context.Context, from *recordReader, hash func([]byte) (int, error)) error {
	r := &from.records[from.at]
	if w.out != nil && w.out.takes(from, r) {
		return nil
	}
	start := r.Start.UnixMicro()
	if at := start / sameTime; at != w.seenAt {
		clear(w.seen)
		w.seenAt = at
	}
	if _, twice := w.seen[r.ID]; twice {
		return nil
	}
	w.seen[r.ID] = struct{}{}
	ref, err := from.ref(ctx, &w.pack)
	if err != nil {
		return err
	}
	if _, err := hash(append([]byte(r.ID), 0)); err != nil {
		return err
	}
	if w.records == 0 {
		w.min = start
	}
	w.max = start
	w.records++
	w.cube.add(r)
	w.rows = append(w.rows, row{})
	w.arena = w.rows[len(w.rows)-1].fill(r, ref, w.arena)
	if len(w.rows) == flushRows {
		return w.flush()
	}
	return nil
}

func (w *merger) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	err := w.e.write(w.rows)
	w.rows, w.arena = w.rows[:0], w.arena[:0]
	return err
}

func (w *merger) save(ctx context.Context, m *Manifest) error {
	if err := m.rename(); err != nil {
		return err
	}
	data, err := w.e.finish()
	if err != nil {
		return err
	}
	cube, err := w.cube.encode()
	if err != nil {
		return fmt.Errorf("segment: cube: %w", err)
	}
	objects := map[kind][]byte{dataObject: data, cubeObject: cube}
	if len(w.pack) > 0 {
		objects[bodiesObject] = w.pack
	}
	return w.a.objects.put(ctx, m, objects)
}

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
