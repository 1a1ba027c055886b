package segment

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// When segments are merged, and how many at once.
const (
	settleTime  = 15 * time.Second // a batch is this old before it is merged
	hourGrace   = 5 * time.Minute  // after its end, an hour is merged whole
	dayGrace    = time.Hour        //
	gonePeriod  = 10 * time.Minute // how long merged segments stay for readers that hold their manifest
	minMinute   = 4                // fewer batches are left for later
	maxInputs   = 90               // of one merge: its swap is one transaction
	hourSeconds = 3600
)

func dues() store.Partition { return store.System("USAGE-DUE") }

// dueCache remembers which hours this process has noted while they last.
type dueCache struct {
	mu sync.Mutex
	m  map[groupKey]struct{}
}

// noteDue writes that an hour or a day has something to merge. Every note is
// new to the compactor, so that one made while it worked is not lost. Notes for
// an hour that lasts are written once: nothing removes them before it is over.
func (a *Archive) noteDue(ctx context.Context, sort, org string, hour int64) error {
	k := groupKey{org, hour}
	now := a.o.Clock()
	lasting := sort == "H" && now.Unix()/hourSeconds == hour
	if lasting {
		a.noted.mu.Lock()
		_, done := a.noted.m[k]
		a.noted.mu.Unlock()
		if done {
			return nil
		}
	}
	row := store.Row{Key: dues().Key(sort, fmt.Sprintf("%08d", hour), org), Item: store.Item{"org": org, "hour": hour, "note": now.UnixNano()}}
	if err := a.table.Put(ctx, row); err != nil {
		return fmt.Errorf("segment: due: %w", err)
	}
	if lasting {
		a.noted.mu.Lock()
		defer a.noted.mu.Unlock()
		for old := range a.noted.m {
			if old.hour != hour {
				delete(a.noted.m, old)
			}
		}
		if a.noted.m == nil {
			a.noted.m = make(map[groupKey]struct{})
		}
		a.noted.m[k] = struct{}{}
	}
	return nil
}

