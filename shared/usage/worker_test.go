package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/queue"
)

// memoryIngester ingests into memory and fails as often as configured.
type memoryIngester struct {
	mu    sync.Mutex
	ids   []string
	fail  int
	batch chan int // size of each stored batch; may be nil
}

func (k *memoryIngester) Ingest(_ context.Context, records []Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail > 0 {
		k.fail--
		return errors.New("no luck")
	}
	for i := range records {
		k.ids = append(k.ids, records[i].ID)
	}
	if k.batch != nil {
		k.batch <- len(records)
	}
	return nil
}

type settler struct {
	mu      sync.Mutex
	settled []Settle
}

func (s *settler) SettleEntry(_ context.Context, e Settle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, e)
	return nil
}

func TestWorkerStoresSettlesAndDrains(t *testing.T) {
	j := openJournal(t, t.TempDir(), JournalOptions{})
	k, s := &memoryIngester{fail: 2, batch: make(chan int, 100)}, &settler{}
	failures := 0
	w := &Worker{Source: j, Ingester: k, Settler: s, MaxDelay: time.Millisecond, OnError: func(error) { failures++ }}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	want := names(40)
	emit(t, j, want[:20]...)
	for stored := 0; stored < 20; {
		stored += <-k.batch
	}
	stop()
	emit(t, j, want[20:]...) // while it stops: still drained, here or by the next process
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := append(k.ids, drain(t, j, 100, true)...)
	if !slices.Equal(got, want) {
		t.Errorf("kept %v", got)
	}
	if len(s.settled) != len(k.ids) || s.settled[0] != sample().SettleSubjects[0] {
		t.Errorf("%d settled", len(s.settled))
	}
	if failures != 2 {
		t.Errorf("heard of %d failures", failures)
	}
}

func TestWorkerDrainsWhatWasWrittenBeforeItStopped(t *testing.T) {
	j := openJournal(t, t.TempDir(), JournalOptions{})
	want := names(2500)
	emit(t, j, want...)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	k := &memoryIngester{}
	if err := (&Worker{Source: j, Ingester: k}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.ids, want) {
		t.Errorf("kept %d of %d", len(k.ids), len(want))
	}
}

func TestWorkerGivesUpWhenTheDrainTakesTooLong(t *testing.T) {
	j := openJournal(t, t.TempDir(), JournalOptions{})
	emit(t, j, "one")
	ctx, stop := context.WithCancel(context.Background())
	stop()
	k := &memoryIngester{fail: 1 << 30}
	if err := (&Worker{Source: j, Ingester: k, DrainTime: 10 * time.Millisecond}).Run(ctx); err == nil {
		t.Error("a batch was left behind without an error")
	}
	if got := drain(t, j, 10, false); len(got) != 0 {
		t.Fatalf("read twice by one process: %v", got)
	}
	if next := openJournal(t, j.dir, JournalOptions{}); len(drain(t, next, 10, false)) != 1 {
		t.Error("the record is lost")
	}
}

// lane is a queue in memory without visibility.
type lane struct {
	mu       sync.Mutex
	messages []queue.Message
	sent     int
	deleted  []string
	wake     chan struct{}
}

func newLane() *lane { return &lane{wake: make(chan struct{}, 1)} }

