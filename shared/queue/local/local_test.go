package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/queue"
	"gateway/shared/testkit/queuetest"
)

var bg = context.Background()

func open(t testing.TB, path string, o Options) *File {
	t.Helper()
	f, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func temp(t testing.TB) string { return filepath.Join(t.TempDir(), "queue.db") }

// TestMain lets the cases of the contract wait side by side.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestContract(t *testing.T) {
	f := open(t, temp(t), Options{Durable: true})
	var n atomic.Int64
	queuetest.Run(t, queuetest.Harness{Open: func(t *testing.T, maxAttempts int) queuetest.Opened {
		q := f.Queue(fmt.Sprint("q", n.Add(1)), maxAttempts) // all queues share one file
		return queuetest.Opened{Queue: q, Dead: func(t *testing.T) []queue.Message {
			dead, err := q.DeadLetters(bg, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			return dead
		}}
	}})
}

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func send(t *testing.T, q *Queue, bodies ...string) {
	t.Helper()
	var out []queue.Outgoing
	for _, b := range bodies {
		group, _, _ := strings.Cut(b, "/")
		out = append(out, queue.Outgoing{Group: group, Body: []byte(b)})
	}
	if err := q.Send(bg, out...); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, q *Queue, n int) []queue.Message {
	t.Helper()
	got, err := q.Receive(bg, n, 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func texts(messages []queue.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.Body))
	}
	return strings.Join(out, " ")
}

