package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/session"
)

// MaxBuffered limits the bytes held of one response to 15 minutes of audio.
const MaxBuffered = 64 << 20

// response is a response in progress.
type response struct {
	id    string
	by    Guardrails // the guardrails at its start
	held  [][]byte
	size  int   // bytes of held events and collected text
	lent  int64 // part of size that the memory's lease counts
	parts []*part
	args  map[string]*strings.Builder // of calls, by their item
	calls []json.RawMessage
	over  bool // it is too large: no more of it is held or collected
}

// part is a text of a response, or the transcript of its audio.
type part struct {
	item  string
	index int
	kind  string // of its events, if it is not in kinds
	sound bool   // it cannot be changed
	text  strings.Builder
}

// piece holds the fields read of an event of a response.
type piece struct {
	ResponseID string `json:"response_id"`
	ItemID     string `json:"item_id"`
	Index      int    `json:"content_index"`
	Delta      string `json:"delta"`
	Item       struct {
		ID   string `json:"id"`
		Role string `json:"role"`
		Type string `json:"type"`
	} `json:"item"`
	Response struct {
		ID     string            `json:"id"`
		Output []json.RawMessage `json:"output"`
	} `json:"response"`
}

// made is an item of a response.
type made struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	CallID    string `json:"call_id"`
	Arguments string `json:"arguments"`
	Content   []struct {
		Text       *string `json:"text"`
		Transcript *string `json:"transcript"`
	} `json:"content"`
}

// respond judges a provider event.
func (g *Guard) respond(e *realtime.Event) session.Judgement {
	if e.Response != "" && e.Type != realtime.ResponseCreated && e.Type != realtime.ResponseDone {
		r := g.open[e.Response]
		if r == nil {
			return session.Judgement{Unchanged: !g.now().BuffersResponses()}
		}
		if e.Audio() || !r.by.JudgesResponses() { // most events; their content is not read
			return g.keep(r, e.Body)
		}
	}
	var p piece
	if err := json.Unmarshal(e.Body, &p); err != nil {
		return session.Judgement{Unchanged: !g.now().BuffersResponses()}
	}
	switch {
	case e.Type == realtime.ResponseCreated:
		now := g.now()
		if r := g.open[p.Response.ID]; r != nil {
			now = r.by
		} else if id := p.Response.ID; id != "" && len(id) <= maxID && len(g.open) < maxOpen {
			g.open[id], g.last = &response{id: id, by: now}, id
		}
		if len(p.Response.Output) > 0 && now.BuffersResponses() { // it would be sent before anything is judged
			return session.Judgement{Replies: [][]byte{change(e.Body, map[string]any{"response": json.RawMessage(change(e.RawResponse(), map[string]any{"output": []any{}}))})}}
		}
		return session.Judgement{Unchanged: true}
	case e.Type == realtime.ResponseDone:
		r := g.open[p.Response.ID]
		if r == nil { // it was sent already, or never started
			return session.Judgement{Unchanged: !g.now().BuffersResponses()}
		}
		delete(g.open, r.id)
		if g.owed += r.lent; !r.by.JudgesResponses() {
			return session.Judgement{Unchanged: true}
		}
		return g.done(r, e, &p)
	case e.Response != "":
		r := g.open[e.Response]
		if v := g.count(r, len(p.Delta)); r.over {
			return v
		}
		r.learn(e.Type, &p)
		for _, item := range [...]string{p.ItemID, p.Item.ID} {
			if !g.items.belongs(item, r.id) {
				g.owed += r.drop()
			}
		}
		return g.keep(r, e.Body)
	case strings.HasPrefix(e.Type, "conversation.item."):
		return g.item(e, &p)
	}
	return session.Judgement{Unchanged: true}
}

// item judges an event of an item of the conversation: one of a response is a part of it.
func (g *Guard) item(e *realtime.Event, p *piece) session.Judgement {
	id := p.Item.ID
	if g.items.gone[id] {
		return session.Judgement{}
	}
	own := p.Item.Role == "assistant" || p.Item.Type == "function_call"
	at := g.items.of[id]
	if at == "" && own {
		at = g.last
	}
	if swaps := g.items.swaps[id]; swaps != nil {
		return session.Judgement{Replies: [][]byte{replaced(e.Body, swaps)}}
	}
	if r := g.open[at]; r != nil && (own || g.items.of[id] != "") {
		return g.keep(r, e.Body)
	}
	return session.Judgement{Unchanged: true}
}

