package batchrun

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/queue"
	"gateway/shared/relay/batch"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// brokenRoom is a Room with files that cannot be read.
type brokenRoom struct {
	batch.FileStore
	err error
}

func (r brokenRoom) File(context.Context, string) (*chat.StoredFile, error) { return nil, r.err }

// sent is a queue that records the messages sent.
type sent struct {
	queue.Queue
	mu       sync.Mutex
	messages []queue.Outgoing
}

func (s *sent) Send(_ context.Context, messages ...queue.Outgoing) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, messages...)
	return nil
}

type bench struct {
	*Runner
	t     *testing.T
	queue *sent
	now   time.Time
	room  *brokenRoom
}

var here = store.Scope{Org: "o", Workspace: "w"}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, queue: &sent{}, now: time.Now().Truncate(time.Second), room: &brokenRoom{}}
	clock := func() time.Time { return b.now }
	tables, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tables.Close() })
	master, err := local.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	b.Runner = New(Options{
		Batches: &batch.Batches{Now: clock, Store: tables, Sealer: seal.New(master, clock)},
		Files:   func(store.Scope) batch.FileStore { return b.room },
		Queue:   b.queue, Now: clock, Timing: DefaultTiming, OnError: func(error) {},
	})
	return b
}

func (b *bench) create() *batch.Batch {
	b.t.Helper()
	made, err := b.Batches.Create(b.t.Context(), here, batch.Definition{Endpoint: "/v1/embeddings", Input: "gw_file_1", Window: batch.Immediate, Key: "hash"})
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// do delivers the message of a batch's step and returns the resulting batch and error.
func (b *bench) do(id string, step int64) (*batch.Batch, error) {
	b.t.Helper()
	err := b.handle(b.t.Context(), queue.Message{Body: batch.Message(here, id, step, 0).Body})
	got, gerr := b.Batches.Get(b.t.Context(), here, id)
	if gerr != nil || got == nil {
		b.t.Fatalf("%v %v", got, gerr)
	}
	return got, err
}

// A rejection with a text of any length ends the batch: the stored part fits.
func TestALongRefusalEndsABatch(t *testing.T) {
	b := newBench(t)
	refusal := fault.New(fault.ProviderError, strings.Repeat("f", 600<<10), strings.Repeat("\x01é", 300<<10))
	refusal.StatusCode = http.StatusBadRequest
	b.room.err = refusal
	got, err := b.do(b.create().ID, 0)
	if err != nil || got.Status != batch.Failed || len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0].Message, "\x01é") || len(got.Problems[0].Message) > 1<<10 {
		t.Errorf("%v: %s, %d problems", err, got.Status, len(got.Problems))
	}
}

// A step that keeps failing is retried until the batch is long overdue.
func TestABatchWhoseStepAlwaysFailsEnds(t *testing.T) {
	b := newBench(t)
	b.room.err = errors.New("a chunk is lost")
	made := b.create()
	began := b.now
	for _, after := range []time.Duration{0, batch.Lifetime + time.Hour, batch.Lifetime + 23*time.Hour} {
		b.now = began.Add(after)
		if got, err := b.do(made.ID, 0); err == nil || got.Status != batch.Validating || got.Holder(b.now) != "" {
			t.Fatalf("after %v: %v, %s", after, err, got.Status)
		}
	}
	b.now = began.Add(batch.Lifetime + 25*time.Hour)
	if got, err := b.do(made.ID, 0); err != nil || got.Status != batch.Failed || len(got.Problems) != 1 {
		t.Errorf("%v, %s %v", err, got.Status, got.Problems)
	}
	if err := b.Sweep(t.Context()); err != nil || len(b.queue.messages) != 0 {
		t.Errorf("%v, %d messages", err, len(b.queue.messages))
	}
}
