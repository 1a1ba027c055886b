package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/fault"
	"gateway/shared/queue"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// memoryQueue gives messages to whoever asks, as often as the test wants.
type memoryQueue struct {
	mu   sync.Mutex
	sent []queue.Outgoing
	down bool
}

func (q *memoryQueue) Send(_ context.Context, ms ...queue.Outgoing) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.down {
		return errors.New("queue is down")
	}
	q.sent = append(q.sent, ms...)
	return nil
}
func (q *memoryQueue) Receive(context.Context, int, time.Duration, time.Duration) ([]queue.Message, error) {
	return nil, nil
}
func (q *memoryQueue) Delete(context.Context, ...queue.Message) error { return nil }
func (q *memoryQueue) Extend(context.Context, queue.Message, time.Duration) error {
	return nil
}

func (q *memoryQueue) messages() []queue.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]queue.Message, len(q.sent))
	for i, m := range q.sent {
		out[i] = queue.Message{ID: fmt.Sprint(i), Group: m.Group, Body: m.Body, Attempt: 1}
	}
	return out
}

var (
	org  = store.Scope{Org: "o1"}
	base = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
)

type installation struct {
	store store.Store
	r     *resource.Resources
	now   time.Time
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h := &installation{store: s, now: base}
	h.r = resource.New(s, resource.Clock(func() time.Time { return h.now }))
	return h
}

// change is a change that is audited.
func (h *installation) change(t *testing.T, e Entry) {
	t.Helper()
	err := h.r.Change(context.Background(), org, func(tx *resource.Tx) error {
		if err := Append(tx, e); err != nil {
			return err
		}
		return tx.Create(&resource.Record{Scope: org, Kind: "WIDGET", Name: "w"})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (h *installation) list(t *testing.T, f Filter) Result {
	t.Helper()
	if f.End.IsZero() {
		f.End = h.now
	}
	res, err := NewReader(h.store, func() time.Time { return h.now }).List(context.Background(), "o1", f)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (h *installation) deliver(t *testing.T, ms []queue.Message) {
	t.Helper()
	failed, err := NewWorker(h.store).Handle(context.Background(), ms)
	if err != nil || len(failed) != 0 {
		t.Fatalf("worker: %d failed, %v", len(failed), err)
	}
}

func (h *installation) waiting(t *testing.T) int {
	t.Helper()
	n := 0
	for i := range resource.OutboxPartitions {
		page, err := h.store.Table(store.Control).Query(context.Background(), store.Query{Partition: resource.OutboxPartition(i)})
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Rows)
	}
	return n
}

func TestRecordOfAProcessThatDiedAfterItsCommitIsSweptUp(t *testing.T) {
	h := newInstallation(t)
	for range 30 {
		h.change(t, Entry{Method: "POST", Action: Create}) // nobody sends
	}
	q := &memoryQueue{}
	s := NewSender(resource.New(h.store, resource.Clock(func() time.Time { return h.now })), q)
	if n, err := s.Sweep(context.Background()); n != 0 || err != nil {
		t.Errorf("swept %d records that are still being sent: %v", n, err)
	}
	h.now = h.now.Add(sweepAfter + time.Second)
	q.down = true
	if _, err := s.Sweep(context.Background()); err == nil || h.waiting(t) != 30 {
		t.Errorf("a queue that is down: %v, %d waiting", err, h.waiting(t))
	}
	q.down = false
	if n, err := s.Sweep(context.Background()); n != 30 || err != nil {
		t.Errorf("swept %d: %v", n, err)
	}
	h.deliver(t, q.messages())
	if res := h.list(t, Filter{Start: base.Add(-time.Hour), Size: 100}); res.Total != 30 || h.waiting(t) != 0 {
		t.Errorf("%d records, %d left in the outbox", res.Total, h.waiting(t))
	}
}

func TestCommittedRecordIsSentAtOnceAndStaysWhenTheQueueIsDown(t *testing.T) {
	h := newInstallation(t)
	q := &memoryQueue{}
	NewSender(h.r, q)
	h.change(t, Entry{Action: Create})
	if len(q.sent) != 1 || h.waiting(t) != 0 || q.sent[0].Group != "o1" {
		t.Errorf("%d sent, %d waiting", len(q.sent), h.waiting(t))
	}
	q.down = true
	h.change(t, Entry{Action: Update})
	if h.waiting(t) != 1 {
		t.Error("a record was lost with the queue")
	}
}

// What stayed in the outbox while the queue was down does not wait for the clock: it
// goes out with the next change.
func TestWhatTheQueueRefusedGoesOutWithTheNextChange(t *testing.T) {
	h := newInstallation(t)
	q := &memoryQueue{down: true}
	NewSender(h.r, q)
	for range 3 {
		h.change(t, Entry{Action: Create})
	}
	if h.waiting(t) != 3 {
		t.Fatalf("%d waiting", h.waiting(t))
	}
	h.now = h.now.Add(sweepAfter + time.Second)
	h.change(t, Entry{Action: Update}) // still down
	q.down = false
	h.now = h.now.Add(sweepAfter + time.Second)
	h.change(t, Entry{Action: Delete})
	if h.waiting(t) != 0 || len(q.sent) != 5 {
		t.Errorf("%d waiting, %d of 5 sent", h.waiting(t), len(q.sent))
	}
}

func TestBackgroundSenderDoesNotBlockTheCaller(t *testing.T) {
	h := newInstallation(t)
	q := &memoryQueue{}
	s := NewBackgroundSender(h.r, q)
	h.change(t, Entry{Action: Create})
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx, time.Hour) })
	h.change(t, Entry{Action: Update})
	deadline := time.Now().Add(time.Minute)
	for h.waiting(t) > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	stop()
	wg.Wait()
	if len(q.messages()) != 2 || h.waiting(t) != 0 {
		t.Errorf("%d sent, %d waiting", len(q.messages()), h.waiting(t))
	}
}

