// Package queuetest is the contract that every queue.Queue passes.
package queuetest

import (
	"bytes"
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

// Opened is an empty queue, and the dead letters that it has so far.
type Opened struct {
	Queue queue.Queue
	Dead  func(t *testing.T) []queue.Message
}

// Harness opens queues for the contract.
type Harness struct {
	// Open returns an empty queue that moves messages to the dead letters after maxAttempts
	// deliveries (0: never).
	Open func(t *testing.T, maxAttempts int) Opened
	// Lacks names cases and features that an emulator used by the queue does not have, and why.
	// Such a case is skipped and such a feature is not tested; both are reported.
	Lacks map[string]string
}

// The features that Harness.Lacks may name besides cases.
const (
	Groups   = "the group is received"
	Attempts = "deliveries are counted"
	Twice    = "deleting twice succeeds"
)

// has reports whether a feature exists, and logs when it does not.
func (h Harness) has(t *testing.T, feature string) bool {
	t.Helper()
	why := h.Lacks[feature]
	if why != "" {
		t.Logf("NOT PROVED here: %s: %s", feature, why)
	}
	return why == ""
}

// The cases of the contract, by which Harness.Lacks names them.
const (
	RoundTrip   = "a message arrives with its body and group"
	Bodies      = "any body arrives as it was sent"
	Batches     = "one send may hold more than a batch"
	Refusals    = "what SQS refuses is refused before it is sent"
	Hiding      = "a received message is hidden and comes back"
	Extending   = "extend hides longer or gives back"
	Over        = "extend of a delivery that is over fails"
	Deleting    = "delete is for good and forgives"
	Delays      = "a delayed message waits"
	Waking      = "a waiting receive wakes on send"
	Waiting     = "an empty receive ends without a message"
	Cancelling  = "a cancelled receive ends"
	AtMostTen   = "a receive gives at most what it asked for"
	DeadLetters = "a message that keeps failing becomes a dead letter"
	Crowd       = "many producers and consumers lose nothing"
)

// Run runs the contract. The cases run in parallel: they wait for real time.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		RoundTrip: roundTrip, Bodies: bodies, Batches: batches, Refusals: rejections,
		Hiding: hiding, Extending: extending, Over: over, Deleting: deleting,
		Delays: delays, Waking: waking, Waiting: waiting, Cancelling: cancelling,
		AtMostTen: atMostTen, DeadLetters: deadLetters, Crowd: crowd,
	} {
		t.Run(name, func(t *testing.T) {
			if why := h.Lacks[name]; why != "" {
				t.Skipf("NOT PROVED here: %s", why)
			}
			t.Parallel()
			test(t, h)
		})
	}
}

var bg = context.Background()

// long is a visibility that outlasts a test, tick the shortest one.
const (
	long = time.Minute
	tick = time.Second
)

