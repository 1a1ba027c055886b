package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// Messages returns the tool run for requests in the dialect of Anthropic's Messages. calls is
// the route to the servers.
func Messages(calls *routes.Route) *routes.ToolRun {
	return of(calls, Limits{}, false, func(*routes.ToolLoop) shape { return new(messages) })
}

// usePrefix starts the ids of blocks, before the id of the model's call.
const usePrefix = "mcp"

// messages is the dialect of Messages.
type messages struct {
	members object
	tools   []json.RawMessage
	history []json.RawMessage // messages for the model, including those of earlier turns
	names   *names
	content []json.RawMessage // for the client
	results []json.RawMessage // for the model, of calls that are made
	turns   int
	usage   json.RawMessage // of all turns
	first   object          // the first turn's response, without content
	last    object          // the last turn's

	// The turns are presented as one stream of events.
	offset int          // of the turn's blocks among all
	blocks []*block     // of the turn
	ended  bool         // the turn's stream has ended
	headed bool         // the client has the beginning of the stream
	failed *fault.Fault // from an error event of the turn
}

// read implements shape.
func (s *messages) read(body []byte) (*request, error) {
	if err := wire.CheckStrict(body, wire.MaxDepth); err != nil {
		return nil, err
	}
	if json.Unmarshal(body, &s.members) != nil {
		return nil, fault.Invalid("body", "must be a JSON object")
	}
	var stream bool
	var calls int
	var bad []fault.Detail
	for _, m := range [...]struct {
		name string
		into any
		what string
	}{{"tools", &s.tools, "a list"}, {"messages", &s.history, "a list"}, {"stream", &stream, "a boolean"}, {"max_tool_calls", &calls, "a whole number"}} {
		if raw := s.members[m.name]; raw != nil && string(raw) != "null" && json.Unmarshal(raw, m.into) != nil {
			bad = append(bad, fault.Detail{Field: m.name, Message: "must be " + m.what})
		}
	}
	if raw := s.members["max_tool_calls"]; raw != nil && calls < 1 {
		bad = append(bad, fault.Detail{Field: "max_tool_calls", Message: "must be at least 1"})
	}
	if f := fault.Invalids(bad); f != nil {
		return nil, f
	}
	var functions []string
	for _, raw := range s.tools {
		var t struct{ Name json.RawMessage }
		if json.Unmarshal(raw, &t) == nil && t.Name != nil {
			functions = append(functions, text(t.Name))
		}
	}
	return &request{s.tools, functions, stream, calls}, nil
}

// begin implements shape.
func (s *messages) begin(servers []*server, n *names) ([]*call, error) {
	s.names = n
	s.readMessages()
	var offered []json.RawMessage
	for i, raw := range s.tools {
		at := slices.IndexFunc(servers, func(of *server) bool { return of.at == i })
		if at < 0 {
			offered = append(offered, raw)
			continue
		}
		of := servers[at]
		for j, t := range of.tools {
			one := object{"name": quoted(t.as), "description": quoted(t.description), "input_schema": t.schema}
			if of.cache != nil && j == len(of.tools)-1 {
				one["cache_control"] = of.cache
			}
			offered = append(offered, encoded(one))
		}
	}
	s.members = clone(s.members)
	if s.members["tools"] = list(offered); len(offered) == 0 {
		delete(s.members, "tools")
		delete(s.members, "tool_choice")
	}
	delete(s.members, "max_tool_calls")
	return nil, nil
}

// turn implements shape.
func (s *messages) turn(last bool) ([]byte, error) {
	s.turns++
	s.last, s.failed = nil, nil
	s.offset, s.blocks, s.ended = len(s.content), nil, false
	out := clone(s.members)
	out["messages"] = list(s.history)
	switch choice := out["tool_choice"]; {
	case out["tools"] == nil:
	case last:
		out["tool_choice"] = json.RawMessage(`{"type":"none"}`)
	case s.turns > 1 && choice != nil:
		var of object
		if json.Unmarshal(choice, &of) == nil && (text(of["type"]) == "any" || text(of["type"]) == "tool") {
			delete(of, "name")
			of["type"] = quoted("auto")
			out["tool_choice"] = encoded(of)
		}
	}
	return json.Marshal(out)
}

