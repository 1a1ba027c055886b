package usage_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	worker "gateway/functions/usage"
	"gateway/shared/queue"
	"gateway/shared/usage"
)

// books keep what a worker gives them.
type books struct {
	stored  []string
	settled []usage.Settle
	fail    error
}

func (b *books) Ingest(_ context.Context, records []usage.Record) error {
	if b.fail != nil {
		return b.fail
	}
	for i := range records {
		b.stored = append(b.stored, records[i].ID)
	}
	return nil
}

func (b *books) SettleEntry(_ context.Context, e usage.Settle) error {
	b.settled = append(b.settled, e)
	return nil
}

func message(id string, records ...usage.Record) queue.Message {
	var body []byte
	for i := range records {
		body = records[i].AppendEvent(body)
	}
	return queue.Message{ID: id, Body: body, Attempt: 1}
}

func record(id string) usage.Record {
	return usage.Record{ID: id, Org: "o", Start: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
}

func TestEventsAreStoredAndUnreadableMessagesReturned(t *testing.T) {
	b := &books{}
	settling := record("c")
	settling.SettleSubjects = []usage.Settle{{}}
	w := worker.Worker{Ingester: b, Settler: b}
	failed, err := w.Handle(t.Context(), []queue.Message{
		message("1", record("a"), record("b")), {ID: "2", Body: []byte("no event")}, message("3", settling),
	})
	if err != nil || len(failed) != 1 || failed[0].ID != "2" {
		t.Errorf("given back: %v, %v", failed, err)
	}
	if !slices.Equal(b.stored, []string{"a", "b", "c"}) || len(b.settled) != 1 {
		t.Errorf("kept %v, settled %d", b.stored, len(b.settled))
	}
}

func TestNothingToRead(t *testing.T) {
	w := worker.Worker{Ingester: &books{fail: errors.New("must not be called")}}
	failed, err := w.Handle(t.Context(), []queue.Message{{ID: "1", Body: []byte("?")}})
	if err != nil || len(failed) != 1 {
		t.Errorf("%v, %v", failed, err)
	}
}

func TestBatchThatCannotBeStoredIsRedelivered(t *testing.T) {
	down := errors.New("the store is down")
	b := &books{fail: down}
	w := worker.Worker{Ingester: b, Settler: b}
	if _, err := w.Handle(t.Context(), []queue.Message{message("1", record("a"))}); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	if len(b.settled) != 0 {
		t.Error("settled before it was kept")
	}
}
