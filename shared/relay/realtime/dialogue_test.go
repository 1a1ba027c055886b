package realtime

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

func read(t testing.TB, event string) (*create, error) {
	t.Helper()
	c := &create{buf: buffer.New()}
	c.buf.B = append(c.buf.B, event...)
	return c, c.read()
}

func TestRequestsForResponses(t *testing.T) {
	t.Parallel()
	k := new(kept)
	k.note(t.Context(), conversation{"resp_a", "", []byte(`{"a":1}`)})
	k.note(t.Context(), conversation{"resp_b", "resp_stored", nil})
	for event, want := range map[string]string{
		`{"type":"response.create","model":"m","input":"x"}`:                                                                `{"input":"x","model":"m","stream":true}`,
		`{"type":"response.create","stream":false,"stream_id":"s","background":null,"generate":true,"input":[1]}`:           `{"input":[1],"stream":true}`,
		`{"type":"response.create","previous_response_id":"resp_a","input":"x"}`:                                            `{"input":[{"a":1},{"type":"message","role":"user","content":"x"}],"stream":true}`,
		`{"type":"response.create","previous_response_id":"resp_a","input":[ {"b":2} ],"store":false}`:                      `{"input":[{"a":1},{"b":2}],"store":false,"stream":true}`,
		`{"type":"response.create","previous_response_id":"resp_a"}`:                                                        `{"input":[{"a":1}],"stream":true}`,
		`{"type":"response.create","previous_response_id":"resp_b","input":[]}`:                                             `{"input":[],"previous_response_id":"resp_stored","stream":true}`,
		`{"type":"response.create","previous_response_id":"resp_of_the_provider","input":"x"}`:                              `{"input":"x","previous_response_id":"resp_of_the_provider","stream":true}`,
		`{"type":"response.create","previous_response_id":null,"store":null,"generate":null,"stream_id":null,"input":null}`: `{"input":null,"previous_response_id":null,"store":null,"stream":true}`,
	} {
		c, err := read(t, event)
		if err != nil {
			t.Errorf("%s: %v", event, err)
			continue
		}
		if got, err := c.body(k); err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", event, err, got, want)
		}
	}
	c, err := read(t, `{"type":"response.create","previous_response_id":"resp_gw_other"}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.body(k); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"type":"response.create","model":"m","input":[{"a":1}],"store":false,"previous_response_id":"resp_a"}`))
	f.Add([]byte(`{"type":"response.steer","input":"x"}`))
	k := new(kept)
	k.note(context.Background(), conversation{"resp_a", "", []byte(`{"a":1}`)})
	f.Fuzz(func(t *testing.T, event []byte) {
		c, err := read(t, string(event))
		if err != nil {
			if fault.From(err).Status() != 400 || c.steer != nil && !json.Valid(c.steer) {
				t.Fatalf("%v %s", err, c.steer)
			}
			return
		}
		body, err := c.body(k)
		if err != nil {
			if s := fault.From(err).Status(); s != 400 && s != 404 {
				t.Fatal(err)
			}
			return
		}
		var got map[string]json.RawMessage
		if json.Unmarshal(body, &got) != nil || string(got["stream"]) != "true" || got["type"] != nil {
			t.Fatalf("%s makes %s", event, body)
		}
	})
}

// The remembered conversations are limited, by responses and by bytes, and their memory is
// counted.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	k, memory := new(kept), egress.NewMemory(64<<20)
	k.lease.Of(memory, "o")
	for i := range 2 * maxKept {
		k.note(t.Context(), conversation{id: string(rune('a' + i)), items: make([]byte, 10)})
	}
	if _, known := k.find("a"); known || len(k.all) != maxKept || memory.Used() != 10*maxKept {
		t.Errorf("%d responses, %d bytes", len(k.all), memory.Used())
	}
	k.note(t.Context(), conversation{id: "large", items: make([]byte, maxKeptBytes)})
	k.note(t.Context(), conversation{id: "too large", items: make([]byte, maxKeptBytes+1)})
	if _, known := k.find("large"); !known || len(k.all) != 1 || memory.Used() != maxKeptBytes {
		t.Errorf("%d responses, %d bytes", len(k.all), memory.Used())
	}
	k.lease.Free()
	if memory.Used() != 0 {
		t.Errorf("%d bytes are never given back", memory.Used())
	}
}

