package tools

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// Responses returns the tool run for requests in the dialect of OpenAI's Responses. calls is the
// route to the servers.
func Responses(calls *routes.Route) *routes.ToolRun {
	return of(calls, Limits{}, true, func(d *routes.ToolLoop) shape { return &responses{loop: d} })
}

// callPrefix starts the ids of shown calls, before the model's id of the call.
const callPrefix = "mcp_"

// responses is the dialect of Responses.
type responses struct {
	loop    *routes.ToolLoop
	request object            // the fields of the request
	members object            // for the model
	tools   []json.RawMessage // as the client sent them
	input   []json.RawMessage // for the model, including the items of earlier turns
	sent    int               // number of them in a conversation that the provider stores
	names   *names
	output  []json.RawMessage // for the client
	turns   int
	usage   json.RawMessage          // of all turns
	asking  map[approval.Call]string // ids of this turn's approval requests
	last    object                   // the last turn's response
	failed  *fault.Fault             // from an error event of the turn
	startID json.RawMessage          // the id of the response at the start of a stream: clients reject a stream that changes it
	stream  responsesStream
}

// read implements shape.
func (s *responses) read(body []byte) (*request, error) {
	if err := wire.CheckStrict(body, wire.MaxDepth); err != nil {
		return nil, err
	}
	if json.Unmarshal(body, &s.request) != nil {
		return nil, fault.Invalid("body", "must be a JSON object")
	}
	s.members = s.request
	var stream, background bool
	var calls int
	var bad []fault.Detail
	for _, m := range [...]struct {
		name string
		into any
		what string
	}{
		{"tools", &s.tools, "a list"}, {"stream", &stream, "a boolean"}, {"background", &background, "a boolean"}, {"max_tool_calls", &calls, "a whole number"},
	} {
		if raw := s.members[m.name]; raw != nil && string(raw) != "null" && json.Unmarshal(raw, m.into) != nil {
			bad = append(bad, fault.Detail{Field: m.name, Message: "must be " + m.what})
		}
	}
	if background {
		bad = append(bad, fault.Detail{Field: "background", Message: "must be false or omitted when the gateway calls tools"})
	}
	if calls < 0 || s.members["max_tool_calls"] != nil && string(s.members["max_tool_calls"]) != "null" && calls == 0 {
		bad = append(bad, fault.Detail{Field: "max_tool_calls", Message: "must be at least 1"})
	}
	switch raw := s.members["input"]; {
	case raw == nil || string(raw) == "null":
	case wire.KindOf(raw) == wire.KindString:
		s.input = []json.RawMessage{encoded(object{"type": quoted("message"), "role": quoted("user"), "content": raw})}
	case json.Unmarshal(raw, &s.input) != nil:
		bad = append(bad, fault.Detail{Field: "input", Message: "must be a string or a list of items"})
	}
	if f := fault.Invalids(bad); f != nil {
		return nil, f
	}
	var functions []string
	for _, raw := range s.tools {
		var t struct{ Type, Name json.RawMessage }
		if json.Unmarshal(raw, &t) == nil && (text(t.Type) == "function" || text(t.Type) == "custom") {
			functions = append(functions, text(t.Name))
		}
	}
	return &request{s.tools, functions, stream, calls}, nil
}

// begin implements shape.
func (s *responses) begin(servers []*server, n *names) ([]*call, error) {
	s.names = n
	var offered []json.RawMessage
	elsewhere := false // the provider calls tools, too
	for i, raw := range s.tools {
		at := slices.IndexFunc(servers, func(of *server) bool { return of.at == i })
		if at < 0 {
			var t struct{ Type json.RawMessage }
			_ = json.Unmarshal(raw, &t) // the provider judges it
			elsewhere = elsewhere || text(t.Type) != "function" && text(t.Type) != "custom"
			offered = append(offered, raw)
			continue
		}
		for _, t := range servers[at].tools {
			offered = append(offered, encoded(object{
				"type": quoted("function"), "name": quoted(t.as), "description": quoted(t.description), "parameters": t.schema, "strict": json.RawMessage("false"),
			}))
		}
	}
	items := readItems(s.input)
	for i, of := range servers {
		if !listed(items, of.label) {
			s.showList("mcpl_"+s.loop.ID+"_"+strconv.Itoa(i), of)
		}
	}
	first, err := s.restore(items)
	if err != nil {
		return nil, err
	}
	s.members = clone(s.request)
	if s.members["tools"] = list(offered); len(offered) == 0 {
		delete(s.members, "tools")
	}
	if !elsewhere {
		delete(s.members, "max_tool_calls")
	}
	return first, s.choose(servers)
}

