package realtime

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/guard/content"
	"gateway/shared/wire"
)

// create is a client's request for a response.
type create struct {
	buf   *buffer.Buffer // the event as received
	lease egress.Lease

	lane      string // stream_id
	previous  string // previous_response_id
	echoes    string // the same, if the provider gets the conversation in its place
	generates bool
	stores    bool
	model     string
	members   map[string]json.RawMessage // of the request
	from      string                     // id of a stored response that it continues; see body
	input     []byte                     // items since that response, separated by commas; see body
	steer     []byte                     // the event that rejects steering; nil if the request does not steer
}

func (c *create) free() {
	c.buf.Free()
	c.lease.Free()
	c.members, c.input = nil, nil
}

// Fields of client events that the gateway reads: each may occur once.
var createKeys = wire.NewKeySet("type", "stream_id", "stream", "background", "generate", "store", "previous_response_id", "input", "model", "response")

// maxLane limits a stream_id, in bytes.
const maxLane = 256

const (
	createType = "response.create"
	steerType  = "response.steer"
)

// read parses the event.
func (c *create) read() error {
	var walk wire.Walk
	if err := createKeys.Walk(c.buf.B, &walk); err != nil {
		return err
	}
	if err := json.Unmarshal(c.buf.B, &c.members); err != nil {
		return fault.Invalid("event", "must be a JSON object")
	}
	var kind string
	var bad []fault.Detail
	c.generates, c.stores = true, true
	for _, m := range [...]struct {
		name string
		into any
		what string
	}{
		{"type", &kind, "a string"}, {"stream_id", &c.lane, "a string"}, {"generate", &c.generates, "a boolean"}, {"store", &c.stores, "a boolean"},
		{"previous_response_id", &c.previous, "a string"}, {"model", &c.model, "a string"},
	} {
		if raw := c.members[m.name]; raw != nil && json.Unmarshal(raw, m.into) != nil {
			bad = append(bad, fault.Detail{Field: m.name, Message: "must be " + m.what})
		}
	}
	if len(c.lane) > maxLane {
		bad, c.lane = append(bad, fault.Detail{Field: "stream_id", Message: "must have at most 256 bytes"}), ""
	}
	if kind == steerType {
		c.steer = steered(c.members)
		return fault.New(fault.UnsupportedOperation, "type", "The gateway does not support steering a response")
	}
	if kind != createType && len(bad) == 0 {
		bad = append(bad, fault.Detail{Field: "type", Message: "must be response.create"})
	}
	if c.members["response"] != nil {
		bad = append(bad, fault.Detail{Field: "response", Message: "must be omitted: the fields of the response are at the top level, next to type"})
	}
	if raw := c.members["background"]; raw != nil && string(raw) != "false" && string(raw) != "null" {
		bad = append(bad, fault.Detail{Field: "background", Message: "must be omitted: responses over a WebSocket cannot run in the background"})
	}
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	for _, own := range [...]string{"type", "stream_id", "stream", "background", "generate"} {
		delete(c.members, own)
	}
	return nil
}

// steered rejects steering, as the provider does for models without support.
func steered(members map[string]json.RawMessage) []byte {
	told := struct {
		Type     string `json:"type"`
		Sequence int    `json:"sequence_number"`
		Steer    struct {
			Input    json.RawMessage `json:"input"`
			Previous json.RawMessage `json:"previous_response_id"`
		} `json:"steer"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Type    string `json:"type"`
		} `json:"error"`
	}{Type: "response.steer.failed"}
	told.Steer.Input, told.Steer.Previous = members["input"], members["previous_response_id"]
	told.Error.Code, told.Error.Type = "steering_not_supported", "invalid_request_error"
	told.Error.Message = "The gateway cannot steer a response in progress; wait for it, then continue from it"
	body, err := json.Marshal(told)
	if err != nil {
		return errorEvent(fault.Internal(err))
	}
	return body
}

// body returns the request for the response. If it continues a conversation that only this
// connection remembers, that is prepended to its input.
func (c *create) body(k *kept) ([]byte, error) {
	before, known := k.find(c.previous)
	if c.previous != "" && !known && strings.HasPrefix(c.previous, ownPrefix) {
		return nil, fault.New(fault.NotFound, "previous_response_id", "Previous response not found: it was created on another connection, or too long ago; send the complete input")
	}
	if known || !c.stores || !c.generates {
		own, err := inputItems(c.members["input"])
		if err != nil {
			return nil, err
		}
		if c.from, c.input = c.previous, joined(before.items, own); known {
			c.echoes = c.previous
			if c.from = before.from; c.from == "" {
				delete(c.members, "previous_response_id")
			} else {
				c.members["previous_response_id"] = wire.AppendJSONString(nil, c.from)
			}
			c.members["input"] = slices.Concat([]byte("["), c.input, []byte("]"))
		}
	}
	c.members["stream"] = json.RawMessage("true")
	body, err := json.Marshal(c.members)
	if err != nil {
		return nil, fault.Invalid("event", "must be a JSON object")
	}
	return body, nil
}

// inputItems returns the items of an input, separated by commas.
func inputItems(input json.RawMessage) ([]byte, error) {
	input = bytes.TrimSpace(input)
	switch {
	case len(input) == 0 || string(input) == "null":
		return nil, nil
	case input[0] == '"':
		return slices.Concat([]byte(`{"type":"message","role":"user","content":`), input, []byte("}")), nil
	case input[0] == '[':
		return bytes.TrimSpace(input[1 : len(input)-1]), nil
	}
	return nil, fault.Invalid("input", "must be a string or a list of items")
}

// joined concatenates lists of items.
func joined(lists ...[]byte) (out []byte) {
	for _, l := range lists {
		if len(l) > 0 && len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, l...)
	}
	return out
}

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
			return nil, fault.New(fault.InvalidRequest, "audio", "Guardrails check the content of this session: set audio.input.transcription by session.update before sending audio")
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
	case e.RawResponse() != nil:
		var in struct {
			Input []json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal(e.RawResponse(), &in); err != nil {
			return fault.New(fault.InvalidRequest, "response", "must be an object with input, a list of items")
		}
		items, field = in.Input, "response.input"
	}
	for _, item := range items {
		if sounds(item) {
			return fault.New(fault.InvalidRequest, field, "Guardrails check the content of this session, and cannot check audio within an item: send it by input_audio_buffer.append, with audio.input.transcription set")
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