func send(t *testing.T, q queue.Queue, messages ...queue.Outgoing) {
	t.Helper()
	if err := q.Send(bg, messages...); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// next receives one message, waiting as long as a receive may.
func next(t *testing.T, q queue.Queue, visibility time.Duration) queue.Message {
	t.Helper()
	got, err := q.Receive(bg, 1, queue.MaxWait, visibility)
	if err != nil || len(got) != 1 {
		t.Fatalf("receive: %d messages, %v; want 1", len(got), err)
	}
	return got[0]
}

func none(t *testing.T, q queue.Queue, wait time.Duration) {
	t.Helper()
	got, err := q.Receive(bg, 10, wait, long)
	if err != nil || len(got) != 0 {
		t.Fatalf("receive: %d messages, %v; want none", len(got), err)
	}
}

func remove(t *testing.T, q queue.Queue, messages ...queue.Message) {
	t.Helper()
	if err := q.Delete(bg, messages...); err != nil {
		t.Fatalf("delete: %v", err)
	}
}

// drain receives and deletes until want distinct bodies have arrived, and returns how often
// each one did. If the response of a receive is lost, as may happen on a busy machine, its
// messages are hidden until their visibility ends; then they come again.
func drain(t *testing.T, q queue.Queue, want int) map[string]int {
	t.Helper()
	seen := map[string]int{}
	last := time.Now()
	for len(seen) < want {
		got, err := q.Receive(bg, 10, queue.MaxWait, long)
		if err != nil || len(got) == 0 && time.Since(last) > 2*long {
			t.Fatalf("%d of %d arrived, then %d messages, %v", len(seen), want, len(got), err)
		}
		if len(got) > 0 {
			last = time.Now()
		}
		for _, m := range got {
			seen[string(m.Body)]++
		}
		remove(t, q, got...)
	}
	return seen
}

func roundTrip(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	send(t, q, queue.Outgoing{Group: "org_1-A!~", Body: []byte(`{"event":1}`)})
	m := next(t, q, long)
	if m.ID == "" || m.Receipt == "" || string(m.Body) != `{"event":1}` || m.Attempt != 1 ||
		m.Group != "org_1-A!~" && h.has(t, Groups) {
		t.Errorf("got %+v", m)
	}
	remove(t, q, m)
	send(t, q)
	none(t, q, 0)
}

func bodies(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, body := range map[string][]byte{
		"empty": {}, "nil": nil, "json": []byte("{\"a\":\"ü 😀\\u0000\"}\r\n\t"), "equals sign": []byte("=YQ=="), "markup": []byte("<a&b>\"'\u2028</a>"),
		"every byte": every, "cut character": []byte("ab\xe2\x82"), "nul": {0}, "text as large as allowed": bytes.Repeat([]byte("x"), queue.MaxBody),
		"binary as large as allowed": bytes.Repeat([]byte{0xfe, 0, 1}, 786_429/3), "not a character": []byte("\uffff"),
	} {
		send(t, q, queue.Outgoing{Body: body})
		m := next(t, q, long)
		if !bytes.Equal(m.Body, body) {
			t.Errorf("%s: got %d bytes, want %d", name, len(m.Body), len(body))
		}
		remove(t, q, m)
	}
}

func batches(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	var all []queue.Outgoing
	for i := range 37 {
		size := 10
		if i%3 == 0 {
			size = 200_000 // several of them are more than one request may hold
		}
		all = append(all, queue.Outgoing{Group: fmt.Sprint("g", i%4), Body: fmt.Appendf(nil, "%02d%s", i, strings.Repeat("x", size))})
	}
	all = append(all, queue.Outgoing{Body: bytes.Repeat([]byte("y"), queue.MaxBody)})
	send(t, q, all...)
	if seen := drain(t, q, len(all)); len(seen) != len(all) {
		t.Errorf("%d bodies arrived, %d were sent", len(seen), len(all))
	}
}

func rejections(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	good := queue.Outgoing{Body: []byte("x")}
	for name, bad := range map[string]queue.Outgoing{
		"body":   {Body: make([]byte, queue.MaxBody)},
		"group":  {Group: strings.Repeat("g", 129)},
		"spaces": {Group: "a b"},
		"delay":  {Delay: 16 * time.Minute},
	} {
		if q.Send(bg, good, bad) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	none(t, q, 0)
	send(t, q, good)
	m := next(t, q, long)
	for name, err := range map[string]error{
		"extend beyond 12 hours": q.Extend(bg, m, 13*time.Hour),
		"extend backwards":       q.Extend(bg, m, -time.Second),
		"foreign receipt":        q.Extend(bg, queue.Message{Receipt: "what is this"}, tick),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func hiding(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	send(t, q, queue.Outgoing{Body: []byte("x")})
	hidden := next(t, q, long)
	none(t, q, 0)
	remove(t, q, hidden)
	send(t, q, queue.Outgoing{Body: []byte("x")})
	first := next(t, q, 2*tick)
	second := next(t, q, long)
	if second.ID != first.ID || second.Receipt == first.Receipt || string(second.Body) != "x" ||
		second.Attempt != 2 && h.has(t, Attempts) {
		t.Errorf("came back as %+v, was %+v", second, first)
	}
	remove(t, q, second)
}

func extending(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	send(t, q, queue.Outgoing{Body: []byte("x")})
	visibility := 2 * tick
	m := next(t, q, visibility)
	for err := q.Extend(bg, m, long); err != nil; err = q.Extend(bg, m, long) {
		if visibility *= 2; !errors.Is(err, queue.ErrNotInFlight) || visibility >= queue.MaxWait {
			t.Fatal(err)
		}
		m = next(t, q, visibility) // it was over before it was extended, because this machine is slow
	}
	none(t, q, visibility+tick)
	if err := q.Extend(bg, m, 0); err != nil {
		t.Fatal(err)
	}
	if back := next(t, q, long); back.ID != m.ID || back.Attempt != m.Attempt+1 && h.has(t, Attempts) {
		t.Errorf("came back as %+v", back)
	}
}

func over(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	send(t, q, queue.Outgoing{Body: []byte("x")})
	first := next(t, q, tick)
	second := next(t, q, long)
	if err := q.Extend(bg, first, long); !errors.Is(err, queue.ErrNotInFlight) {
		t.Errorf("received again meanwhile: %v", err)
	}
	remove(t, q, second)
	if err := q.Extend(bg, second, long); !errors.Is(err, queue.ErrNotInFlight) {
		t.Errorf("deleted: %v", err)
	}
}

func deleting(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	remove(t, q)
	var all []queue.Outgoing
	for i := range 23 {
		all = append(all, queue.Outgoing{Body: fmt.Append(nil, i)})
	}
	send(t, q, all...)
	var got []queue.Message
	for len(got) < len(all) {
		part, err := q.Receive(bg, 10, queue.MaxWait, long)
		if err != nil || len(part) == 0 {
			t.Fatalf("%d messages, %v", len(part), err)
		}
		got = append(got, part...)
	}
	for _, m := range got {
		if err := q.Extend(bg, m, 2*tick); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, q, got...)
	if h.has(t, Twice) {
		remove(t, q, got[3])
	}
	none(t, q, 3*tick) // longer than the visibility
}

func delays(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	send(t, q, queue.Outgoing{Body: []byte("much later"), Delay: long})
	none(t, q, 0)
	send(t, q, queue.Outgoing{Body: []byte("later"), Delay: 2 * tick})
	if m := next(t, q, long); string(m.Body) != "later" || m.Attempt != 1 {
		t.Errorf("got %+v", m)
	}
}

func waking(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	type result struct {
		got []queue.Message
		err error
	}
	results := make(chan result, 1)
	go func() {
		got, err := q.Receive(bg, 1, queue.MaxWait, long)
		results <- result{got, err}
	}()
	select {
	case r := <-results:
		t.Fatalf("did not wait: %+v", r)
	case <-time.After(tick / 2):
	}
	send(t, q, queue.Outgoing{Body: []byte("x")})
	select {
	case r := <-results:
		if r.err != nil || len(r.got) != 1 {
			t.Errorf("%+v", r)
		}
	case <-time.After(queue.MaxWait / 2):
		t.Error("slept on after a message had come")
	}
}

func waiting(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	none(t, q, 0)
	none(t, q, tick)
}

func cancelling(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	ctx, cancel := context.WithTimeout(bg, tick/4)
	defer cancel()
	if got, err := q.Receive(ctx, 1, queue.MaxWait, long); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", got, err)
	}
	if err := q.Send(ctx, queue.Outgoing{Body: []byte("x")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("send: %v", err)
	}
}

func atMostTen(t *testing.T, h Harness) {
	q := h.Open(t, 0).Queue
	var all []queue.Outgoing
	for i := range 30 {
		all = append(all, queue.Outgoing{Body: fmt.Append(nil, i)})
	}
	send(t, q, all...)
	for requested, most := range map[int]int{0: 1, 1: 1, 3: 3, 10: 10, 11: 10} {
		got, err := q.Receive(bg, requested, tick, long)
		if err != nil || len(got) == 0 || len(got) > most {
			t.Errorf("asked for %d: %d messages, %v", requested, len(got), err)
		}
	}
}

func deadLetters(t *testing.T, h Harness) {
	o := h.Open(t, 2)
	q := o.Queue
	send(t, q, queue.Outgoing{Group: "g", Body: []byte{0xff, 'd'}}, queue.Outgoing{Group: "g", Body: []byte("fine")})
	for range 4 { // both messages, twice each
		m := next(t, q, long)
		if string(m.Body) == "fine" && m.Attempt == 2 {
			remove(t, q, m)
			continue
		}
		if err := q.Extend(bg, m, 0); err != nil {
			t.Fatal(err)
		}
	}
	none(t, q, 0)
	dead := o.Dead(t)
	if len(dead) != 1 || !bytes.Equal(dead[0].Body, []byte{0xff, 'd'}) || dead[0].Group != "g" {
		t.Errorf("dead letters: %+v", dead)
	}
	none(t, q, 0)
}

func crowd(t *testing.T, h Harness) {
	const producers, each, consumers = 6, 40, 4
	q := h.Open(t, 0).Queue
	ctx, stop := context.WithCancel(bg)
	defer stop()
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range consumers {
		wg.Go(func() {
			for {
				got, err := q.Receive(ctx, 10, queue.MaxWait, long)
				if errors.Is(err, context.Canceled) {
					return
				}
				if err == nil {
					err = q.Delete(bg, got...)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, m := range got {
					seen[string(m.Body)] = true
				}
				if len(seen) == producers*each {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	var want []string
	for p := range producers {
		for i := range each {
			want = append(want, fmt.Sprintf("%d/%d", p, i))
		}
		wg.Go(func() {
			for i := 0; i < each; i += 4 {
				var part []queue.Outgoing
				for k := i; k < i+4; k++ {
					part = append(part, queue.Outgoing{Group: fmt.Sprint("org", p), Body: fmt.Appendf(nil, "%d/%d", p, k)})
				}
				if err := q.Send(bg, part...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	watchdog := time.AfterFunc(time.Minute, stop)
	defer watchdog.Stop()
	wg.Wait()
	want = slices.DeleteFunc(want, func(s string) bool { return seen[s] })
	if len(want) > 0 {
		t.Errorf("%d messages were lost: %.5v", len(want), want)
	}
}