// showList shows the client the tools of a server.
func (s *responses) showList(id string, of *server) {
	shown := make([]json.RawMessage, 0, len(of.tools))
	for _, t := range of.tools {
		one := object{"name": quoted(t.name), "description": quoted(t.description), "input_schema": t.schema, "annotations": t.annotations}
		if t.annotations == nil {
			one["annotations"] = json.RawMessage("null")
		}
		shown = append(shown, encoded(one))
	}
	item := object{"id": quoted(id), "type": quoted("mcp_list_tools"), "server_label": quoted(of.label), "tools": list(shown), "error": json.RawMessage("null")}
	begun := clone(item)
	begun["tools"] = json.RawMessage("[]")
	s.stream.list(len(s.output), id, encoded(begun), encoded(item))
	s.output = append(s.output, encoded(item))
}

// choose writes tool_choice for the model, with its names for the tools.
func (s *responses) choose(servers []*server) error {
	raw := s.members["tool_choice"]
	if wire.KindOf(raw) != wire.KindObject {
		return nil
	}
	var of object
	_ = json.Unmarshal(raw, &of) // an object
	switch {
	case text(of["type"]) == "mcp" && strings.HasPrefix(text(of["server_label"]), labelPrefix):
		chosen, err := functionsOf("tool_choice", of, servers)
		if err != nil {
			return err
		}
		s.members["tool_choice"] = encoded(object{"type": quoted("allowed_tools"), "mode": quoted("required"), "tools": list(chosen)})
		if len(chosen) == 1 {
			s.members["tool_choice"] = chosen[0]
		}
	case text(of["type"]) == "allowed_tools":
		var allowed, out []json.RawMessage
		if json.Unmarshal(of["tools"], &allowed) != nil {
			return nil // the provider judges it
		}
		for i, raw := range allowed {
			var one object
			if !isOurs(raw) || json.Unmarshal(raw, &one) != nil {
				out = append(out, raw)
				continue
			}
			chosen, err := functionsOf("tool_choice.tools["+strconv.Itoa(i)+"]", one, servers)
			if err != nil {
				return err
			}
			out = append(out, chosen...)
		}
		of["tools"] = list(out)
		s.members["tool_choice"] = encoded(of)
	}
	return nil
}

// functionsOf returns the functions that a choice of a server's tools selects.
func functionsOf(field string, of object, servers []*server) (out []json.RawMessage, err error) {
	label, name := text(of["server_label"]), text(of["name"])
	for _, sv := range servers {
		for _, t := range sv.tools {
			if sv.label == label && (name == "" || name == t.name) {
				out = append(out, encoded(object{"type": quoted("function"), "name": quoted(t.as)}))
			}
		}
	}
	if len(out) == 0 {
		return nil, fault.Invalid(field, "must choose tools that a server in tools has")
	}
	return out, nil
}

// turn implements shape.
func (s *responses) turn(last bool) ([]byte, error) {
	s.turns++
	s.last, s.failed, s.asking = nil, nil, map[approval.Call]string{}
	s.stream.next(s.turns, len(s.output))
	out, input := clone(s.members), s.input
	if s.conversation() {
		input = s.input[s.sent:] // earlier items are stored there
	}
	out["input"] = list(input)
	switch {
	case last:
		out["tool_choice"] = quoted("none")
	case s.turns > 1:
		out["tool_choice"] = later(out["tool_choice"])
	}
	if out["tool_choice"] == nil || out["tools"] == nil {
		delete(out, "tool_choice")
	}
	return json.Marshal(out)
}

