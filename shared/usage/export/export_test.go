package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/blob/files"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/queue"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/testkit/usagetest"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	sc   = store.Scope{Org: "org-1", Workspace: "ws-1"}
)

// posted is a queue that records sent messages.
type posted struct {
	queue.Queue
	mu   sync.Mutex
	sent []queue.Message
	fail error
}

func (p *posted) Send(_ context.Context, messages ...queue.Outgoing) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range messages {
		if p.fail != nil {
			return p.fail
		}
		p.sent = append(p.sent, queue.Message{Body: m.Body})
	}
	return nil
}

// next is a message that was sent and not taken yet.
func (p *posted) next() (m queue.Message, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sent) == 0 {
		return m, false
	}
	m, p.sent = p.sent[0], p.sent[1:]
	return m, true
}

// shaky is a bucket that fails where a test wants it.
type shaky struct {
	*files.Bucket
	before, after func(what string) error
}

func (b *shaky) around(what string, do func() error) error {
	if b.before != nil {
		if err := b.before(what); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && b.after != nil {
		err = b.after(what)
	}
	return err
}

func (b *shaky) Part(ctx context.Context, key, id string, n int, body []byte) (tag string, err error) {
	err = b.around("part", func() error { tag, err = b.Bucket.Part(ctx, key, id, n, body); return err })
	return tag, err
}

func (b *shaky) Complete(ctx context.Context, key, id string, tags []string) error {
	return b.around("complete", func() error { return b.Bucket.Complete(ctx, key, id, tags) })
}

// fixture is an archive with the dependencies of exports.
type fixture struct {
	*Worker
	t       testing.TB
	archive *segment.Archive
	sealer  seal.Sealer
	sent    *posted
	bucket  *shaky
	mu      sync.Mutex
	now     time.Time
}

func (h *fixture) clock() time.Time     { h.mu.Lock(); defer h.mu.Unlock(); return h.now }
func (h *fixture) pass(d time.Duration) { h.mu.Lock(); h.now = h.now.Add(d); h.mu.Unlock() }

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s, b := usagetest.Open(t, t.TempDir())
	master, err := local.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{t: t, sent: &posted{}, bucket: &shaky{Bucket: b}, now: noon}
	h.sealer = seal.New(master, h.clock)
	h.archive = segment.New(s, b, segment.Options{Clock: h.clock})
	h.Worker = &Worker{
		Runs:   &Runs{Store: s, Queue: h.sent, Now: h.clock},
		Reader: report.New(h.archive, b), Bucket: h.bucket, Sealer: h.sealer,
		Limits: StepLimits{Step: time.Hour, Part: 4 << 10, Rows: 20}, OnError: func(err error) { t.Log(err) },
	}
	return h
}

