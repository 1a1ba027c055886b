package tools

import (
	"encoding/json"
	"strings"

	"gateway/shared/wire"
)

// readMessages restores the gateway's calls and their results to the messages in which the model
// made and read them. The client sends both inside one message of the model; that message ends
// before the results, which belong to the user's next one.
func (s *messages) readMessages() {
	var out []json.RawMessage
	var open []json.RawMessage // results at the start of the user's next message
	for _, raw := range s.history {
		var of object
		var blocks []json.RawMessage
		_ = json.Unmarshal(raw, &of)               // the provider judges a message that is not an object
		_ = json.Unmarshal(of["content"], &blocks) // a text has no blocks
		switch {
		case text(of["role"]) == "assistant" && holdsOurs(blocks):
			out, open = s.split(append(out, closed(open)...), of, blocks)
		case text(of["role"]) == "user" && len(open) > 0:
			if wire.KindOf(of["content"]) == wire.KindString {
				blocks = []json.RawMessage{encoded(object{"type": quoted("text"), "text": of["content"]})}
			}
			of["content"] = list(append(open, blocks...))
			out, open = append(out, encoded(of)), nil
		default:
			out, open = append(append(out, closed(open)...), raw), nil
		}
	}
	s.history = append(out, closed(open)...)
}

// closed returns results as a separate message.
func closed(results []json.RawMessage) []json.RawMessage {
	if len(results) == 0 {
		return nil
	}
	return []json.RawMessage{encoded(object{"role": quoted("user"), "content": list(results)})}
}

// ofBlock holds the fields read of a block that a client sends back.
type ofBlock struct {
	Type   json.RawMessage `json:"type"`
	ID     json.RawMessage `json:"id"`
	UseID  json.RawMessage `json:"tool_use_id"`
	Name   json.RawMessage `json:"name"`
	Server json.RawMessage `json:"server_name"`
}

func readBlock(raw json.RawMessage) (b ofBlock) {
	_ = json.Unmarshal(raw, &b) // another format is none of these
	return b
}

func (b *ofBlock) isOurs() bool {
	return text(b.Type) == "mcp_tool_use" && strings.HasPrefix(text(b.Server), labelPrefix)
}

func holdsOurs(blocks []json.RawMessage) bool {
	for _, raw := range blocks {
		if b := readBlock(raw); b.isOurs() {
			return true
		}
	}
	return false
}

// split divides a message of the model. open are the results at its end, for the user's
// next message.
func (s *messages) split(out []json.RawMessage, message object, blocks []json.RawMessage) (messages, open []json.RawMessage) {
	ours, made := map[string]bool{}, map[string]bool{}
	for _, raw := range blocks {
		if b := readBlock(raw); text(b.Type) == "mcp_tool_result" {
			made[text(b.UseID)] = true
		}
	}
	var model []json.RawMessage
	turn := func() {
		if len(model) > 0 {
			of := clone(message)
			of["content"] = list(model)
			out, model = append(out, encoded(of)), nil
		}
	}
	for _, raw := range blocks {
		b := readBlock(raw)
		switch {
		case b.isOurs() && !made[text(b.ID)]:
			// It was truncated, and the model's message must have no call without a result.
		case b.isOurs():
			out, open = append(out, closed(open)...), nil
			var of object
			_ = json.Unmarshal(raw, &of) // it was read
			delete(of, "server_name")
			ours[text(b.ID)] = true
			of["type"], of["name"] = quoted("tool_use"), quoted(s.names.as(text(b.Server), text(b.Name)))
			of["id"] = quoted(strings.TrimPrefix(text(b.ID), usePrefix))
			model = append(model, encoded(of))
		case text(b.Type) == "mcp_tool_result" && ours[text(b.UseID)]:
			turn()
			open = append(open, s.resultOf(raw, &b))
		default:
			out, open = append(out, closed(open)...), nil
			model = append(model, raw)
		}
	}
	turn()
	return out, open
}

// resultOf returns a result as the model has read it.
func (s *messages) resultOf(raw json.RawMessage, b *ofBlock) json.RawMessage {
	var of object
	_ = json.Unmarshal(raw, &of) // it was read
	out := object{"type": quoted("tool_result"), "tool_use_id": quoted(strings.TrimPrefix(text(b.UseID), usePrefix))}
	for _, name := range [...]string{"is_error", "content", "cache_control"} {
		if of[name] != nil {
			out[name] = of[name]
		}
	}
	return encoded(out)
}

// sum adds the usage of two turns: integers are added, objects field by field; of everything
// else the second turn's value is used.
func sum(a, b json.RawMessage) json.RawMessage {
	switch {
	case len(b) == 0 || string(b) == "null":
		return a
	case len(a) == 0 || string(a) == "null" || wire.KindOf(a) != wire.KindOf(b):
		return b
	}
	switch wire.KindOf(b) {
	case wire.KindNumber:
		var x, y int64
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x+y < x {
			return b
		}
		out, _ := json.Marshal(x + y) // a number
		return out
	case wire.KindObject:
		var x, y object
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
			return b
		}
		for name, v := range y {
			x[name] = sum(x[name], v)
		}
		out, err := json.Marshal(x)
		if err != nil {
			return b
		}
		return out
	}
	return b
}

// over returns a with the fields of b replacing its own.
func over(a, b json.RawMessage) json.RawMessage {
	var x, y object
	if json.Unmarshal(b, &y) != nil || y == nil {
		return a
	}
	if json.Unmarshal(a, &x) != nil || x == nil {
		return b
	}
	for name, v := range y {
		if string(v) != "null" {
			x[name] = v
		}
	}
	out, err := json.Marshal(x)
	if err != nil {
		return b
	}
	return out
}

// list is the JSON of a list of values that are JSON.
func list(items []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, raw := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// encoded returns the JSON of a value that cannot fail to encode: texts, numbers, and raw JSON.
func encoded(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}