func (l *lane) Send(_ context.Context, messages ...queue.Outgoing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		l.sent++
		l.messages = append(l.messages, queue.Message{ID: fmt.Sprint(l.sent), Group: m.Group, Body: slices.Clone(m.Body), Receipt: fmt.Sprint(l.sent)})
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

func (l *lane) Receive(ctx context.Context, max int, wait, _ time.Duration) ([]queue.Message, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		l.mu.Lock()
		n := min(max, len(l.messages))
		out := slices.Clone(l.messages[:n])
		l.messages = l.messages[n:]
		l.mu.Unlock()
		if n > 0 {
			return out, nil
		}
		select {
		case <-l.wake:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *lane) Delete(_ context.Context, messages ...queue.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		l.deleted = append(l.deleted, m.Receipt)
	}
	return nil
}

func (l *lane) Extend(context.Context, queue.Message, time.Duration) error { return nil }

func TestQueueCarriesRecordsToTheWorker(t *testing.T) {
	l, h := newLane(), &heap{m: make(map[string][]byte)}
	sink := &QueueSink{Queue: l, Bucket: h}
	want := names(25)
	for _, id := range want[:5] {
		r := sample()
		r.ID = id
		if err := sink.Emit(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
	}
	var forwarded []Record
	for _, id := range want[5:] {
		r := sample()
		r.ID = id
		forwarded = append(forwarded, r)
	}
	if err := sink.Ingest(context.Background(), forwarded); err != nil {
		t.Fatal(err)
	}
	if err := l.Send(context.Background(), queue.Outgoing{Body: []byte("no event")}); err != nil {
		t.Fatal(err)
	}
	bad := 0
	src := &QueueSource{Queue: l, OnMalformed: func(queue.Message, error) { bad++ }}
	k := &memoryIngester{}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := (&Worker{Source: src, Ingester: k}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.ids, want) || bad != 1 || len(l.deleted) != 25 || l.sent != 26 {
		t.Errorf("kept %d, bad %d, deleted %d, sent %d", len(k.ids), bad, len(l.deleted), l.sent)
	}
}

func TestQueueSourceBatchesWithinItsDelay(t *testing.T) {
	l := newLane()
	src := &QueueSource{Queue: l}
	sink := &QueueSink{Queue: l}
	r := sample()
	if err := sink.Ingest(context.Background(), []Record{r, r, r}); err != nil {
		t.Fatal(err)
	}
	b, err := src.Next(context.Background(), 100, time.Millisecond)
	if err != nil || len(b.Records) != 3 || len(l.deleted) != 0 {
		t.Fatal(len(b.Records), err)
	}
	if err := b.Done(context.Background()); err != nil || len(l.deleted) != 3 {
		t.Error(len(l.deleted), err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := src.Next(ctx, 100, time.Millisecond); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestMessageTooLargePutsItsBodiesIntoTheBucket(t *testing.T) {
	l, h := newLane(), &heap{m: make(map[string][]byte)}
	sink := &QueueSink{Queue: l, Bucket: h}
	r := sample()
	r.Bodies = make([]byte, MaxInlineBody)
	r.ErrorMessage = string(make([]byte, 600<<10))
	if err := sink.Emit(context.Background(), &r); err != nil {
		t.Fatal(err)
	}
	if len(h.m) != 1 || len(l.messages[0].Body) > queue.MaxBody {
		t.Errorf("%d blobs, a message of %d bytes", len(h.m), len(l.messages[0].Body))
	}
	r.ErrorMessage = string(make([]byte, 2<<20))
	if err := sink.Emit(context.Background(), &r); err == nil {
		t.Error("a message over the limit was sent")
	}
}

func TestARecordOfManyAttemptsFitsAMessage(t *testing.T) {
	l := newLane()
	r := sample()
	r.Cost, r.Attempts = 1000, make([]Attempt, 1000)
	for i := range r.Attempts {
		r.Attempts[i] = Attempt{Provider: "openai", Model: strings.Repeat("m", 2048), Status: 500, Retry: i, Cost: 1}
	}
	if err := (&QueueSink{Queue: l}).Ingest(context.Background(), []Record{r}); err != nil {
		t.Fatal(err)
	}
	got, err := DecodeEvents(l.messages[0].Body)
	if err != nil || len(got) != 1 {
		t.Fatal(len(got), err)
	}
	a := got[0].Attempts
	if got[0].Cost != 1000 || len(a) != 2*maxAttempts || a[0].Retry != 0 || a[len(a)-1].Retry != 999 {
		t.Errorf("cost %v, %d attempts, the last %+v", got[0].Cost, len(a), a[len(a)-1])
	}
}
