package notice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/dynamotest"
)

// onEach runs a test on SQLite and on a DynamoDB.
func onEach(t *testing.T, f func(t *testing.T, s store.Store)) {
	t.Run("sqlite", func(t *testing.T) { f(t, openSQLite(t)) })
	t.Run("dynamo", func(t *testing.T) {
		f(t, dynamotest.Open(t, dynamotest.Start(t), func(o *dynamo.Options) { o.Clock = thatDay }))
	})
}

// thatDay is the time of the stores: the day on which the tests begin, whatever day
// they run on.
func thatDay() time.Time { return begun }

func openSQLite(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Clock: thatDay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// book is a Directory with a few webhooks, and the mails that were sent.
type book struct {
	mu     sync.Mutex
	all    map[string]*Target
	people []string
	named  Names
	mails  []Mail
	refuse bool
}

func (b *book) Targets(context.Context, store.Scope) (out []Target, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(b.all)) {
		out = append(out, *b.all[id])
	}
	return out, nil
}

func (b *book) Target(_ context.Context, sc store.Scope, id string) (*Target, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.all[id]
	if !ok || t.Scope != sc {
		return nil, false, nil
	}
	found := *t
	return &found, true, nil
}

func (b *book) Addresses(context.Context, *Event) ([]string, error) { return b.people, nil }

func (b *book) Names(context.Context, *Event) (Names, error) { return b.named, nil }

func (b *book) Disable(_ context.Context, _ store.Scope, id, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[id].Active = false
	return nil
}

func (b *book) Send(_ context.Context, m Mail) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse {
		return errors.New("no mail today")
	}
	b.mails = append(b.mails, m)
	return nil
}

// got is what a receiver was sent.
type got struct {
	header http.Header
	body   string
}

// receiver is a server that accepts webhooks and responds with status.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	all    []got
	status int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		raw, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, got{req.Header.Clone(), string(raw)})
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) { r.mu.Lock(); r.status = status; r.mu.Unlock() }

func (r *receiver) sent() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

var (
	org   = store.Scope{Org: "o"}
	begun = time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)
)

// fixture is a store with a webhook and a worker whose clock the test moves.
type fixture struct {
	store store.Store
	book  *book
	in    *receiver
	now   time.Time
	work  *Worker
	log   *Log
}

func newFixture(t *testing.T, s store.Store) *fixture {
	h := &fixture{store: s, in: newReceiver(t), now: begun}
	h.book = &book{all: map[string]*Target{"w1": {Scope: org, ID: "w1", URL: h.in.URL, Active: true, Secrets: []string{NewSecret(), NewSecret()}}}}
	clock := func() time.Time { return h.now }
	h.work, h.log = h.worker(clock), NewLog(s, clock)
	return h
}

func (h *fixture) worker(clock func() time.Time) *Worker {
	return &Worker{Store: h.store, Directory: h.book, Transport: http.DefaultTransport, Mailer: h.book, Now: clock}
}

func (h *fixture) raise(t *testing.T, e Event) {
	t.Helper()
	e.Org = org.Org
	if err := Raise(context.Background(), h.store, e, h.now); err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) run(t *testing.T) {
	t.Helper()
	if err := h.work.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) list(t *testing.T, to string) []*Delivery {
	t.Helper()
	all, _, err := h.log.List(context.Background(), org, to, "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// waits counts what is left to be done, now or later.
func (h *fixture) waits(t *testing.T) (n int) {
	t.Helper()
	for i := range queues {
		page, err := h.store.Table(store.Control).Query(context.Background(), store.Query{Partition: queueOf(i)})
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Rows)
	}
	return n
}

// The signature is the one that the standard's own example has.
func TestSignaturesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	if got := h.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" || h.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("%v", h)
	}
}

func TestAnEventReachesWhoeverTakesIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		h := newFixture(t, s)
		other := newReceiver(t)
		h.book.all["w2"] = &Target{Scope: org, ID: "w2", URL: other.URL, Active: true, Events: []string{KeyRotated}}
		h.book.all["w3"] = &Target{Scope: store.Scope{Org: "o", Workspace: "elsewhere"}, ID: "w3", URL: other.URL, Active: true}
		h.book.all["w4"] = &Target{Scope: org, ID: "w4", URL: other.URL}
		h.book.people = []string{"ann@example.com", "bob@example.com"}
		h.raise(t, Event{Type: KeyExpiring, Workspace: "here", Summary: "A key\nends", Data: map[string]string{"name": "k"}, Audience: Audience{Admins: true}})
		h.run(t)
		h.run(t)
		sent := h.in.sent()
		if len(sent) != 1 || len(other.sent()) != 0 || h.waits(t) != 0 {
			t.Fatalf("%d and %d were sent, %d wait", len(sent), len(other.sent()), h.waits(t))
		}
		id := sent[0].header.Get("Webhook-Id")
		for _, secret := range append(h.book.all["w1"].Secrets, NewSecret()) {
			reader, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			valid := slices.Contains(h.book.all["w1"].Secrets, secret)
			if err := reader.VerifyIgnoringTimestamp([]byte(sent[0].body), sent[0].header); (err == nil) != valid {
				t.Errorf("a secret that is valid: %v; %v", valid, err)
			}
		}
		if !strings.Contains(sent[0].body, `"type":"api_key.expiring"`) || !strings.Contains(sent[0].body, `"workspace_id":"here"`) || !strings.Contains(sent[0].body, `"summary":"A key ends"`) {
			t.Errorf("%s", sent[0].body)
		}
		d := h.list(t, "w1")
		if len(d) != 1 || d[0].Status != Delivered || d[0].Tries != 1 || d[0].Attempts[0].Status != 204 || "msg_"+d[0].ID != id {
			t.Errorf("%+v", d)
		}
		if len(h.book.mails) != 2 || len(h.list(t, Mails)) != 2 || h.book.mails[0].Subject != "A key ends" || !strings.Contains(h.book.mails[0].Text, "name: k\n") {
			t.Errorf("%+v", h.book.mails)
		}
	})
}

func TestADeliveryIsTriedForDaysAndCanBeSentAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		h := newFixture(t, s)
		ctx := context.Background()
		h.in.answer(http.StatusFound) // which is not followed
		h.raise(t, Event{Type: KeyRotated})
		h.run(t)
		id := h.list(t, "w1")[0].ID
		for n, pause := range backoff {
			h.now = h.now.Add(pause - time.Second)
			h.run(t)
			if got := len(h.in.sent()); got != n+1 {
				t.Fatalf("after %d pauses but a second: %d attempts", n+1, got)
			}
			h.now = h.now.Add(time.Second)
			h.run(t)
		}
		h.now = h.now.Add(100 * time.Hour)
		h.run(t)
		d := h.list(t, "w1")[0]
		if len(h.in.sent()) != len(backoff)+1 || d.Status != Failed || d.NextAt != nil || len(d.Attempts) != len(backoff)+1 || d.Attempts[0].Status != 302 || h.waits(t) != 0 {
			t.Fatalf("%d attempts: %+v", len(h.in.sent()), d)
		}
		h.in.answer(http.StatusOK)
		if again, err := h.log.Redeliver(ctx, org, "w1", id); err != nil || again.Status != Pending {
			t.Fatal(again, err)
		}
		h.run(t)
		all := h.in.sent()
		if d := h.list(t, "w1")[0]; d.Status != Delivered || d.Tries != 1 || d.Total != len(backoff)+2 {
			t.Errorf("%+v", d)
		}
		if first, last := all[0], all[len(all)-1]; first.body != last.body || first.header.Get("Webhook-Id") != last.header.Get("Webhook-Id") || first.header.Get("Webhook-Timestamp") == last.header.Get("Webhook-Timestamp") {
			t.Error("what is sent again is not the same message at another time")
		}
		if _, err := h.log.Redeliver(ctx, org, "w2", id); !fault.Is(err, fault.NotFound) {
			t.Errorf("found below another webhook: %v", err)
		}
		if _, ok, err := h.log.Get(ctx, org, "w1", "../"+id); ok || err != nil {
			t.Error(ok, err)
		}
	})
}

