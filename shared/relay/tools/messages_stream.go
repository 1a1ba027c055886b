package tools

import (
	"encoding/json"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// block is a content block that arrives in pieces.
type block struct {
	members object
	pieces  map[string]*strings.Builder // of text fields
	args    strings.Builder
	argued  bool // arguments arrived in pieces
	broken  bool // they are not JSON
	cites   []json.RawMessage
}

// event implements shape.
func (s *messages) event(data []byte) ([]byte, error) {
	var of object
	if json.Unmarshal(data, &of) != nil {
		return nil, nil // no event for the client
	}
	switch kind := text(of["type"]); kind {
	case "message_start":
		s.last = nil
		_ = json.Unmarshal(of["message"], &s.last) // without one it was truncated
		if s.headed {
			return nil, nil
		}
		s.headed = true
	case "message_delta":
		if s.last == nil {
			return nil, nil
		}
		var delta object
		_ = json.Unmarshal(of["delta"], &delta) // an event without one has no content
		for name, v := range delta {
			s.last[name] = v
		}
		s.last["usage"] = over(s.last["usage"], of["usage"])
		for name, v := range of {
			if name != "type" && name != "delta" && name != "usage" {
				s.last[name] = v
			}
		}
		return nil, nil // sent after the last turn
	case "message_stop":
		s.ended = true
		return nil, nil
	case "error":
		s.failed = streamFault(of)
		return nil, nil
	case "content_block_start", "content_block_delta", "content_block_stop":
		return s.ofBlock(kind, of), nil
	}
	return wire.AppendSSE(nil, text(of["type"]), encoded(of)), nil
}

// ofBlock stores and forwards an event of a block.
func (s *messages) ofBlock(kind string, of object) []byte {
	var at int
	if json.Unmarshal(of["index"], &at) != nil || at < 0 {
		return nil
	}
	switch kind {
	case "content_block_start":
		b := &block{pieces: map[string]*strings.Builder{}}
		_ = json.Unmarshal(of["content_block"], &b.members) // one without is empty
		if at != len(s.blocks) {
			return nil
		}
		s.blocks = append(s.blocks, b)
		if t := s.names.tools[text(b.members["name"])]; t != nil && text(b.members["type"]) == "tool_use" {
			of["content_block"] = used(b.members, t)
		}
	case "content_block_delta":
		if at >= len(s.blocks) {
			return nil
		}
		var delta object
		_ = json.Unmarshal(of["delta"], &delta) // an event without one has no content
		s.blocks[at].add(delta)
	}
	of["index"] = json.RawMessage(strconv.Itoa(at + s.offset))
	return wire.AppendSSE(nil, kind, encoded(of))
}

// add appends a piece.
func (b *block) add(delta object) {
	switch text(delta["type"]) {
	case "input_json_delta":
		b.argued = true
		b.args.WriteString(text(delta["partial_json"]))
		return
	case "citations_delta":
		b.cites = append(b.cites, delta["citation"])
		return
	}
	for name, v := range delta {
		if name == "type" || wire.KindOf(v) != wire.KindString {
			continue
		}
		if b.pieces[name] == nil {
			b.pieces[name] = new(strings.Builder)
			b.pieces[name].WriteString(text(b.members[name]))
		}
		b.pieces[name].WriteString(text(v))
	}
}

// whole returns the assembled block.
func (b *block) whole() json.RawMessage {
	of := clone(b.members)
	for name, p := range b.pieces {
		of[name] = quoted(p.String())
	}
	if args := strings.TrimSpace(b.args.String()); b.argued && args != "" {
		if of["input"] = json.RawMessage(args); !json.Valid(of["input"]) || args[0] != '{' {
			of["input"], b.broken = json.RawMessage("{}"), true
		}
	}
	if len(b.cites) > 0 {
		of["citations"] = list(b.cites)
	}
	return encoded(of)
}

// appendBlock appends the events of a complete block.
func appendBlock(dst []byte, at int, whole json.RawMessage) []byte {
	index := json.RawMessage(strconv.Itoa(at))
	dst = wire.AppendSSE(dst, "content_block_start", encoded(object{"type": quoted("content_block_start"), "index": index, "content_block": whole}))
	return wire.AppendSSE(dst, "content_block_stop", encoded(object{"type": quoted("content_block_stop"), "index": index}))
}

// end returns the events that end the stream.
func (s *messages) end(of object) []byte {
	delta := object{}
	for _, name := range [...]string{"stop_reason", "stop_sequence", "stop_details", "container"} {
		if of[name] != nil {
			delta[name] = of[name]
		}
	}
	out := object{"type": quoted("message_delta"), "delta": encoded(delta)}
	if of["usage"] != nil {
		out["usage"] = of["usage"]
	}
	if of["context_management"] != nil {
		out["context_management"] = of["context_management"]
	}
	dst := wire.AppendSSE(nil, "message_delta", encoded(out))
	return wire.AppendSSE(dst, "message_stop", json.RawMessage(`{"type":"message_stop"}`))
}