func TestItemsThatCanBeSentAgain(t *testing.T) {
	t.Parallel()
	id, items := reusableItems([]byte(`{"id":"resp_1","output":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"reasoning","id":"rs_2","encrypted_content":"x"},{"type":"message","id":"msg_1","role":"assistant"}]}`))
	if id != "resp_1" || string(items) != `{"encrypted_content":"x","type":"reasoning"},{"role":"assistant","type":"message"}` {
		t.Errorf("%s %s", id, items)
	}
	if id, _ := reusableItems([]byte(`{"output":7}`)); id != "" {
		t.Error(id)
	}
}

func TestEventsNameTheirLane(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`{"a":1}`: `{"stream_id":"l\"","a":1}`, `{}`: `{"stream_id":"l\""}`, `{ }`: `{"stream_id":"l\"" }`} {
		if got := inLane([]byte(in), `l"`); string(got) != want || !json.Valid(got) {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := inLane([]byte("{}"), ""); string(got) != "{}" {
		t.Errorf("%s", got)
	}
}

// person is a client that sends a script and receives all events.
type person struct {
	says  chan string
	mu    sync.Mutex
	heard []string
	code  int
	once  sync.Once
	gone  chan struct{}
}

func newPerson(says ...string) *person {
	p := &person{says: make(chan string, 100), gone: make(chan struct{})}
	for _, s := range says {
		p.says <- s
	}
	return p
}

func (p *person) Next() (bool, io.Reader, error) {
	select {
	case s, ok := <-p.says:
		if !ok {
			return false, nil, &session.Ended{Code: session.Normal, Reason: "done"}
		}
		return false, strings.NewReader(s), nil
	case <-p.gone:
		return false, nil, &session.Ended{Code: p.code}
	}
}

func (p *person) Write(_ bool, b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, string(b))
	return nil
}

func (p *person) Ping() error { return nil }

func (p *person) Close(code int, _ string) { p.once.Do(func() { p.code = code; close(p.gone) }) }

func (p *person) Linger() {}

func (p *person) Drop() { p.Close(session.CloseAbnormal, "") }

func (p *person) told() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heard)
}

// clerk responds with the output of its function.
type clerk struct {
	ask   func(ctx context.Context, w http.ResponseWriter, body []byte) bool
	check func() error
}

func (c *clerk) Send(ctx context.Context, w http.ResponseWriter, body []byte) bool {
	return c.ask(ctx, w, body)
}

func (c *clerk) Check() error {
	if c.check == nil {
		return nil
	}
	return c.check()
}

func (c *clerk) Fail(string, error) {}

func dialogue(p *person, c *clerk) *Dialogue {
	return &Dialogue{
		Client: p, Responder: c, Times: session.Times{Check: time.Millisecond, Ping: time.Hour, Drain: time.Hour, Open: time.Hour}, Memory: egress.NewMemory(0), Tenant: "o", ID: "id",
		Now: func() time.Time { return time.Unix(7, 0) },
	}
}