func (h *fixture) fill(n int, change func(i int, r *usage.Record)) {
	h.t.Helper()
	for batch := range slices.Chunk(make([]usage.Record, n), 100) {
		for i := range batch {
			start := noon.Add(-time.Duration(n) * time.Second)
			n--
			r := &batch[i]
			*r = usage.Record{ID: usagetest.ID(n, start), Start: start, Org: "org-1", Workspace: "ws-1", Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions",
				Provider: "openai", Model: "gpt-4o", ClientStatus: 200, Cost: 12_345_678, Duration: 1500 * time.Microsecond, CacheStatus: "MISS"}
			r.Usage.Set(pricing.Input, 10)
			r.Usage.Set(pricing.Output, 5)
			if change != nil {
				change(n, r)
			}
		}
		if err := h.archive.Ingest(context.Background(), batch); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *fixture) order(fields ...string) Order {
	return Order{Filter: report.Filter{From: noon.Add(-24 * time.Hour), To: noon}, Limit: 50_000, Fields: fields, Format: JSONL}
}

func (h *fixture) start(id string, o Order) {
	h.t.Helper()
	if err := h.Runs.Start(context.Background(), sc, id, o); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) run(id string) *Run {
	h.t.Helper()
	runs, err := h.Runs.Get(context.Background(), sc, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return runs[id]
}

// finish delivers messages until there are none.
func (h *fixture) finish() {
	h.t.Helper()
	for {
		m, ok := h.sent.next()
		if !ok {
			return
		}
		for m.Attempt = 1; m.Attempt < 20 && !h.deliver(m); m.Attempt++ {
			h.pass(2 * lease) // hidden for that long
		}
	}
}

// errKilled is what a process that is killed leaves: nothing.
var errKilled = errors.New("killed")

// deliver hands a message to a worker; false: it comes again.
func (h *fixture) deliver(m queue.Message) (done bool) {
	defer func() {
		if r := recover(); r != nil && r != errKilled {
			panic(r)
		}
	}()
	failed, err := h.Handle(context.Background(), []queue.Message{m})
	return err == nil && len(failed) == 0
}

func (h *fixture) file(r *Run) string {
	h.t.Helper()
	if !r.Fetchable(h.clock()) {
		h.t.Fatalf("%+v", r)
	}
	b, err := h.bucket.Get(context.Background(), r.Key, 0)
	if err != nil || int64(len(b)) != r.Bytes {
		h.t.Fatalf("%d bytes, noted %d: %v", len(b), r.Bytes, err)
	}
	if r.Order.Format == Parquet {
		return rowsOf(h.t, b)
	}
	if !r.Order.Gzip {
		return string(b)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		h.t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(plain)
}

func TestLinesOfALog(t *testing.T) {
	h := newFixture(t)
	h.fill(2, func(i int, r *usage.Record) {
		if i == 1 {
			r.ClientStatus, r.Provider, r.Model, r.RequestModel = 400, "", "", "=cmd|'/c calc'!A1"
			return
		}
		r.Metadata = map[string]string{"team": `a,"b"`}
		b := usage.Bodies{RequestHeaders: []byte(`{"X-Gateway-Provider":"@main","User-Agent":"x"}`), Request: []byte("{\n \"model\": \"m\"\n}"), Response: []byte("data: 1\n\n")}
		sealed, err := h.sealer.Seal(context.Background(), r.BodiesBinding(), b.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		r.Bodies = sealed
	})
	o := h.order("created_at", "is_success", "ai_org", "ai_model", "req_units", "cost", "cost_currency", "response_time", "response_status_code", "metadata", "request", "response")
	o.Bodies = Sealed(o.Fields)
	h.start("a", o)
	h.finish()
	want := `{"created_at":"2026-11-20T11:59:59Z","is_success":true,"ai_org":"openai","ai_model":"gpt-4o","req_units":10,"cost":1.2345678,"cost_currency":"USD","response_time":1.5,"response_status_code":200,"metadata":{"team":"a,\"b\""},"request":{"headers":{"user-agent":"x"},"body":{"model":"m"},"url":"/v1/chat/completions","method":"POST","gatewayHeaders":{"x-gateway-provider":"@main"}},"response":{"body":"data: 1\n\n"}}
{"created_at":"2026-11-20T11:59:58Z","is_success":false,"ai_org":null,"ai_model":"=cmd|'/c calc'!A1","req_units":10,"cost":1.2345678,"cost_currency":"USD","response_time":1.5,"response_status_code":400,"metadata":{},"request":{"url":"/v1/chat/completions","method":"POST"},"response":{}}
`
	if got := h.file(h.run("a")); got != want {
		t.Errorf("%s", got)
	}
	o.Format, o.Fields = CSV, []string{"ai_org", "ai_model", "cost", "metadata"}
	h.start("b", o)
	h.finish()
	if got, want := h.file(h.run("b")), "ai_org,ai_model,cost,metadata\r\nopenai,gpt-4o,1.2345678,\"{\"\"team\"\":\"\"a,\\\"\"b\\\"\"\"\"}\"\r\n,'=cmd|'/c calc'!A1,1.2345678,{}\r\n"; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if _, err := csv.NewReader(strings.NewReader(h.file(h.run("b")))).ReadAll(); err != nil {
		t.Error(err)
	}
}

// Every field is written, and none twice.
func TestAllFields(t *testing.T) {
	h := newFixture(t)
	h.fill(1, nil)
	h.start("a", h.order(Fields()...))
	h.finish()
	var got map[string]any
	if err := json.Unmarshal([]byte(h.file(h.run("a"))), &got); err != nil || len(got) != len(fields) {
		t.Errorf("%d of %d, %v", len(got), len(fields), err)
	}
}

// Whatever fails, and wherever a process is killed, the file has each log once, in
// order.
func TestKilledAndFailingStepsLoseNothing(t *testing.T) {
	h := newFixture(t)
	const n = 700
	h.fill(n, nil)
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		h.Limits.Part, h.Limits.Rows = 200+rnd.IntN(8<<10), 1+rnd.IntN(100)
		h.Limits.Step = []time.Duration{0, time.Hour}[rnd.IntN(2)]
		trouble := 6
		chance := func(string) error {
			if trouble == 0 || rnd.IntN(3) > 0 {
				return nil
			}
			trouble--
			switch rnd.IntN(3) {
			case 0:
				panic(errKilled)
			case 1:
				return errors.New("the bucket does not answer")
			}
			return nil
		}
		h.bucket.before, h.bucket.after = chance, chance
		o := h.order("id", "ai_model")
		o.Gzip, o.Offset, o.Limit = rnd.IntN(2) == 0, rnd.IntN(50), 1+rnd.IntN(2*n)
		if seed%3 == 0 {
			o.Format, o.Gzip, o.Codec = Parquet, false, []string{"", Gzip, Snappy, Zstd}[rnd.IntN(4)]
		}
		id := fmt.Sprint("x", seed)
		h.start(id, o)
		h.finish()
		r := h.run(id)
		if r.Status == Failed { // three failures in a row
			h.bucket.before, h.bucket.after = nil, nil
			h.start(id, o)
			h.finish()
			r = h.run(id)
		}
		lines := strings.Split(strings.TrimSuffix(h.file(r), "\n"), "\n")
		want := min(o.Limit, n-o.Offset)
		if len(lines) != want || r.Rows != int64(want) || !slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(b, a) }) || len(slices.Compact(lines)) != want {
			t.Fatalf("seed %d: %d lines, %d noted, want %d", seed, len(lines), r.Rows, want)
		}
	}
}

func TestStartCancelAndStartAgain(t *testing.T) {
	h := newFixture(t)
	h.fill(300, nil)
	ctx := context.Background()
	status := func(want string) {
		t.Helper()
		if r := h.run("a"); r.Status != want {
			t.Fatalf("%+v", r)
		}
	}
	refused := func(err error) {
		t.Helper()
		if f := fault.From(err); err == nil || f.Status() != 409 {
			t.Errorf("%v", err)
		}
	}
	status(Draft)
	refused(h.Runs.Cancel(ctx, sc, "a"))
	h.start("a", h.order("id"))
	status(Running)
	refused(h.Runs.Start(ctx, sc, "a", h.order("id")))
	// Stopped while a part is written: nothing is left of it.
	h.bucket.after = func(string) error { h.bucket.after = nil; return h.Runs.Cancel(ctx, sc, "a") }
	h.finish()
	status(Stopped)
	if keys, err := h.bucket.List(ctx, "", "", 10); err != nil || slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, prefix) }) {
		t.Errorf("%v %v", keys, err)
	}
	refused(h.Runs.Cancel(ctx, sc, "a"))
	// A message of the first attempt does nothing in the second.
	old := queue.Message{Body: stepMessage(sc, "a", 1).Body, Attempt: 1}
	h.start("a", h.order("id"))
	if !h.deliver(old) || h.run("a").Rows != 0 {
		t.Errorf("%+v", h.run("a"))
	}
	// Two workers that get one message: one writes.
	m, _ := h.sent.next()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { h.deliver(m) })
	}
	wg.Wait()
	if status(Success); strings.Count(h.file(h.run("a")), "\n") != 300 {
		t.Error("not 300 lines")
	}
	refused(h.Runs.Start(ctx, sc, "a", h.order("id")))
	// The file goes, and may then be written again.
	h.pass(FileLifetime + 72*time.Hour)
	if err := h.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if keys, err := h.bucket.List(ctx, prefix, "", 10); err != nil || len(keys) != 0 || h.run("a").Fetchable(h.clock()) {
		t.Errorf("%v %v", keys, err)
	}
	h.start("a", h.order("id"))
	// No worker takes it: after a while it can be started again.
	refused(h.Runs.Start(ctx, sc, "a", h.order("id")))
	h.pass(2 * lost)
	h.start("a", h.order("id"))
	h.sent.fail = errors.New("no queue")
	h.pass(2 * lost)
	if f := fault.From(h.Runs.Start(ctx, sc, "a", h.order("id"))); f.Status() != 503 {
		t.Error(f)
	}
	status(Failed)
}