// keep holds an event of a response back if the response is held.
func (g *Guard) keep(r *response, body []byte) session.Judgement {
	if !r.by.BuffersResponses() {
		return session.Judgement{Unchanged: true}
	}
	if v := g.count(r, len(body)); r.over {
		return v
	}
	r.hold(body)
	return session.Judgement{}
}

// count reserves memory for n more bytes of a response. One that becomes too large is no longer
// held, and is ended if none of it was sent. Without memory the session ends, as with other
// large messages.
func (g *Guard) count(r *response, n int) session.Judgement {
	if r.over {
		return session.Judgement{Unchanged: !r.by.BuffersResponses()}
	}
	err := r.grow(g.ctx, &g.lease, n)
	if err == nil {
		return session.Judgement{}
	}
	g.owed += r.drop()
	switch {
	case !errors.Is(err, buffer.ErrTooLarge):
		return session.Judgement{Err: err}
	case !r.by.BuffersResponses():
		return session.Judgement{Unchanged: true}
	}
	return session.Judgement{Back: [][]byte{realtime.Cancel(r.id)}}
}

// grow reserves memory for n more bytes. The error is buffer.ErrTooLarge above MaxBuffered.
func (r *response) grow(ctx context.Context, lease *egress.Lease, n int) error {
	if r.size += n; r.size > MaxBuffered {
		return buffer.ErrTooLarge
	}
	more := int64(r.size) - r.lent - egress.Uncounted
	if more <= 0 {
		return nil
	}
	more = max(more, egress.Uncounted) // in steps, not for each event
	if err := lease.Reserve(ctx, more); err != nil {
		return err
	}
	r.lent += more
	return nil
}

// hold keeps an event, of which the connection reuses the memory.
func (r *response) hold(event []byte) { r.held = append(r.held, bytes.Clone(event)) }

// drop ends holding and collecting, and returns the reserved memory.
func (r *response) drop() (lent int64) {
	lent = r.lent
	r.over, r.held, r.lent = true, nil, 0
	return lent
}

// kinds are the events that carry a text, and whether it is that of audio.
var kinds = map[string]bool{
	"response.output_text.delta": false, "response.text.delta": false, "response.output_audio_transcript.delta": true, "response.audio_transcript.delta": true,
}

func (r *response) learn(kind string, p *piece) {
	sound, text := kinds[kind]
	switch {
	case text:
		r.part(p.ItemID, p.Index, "", sound).text.WriteString(p.Delta)
	case strings.HasSuffix(kind, "_arguments.delta"):
		if r.args == nil {
			r.args = map[string]*strings.Builder{}
		}
		if r.args[p.ItemID] == nil {
			r.args[p.ItemID] = new(strings.Builder)
		}
		r.args[p.ItemID].WriteString(p.Delta)
	case p.Delta != "": // an unknown event
		r.part(p.ItemID, p.Index, kind, true).text.WriteString(p.Delta)
	}
}

func (r *response) part(item string, index int, kind string, sound bool) *part {
	for _, have := range r.parts {
		if have.item == item && have.index == index && have.kind == kind {
			return have
		}
	}
	made := &part{item: item, index: index, kind: kind, sound: sound}
	r.parts = append(r.parts, made)
	return made
}

// whole adds content from a response's final event that its earlier events did not contain.
func (r *response) whole(p *piece) {
	for _, raw := range p.Response.Output {
		var item made
		if err := json.Unmarshal(raw, &item); err != nil || item.Type != "function_call" && item.Type != "message" && (item.Type != "" || item.Content == nil) {
			r.calls = append(r.calls, raw) // such as a call of a hosted tool with its result
			delete(r.args, item.ID)
		}
		if item.Type == "function_call" {
			if raw, err := json.Marshal(map[string]string{"type": item.Type, "call_id": item.CallID, "name": item.Name, "arguments": item.Arguments}); err == nil {
				r.calls = append(r.calls, raw)
			}
			if a := r.args[item.ID]; a != nil && a.String() == item.Arguments {
				delete(r.args, item.ID)
			}
		}
		for i, c := range item.Content {
			text, sound := c.Text, false
			if text == nil {
				text, sound = c.Transcript, true
			}
			if text == nil {
				continue
			}
			if t := r.part(item.ID, i, "", sound); t.text.String() != *text {
				t.text.WriteString(strings.TrimPrefix(*text, t.text.String()))
			}
		}
	}
	for item, a := range r.args { // the final event lacks it, or differs
		if raw, err := json.Marshal(map[string]string{"type": "function_call", "call_id": item, "name": "", "arguments": a.String()}); err == nil {
			r.calls = append(r.calls, raw)
		}
	}
}