// Compact merges what is due; call it every minute or so. Several at once do no
// harm. Answers stay the same throughout.
func (a *Archive) Compact(ctx context.Context) error {
	now := a.o.Clock()
	errs := []error{a.sweep(ctx, now)}
	for _, sort := range [...]string{"H", "D"} {
		err := a.eachDue(ctx, sort, func(row store.Row) error {
			org, hour := row.Item.String("org"), row.Item.Int("hour")
			var done bool
			var err error
			if sort == "H" {
				done, err = a.compactHour(ctx, org, hour, now)
			} else {
				done, err = a.compactDay(ctx, org, hour, now)
			}
			if err != nil || !done {
				return err
			}
			err = a.table.Delete(ctx, row.Key, store.IfEqual(store.At("note"), row.Item.Int("note")))
			if _, newer := store.AsCondition(err); newer {
				err = nil
			}
			return err
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// eachDue walks the notes of one sort; an error of one does not stop the others.
func (a *Archive) eachDue(ctx context.Context, sort string, do func(store.Row) error) error {
	var errs []error
	q := store.Query{Partition: dues(), Prefix: sort + "#"}
	for {
		page, err := a.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("segment: due: %w", err)
		}
		for _, row := range page.Rows {
			if err := do(row); err != nil {
				errs = append(errs, err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if page.Next == "" {
			return errors.Join(errs...)
		}
		q.After = page.Next
	}
}

// compactHour merges within an hour; done when the hour is over and whole.
func (a *Archive) compactHour(ctx context.Context, org string, hour int64, now time.Time) (done bool, err error) {
	key := hourKey(hour)
	over := !now.Before(time.Unix((hour+1)*hourSeconds, 0).Add(hourGrace))
	list, err := a.list(ctx, org, key, key+"#~", func(m *Manifest) bool {
		return m.Tier < TierDay && (over || m.Tier == TierBatch && now.Sub(m.Created) >= settleTime)
	})
	if err != nil {
		return false, err
	}
	tier := TierMinute
	if over {
		tier = TierHour
	}
	for len(list) > maxInputs {
		if err := a.merge(ctx, list[:maxInputs], TierMinute, hour); err != nil {
			return false, err
		}
		list = list[maxInputs:]
		if over {
			return false, nil // the rest at the next call, when the merged ones are listed
		}
	}
	if over && len(list) > 1 || len(list) >= minMinute {
		if err := a.merge(ctx, list, tier, hour); err != nil {
			return false, err
		}
	}
	if !over {
		return false, nil
	}
	return true, a.noteDue(ctx, "D", org, hour-hour%24)
}

// compactDay merges a day that is over into one segment, unless it is too large.
func (a *Archive) compactDay(ctx context.Context, org string, day int64, now time.Time) (done bool, err error) {
	if now.Before(time.Unix((day+24)*hourSeconds, 0).Add(dayGrace)) {
		return false, nil
	}
	list, err := a.ofDay(ctx, org, day)
	if err != nil {
		return false, err
	}
	if err := a.noteKept(ctx, org, day); err != nil {
		return false, err
	}
	var total int64
	for i := range list {
		total += list[i].Records
	}
	if total > a.o.MaxDayRecords || len(list) < 2 {
		return true, nil
	}
	if len(list) > maxInputs {
		return false, a.merge(ctx, list[:maxInputs], TierDay, day)
	}
	return true, a.merge(ctx, list, TierDay, day)
}

// merge writes one segment of all records of the inputs and swaps the manifests.
// When another compactor was faster, nothing changes.
func (a *Archive) merge(ctx context.Context, inputs []Manifest, tier Tier, hour int64) error {
	w := &merger{a: a, cube: newCubeBuilder(), e: smallEncoders.Get().(*encoder), seen: make(map[string]struct{})}
	defer smallEncoders.Put(w.e)
	w.e.reset()
	id, err := w.run(ctx, inputs)
	if err != nil {
		if errors.Is(err, ErrGone) {
			return nil // merged elsewhere
		}
		return err
	}
	m := Manifest{Org: inputs[0].Org, ID: id, Tier: tier, Hour: hour, Min: w.min, Max: w.max, Records: w.records, Created: a.o.Clock()}
	actions := make([]store.Action, 0, len(inputs)+2)
	left := make([]string, 0, len(inputs))
	standing := false // an input is already what the merge would make
	for i := range inputs {
		in := &inputs[i]
		if in.key() == m.key() {
			standing = true
			continue
		}
		actions = append(actions, store.Action{Table: store.Usage, Delete: &store.Delete{Key: in.key(), If: []store.Cond{store.IfEqual(store.At("name"), in.Name)}}})
		left = append(left, in.leftNote())
	}
	if !standing {
		if err := w.save(ctx, &m); err != nil {
			return err
		}
		actions = append(actions, store.Action{Table: store.Usage, Put: &store.Put{Row: store.Row{Key: m.key(), Item: m.item()}, If: []store.Cond{store.IfAbsent()}}})
	}
	actions = append(actions, a.leave(m.Org, m.ID+strconv.Itoa(int(tier)), left))
	err = a.store.Transact(ctx, actions...)
	if _, lost := store.AsCondition(err); lost || errors.Is(err, store.ErrContended) {
		if standing {
			return nil
		}
		// A repeated write of this very transaction fails as well: then it was done.
		item, _, err := a.table.Get(ctx, m.key(), true)
		if err != nil || item.String("name") == m.Name {
			return err
		}
		return a.drop(ctx, &m, false)
	}
	if err != nil {
		return fmt.Errorf("segment: swap: %w", err)
	}
	return nil
}

// sweep deletes the objects of segments that were merged long enough ago.
func (a *Archive) sweep(ctx context.Context, now time.Time) error {
	q := store.Query{Partition: dues(), From: "G#", To: fmt.Sprintf("G#%014d", now.Add(-gonePeriod).UnixMilli())}
	for {
		page, err := a.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("segment: sweep: %w", err)
		}
		for _, row := range page.Rows {
			for text := range strings.SplitSeq(row.Item.String("left"), "\n") {
				if text == "" {
					continue
				}
				part := strings.Split(text, "/")
				if len(part) != 4 {
					return fmt.Errorf("segment: sweep: a note with %d parts", len(part))
				}
				hour, err := strconv.ParseInt(part[2], 10, 64)
				if err != nil {
					return fmt.Errorf("segment: sweep: %w", err)
				}
				m := Manifest{Org: row.Item.String("org"), Name: part[0], blobs: part[1], Hour: hour, bodies: part[3] == "true"}
				if err := a.drop(ctx, &m, true); err != nil {
					return err
				}
			}
			if err := a.table.Delete(ctx, row.Key); err != nil {
				return fmt.Errorf("segment: sweep: %w", err)
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// merger writes the records of several segments as one, in order, each once.
type merger struct {
	a        *Archive
	cube     *cubeBuilder
	e        *encoder
	rows     []row
	arena    []byte
	pack     []byte
	seen     map[string]struct{} // ids at the present microsecond
	seenAt   int64
	records  int64
	min, max int64
}

func (w *merger) run(ctx context.Context, inputs []Manifest) (id string, err error) {
	hash := sha256.New()
	queue := make(walkQueue, 0, len(inputs))
	for i := range inputs {
		queue = append(queue, &walk{a: w.a, m: &inputs[i], start: inputs[i].Min}) // opened when its turn comes
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

// add takes the walk's present record, unless it came before.
func (w *merger) add(ctx context.Context, from *walk, hash func([]byte) (int, error)) error {
	r := &from.records[from.at]
	start := r.Start.UnixMicro()
	if start != w.seenAt {
		clear(w.seen)
		w.seenAt = start
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
	if len(w.rows) == 1024 {
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
	return w.a.put(ctx, m, objects)
}

// walk goes through one input's records in order, a piece of a group at a time.
type walk struct {
	a       *Archive
	m       *Manifest
	start   int64  // of the present record,
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
	own     []byte // the segment's own pack, when it stands in the store
}

// piece is how many records a walk holds decoded.
const piece = 512

func (k *walk) open(ctx context.Context) error {
	f, err := k.a.open(ctx, k.m, nil) // read once, and gone after the merge
	if err != nil {
		return err
	}
	k.file, k.opened = f, true
	if k.m.bodies && !k.m.inBucket(bodiesObject) {
		if k.own, err = k.a.object(ctx, k.m, bodiesObject); err != nil {
			return err
		}
	}
	k.group, k.from, k.at = 0, 0, 0
	_, err = k.load(ctx)
	return err
}

// load reads the piece at group and from.
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

// ref gives where the present record's bodies will be: where they are when that
// is in the bucket, else in the new pack.
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

// walkQueue is a heap of walks by their present record.
type walkQueue []*walk

func (q walkQueue) Len() int { return len(q) }
func (q walkQueue) Less(i, j int) bool {
	if q[i].start != q[j].start {
		return q[i].start < q[j].start
	}
	// A walk that is not open yet goes first, so that its ids are known.
	if q[i].opened != q[j].opened {
		return !q[i].opened
	}
	return q[i].id < q[j].id
}
func (q walkQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *walkQueue) Push(x any)   { *q = append(*q, x.(*walk)) }
func (q *walkQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil // its file goes now, not when the merge is over
	*q = old[:len(old)-1]
	return last
}

// CompactEvery compacts at once and then every so often until ctx is done.
// onError hears of failed runs; the next run tries again.
func (a *Archive) CompactEvery(ctx context.Context, every time.Duration, onError func(error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := a.Compact(ctx); err != nil && ctx.Err() == nil && onError != nil {
			onError(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
