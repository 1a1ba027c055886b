package realtime

import (
	"encoding/json"
	"strings"

	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
	"gateway/shared/guard/content"
)

// clientTurn is client input in the Responses format.
type clientTurn struct {
	Model        string            `json:"model,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Input        []json.RawMessage `json:"input,omitempty"`
}

// Client implements session.Guard. Every event is judged as a whole, so that no field of it
// reaches the model unread; events of sound are judged by their transcripts.
func (g *Guard) Client(e *realtime.Event, hears bool) ([]byte, error) {
	judges := g.now().JudgesInput()
	if e.Type == "input_audio_buffer.append" {
		if judges && !hears && !g.promised.Load() {
			return nil, fault.New(fault.InvalidRequest, "audio", "Guardrails judge the content of this session: set audio.input.transcription by session.update before sending audio")
		}
		return nil, nil
	}
	var now []byte
	if judges {
		var err error
		if now, err = g.said(e); err != nil {
			return nil, err
		}
	}
	if e.Type != realtime.SessionUpdate && e.Type != realtime.SessionOld {
		return now, nil
	}
	if now != nil {
		sent, err := new(realtime.Reader).Read(now)
		if err != nil {
			return nil, err
		}
		e = &sent
	}
	is, err := e.Session()
	if err != nil {
		return nil, err
	}
	if is.Transcription != "" {
		g.promised.Store(true)
	}
	if is.Instructions != "" {
		g.told(is.Instructions)
	}
	return now, nil
}

func (g *Guard) told(instructions string) {
	about, err := json.Marshal(clientTurn{Model: g.of.Model, Instructions: instructions})
	if err == nil {
		g.about.Store(&about)
	}
}

// said judges an event; it returns its replacement, nil if it is unchanged.
func (g *Guard) said(e *realtime.Event) ([]byte, error) {
	if err := unsounded(e); err != nil {
		return nil, err
	}
	if content.Empty(kind, e.Body) {
		return nil, nil
	}
	w := g.now().JudgeInput(g.ctx, e.Body)
	if w.Denied {
		return nil, g.denial(&w)
	}
	return w.Body, nil
}

// kind is the request type of sessions.
const kind = "realtime"

// unsounded rejects items with audio, which has no transcript.
func unsounded(e *realtime.Event) error {
	items, field := []json.RawMessage(nil), "item"
	switch {
	case e.Item() != nil:
		items = append(items, e.Item())
	case e.Answer() != nil:
		var in struct {
			Input []json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal(e.Answer(), &in); err != nil {
			return fault.New(fault.InvalidRequest, "response", "must be an object with input, a list of items")
		}
		items, field = in.Input, "response.input"
	}
	for _, item := range items {
		if sounds(item) {
			return fault.New(fault.InvalidRequest, field, "Guardrails judge the content of this session, and cannot judge audio within an item: send it by input_audio_buffer.append, with audio.input.transcription set")
		}
	}
	return nil
}

// sounds reports whether an item contains audio.
func sounds(item json.RawMessage) bool {
	var in struct {
		Content []struct {
			Type  string          `json:"type"`
			Audio json.RawMessage `json:"audio"`
		} `json:"content"`
	}
	_ = json.Unmarshal(item, &in) // the provider rejects an invalid item
	for _, part := range in.Content {
		if part.Audio != nil || strings.Contains(part.Type, "audio") {
			return true
		}
	}
	return false
}