func TestFailedChangeLeavesNoRecord(t *testing.T) {
	h := newInstallation(t)
	err := h.r.Change(context.Background(), org, func(tx *resource.Tx) error {
		if err := Append(tx, Entry{Action: Create}); err != nil {
			return err
		}
		return errors.New("refused")
	})
	if err == nil || h.waiting(t) != 0 {
		t.Errorf("%v, %d waiting", err, h.waiting(t))
	}
}

func TestRecordsDeliveredOftenAndShuffledAreOneRowEach(t *testing.T) {
	h := newInstallation(t)
	q := &memoryQueue{}
	s := NewSender(h.r, q)
	for i := range 40 {
		h.now = base.Add(time.Duration(i) * time.Minute)
		if i%2 == 0 {
			h.change(t, Entry{Method: "PUT", URI: fmt.Sprint("/configs/", i), Action: Update})
		} else if err := s.Record(context.Background(), "o1", Entry{Method: "PUT", URI: fmt.Sprint("/configs/", i), StatusCode: 403}); err != nil {
			t.Fatal(err)
		}
	}
	var all []queue.Message
	for _, m := range q.messages() {
		for range 1 + rand.IntN(5) {
			all = append(all, m)
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	h.deliver(t, all)
	res := h.list(t, Filter{Start: base, Size: 100})
	if res.Total != 40 || len(res.Records) != 40 || res.TotalIsLowerBound {
		t.Fatalf("%d records of 40", res.Total)
	}
	for i, e := range res.Records {
		if e.URI != fmt.Sprint("/configs/", 39-i) || e.OrganisationID != "o1" {
			t.Fatalf("record %d is %s: not newest first", i, e.URI)
		}
	}
}

func TestOnlyTheUnreadableMessageIsReturned(t *testing.T) {
	h := newInstallation(t)
	q := &memoryQueue{}
	NewSender(h.r, q)
	h.change(t, Entry{Action: Create})
	ms := append(q.messages(), queue.Message{ID: "bad", Body: []byte("{}")}, queue.Message{ID: "worse", Body: []byte("x")})
	failed, err := NewWorker(h.store).Handle(context.Background(), ms)
	if err != nil || len(failed) != 2 || failed[0].ID != "bad" || failed[1].ID != "worse" {
		t.Errorf("failed %v, %v", failed, err)
	}
	if res := h.list(t, Filter{Start: base, Size: 1}); res.Total != 1 {
		t.Errorf("%d records", res.Total)
	}
}

func TestFiltersPagesAndCursorsAgree(t *testing.T) {
	h := newInstallation(t)
	w := NewWorker(h.store)
	var ms []queue.Message
	for i := range 60 { // over three months
		e := Entry{
			Timestamp: base.AddDate(0, 0, -i), Method: []string{"POST", "PUT", "DELETE"}[i%3], URI: fmt.Sprintf("/v1/configs/%d", i),
			UserID: fmt.Sprint("u", i%2), StatusCode: []int{200, 403}[i%2], Action: Update, ResourceType: "configs",
		}
		e.complete(base, "o1")
		row, err := e.row()
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, queue.Message{Body: row.Item.Bytes("entry")})
	}
	if failed, _ := w.Handle(context.Background(), ms); len(failed) > 0 {
		t.Fatal(failed)
	}
	everything := Filter{Start: base.AddDate(0, -6, 0), Size: 100}
	for name, c := range map[string]struct {
		edit func(*Filter)
		want int
	}{
		"all":         {func(*Filter) {}, 60},
		"method":      {func(f *Filter) { f.Method = "PUT" }, 20},
		"uri prefix":  {func(f *Filter) { f.URI = "/v1/configs/5" }, 11},
		"user":        {func(f *Filter) { f.UserID = "u1" }, 30},
		"status":      {func(f *Filter) { f.StatusCode = 403; f.Method = "POST" }, 10},
		"other type":  {func(f *Filter) { f.ResourceType = "prompts" }, 0},
		"time":        {func(f *Filter) { f.Start, f.End = base.AddDate(0, 0, -9), base.AddDate(0, 0, -5) }, 5},
		"no time":     {func(f *Filter) { f.Start = time.Time{} }, 60},
		"end < start": {func(f *Filter) { f.End = f.Start.Add(-time.Second) }, 0},
	} {
		f := everything
		c.edit(&f)
		if res := h.list(t, f); res.Total != c.want || len(res.Records) != c.want {
			t.Errorf("%s: %d of %d", name, res.Total, c.want)
		}
	}
	byPage, byCursor := walkPages(t, h, everything, false), walkPages(t, h, everything, true)
	if len(byPage) != 60 {
		t.Errorf("%d records by page", len(byPage))
	}
	if diff := cmp.Diff(byPage, byCursor); diff != "" {
		t.Errorf("cursor and page differ:\n%s", diff)
	}
	total := everything
	total.Size = 0
	if res := h.list(t, total); res.Total != 60 || len(res.Records) != 0 || res.Next != "" {
		t.Errorf("page size 0: %+v", res)
	}
	_, err := NewReader(h.store, time.Now).List(context.Background(), "o1", Filter{Start: base, End: base, Cursor: "x#y"})
	if !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("bad cursor: %v", err)
	}
	if res, _ := NewReader(h.store, time.Now).List(context.Background(), "o2", everything); res.Total != 0 {
		t.Error("another organization reads the log")
	}
}

func walkPages(t *testing.T, h *installation, f Filter, byCursor bool) (uris []string) {
	t.Helper()
	f.Size = 7
	for {
		res := h.list(t, f)
		for _, e := range res.Records {
			uris = append(uris, e.URI)
		}
		if res.Next == "" {
			return uris
		}
		if byCursor {
			f.Cursor = res.Next
		} else {
			f.Page++
		}
	}
}