// took implements shape.
func (s *messages) took(body []byte) (*turnResult, error) {
	var blocks []json.RawMessage
	if body != nil {
		if json.Unmarshal(body, &s.last) != nil || s.last == nil {
			return nil, fault.New(fault.InvalidProviderResponse, "", "The response to a turn is not a message")
		}
		_ = json.Unmarshal(s.last["content"], &blocks) // a message without content has none
	} else {
		switch {
		case s.failed != nil:
			return nil, s.failed
		case s.last == nil || !s.ended:
			return nil, cutOff()
		}
		for _, b := range s.blocks {
			blocks = append(blocks, b.whole())
		}
	}
	s.usage = sum(s.usage, s.last["usage"])
	if s.first == nil {
		s.first = s.last
	}
	if len(blocks) > 0 {
		s.history = append(s.history, encoded(object{"role": quoted("assistant"), "content": list(blocks)}))
	}
	s.results = nil
	whole := text(s.last["stop_reason"]) == "tool_use"
	ends := !whole
	var calls []*call
	for i, raw := range blocks {
		var of object
		_ = json.Unmarshal(raw, &of) // a block that is not an object is forwarded
		t := s.names.tools[text(of["name"])]
		switch {
		case text(of["type"]) == "tool_use" && t != nil:
			args := string(of["input"])
			if body == nil && s.blocks[i].broken {
				args = "{" // rejected as invalid JSON
			}
			if whole {
				calls = append(calls, &call{id: text(of["id"]), tool: t, args: args})
			}
			raw = used(of, t)
		case text(of["type"]) == "tool_use":
			ends = true
		}
		s.content = append(s.content, raw)
	}
	return &turnResult{calls, ends}, nil
}

// used returns a call as the client sees it.
func used(of object, t *tool) json.RawMessage {
	out := clone(of)
	out["type"], out["name"], out["server_name"] = quoted("mcp_tool_use"), quoted(t.name), quoted(t.of.label)
	out["id"] = quoted(usePrefix + text(of["id"]))
	return encoded(out)
}

// made implements shape.
func (s *messages) made(calls []*call, results []*outcome) (events []byte) {
	for i, c := range calls {
		out := results[i]
		shown := encoded(map[string]any{
			"type": "mcp_tool_result", "tool_use_id": usePrefix + c.id, "is_error": out.failed, "content": []any{map[string]any{"type": "text", "text": out.text}},
		})
		events = appendBlock(events, len(s.content), shown)
		s.content = append(s.content, shown)
		s.results = append(s.results, encoded(object{
			"type": quoted("tool_result"), "tool_use_id": quoted(c.id), "is_error": encoded(out.failed), "content": out.forMessages(),
		}))
	}
	if len(s.results) > 0 {
		s.history = append(s.history, encoded(object{"role": quoted("user"), "content": list(s.results)}))
	}
	return events
}

// forMessages returns a result as the model reads it.
func (o *outcome) forMessages() json.RawMessage {
	var parts []json.RawMessage
	if o.text != "" || len(o.images) == 0 {
		said := o.text
		if strings.TrimSpace(said) == "" {
			said = "(nothing)" // text must not be empty
		}
		parts = append(parts, encoded(object{"type": quoted("text"), "text": quoted(said)}))
	}
	for _, i := range o.images {
		parts = append(parts, encoded(map[string]any{"type": "image", "source": map[string]string{"type": "base64", "media_type": i.media, "data": i.data}}))
	}
	return list(parts)
}

// place implements shape: events of Messages have no numbers, and errors no id.
func (*messages) place() (next int64, id string) { return 0, "" }

// final implements shape.
func (s *messages) final(cut bool) (body, events []byte, err error) {
	out := clone(s.last)
	out["id"], out["content"] = s.first["id"], list(s.content)
	if s.usage != nil {
		out["usage"] = s.usage
	}
	if cut {
		out["stop_reason"] = quoted("pause_turn") // the client may continue it
	}
	if body, err = json.Marshal(out); err != nil {
		return nil, nil, err
	}
	return body, s.end(out), nil
}