// Every response has exactly one end for the client.
func TestEveryAnswerHasAnEnd(t *testing.T) {
	t.Parallel()
	stream := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, b := range []byte(text) {
			_, _ = w.Write([]byte{b})
		}
	}
	for name, c := range map[string]struct {
		ask  func(w http.ResponseWriter) bool
		last string
	}{
		"completed": {func(w http.ResponseWriter) bool {
			stream(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\ndata: [DONE]\n\n")
			return false
		}, `"type":"response.completed"`},
		"cut":    {func(w http.ResponseWriter) bool { stream(w, "data: {\"type\":\"response.created\"}\n\n"); return false }, `"type":"error","status":502`},
		"broken": {func(w http.ResponseWriter) bool { stream(w, "data: {\"type\":\"respo"); return true }, `"type":"error","status":502`},
		"failed": {func(w http.ResponseWriter) bool {
			stream(w, "data: {\"type\":\"response.failed\",\"response\":{}}\n\n")
			return true
		}, `"type":"response.failed"`},
		"refused": {func(w http.ResponseWriter) bool {
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"error":{"code":"slow"}}`)
			return false
		}, `{"type":"error","status":429,"error":{"code":"slow"}}`},
		"no reason":   {func(w http.ResponseWriter) bool { w.WriteHeader(500); return false }, `"type":"error","status":500`},
		"a whole one": {func(w http.ResponseWriter) bool { _, _ = io.WriteString(w, `{"id":"resp_1"}`); return false }, `{"type":"response.completed","sequence_number":0,"response":{"id":"resp_1"}}`},
		"nothing":     {func(http.ResponseWriter) bool { return false }, `"type":"error"`},
	} {
		asked := make(chan struct{})
		p := newPerson(`{"type":"response.create","input":"x"}`)
		d := dialogue(p, &clerk{ask: func(_ context.Context, w http.ResponseWriter, _ []byte) bool { defer close(asked); return c.ask(w) }})
		go func() { <-asked; d.Drain() }()
		if r := d.Run(t.Context()); r.Code != session.CloseGoingAway {
			t.Errorf("%s: %+v", name, r)
		}
		told := p.told()
		if len(told) == 0 || !strings.Contains(told[len(told)-1], c.last) {
			t.Errorf("%s: %v", name, told)
		}
		for _, e := range told {
			if !json.Valid([]byte(e)) {
				t.Errorf("%s: %s", name, e)
			}
		}
	}
}

// An invalid or truncated event of a provider ends its own response only: the client gets only
// JSON.
func TestEventsThatAreNoneStopNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"data: { ", "data: {\t\n\n", "data: {", `data: {"type":"response.comp`, "data: {\"type\":\"response.completed\"\n\n"} {
		asked := make(chan struct{})
		p := newPerson(`{"type":"response.create","stream_id":"l","input":"x"}`)
		d := dialogue(p, &clerk{ask: func(_ context.Context, w http.ResponseWriter, _ []byte) bool {
			defer close(asked)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
			return false
		}})
		go func() { <-asked; d.Drain() }()
		d.Run(t.Context())
		if told := p.told(); len(told) != 1 || !json.Valid([]byte(told[0])) || !strings.Contains(told[0], `"stream_id":"l","type":"error","status":502`) {
			t.Errorf("%q: %q", text, told)
		}
	}
}

// The requests of a client that disconnects are canceled; one with too many requests gets an
// error.
func TestClientsThatAskTooMuchAndLeave(t *testing.T) {
	t.Parallel()
	says := slices.Repeat([]string{`{"type":"response.create","input":"x"}`}, maxPending+1)
	p := newPerson(says...)
	var asked int
	d := dialogue(p, &clerk{ask: func(ctx context.Context, _ http.ResponseWriter, _ []byte) bool {
		asked++
		close(p.says) // it disconnects after its last message
		<-ctx.Done()
		return true
	}})
	if r := d.Run(t.Context()); !r.ByClient || r.Code != session.Normal || r.FromClient == 0 {
		t.Errorf("%+v", r)
	}
	told := p.told()
	if asked != 1 || len(told) != 1 || !strings.Contains(told[0], "429") {
		t.Errorf("%d asked: %v", asked, told)
	}
}

func TestAKeyThatIsGoneEndsADialogue(t *testing.T) {
	t.Parallel()
	p := newPerson()
	d := dialogue(p, &clerk{check: func() error { return fault.New(fault.KeyExpired, "", "This API key has expired") }})
	if r := d.Run(t.Context()); r.Code != session.Policy || r.Fault == nil || r.ByClient {
		t.Errorf("%+v", r)
	}
	if told := p.told(); len(told) != 1 || !strings.Contains(told[0], "expired") {
		t.Errorf("%v", told)
	}
}

// deaf is a client that reads nothing until it has disconnected.
type deaf struct{ *person }

func (d deaf) Write(bool, []byte) error {
	<-d.gone
	return &session.Ended{Code: session.CloseAbnormal}
}

// A client that reads nothing only delays its own end.
func TestAClientThatReadsNothingIsSentAway(t *testing.T) {
	t.Parallel()
	d := dialogue(newPerson(), &clerk{check: func() error { return fault.New(fault.KeyExpired, "", "This API key has expired") }})
	d.Client = deaf{d.Client.(*person)}
	if r := d.Run(t.Context()); r.Code != session.Policy || r.Fault == nil {
		t.Errorf("%+v", r)
	}
}
