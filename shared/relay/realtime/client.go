package realtime

import (
	"encoding/json"
	"strings"

	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
)

// clientTurn is client input in the Responses format.
type clientTurn struct {
	Model        string            `json:"model,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Input        []json.RawMessage `json:"input,omitempty"`
}

// Client implements session.Guard.
func (g *Guard) Client(e *realtime.Event, hears bool) ([]byte, error) {
	switch e.Type {
	case realtime.SessionUpdate, realtime.SessionOld:
		return g.update(e)
	case realtime.ResponseCreate:
		return g.respond(e)
	case realtime.ItemCreate:
		if !g.now().Hears() || e.Item() == nil {
			return nil, nil
		}
		now, err := g.said([]json.RawMessage{e.Item()}, "item", "")
		if err != nil || now == nil {
			return nil, err
		}
		return with(e.Body, "item", now.Input[0])
	case "input_audio_buffer.append":
		if g.now().Hears() && !hears && !g.promised.Load() {
			return nil, fault.New(fault.InvalidRequest, "audio", "Guardrails judge the content of this session: set audio.input.transcription by session.update before sending audio")
		}
	}
	return nil, nil
}

// update judges the instructions of a session.
func (g *Guard) update(e *realtime.Event) ([]byte, error) {
	is, err := e.Session()
	if err != nil {
		return nil, err
	}
	now := (*clientTurn)(nil)
	if is.Instructions != "" && g.now().Hears() {
		if now, err = g.said(nil, "session", is.Instructions); err != nil {
			return nil, err
		}
	}
	if is.Transcription != "" {
		g.promised.Store(true)
	}
	if now == nil {
		if is.Instructions != "" {
			g.told(is.Instructions)
		}
		return nil, nil
	}
	g.told(now.Instructions)
	return inside(e.Body, "session", e.About(), map[string]any{"instructions": now.Instructions})
}

func (g *Guard) told(instructions string) {
	about, err := json.Marshal(clientTurn{Model: g.of.Model, Instructions: instructions})
	if err == nil {
		g.about.Store(&about)
	}
}

// respond judges the client's request for a response.
func (g *Guard) respond(e *realtime.Event) ([]byte, error) {
	if !g.now().Hears() || e.Answer() == nil {
		return nil, nil
	}
	var in struct {
		Instructions *string           `json:"instructions"`
		Input        []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(e.Answer(), &in); err != nil {
		return nil, fault.New(fault.InvalidRequest, "response", "must be an object with instructions, a text, and input, a list of items")
	}
	instructions := ""
	if in.Instructions != nil {
		instructions = *in.Instructions
	}
	if instructions == "" && len(in.Input) == 0 {
		return nil, nil
	}
	now, err := g.said(in.Input, "response.input", instructions)
	if err != nil || now == nil {
		return nil, err
	}
	change := map[string]any{}
	if in.Instructions != nil {
		change["instructions"] = now.Instructions
	}
	if len(in.Input) > 0 {
		change["input"] = now.Input
	}
	return inside(e.Body, "response", e.Answer(), change)
}

// said judges items and instructions; it returns their replacement, nil if they are unchanged.
func (g *Guard) said(items []json.RawMessage, field, instructions string) (*clientTurn, error) {
	for _, item := range items {
		if sounds(item) {
			return nil, fault.New(fault.InvalidRequest, field, "Guardrails judge the content of this session, and cannot judge audio within an item: send it by input_audio_buffer.append, with audio.input.transcription set")
		}
	}
	body, err := json.Marshal(clientTurn{g.of.Model, instructions, items})
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, field, "has the wrong type")
	}
	w := g.now().Said(g.ctx, body)
	if w.Denied {
		return nil, g.denial(&w)
	}
	if w.Body == nil {
		return nil, nil
	}
	now := new(clientTurn)
	if json.Unmarshal(w.Body, now) != nil || len(now.Input) != len(items) {
		return nil, g.denial(&w) // the changed response cannot be encoded
	}
	return now, nil
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