// What fails for good says so, and the file of another tenant is never read.
func TestFailuresAndScopes(t *testing.T) {
	h := newFixture(t)
	h.fill(300, nil)
	h.bucket.before = func(string) error { return errors.New("secret detail") }
	h.start("a", h.order("id"))
	h.finish()
	if r := h.run("a"); r.Status != Failed || r.Error == "" || strings.Contains(r.Error, "secret") {
		t.Errorf("%+v", r)
	}
	h.bucket.before = nil
	other := store.Scope{Org: "org-2", Workspace: "ws-1"}
	if err := h.Runs.Start(context.Background(), other, "a", h.order("id")); err != nil {
		t.Fatal(err)
	}
	h.finish()
	runs, err := h.Runs.Get(context.Background(), other, "a", "b")
	if err != nil || h.file(runs["a"]) != "" || runs["b"].Status != Draft || h.run("a").Status != Failed {
		t.Errorf("%+v %v", runs["a"], err)
	}
}

// A run with an upload that disappears repeatedly ends, and does not restart forever.
func TestARunThatNeverCompletesEnds(t *testing.T) {
	h := newFixture(t)
	h.fill(300, nil)
	tries := 0
	h.bucket.before = func(what string) error {
		if what == "complete" {
			tries++
			return blob.ErrNoUpload
		}
		return nil
	}
	h.start("a", h.order("id"))
	h.finish()
	if r := h.run("a"); r.Status != Failed || tries < maxRestarts || tries > 20 {
		t.Errorf("%d tries: %+v", tries, r)
	}
}

