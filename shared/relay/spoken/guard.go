package spoken

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

// Judges are the guardrails of a session as they were read last, as guardrail.Talk. It may
// be asked by several goroutines at once.
type Judges interface {
	Hears() bool  // something judges what clients say
	Holds() bool  // something judges answers before they are sent
	Judges() bool // something judges answers
	Said(ctx context.Context, body []byte) guardrail.Word
	Held(ctx context.Context, about, answer []byte) guardrail.Word
	Over(ctx context.Context, about, answer []byte) guardrail.Word
}

// Guard judges what is said in one session.
type Guard struct {
	ctx   context.Context
	now   func() Judges
	of    Session
	lease egress.Lease // of what is held of responses
	owed  int64        // of it, what was told and is given back by the next event

	promised atomic.Bool            // the client has asked that its voice is written down
	about    atomic.Pointer[[]byte] // what the session was told to do
	outcomes outcomes
	mu       sync.Mutex
	refused  *chain.Results // of the client's event that was refused last
	n        int

	// Of the provider's reader alone.
	open  map[string]*response
	runs  map[string]bool // responses under way
	last  string          // response that was begun last
	items items
}

// Session is what a guard knows of its session.
type Session struct {
	ID, Model string
	Strict    bool           // the client wants no results
	Memory    *egress.Memory // that what is held is of; nil: nothing is counted
	Tenant    string         // whose it is
}

// New makes the guard of a session. now gives the guardrails that judge: it is called for
// each event of the client, and for a response as it begins. The guard must be closed.
func New(ctx context.Context, now func() Judges, of Session) *Guard {
	g := &Guard{ctx: ctx, now: now, of: of, open: map[string]*response{}, runs: map[string]bool{}, items: newItems()}
	g.lease.Of(of.Memory, of.Tenant)
	g.told("")
	return g
}

// Close gives back what was held.
func (g *Guard) Close() { g.lease.Free() }

// verdict is session.Judged while it is made.
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
	return session.Judged{Stays: v.stays, Told: v.told, Back: v.back, Body: v.body, Err: v.err}
}

func (g *Guard) provider(e *realtime.Event) verdict {
	switch e.Type {
	case realtime.SessionUpdated, realtime.SessionUpdateOld, realtime.Failed:
		g.promised.Store(false) // from now on it is as the provider says
	case realtime.ResponseCreated, realtime.ResponseDone:
		if d, err := realtime.ReadResponse(e.Body); err == nil && d.ID != "" {
			if e.Type == realtime.ResponseDone {
				delete(g.runs, d.ID)
			} else if len(g.runs) < maxOpen {
				g.runs[d.ID] = true
			}
		}
	case realtime.Transcribed:
		if now := g.now(); now.Hears() {
			return g.heard(e, now)
		}
	}
	if g.now().Hears() {
		return g.unheard(e)
	}
	return g.answer(e)
}

// Judges implements session.Guard.
func (g *Guard) Judges() bool {
	now := g.now()
	return now.Hears() || now.Judges()
}

// Of gives what was said of a response, once.
func (g *Guard) Of(response string) Outcome { return g.outcomes.take(response) }

// denial is the fault of what a client has said.
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

// refuse is the event that tells the client of a denial.
func (g *Guard) refuse(w *guardrail.Word) []byte {
	return withResults(realtime.AppendError(nil, w.Denial(), g.eventID(), ""), &w.Results)
}

func (g *Guard) eventID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	return "event_" + g.of.ID + "_g" + strconv.Itoa(g.n)
}

// results is the event that tells what hooks said; nil for clients that want none.
func (g *Guard) results(r *chain.Results) [][]byte {
	if g.of.Strict || r.Empty() {
		return nil
	}
	return [][]byte{withResults([]byte(`{"type":"hook_results"}`), r)}
}

// withResults puts what hooks said into an event.
func withResults(event []byte, r *chain.Results) []byte {
	if r == nil {
		return event
	}
	out := append(event[:len(event)-1:len(event)-1], `,"hook_results":`...)
	return append(r.Append(out, true), '}')
}

// change sets members of an object. One that cannot be read is left without members.
func change(object []byte, set map[string]any) []byte {
	in := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &in) // what cannot be read is not sent
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

// with sets a member of a client's event.
func with(event []byte, name string, value json.RawMessage) ([]byte, error) {
	return change(event, map[string]any{name: value}), nil
}

// inside sets members of a member of a client's event.
func inside(event []byte, name string, of []byte, set map[string]any) ([]byte, error) {
	return with(event, name, change(of, set))
}