// later returns the tool_choice of all turns after the first: a required call was made in the
// first.
func later(choice json.RawMessage) json.RawMessage {
	switch wire.KindOf(choice) {
	case wire.KindString:
		if text(choice) == "required" {
			return quoted("auto")
		}
	case wire.KindObject:
		var of object
		_ = json.Unmarshal(choice, &of) // an object
		if text(of["type"]) == "allowed_tools" {
			of["mode"] = quoted("auto")
			return encoded(of)
		}
		return quoted("auto")
	}
	return choice
}

// item holds the fields read of an output item.
type item struct {
	Type      json.RawMessage `json:"type"`
	Name      json.RawMessage `json:"name"`
	CallID    json.RawMessage `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"`
}

// took implements shape.
func (s *responses) took(body []byte) (*turnResult, error) {
	if body != nil {
		s.last = nil
		if json.Unmarshal(body, &s.last) != nil {
			return nil, fault.New(fault.InvalidProviderResponse, "", "The response to a turn is not a Responses object")
		}
	}
	switch {
	case s.failed != nil:
		return nil, s.failed
	case s.last == nil:
		return nil, cutOff()
	}
	var items []json.RawMessage
	_ = json.Unmarshal(s.last["output"], &items) // a response without output has none
	s.usage = sum(s.usage, s.last["usage"])
	whole := text(s.last["status"]) == "completed"
	ends := !whole
	var calls []*call
	for _, raw := range items {
		var it item
		_ = json.Unmarshal(raw, &it) // an item that is not an object is forwarded
		if approval.Reserved(raw) {
			continue
		}
		if kept := sentBack(raw, text(it.Type)); kept != nil {
			s.input = append(s.input, kept)
		}
		t := s.names.tools[text(it.Name)]
		switch {
		case text(it.Type) == "function_call" && t != nil:
			c := &call{id: text(it.CallID), tool: t, args: text(it.Arguments), index: len(s.output)}
			switch {
			case !whole:
				s.output = append(s.output, itemOf(c, "incomplete", nil))
			case t.of.wantsApproval(t):
				ends = true
				asks, err := s.approvalOf(c)
				if err != nil {
					return nil, err
				}
				s.output = append(s.output, asks)
			default:
				calls = append(calls, c)
				s.output = append(s.output, nil) // set once the call is made
			}
			continue
		case isForClient(text(it.Type)):
			ends = true
		}
		s.output = append(s.output, raw)
	}
	s.sent = len(s.input)
	return &turnResult{calls, ends}, nil
}

// conversation reports whether a provider stores the conversation.
func (s *responses) conversation() bool {
	raw := s.request["conversation"]
	return raw != nil && string(raw) != "null"
}