// shownResponse is a response in the input of guardrails.
type shownResponse struct {
	Output []json.RawMessage `json:"output"`
}

type shownMessage struct {
	Type    string     `json:"type"`
	Role    string     `json:"role"`
	Content []saidText `json:"content"`
}

type saidText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (r *response) shown() []byte {
	content := []saidText{}
	for _, p := range r.parts {
		content = append(content, saidText{"output_text", p.text.String()})
	}
	first, err := json.Marshal(shownMessage{Type: "message", Role: "assistant", Content: content})
	if err != nil {
		return nil
	}
	body, err := json.Marshal(shownResponse{append([]json.RawMessage{first}, r.calls...)})
	if err != nil {
		return nil
	}
	return body
}

// done judges a response that has ended.
func (g *Guard) done(r *response, e *realtime.Event, p *piece) session.Judgement {
	r.whole(p)
	about, body := *g.about.Load(), r.shown()
	var w guardrail.SessionVerdict
	var now []string
	if r.by.BuffersResponses() {
		w = r.by.JudgeBuffered(g.ctx, about, body)
		if w.Body != nil && !w.Denied {
			now = r.changed(w.Body)
		}
		if w.Denied || r.over || w.Body != nil && now == nil { // the changed response cannot be encoded
			return g.denied(r, e, &w)
		}
	}
	if now != nil {
		body = w.Body
	}
	after := r.by.JudgeSent(g.ctx, about, body)
	results := w.Results.WithAfter(after.Results.After)
	g.outcomes.note(r.id, Outcome{Failed: w.Failed || after.Failed})
	told := r.held
	end := e.Body
	if now != nil {
		told, end = r.rewritten(now, e.Body)
		for i, p := range r.parts {
			if old := p.text.String(); old != now[i] {
				g.items.swap(p.item, old, now[i])
			}
		}
	}
	return session.Judgement{Replies: append(append(told, end), g.results(&results)...), Body: end}
}

// denied ends a response of which nothing was sent.
func (g *Guard) denied(r *response, e *realtime.Event, w *guardrail.SessionVerdict) session.Judgement {
	g.outcomes.note(r.id, Outcome{Denied: true})
	end := change(e.Body, map[string]any{"response": json.RawMessage(change(e.RawResponse(), map[string]any{
		"output": []any{}, "status": "failed", "status_details": map[string]any{"type": "failed", "reason": "hooks_failed", "error": map[string]string{"type": "hooks_failed", "code": "guardrail_denied"}},
	}))})
	var back [][]byte
	for item, of := range g.items.of {
		if of == r.id {
			g.items.forget(item)
			back = append(back, realtime.Delete(item))
		}
	}
	return session.Judgement{Replies: [][]byte{g.reject(w), end}, Back: back, Body: end}
}

// Outcome is the guardrail outcome of a response, for its record.
type Outcome struct{ Denied, Failed bool }

// outcomes are those of responses without a record yet. The zero value has none.
type outcomes struct {
	mu  sync.Mutex
	all map[string]Outcome // by response
}

// note stores the outcome of a response. Above the limit, unread outcomes are dropped.
func (o *outcomes) note(response string, is Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for some := range o.all {
		if len(o.all) < maxOpen {
			break
		}
		delete(o.all, some)
	}
	if o.all == nil {
		o.all = make(map[string]Outcome)
	}
	o.all[response] = is
}

// take returns the outcome of a response, once.
func (o *outcomes) take(response string) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	is := o.all[response]
	delete(o.all, response)
	return is
}