func depth(t *testing.T, q *Queue) Depth {
	t.Helper()
	d, err := q.Depth(bg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAGroupWithABacklogDoesNotDelayOthers(t *testing.T) {
	path := temp(t)
	f := open(t, path, Options{})
	q := f.Queue("q", 0)
	send(t, q, "a/1", "a/2", "a/3", "a/4", "a/5", "a/6")
	send(t, q, "b/1", "b/2")
	if got := texts(receive(t, q, 4)); got != "a/1 b/1 a/2 b/2" {
		t.Errorf("served %s", got)
	}
	// The order survives a restart, and a group that comes late is not behind.
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	q = open(t, path, Options{}).Queue("q", 0)
	send(t, q, "c/1", "c/2", "a/7")
	first := texts(receive(t, q, 4))
	if !strings.Contains(first, "c/1") || !strings.Contains(first, "c/2") || strings.Contains(first, "a/7") {
		t.Errorf("served %s after a restart", first)
	}
}

func TestServedGroupsAreEvicted(t *testing.T) {
	tn := turns{last: map[string]int64{}}
	for i := range 20_000 {
		tn.serve(tn.next(fmt.Sprint("g", i)))
	}
	if len(tn.last) > 4096+1 {
		t.Errorf("%d groups are remembered", len(tn.last))
	}
}

func TestMessagesSurviveAReopenWithTheirState(t *testing.T) {
	path, c := temp(t), newClock()
	f := open(t, path, Options{Clock: c.Now})
	q := f.Queue("q", 2)
	send(t, q, "a/1", "a/2")
	held := receive(t, q, 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, Options{Clock: c.Now})
	q = f.Queue("q", 2)
	if got := texts(receive(t, q, 10)); got != "a/2" {
		t.Errorf("visible: %s", got)
	}
	if err := q.Delete(bg, held...); err != nil {
		t.Fatal(err)
	}
	c.advance(2 * time.Minute)
	if got := receive(t, q, 10); texts(got) != "a/2" || got[0].Attempt != 2 {
		t.Errorf("after the visibility: %+v", got)
	}
}

// TestKilledSender is the other half of the kill test below: it sends until it
// is killed and prints what was acknowledged.
func TestKilledSender(t *testing.T) {
	path := os.Getenv("QUEUE_KILL_PATH")
	if path == "" {
		return // run by TestWhatWasAcknowledgedSurvivesAKill only
	}
	f, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := f.Queue("q", 0)
	for i := 0; ; i++ {
		if err := q.Send(bg, queue.Outgoing{Body: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acknowledged %d\n", i)
	}
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	path := temp(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledSender$")
	cmd.Env = append(os.Environ(), "QUEUE_KILL_PATH="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := -1
	for last < 200 {
		if _, err := fmt.Fscanf(out, "acknowledged %d\n", &last); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, so it reports that
	q := open(t, path, Options{}).Queue("q", 0)
	if d := depth(t, q); d.Ready <= int64(last) {
		t.Errorf("%d messages left, %d were acknowledged", d.Ready, last+1)
	}
}

func TestASecondOpenOfTheFileIsRefused(t *testing.T) {
	path := temp(t)
	open(t, path, Options{})
	if f, err := Open(path, Options{}); err == nil {
		f.Close()
		t.Error("opened twice")
	}
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	path := temp(t)
	open(t, path, Options{})
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestDeadLettersAreListedRedrivenAndDiscarded(t *testing.T) {
	c := newClock()
	f := open(t, temp(t), Options{Clock: c.Now})
	q, other := f.Queue("q", 2), f.Queue("other", 0)
	send(t, q, "a/1", "a/2", "b/3")
	send(t, other, "x/1")
	for range 2 {
		if got := receive(t, q, 10); len(got) != 3 {
			t.Fatalf("%d messages", len(got))
		}
		c.advance(2 * time.Minute)
	}
	if d := depth(t, q); d != (Depth{Dead: 3}) {
		t.Fatalf("%+v", d)
	}
	dead, err := q.DeadLetters(bg, "", 2)
	if err != nil || texts(dead) != "a/1 a/2" || dead[0].Attempt != 2 || dead[0].Group != "a" {
		t.Fatalf("%+v, %v", dead, err)
	}
	rest, err := q.DeadLetters(bg, dead[1].ID, 2)
	if err != nil || texts(rest) != "b/3" {
		t.Fatalf("%+v, %v", rest, err)
	}
	if n, err := q.Redrive(bg, dead[0].ID, "999"); n != 1 || err != nil {
		t.Errorf("redriven %d, %v", n, err)
	}
	if n, err := other.Redrive(bg, dead[1].ID); n != 0 || err != nil {
		t.Errorf("redriven through another queue: %d, %v", n, err)
	}
	again := receive(t, q, 10)
	if texts(again) != "a/1" || again[0].Attempt != 1 {
		t.Fatalf("%+v", again)
	}
	// A receipt from before the redrive must not match.
	if err := q.Delete(bg, queue.Message{Receipt: again[0].ID + ".1"}); err != nil {
		t.Fatal(err)
	}
	if d := depth(t, q); d != (Depth{Hidden: 1, Dead: 2}) {
		t.Errorf("%+v", d)
	}
	if n, err := q.Discard(bg, dead[1].ID, rest[0].ID, again[0].ID); n != 2 || err != nil {
		t.Errorf("discarded %d, %v", n, err)
	}
	if d := depth(t, q); d != (Depth{Hidden: 1}) {
		t.Errorf("%+v", d)
	}
	var bodies int
	if err := f.do(bg, func() error {
		return f.conn.QueryRowContext(bg, "SELECT count(*) FROM body").Scan(&bodies)
	}); err != nil || bodies != 2 {
		t.Errorf("%d bodies are kept, %v; want 2", bodies, err)
	}
}

func TestAStaleReceiptDeletesNothing(t *testing.T) {
	c := newClock()
	q := open(t, temp(t), Options{Clock: c.Now}).Queue("q", 0)
	send(t, q, "a/1")
	first := receive(t, q, 1)
	c.advance(2 * time.Minute)
	second := receive(t, q, 1)
	if err := q.Delete(bg, first...); err != nil {
		t.Fatal(err)
	}
	if d := depth(t, q); d.Hidden != 1 {
		t.Errorf("%+v", d)
	}
	if err := q.Delete(bg, second...); err != nil {
		t.Fatal(err)
	}
	if d := depth(t, q); d != (Depth{}) {
		t.Errorf("%+v", d)
	}
}

func TestCloseEndsWaitingReceivesAndRefusesCalls(t *testing.T) {
	f, err := Open(temp(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := f.Queue("q", 0)
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := q.Receive(bg, 1, queue.MaxWait, time.Minute)
			errs <- err
		}()
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-errs; !errors.Is(err, queue.ErrClosed) {
			t.Errorf("waiting receive: %v", err)
		}
	}
	var partial *queue.SendError
	if err := q.Send(bg, queue.Outgoing{}); !errors.As(err, &partial) || !errors.Is(err, queue.ErrClosed) || partial.Accepted != 0 || len(partial.Rejected) != 1 {
		t.Errorf("send: %v", err)
	}
}

func TestAFailedTransactionIsAnsweredToAllOfIt(t *testing.T) {
	f := open(t, temp(t), Options{})
	q := f.Queue("q", 0)
	broken := errors.New("disk full")
	ok := &op{ctx: bg, run: func() error { return q.insertOne("kept?") }, done: make(chan error, 1)}
	bad := &op{ctx: bg, run: func() error { return broken }, done: make(chan error, 1)}
	// Handed over from within a transaction, both are gathered for the next one.
	f.mu.RLock()
	f.ops <- &op{ctx: bg, done: make(chan error, 1), run: func() error {
		f.ops <- ok
		f.ops <- bad
		return nil
	}}
	f.mu.RUnlock()
	for _, o := range []*op{ok, bad} {
		if err := <-o.done; !errors.Is(err, broken) {
			t.Errorf("answered %v", err)
		}
	}
	if d := depth(t, q); d != (Depth{}) {
		t.Errorf("%+v was kept", d)
	}
}

func (q *Queue) insertOne(body string) error {
	if err := q.loadTurns(); err != nil {
		return err
	}
	return q.insert(&queue.Outgoing{Body: []byte(body)}, q.file.now())
}

func BenchmarkSend(b *testing.B) {
	for _, durable := range []bool{false, true} {
		b.Run(fmt.Sprintf("durable=%v", durable), func(b *testing.B) {
			q := open(b, temp(b), Options{Durable: durable}).Queue("q", 0)
			body := make([]byte, 2048)
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := q.Send(bg, queue.Outgoing{Group: "o", Body: body}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func BenchmarkReceiveDelete(b *testing.B) {
	q := open(b, temp(b), Options{}).Queue("q", 0)
	batch := make([]queue.Outgoing, 10)
	for i := range batch {
		batch[i].Body = make([]byte, 2048)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := q.Send(bg, batch...); err != nil {
			b.Fatal(err)
		}
		got, err := q.Receive(bg, 10, 0, time.Minute)
		if err != nil || len(got) != 10 {
			b.Fatal(len(got), err)
		}
		if err := q.Delete(bg, got...); err != nil {
			b.Fatal(err)
		}
	}
}