// hosted are the calls that providers make themselves.
var hosted = []string{"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}

// isForClient reports whether an item waits for the client.
func isForClient(kind string) bool {
	return kind == "mcp_approval_request" || strings.HasSuffix(kind, "_call") && !slices.Contains(hosted, kind)
}

// sentBack returns an output item as the next turn sends it back; nil if it cannot be sent.
func sentBack(raw json.RawMessage, kind string) json.RawMessage {
	var of object
	if json.Unmarshal(raw, &of) != nil {
		return nil
	}
	if sealed := of["encrypted_content"]; kind == "reasoning" && (sealed == nil || string(sealed) == "null") {
		return nil // only its host could find it by its id, and the next turn may go to another
	}
	delete(of, "id")
	return encoded(of)
}

// made implements shape.
func (s *responses) made(calls []*call, results []*outcome) (events []byte) {
	for i, c := range calls {
		out := results[i]
		result := encoded(object{"type": quoted("function_call_output"), "call_id": quoted(c.id), "output": out.forResponses()})
		if c.place > 0 {
			s.input[c.place-1] = result
		} else {
			s.input = append(s.input, result)
		}
		status := "completed"
		if out.failed {
			status = "failed"
		}
		item := itemOf(c, status, out)
		s.output[c.index] = item
		events = s.stream.done(s.stream.about(events, "response.mcp_call."+status, c.index, callPrefix+c.id, nil), c.index, item)
	}
	if s.turns == 0 {
		s.stream.early(events)
		return nil
	}
	return events
}

// itemOf returns a call as the client sees it, without a result if it has none yet.
func itemOf(c *call, status string, out *outcome) json.RawMessage {
	null := json.RawMessage("null")
	of := object{
		"id": quoted(callPrefix + c.id), "type": quoted("mcp_call"), "status": quoted(status), "server_label": quoted(c.tool.of.label), "name": quoted(c.tool.name),
		"arguments": quoted(c.args), "output": null, "error": null, "approval_request_id": null,
	}
	if c.approval != "" {
		of["approval_request_id"] = quoted(c.approval)
	}
	switch {
	case out == nil:
	case !out.failed:
		of["output"] = quoted(out.text)
	case out.code != 0:
		of["error"] = encoded(map[string]any{"type": "mcp_protocol_error", "code": out.code, "message": out.text})
	default:
		of["error"] = encoded(map[string]any{"type": "mcp_tool_execution_error", "content": []any{map[string]string{"type": "text", "text": out.text}}})
	}
	return encoded(of)
}

// approvalOf returns the item that requests the client's approval of a call, with an id that
// only the gateway can create. The same call of a turn has the same id.
func (s *responses) approvalOf(c *call) (json.RawMessage, error) {
	of := c.approvable()
	id, ok := s.asking[of]
	if !ok {
		var err error
		if id, err = s.loop.Approvals.Create(s.loop.Context, &of); err != nil {
			return nil, err
		}
		s.asking[of] = id
	}
	return encoded(object{
		"id": quoted(id), "type": quoted("mcp_approval_request"), "server_label": quoted(c.tool.of.label), "name": quoted(c.tool.name), "arguments": quoted(c.args),
	}), nil
}

func (c *call) approvable() approval.Call {
	return approval.Call{ID: c.id, Server: c.tool.of.label, Tool: c.tool.name, Arguments: c.args}
}

// forResponses returns a result as the model reads it.
func (o *outcome) forResponses() json.RawMessage {
	if len(o.images) == 0 {
		return quoted(o.text)
	}
	var parts []json.RawMessage
	if o.text != "" {
		parts = append(parts, encoded(object{"type": quoted("input_text"), "text": quoted(o.text)}))
	}
	for _, i := range o.images {
		parts = append(parts, encoded(object{"type": quoted("input_image"), "detail": quoted("auto"), "image_url": quoted("data:" + i.media + ";base64," + i.data)}))
	}
	return list(parts)
}

// final implements shape.
func (s *responses) final(cut bool) (body, events []byte, err error) {
	out := s.patched(s.last)
	out["output"] = list(s.output)
	if s.startID != nil {
		out["id"] = s.startID
	}
	if s.usage != nil {
		out["usage"] = s.usage
	}
	if cut {
		out["status"] = quoted("incomplete")
		out["incomplete_details"] = encoded(object{"reason": quoted("max_tool_calls")})
	}
	if body, err = json.Marshal(out); err != nil {
		return nil, nil, err
	}
	return body, s.stream.end(text(out["status"]), body), nil
}

// patched returns a response that repeats the client's own tools and settings instead of those
// sent to the model.
func (s *responses) patched(of object) object {
	out := clone(of)
	out["tools"] = list(s.tools)
	if raw := s.request["tool_choice"]; raw != nil {
		out["tool_choice"] = raw
	} else if out["tool_choice"] != nil {
		out["tool_choice"] = quoted("auto")
	}
	if raw := s.request["max_tool_calls"]; raw != nil {
		out["max_tool_calls"] = raw
	}
	return out
}

// clone is a copy of fields that may be changed.
func clone(of object) object {
	out := make(object, len(of)+2)
	maps.Copy(out, of)
	return out
}
