package realtime

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/chain"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/session"
)

// Guardrails are the guardrails of a session as last loaded, such as guardrail.SessionGuardrails. It must be safe
// for concurrent use.
type Guardrails interface {
	JudgesInput() bool      // client input is judged
	BuffersResponses() bool // responses are judged before they are sent
	JudgesResponses() bool  // responses are judged
	JudgeInput(ctx context.Context, body []byte) guardrail.SessionVerdict
	JudgeBuffered(ctx context.Context, about, answer []byte) guardrail.SessionVerdict
	JudgeSent(ctx context.Context, about, answer []byte) guardrail.SessionVerdict
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
	rejected *chain.Results // of the last rejected client event
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

// Provider implements session.Guard.
func (g *Guard) Provider(e *realtime.Event) session.Judgement {
	g.lease.Return(g.owed)
	g.owed = 0
	return g.provider(e)
}

func (g *Guard) provider(e *realtime.Event) session.Judgement {
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
	return g.respond(e)
}

// JudgesResponses implements session.Guard.
func (g *Guard) JudgesResponses() bool {
	now := g.now()
	return now.JudgesInput() || now.JudgesResponses()
}

// Outcome returns the guardrail outcome of a response, once.
func (g *Guard) Outcome(response string) Outcome { return g.outcomes.take(response) }

// denial returns the fault for denied client input.
func (g *Guard) denial(w *guardrail.SessionVerdict) *fault.Fault {
	g.mu.Lock()
	g.rejected = &w.Results
	g.mu.Unlock()
	return w.Denial()
}

// Refusal implements session.Guard.
func (g *Guard) Refusal(f *fault.Fault, id, about string) []byte {
	g.mu.Lock()
	results := g.rejected
	g.rejected = nil
	g.mu.Unlock()
	return withResults(realtime.AppendError(nil, f, id, about), results)
}

// reject returns the event that reports a denial to the client.
func (g *Guard) reject(w *guardrail.SessionVerdict) []byte {
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

// heard judges client audio by its transcript. The provider already has the audio: if it is
// denied, it is removed from the conversation, and any response to it is ended.
func (g *Guard) heard(e *realtime.Event, by Guardrails) session.Judgement {
	t, err := realtime.ReadTranscript(e.Body)
	if err != nil {
		return session.Judgement{} // it cannot be judged
	}
	part, err := json.Marshal(map[string]any{"type": "message", "role": "user", "content": []any{map[string]string{"type": "input_text", "text": t.Text}}})
	if err != nil {
		return session.Judgement{}
	}
	body, err := json.Marshal(clientTurn{Model: g.of.Model, Input: []json.RawMessage{part}})
	if err != nil {
		return session.Judgement{}
	}
	w := by.JudgeInput(g.ctx, body)
	now := transcriptOf(w.Body)
	switch {
	case w.Denied, w.Body != nil && now == nil:
		gone := retold(e.Body, "")
		g.items.forget(t.Item)
		var back [][]byte
		for id := range g.runs {
			back = append(back, realtime.Cancel(id))
		}
		if g.of.Model != "" && t.Item != "" { // a session that only transcribes has no conversation
			back = append(back, realtime.Delete(t.Item))
		}
		return session.Judgement{Replies: [][]byte{g.reject(&w)}, Back: back, Body: gone}
	case now != nil && *now != t.Text:
		changed := retold(e.Body, *now)
		return session.Judgement{Replies: [][]byte{changed}, Body: changed}
	}
	g.items.markJudged(t.Item, t.Text)
	return session.Judgement{Unchanged: true}
}

// retold returns a transcript event with another text, and without fields that could reveal the
// original, such as the probabilities of its tokens.
func retold(event []byte, text string) []byte {
	var in map[string]json.RawMessage
	if json.Unmarshal(event, &in) != nil {
		return []byte("{}")
	}
	out := map[string]any{"transcript": text}
	for _, name := range [...]string{"type", "event_id", "item_id", "content_index", "usage"} {
		if raw := in[name]; raw != nil {
			out[name] = raw
		}
	}
	return change([]byte("{}"), out)
}

// Events about the transcript of the client's audio start with this. Only the complete
// transcript is judged. An event that reports a failure reveals nothing.
const (
	transcribing = "conversation.item.input_audio_transcription."
	unwritten    = transcribing + "failed"
)

// unheard holds back the transcript of client audio until it is judged: partial transcripts,
// which cannot be judged, and transcripts inside items. The complete transcript arrives once.
func (g *Guard) unheard(e *realtime.Event) session.Judgement {
	switch {
	case strings.HasPrefix(e.Type, transcribing) && e.Type != unwritten:
		return session.Judgement{}
	case !strings.HasPrefix(e.Type, "conversation.item.") || e.Item() == nil:
		return g.respond(e)
	}
	now, ok := g.items.unwritten(e)
	switch {
	case !ok:
		return session.Judgement{}
	case now == nil:
		return g.respond(e)
	}
	with := e.WithBody(now)
	if v := g.respond(&with); !v.Unchanged {
		return v
	}
	return session.Judgement{Replies: [][]byte{now}, Body: now}
}

// transcriptOf reads a transcript as guardrails changed it.
func transcriptOf(body []byte) *string {
	var in struct {
		Input []struct {
			Content []struct{ Text string } `json:"content"`
		} `json:"input"`
	}
	if body == nil || json.Unmarshal(body, &in) != nil || len(in.Input) != 1 || len(in.Input[0].Content) != 1 {
		return nil
	}
	return &in.Input[0].Content[0].Text
}

// Limits of the tracked items of a session, and of concurrent responses. If responses are held,
// further ones are not sent.
const (
	maxItems = 10_000
	maxOpen  = 64
	maxID    = 512     // bytes of a tracked id
	maxSwaps = 1 << 20 // bytes of changed texts
)

// itemLog tracks the items of a conversation: their responses, and which of their texts may be
// sent.
type itemLog struct {
	of        map[string]string            // by item, its response
	gone      map[string]bool              // those that were denied
	judged    map[[32]byte]struct{}        // transcripts that were judged and unchanged, by approval
	swaps     map[string]map[string]string // changed texts, with their replacements
	swapBytes int                          // bytes of them
}

func newItems() itemLog {
	return itemLog{of: map[string]string{}, gone: map[string]bool{}, judged: map[[32]byte]struct{}{}, swaps: map[string]map[string]string{}}
}

// belongs records that an item is part of a response. "" is none; ok is false if the limit is
// reached.
func (is *itemLog) belongs(item, response string) (ok bool) {
	switch {
	case item == "" || is.of[item] == response:
	case len(is.of) < maxItems && len(item) <= maxID:
		is.of[item] = response
	default:
		return false
	}
	return true
}

// forget holds back all further events of an item.
func (is *itemLog) forget(item string) {
	if item != "" && len(item) <= maxID && len(is.gone) < maxItems {
		is.gone[item] = true
	}
}

// swap replaces a text of an item in all further events.
func (is *itemLog) swap(item, old, now string) {
	if is.swapBytes += len(old) + len(now); is.swapBytes > maxSwaps {
		is.forget(item) // the item cannot be sent again
		return
	}
	if is.swaps[item] == nil {
		is.swaps[item] = map[string]string{}
	}
	is.swaps[item][old] = now
}

// markJudged records that a transcript was judged and is unchanged.
func (is *itemLog) markJudged(item, text string) {
	if len(is.judged) < maxItems {
		is.judged[transcriptKey(item, text)] = struct{}{}
	}
}

func (is *itemLog) wasJudged(item, text string) bool {
	_, ok := is.judged[transcriptKey(item, text)]
	return ok
}

// transcriptKey returns the key of an item's transcript.
func transcriptKey(item, text string) [32]byte { return sha256.Sum256([]byte(item + "\x00" + text)) }

// unwritten returns an event without unjudged transcripts; nil if it has none. ok is false if
// the event cannot be sent.
func (is *itemLog) unwritten(e *realtime.Event) (now []byte, ok bool) {
	var at struct{ ID, Role, Type string }
	var item map[string]json.RawMessage
	if json.Unmarshal(e.Item(), &at) != nil || json.Unmarshal(e.Item(), &item) != nil || is.gone[at.ID] {
		return nil, false
	}
	if at.Role == "assistant" || item["content"] == nil {
		return nil, true
	}
	var content []map[string]json.RawMessage
	if json.Unmarshal(item["content"], &content) != nil {
		return nil, false
	}
	held := false
	for _, part := range content {
		for name, raw := range part {
			if !strings.EqualFold(name, "transcript") {
				continue
			}
			var text string
			err := json.Unmarshal(raw, &text)
			if err != nil || text != "" && !is.wasJudged(at.ID, text) {
				part[name], held = json.RawMessage("null"), true
			}
		}
	}
	if !held {
		return nil, true
	}
	return change(e.Body, map[string]any{"item": json.RawMessage(change(e.Item(), map[string]any{"content": content}))}), true
}
