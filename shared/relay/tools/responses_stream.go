package tools

import (
	"encoding/json"
	"strconv"

	"gateway/shared/relay/approval"
	"gateway/shared/wire"
)

// responsesStream presents the turns as one stream of events.
type responsesStream struct {
	before   []byte // events for the client after the response has started
	sequence int
	offset   int           // of the turn's items among all
	ours     map[int]*call // of the turn, by their index in it
	removed  map[int]bool  // items of the turn that are not shown, by their index in it
	headed   bool          // the client has the beginning of the stream
}

// list stores the events of a server's list for the start of the stream.
func (st *responsesStream) list(at int, id string, begun, whole json.RawMessage) {
	st.before = st.about(st.added(st.before, at, begun), "response.mcp_list_tools.in_progress", at, id, nil)
	st.before = st.done(st.about(st.before, "response.mcp_list_tools.completed", at, id, nil), at, whole)
}

// call stores the events of a call that is made before the first turn.
func (st *responsesStream) call(c *call) {
	st.before = st.about(st.added(st.before, c.index, itemOf(c, "in_progress", nil)), "response.mcp_call.in_progress", c.index, callPrefix+c.id, nil)
	st.before = st.about(st.before, "response.mcp_call_arguments.done", c.index, callPrefix+c.id, object{"arguments": quoted(c.args)})
}

// early stores events for the start of the stream.
func (st *responsesStream) early(events []byte) { st.before = append(st.before, events...) }

// next starts a turn with its number and the index of its first item.
func (st *responsesStream) next(turn, offset int) {
	if turn == 1 {
		st.sequence = 0 // the stream starts with this turn
	}
	st.offset, st.ours, st.removed = offset, map[int]*call{}, map[int]bool{}
}

// shownAt returns the index for the client of an item with an index in its turn.
func (st *responsesStream) shownAt(at int) int {
	shown := at + st.offset
	for i := range st.removed {
		if i < at {
			shown--
		}
	}
	return shown
}

// heads are the events that start a stream.
var heads = map[string]bool{"response.created": true, "response.queued": true, "response.in_progress": true}

// place implements shape.
func (s *responses) place() (next int64, id string) {
	return int64(s.stream.sequence), text(s.startID)
}

// event implements shape.
func (s *responses) event(data []byte) ([]byte, error) {
	var of object
	if json.Unmarshal(data, &of) != nil {
		return nil, nil // no event for the client
	}
	kind := text(of["type"])
	var out []byte
	switch {
	case heads[kind]:
		if s.stream.headed {
			return nil, nil
		}
		var r object
		if json.Unmarshal(of["response"], &r) == nil && r != nil {
			s.startID = r["id"]
			of["response"] = encoded(s.patched(r))
		}
		return s.stream.emit(nil, of), nil
	case kind == "response.completed" || kind == "response.incomplete" || kind == "response.failed":
		s.last = nil
		_ = json.Unmarshal(of["response"], &s.last) // without one it was truncated
		return s.stream.head(), nil
	case kind == "error":
		s.failed = streamFault(of)
		return nil, nil
	}
	out = s.stream.head()
	var at int
	reserved := approval.Reserved(of["item"])
	if raw := of["output_index"]; raw == nil || json.Unmarshal(raw, &at) != nil {
		if reserved {
			return out, nil
		}
		return s.stream.emit(out, of), nil
	}
	if reserved {
		s.stream.removed[at] = true
	}
	if s.stream.removed[at] {
		return out, nil
	}
	var it item
	_ = json.Unmarshal(of["item"], &it) // most events have none
	if t := s.names.tools[text(it.Name)]; kind == "response.output_item.added" && t != nil && text(it.Type) == "function_call" {
		c := &call{id: text(it.CallID), tool: t, index: s.stream.shownAt(at)}
		if s.stream.ours[at] = c; t.of.wantsApproval(t) {
			return out, nil // it is shown once it is complete
		}
		return s.stream.about(s.stream.added(out, c.index, itemOf(c, "in_progress", nil)), "response.mcp_call.in_progress", c.index, callPrefix+c.id, nil), nil
	}
	if c := s.stream.ours[at]; c != nil {
		return s.ofCall(out, c, kind, of, &it)
	}
	of["output_index"] = json.RawMessage(strconv.Itoa(s.stream.shownAt(at)))
	return s.stream.emit(out, of), nil
}

// ofCall forwards an event of a gateway call.
func (s *responses) ofCall(out []byte, c *call, kind string, of object, it *item) ([]byte, error) {
	st := &s.stream
	asks := c.tool.of.wantsApproval(c.tool)
	switch kind {
	case "response.function_call_arguments.delta":
		if !asks {
			out = st.about(out, "response.mcp_call_arguments.delta", c.index, callPrefix+c.id, object{"delta": of["delta"]})
		}
	case "response.function_call_arguments.done":
		if !asks {
			out = st.about(out, "response.mcp_call_arguments.done", c.index, callPrefix+c.id, object{"arguments": of["arguments"]})
		}
	case "response.output_item.done":
		if asks {
			asking, err := s.approvalOf(&call{id: c.id, tool: c.tool, args: text(it.Arguments)})
			if err != nil {
				return out, err
			}
			out = st.done(st.added(out, c.index, asking), c.index, asking)
		}
	}
	return out, nil // it ends after the call is made
}

// head returns the first events for the client once its stream has started.
func (st *responsesStream) head() []byte {
	if st.headed {
		return nil
	}
	st.headed = true
	return st.numbered(st.before)
}

// end returns the event that ends the stream.
func (st *responsesStream) end(status string, response []byte) []byte {
	kind := "response.completed"
	switch status {
	case "incomplete":
		kind = "response.incomplete"
	case "failed":
		kind = "response.failed"
	}
	return st.emit(st.head(), object{"type": quoted(kind), "response": response})
}

// emit appends an event, and numbers it if the stream has started.
func (st *responsesStream) emit(dst []byte, of object) []byte {
	of["sequence_number"] = json.RawMessage(strconv.Itoa(st.sequence))
	st.sequence++
	return wire.AppendSSE(dst, text(of["type"]), encoded(of))
}

// numbered numbers events that were created before the stream started.
func (st *responsesStream) numbered(events []byte) (out []byte) {
	var p wire.SSEParser
	again := func(_ string, data []byte) error {
		var of object
		_ = json.Unmarshal(data, &of) // it was created here
		out = st.emit(out, of)
		return nil
	}
	_ = p.Feed(events, again) // it was created here
	return out
}

// added and done append the first and the last event of an item, around its content.
func (st *responsesStream) added(dst []byte, at int, item json.RawMessage) []byte {
	return st.emit(dst, object{"type": quoted("response.output_item.added"), "output_index": json.RawMessage(strconv.Itoa(at)), "item": item})
}

func (st *responsesStream) done(dst []byte, at int, item json.RawMessage) []byte {
	return st.emit(dst, object{"type": quoted("response.output_item.done"), "output_index": json.RawMessage(strconv.Itoa(at)), "item": item})
}

func (st *responsesStream) about(dst []byte, kind string, at int, id string, more object) []byte {
	of := object{"type": quoted(kind), "output_index": json.RawMessage(strconv.Itoa(at)), "item_id": quoted(id)}
	for name, v := range more {
		of[name] = v
	}
	return st.emit(dst, of)
}
