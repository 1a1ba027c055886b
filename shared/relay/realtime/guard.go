package realtime

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/chain"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/session"
)

// Guardrails are the guardrails of a session as last loaded, such as guardrail.Talk. It must be safe
// for concurrent use.
type Guardrails interface {
	JudgesInput() bool // client input is judged
	Holds() bool       // responses are judged before they are sent
	Judges() bool      // responses are judged
	JudgeInput(ctx context.Context, body []byte) guardrail.Word
	Held(ctx context.Context, about, answer []byte) guardrail.Word
	Over(ctx context.Context, about, answer []byte) guardrail.Word
}

// Guard judges the content of one session.
type Guard struct {
	ctx   context.Context
	now   func() Guardrails
	of    GuardedSession
	lease egress.Lease // of held responses
	owed  int64        // bytes of it that the next event releases, because they were sent

	promised atomic.Bool            // the client has requested a transcription of its audio
	about    atomic.Pointer[[]byte] // instructions of the session
	outcomes outcomes
	mu       sync.Mutex
	refused  *chain.Results // of the last rejected client event
	n        int

	// Used only by the provider's reader.
	open  map[string]*response
	runs  map[string]bool // responses under way
	last  string          // response that was started last
	items itemLog
}

// GuardedSession describes the session of a guard.
type GuardedSession struct {
	ID, Model string
	Strict    bool           // the client wants no results
	Memory    *egress.Memory // for held responses; nil: not limited
	Tenant    string         // charged for the memory
}

// NewGuard returns the guard of a session. now returns the current guardrails: it is called for each
// client event, and at the start of each response. The guard must be closed.
func NewGuard(ctx context.Context, now func() Guardrails, of GuardedSession) *Guard {
	g := &Guard{ctx: ctx, now: now, of: of, open: map[string]*response{}, runs: map[string]bool{}, items: newItems()}
	g.lease.Of(of.Memory, of.Tenant)
	g.told("")
	return g
}

// Close releases the memory of held responses.
func (g *Guard) Close() { g.lease.Free() }

// verdict is a session.Judged under construction.
type verdict struct {
	stays      bool
	told, back [][]byte
	body       []byte
	err        error
}

// Provider implements session.Guard.
func (g *Guard) Provider(e *realtime.Event) session.Judged {
	g.lease.Give(g.owed)
	g.owed = 0
	v := g.provider(e)
	return session.Judged{Stays: v.stays, Replies: v.told, Back: v.back, Body: v.body, Err: v.err}
}

func (g *Guard) provider(e *realtime.Event) verdict {
	switch e.Type {
	case realtime.SessionUpdated, realtime.SessionUpdateOld, realtime.Failed:
		g.promised.Store(false) // from now on the provider's session state counts
	case realtime.ResponseCreated, realtime.ResponseDone:
		if d, err := realtime.ReadResponse(e.Body); err == nil && d.ID != "" {
			if e.Type == realtime.ResponseDone {
				delete(g.runs, d.ID)
			} else if len(g.runs) < maxOpen {
				g.runs[d.ID] = true
			}
		}
	case realtime.Transcribed:
		if now := g.now(); now.JudgesInput() {
			return g.heard(e, now)
		}
	}
	if g.now().JudgesInput() {
		return g.unheard(e)
	}
	return g.answer(e)
}

// Judges implements session.Guard.
func (g *Guard) Judges() bool {
	now := g.now()
	return now.JudgesInput() || now.Judges()
}

// Of returns the guardrail outcome of a response, once.
func (g *Guard) Of(response string) Outcome { return g.outcomes.take(response) }

// denial returns the fault for denied client input.
func (g *Guard) denial(w *guardrail.Word) *fault.Fault {
	g.mu.Lock()
	g.refused = &w.Results
	g.mu.Unlock()
	return w.Denial()
}

// Refusal implements session.Guard.
func (g *Guard) Refusal(f *fault.Fault, id, about string) []byte {
	g.mu.Lock()
	results := g.refused
	g.refused = nil
	g.mu.Unlock()
	return withResults(realtime.AppendError(nil, f, id, about), results)
}

// refuse returns the event that reports a denial to the client.
func (g *Guard) refuse(w *guardrail.Word) []byte {
	return withResults(realtime.AppendError(nil, w.Denial(), g.eventID(), ""), &w.Results)
}

func (g *Guard) eventID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	return "event_" + g.of.ID + "_g" + strconv.Itoa(g.n)
}

// results returns the event with hook results; nil for clients in strict mode.
func (g *Guard) results(r *chain.Results) [][]byte {
	if g.of.Strict || r.Empty() {
		return nil
	}
	return [][]byte{withResults([]byte(`{"type":"hook_results"}`), r)}
}

// withResults adds hook results to an event.
func withResults(event []byte, r *chain.Results) []byte {
	if r == nil {
		return event
	}
	out := append(event[:len(event)-1:len(event)-1], `,"hook_results":`...)
	return append(r.Append(out, true), '}')
}

// change sets fields of an object. One that cannot be parsed loses its fields.
func change(object []byte, set map[string]any) []byte {
	in := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &in) // an unparsable value is not sent
	for name, value := range set {
		if raw, err := json.Marshal(value); err == nil {
			in[name] = raw
		}
	}
	out, err := json.Marshal(in)
	if err != nil {
		return []byte("{}")
	}
	return out
}
