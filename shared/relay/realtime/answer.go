package realtime

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/relay/guardrail"
)

// MaxHeld limits the bytes held of one response to 15 minutes of audio.
const MaxHeld = 64 << 20

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

// answer judges a provider event.
func (g *Guard) answer(e *realtime.Event) verdict {
	if e.Response != "" && e.Type != realtime.ResponseCreated && e.Type != realtime.ResponseDone {
		r := g.open[e.Response]
		if r == nil {
			return verdict{stays: !g.now().Holds()}
		}
		if e.Audio() || !r.by.Judges() { // most events; their content is not read
			return g.keep(r, e.Body)
		}
	}
	var p piece
	if err := json.Unmarshal(e.Body, &p); err != nil {
		return verdict{stays: !g.now().Holds()}
	}
	switch {
	case e.Type == realtime.ResponseCreated:
		now := g.now()
		if r := g.open[p.Response.ID]; r != nil {
			now = r.by
		} else if id := p.Response.ID; id != "" && len(id) <= maxID && len(g.open) < maxOpen {
			g.open[id], g.last = &response{id: id, by: now}, id
		}
		if len(p.Response.Output) > 0 && now.Holds() { // it would be sent before anything is judged
			return verdict{told: [][]byte{change(e.Body, map[string]any{"response": json.RawMessage(change(e.Answer(), map[string]any{"output": []any{}}))})}}
		}
		return verdict{stays: true}
	case e.Type == realtime.ResponseDone:
		r := g.open[p.Response.ID]
		if r == nil { // it was sent already, or never started
			return verdict{stays: !g.now().Holds()}
		}
		delete(g.open, r.id)
		if g.owed += r.lent; !r.by.Judges() {
			return verdict{stays: true}
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
				r.over = true
			}
		}
		return g.keep(r, e.Body)
	case strings.HasPrefix(e.Type, "conversation.item."):
		return g.item(e, &p)
	}
	return verdict{stays: true}
}

// item judges an event of an item of the conversation: one of a response is a part of it.
func (g *Guard) item(e *realtime.Event, p *piece) verdict {
	id := p.Item.ID
	if g.items.gone[id] {
		return verdict{}
	}
	own := p.Item.Role == "assistant" || p.Item.Type == "function_call"
	at := g.items.of[id]
	if at == "" && own {
		at = g.last
	}
	if swaps := g.items.swaps[id]; swaps != nil {
		return verdict{told: [][]byte{replaced(e.Body, swaps)}}
	}
	if r := g.open[at]; r != nil && (own || g.items.of[id] != "") {
		return g.keep(r, e.Body)
	}
	return verdict{stays: true}
}

// keep holds an event of a response back if the response is held.
func (g *Guard) keep(r *response, body []byte) verdict {
	if !r.by.Holds() {
		return verdict{stays: true}
	}
	if v := g.count(r, len(body)); r.over {
		return v
	}
	r.held = append(r.held, bytes.Clone(body)) // the connection reuses its memory
	return verdict{}
}

// count reserves memory for n more bytes of a response. One that becomes too large is no longer
// held, and is ended if none of it was sent. Without memory the session ends, as with other
// large messages.
func (g *Guard) count(r *response, n int) verdict {
	if r.over {
		return verdict{stays: !r.by.Holds()}
	}
	r.size += n
	if r.size > MaxHeld {
		r.over, r.held = true, nil
		g.owed, r.lent = g.owed+r.lent, 0
		if !r.by.Holds() {
			return verdict{stays: true}
		}
		return verdict{back: [][]byte{realtime.Cancel(r.id)}}
	}
	if more := int64(r.size) - r.lent - egress.Uncounted; more > 0 {
		more = max(more, egress.Uncounted) // in steps, not for each event
		if err := g.lease.Take(g.ctx, more); err != nil {
			r.over, r.held = true, nil
			return verdict{err: err}
		}
		r.lent += more
	}
	return verdict{}
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
	m := shownMessage{Type: "message", Role: "assistant", Content: []saidText{}}
	for _, p := range r.parts {
		m.Content = append(m.Content, saidText{"output_text", p.text.String()})
	}
	first, err := json.Marshal(m)
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
func (g *Guard) done(r *response, e *realtime.Event, p *piece) verdict {
	r.whole(p)
	about, body := *g.about.Load(), r.shown()
	var w guardrail.Word
	now := []string(nil)
	if r.by.Holds() {
		w = r.by.Held(g.ctx, about, body)
		if w.Body != nil && !w.Denied {
			if now = r.changed(w.Body); now == nil {
				w.Denied = true // the changed response cannot be encoded
			}
		}
	}
	if w.Denied || r.over && r.by.Holds() {
		return g.denied(r, e, &w)
	}
	if now != nil {
		body = w.Body
	}
	after := r.by.Over(g.ctx, about, body)
	w.Results.After = append(w.Results.After, after.Results.After...)
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
	v := verdict{told: append(told, end), body: end}
	v.told = append(v.told, g.results(&w.Results)...)
	return v
}

// denied ends a response of which nothing was sent.
func (g *Guard) denied(r *response, e *realtime.Event, w *guardrail.Word) verdict {
	g.outcomes.note(r.id, Outcome{Denied: true})
	end := change(e.Body, map[string]any{"response": json.RawMessage(change(e.Answer(), map[string]any{
		"output": []any{}, "status": "failed", "status_details": map[string]any{"type": "failed", "reason": "hooks_failed", "error": map[string]string{"type": "hooks_failed", "code": "guardrail_denied"}},
	}))})
	v := verdict{told: [][]byte{g.refuse(w), end}, body: end}
	for item, of := range g.items.of {
		if of == r.id {
			g.items.forget(item)
			v.back = append(v.back, realtime.Delete(item))
		}
	}
	return v
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