// Somebody who has repaired a receiver need not wait for the next attempt, which may be
// hours away: a delivery that is sent again is due at once, once, whichever attempt it was
// waiting for.
func TestADeliveryThatWaitsCanBeSentAtOnce(t *testing.T) {
	t.Parallel()
	for attempts := range backoff {
		onEach(t, func(t *testing.T, s store.Store) {
			h := newFixture(t, s)
			ctx := context.Background()
			h.in.answer(http.StatusInternalServerError)
			h.raise(t, Event{Type: KeyRotated})
			h.run(t)
			for _, pause := range backoff[:attempts] {
				h.now = h.now.Add(pause)
				h.run(t)
			}
			h.in.answer(http.StatusOK)
			h.now = h.now.Add(time.Second)
			id := h.list(t, "w1")[0].ID
			if d, err := h.log.Redeliver(ctx, org, "w1", id); err != nil || d.Status != Pending || !d.NextAt.Equal(h.now.Truncate(time.Millisecond)) {
				t.Fatal(d, err)
			}
			if _, err := h.log.Redeliver(ctx, org, "w1", id); !fault.Is(err, fault.Conflict) {
				t.Errorf("one that is due was sent again: %v", err)
			}
			h.run(t)
			h.now = h.now.Add(100 * time.Hour)
			h.run(t)
			d := h.list(t, "w1")[0]
			if d.Status != Delivered || d.Tries != 1 || d.Total != attempts+2 || len(h.in.sent()) != attempts+2 || h.waits(t) != 0 {
				t.Fatalf("after %d attempts: %+v, %d sent", attempts+1, d, len(h.in.sent()))
			}
		})
	}
}

func TestAReceiverThatIsGoneIsDisabled(t *testing.T) {
	t.Parallel()
	h := newFixture(t, openSQLite(t))
	h.in.answer(http.StatusGone)
	h.raise(t, Event{Type: KeyRotated})
	h.run(t)
	h.raise(t, Event{Type: KeyRotated})
	h.run(t)
	if d := h.list(t, "w1"); len(d) != 1 || d[0].Status != Failed || h.book.all["w1"].Active || len(h.in.sent()) != 1 {
		t.Errorf("%+v, %d sent", d, len(h.in.sent()))
	}
	h.in.answer(http.StatusOK)
	h.raise(t, Event{Type: Ping, Webhook: "w1"}) // which a disabled one gets too
	h.run(t)
	if len(h.in.sent()) != 2 {
		t.Error("a ping did not reach the webhook")
	}
	delete(h.book.all, "w1")
	if _, err := h.log.Redeliver(context.Background(), org, "w1", h.list(t, "w1")[1].ID); err != nil {
		t.Fatal(err)
	}
	h.run(t)
	if d := h.list(t, "w1")[1]; d.Status != Failed || d.Tries != 1 || !strings.Contains(d.Attempts[1].Error, "deleted") {
		t.Errorf("%+v", d)
	}
}

// A receiver that cannot be reached costs one attempt in a run; its other deliveries wait,
// those to other receivers do not.
func TestAReceiverThatIsDownHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	h := newFixture(t, openSQLite(t))
	down := newReceiver(t)
	down.Close()
	h.book.all["down"] = &Target{Scope: org, ID: "down", URL: down.URL, Active: true}
	for range 30 {
		h.raise(t, Event{Type: KeyRotated})
	}
	h.run(t)
	if len(h.in.sent()) != 30 {
		t.Errorf("%d were sent", len(h.in.sent()))
	}
	tried := 0
	for _, d := range h.list(t, "down") {
		tried += d.Total
	}
	if tried == 0 || tried > queues*maxConcurrent {
		t.Errorf("%d attempts of what is down", tried)
	}
}