// A message that arrives again during the lease of a dead process is not lost.
func TestAHeldRunIsTakenOnceItsLeaseIsOver(t *testing.T) {
	h := newFixture(t)
	h.fill(300, nil)
	h.bucket.before = func(string) error { panic(errKilled) }
	h.start("a", h.order("id"))
	m, _ := h.sent.next()
	m.Attempt = 1
	if h.deliver(m) {
		t.Fatal("a killed process acknowledged its message")
	}
	h.bucket.before = nil
	if m.Attempt = 2; h.deliver(m) {
		t.Error("the message is gone while the lease lasts")
	}
	h.pass(2 * lease)
	if m.Attempt = 3; !h.deliver(m) || h.run("a").Status != Success {
		t.Errorf("%+v", h.run("a"))
	}
}

func FuzzReadStep(f *testing.F) {
	f.Add(stepMessage(sc, "a", 1).Body)
	f.Add([]byte(`{"org":7}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, err := readStep(body); err == nil && (s.Org == "" || s.Export == "") {
			t.Errorf("%q is taken", body)
		}
	})
}

var _ blob.Uploads = (*shaky)(nil)

// A step that takes long keeps its lease by renewing it, without what no part has yet; one that
// died loses it within a minute.
func TestALeaseIsRenewedAndEndsWithinAMinute(t *testing.T) {
	if hidden+beat > time.Minute || lease >= hidden {
		t.Fatalf("a lease of %v, a message hidden for %v", lease, hidden)
	}
	h := newFixture(t)
	run := &Run{Status: Running, Attempt: 1, Order: Order{Limit: 10, Format: JSONL}, Started: noon}
	if ok, err := h.Runs.put(t.Context(), sc, "e", run); err != nil || !ok {
		t.Fatal(ok, err)
	}
	first := &task{Worker: h.Worker, sc: sc, id: "e", holder: "first"}
	if ok, err := first.take(t.Context(), 1); err != nil || !ok {
		t.Fatal(ok, err)
	}
	first.run.Rows, first.run.Cursor = 7, "read and not uploaded"
	other := func() error {
		_, err := (&task{Worker: h.Worker, sc: sc, id: "e", holder: "other"}).take(t.Context(), 1)
		return err
	}
	for range 5 {
		h.pass(lease - time.Second)
		if ok, err := first.renew(t.Context()); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := other(); !errors.Is(err, errHeld) {
			t.Fatalf("%v", err)
		}
	}
	runs, err := h.Runs.Get(t.Context(), sc, "e")
	if err != nil || runs["e"].Rows != 0 || runs["e"].Cursor != "" {
		t.Errorf("%+v %v", runs["e"], err)
	}
	h.pass(lease + time.Second)
	if err := other(); err != nil {
		t.Errorf("after the lease: %v", err)
	}
	if ok, err := first.renew(t.Context()); err != nil || ok {
		t.Errorf("the lease of another is renewed: %v", err)
	}
}