// Several workers at once, with clocks apart, long after the events: nothing is lost,
// nothing sent twice.
func TestWorkersAtATimeSendEachThingOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		h := newFixture(t, s)
		h.book.people = []string{"ann@example.com"}
		const events = 12
		var wg sync.WaitGroup
		for i := range events {
			h.raise(t, Event{Type: KeyExpiring, Summary: fmt.Sprint("key ", i), Audience: Audience{Admins: true}})
		}
		h.now = begun.Add(60 * 24 * time.Hour) // no worker ran for two months
		for _, apart := range []time.Duration{0, -50 * time.Second, 40 * time.Second, 0} {
			wg.Go(func() {
				w := h.worker(func() time.Time { return h.now.Add(apart) })
				for range 3 {
					if err := w.Run(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		h.now = h.now.Add(lease + time.Minute)
		h.run(t)
		ids := map[string]int{}
		for _, g := range h.in.sent() {
			ids[g.header.Get("Webhook-Id")]++
		}
		if len(ids) != events || len(h.in.sent()) != events || len(h.book.mails) != events || h.waits(t) != 0 {
			t.Errorf("%d messages by %d calls, %d mails, %d rows wait", len(ids), len(h.in.sent()), len(h.book.mails), h.waits(t))
		}
		for _, d := range append(h.list(t, "w1"), h.list(t, Mails)...) {
			if d.Status != Delivered || d.Total != 1 {
				t.Errorf("%+v", d)
			}
		}
	})
}

// A worker that dies in an attempt leaves the delivery to the next; one that only
// seemed dead changes nothing any more.
func TestAnAttemptThatDiedIsMadeAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		h := newFixture(t, s)
		h.raise(t, Event{Type: KeyRotated})
		r := &run{Worker: h.work, down: map[string]bool{}}
		for n := range queues {
			if err := r.events(context.Background(), n); err != nil {
				t.Fatal(err)
			}
		}
		d := h.list(t, "w1")[0]
		held, won, err := r.claim(context.Background(), d, d.wait(*d.NextAt).Key)
		if err != nil || !won {
			t.Fatal(won, err)
		}
		h.run(t)
		if len(h.in.sent()) != 0 {
			t.Fatal("a delivery that is being attempted was attempted by another")
		}
		if _, err := h.log.Redeliver(context.Background(), org, "w1", d.ID); !fault.Is(err, fault.Conflict) {
			t.Errorf("sent again while it is attempted: %v", err)
		}
		h.now = h.now.Add(lease)
		h.run(t)
		if err := r.record(context.Background(), d, held, outcome{Attempt: Attempt{Error: "late"}, again: true}); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Hour)
		h.run(t)
		if d := h.list(t, "w1")[0]; d.Status != Delivered || d.Total != 2 || len(h.in.sent()) != 1 {
			t.Errorf("%+v, %d sent", d, len(h.in.sent()))
		}
	})
}

func TestAMailThatIsRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	h := newFixture(t, openSQLite(t))
	h.book.people, h.book.refuse = []string{"ann@example.com"}, true
	h.raise(t, Event{Type: BudgetExhausted, Summary: "over", Audience: Audience{Key: "k"}})
	h.run(t)
	h.book.refuse = false
	h.now = h.now.Add(backoff[0])
	h.run(t)
	if d := h.list(t, Mails); len(d) != 1 || d[0].Status != Delivered || len(d[0].Attempts) != 2 || len(h.book.mails) != 1 {
		t.Errorf("%+v", d)
	}
}

// Lists are walked from the newest on, a page at a time, filtered by status.
func TestTheLogIsWalkedByPages(t *testing.T) {
	t.Parallel()
	h := newFixture(t, openSQLite(t))
	for range 25 {
		h.now = h.now.Add(time.Second)
		h.raise(t, Event{Type: KeyRotated})
	}
	h.run(t)
	h.in.answer(http.StatusInternalServerError)
	h.raise(t, Event{Type: KeyRotated})
	h.run(t)
	seen, after := 0, ""
	last := "~"
	for {
		page, next, err := h.log.List(context.Background(), org, "w1", Delivered, after, 4)
		if err != nil || len(page) > 4 {
			t.Fatal(len(page), err)
		}
		for _, d := range page {
			if seen++; d.ID >= last || d.Status != Delivered {
				t.Errorf("%s behind %s: %s", d.ID, last, d.Status)
			}
			last = d.ID
		}
		if after = next; next == "" {
			break
		}
	}
	if seen != 25 {
		t.Errorf("%d were listed", seen)
	}
	if page, _, err := h.log.List(context.Background(), store.Scope{Org: "other"}, "w1", "", "", 10); err != nil || len(page) != 0 {
		t.Errorf("another organization sees %d: %v", len(page), err)
	}
}

func TestWebhooksAreChecked(t *testing.T) {
	t.Parallel()
	good := Webhook{URL: "https://example.com/hook", Events: []string{KeyRotated, InviteExpired}}
	if bad := good.Validate(); bad != nil {
		t.Error(bad)
	}
	for name, w := range map[string]Webhook{
		"events[1]":   {URL: "u", Events: []string{KeyRotated, KeyRotated}},
		"events[0]":   {URL: "u", Events: []string{Ping}},
		"url":         {},
		"description": {URL: "u", Description: strings.Repeat("x", 501)},
	} {
		if bad := w.Validate(); len(bad) != 1 || bad[0].Field != name {
			t.Errorf("%s: %v", name, bad)
		}
	}
}
