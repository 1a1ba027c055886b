// Package serverrequest has what a server asks of the client while it serves a request: forms and
// addresses for the user (elicitation), an answer of the client's model (sampling) and the
// client's roots. With sessions these are requests of the server, without they are entries
// of a result of the type input_required; their methods, params and results are the same.
package serverrequest

import (
	"encoding/json"
	"slices"

	"gateway/shared/mcp"
	"gateway/shared/wire"
)

// Methods of questions.
const (
	Elicit = "elicitation/create"
	Sample = "sampling/createMessage"
	Roots  = "roots/list"
)

// capability is the client capability that each method requires.
var capability = map[string]string{Elicit: "elicitation", Sample: "sampling", Roots: "roots"}

// Known reports whether method is that of a question.
func Known(method string) bool { return capability[method] != "" }

// Question is one thing that a server asks.
type Question struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// maxQuestions bounds the questions of one result.
const maxQuestions = 32

// Read returns the entries of inputRequests by name; false if they do not have the
// protocol's form.
func Read(inputRequests json.RawMessage) (map[string]Question, bool) {
	members := mcp.Members(inputRequests)
	if members == nil || len(members) > maxQuestions {
		return nil, false
	}
	out := make(map[string]Question, len(members))
	for name, raw := range members {
		one := mcp.Members(raw)
		var q Question
		if one == nil || !mcp.Text(one["method"], &q.Method) || !Known(q.Method) {
			return nil, false
		}
		if q.Params = one["params"]; q.Params != nil && wire.KindOf(q.Params) != wire.KindObject {
			return nil, false
		}
		out[name] = q
	}
	return out, true
}

// URL reports whether q asks to open an address.
func (q Question) URL() bool {
	var mode string
	return q.Method == Elicit && mcp.Text(mcp.Members(q.Params)["mode"], &mode) && mode == "url"
}

// Carried returns those of a client's capabilities under which questions are asked, as both
// eras write them: elicitation without a mode means forms. It is nil if there are none.
func Carried(capabilities json.RawMessage) json.RawMessage {
	has := mcp.Members(capabilities)
	out := map[string]json.RawMessage{}
	if raw := has["elicitation"]; wire.KindOf(raw) == wire.KindObject {
		modes := map[string]json.RawMessage{}
		for name, mode := range mcp.Members(raw) {
			if (name == "form" || name == "url") && wire.KindOf(mode) == wire.KindObject {
				modes[name] = json.RawMessage("{}")
			}
		}
		if len(modes) == 0 {
			modes["form"] = json.RawMessage("{}")
		}
		out["elicitation"] = mcp.AppendMembers(nil, modes)
	}
	if raw := has["sampling"]; wire.KindOf(raw) == wire.KindObject {
		out["sampling"] = raw
	}
	if wire.KindOf(has["roots"]) == wire.KindObject {
		out["roots"] = json.RawMessage("{}") // changes of roots are not told across eras
	}
	if len(out) == 0 {
		return nil
	}
	return mcp.AppendMembers(nil, out)
}

// Allowed reports whether a client with these carried capabilities may be asked q.
func Allowed(carried json.RawMessage, q Question) bool {
	has := mcp.Members(carried)[capability[q.Method]]
	if q.Method != Elicit || has == nil {
		return has != nil
	}
	mode := "form"
	if q.URL() {
		mode = "url"
	}
	return mcp.Members(has)[mode] != nil
}

// Request writes q as the request of a server with sessions.
func Request(id string, q Question) []byte {
	out := wire.AppendJSONString([]byte(`{"jsonrpc":"2.0","id":`), id)
	out = wire.AppendJSONString(append(out, `,"method":`...), q.Method)
	if q.Params != nil {
		out = append(append(out, `,"params":`...), q.Params...)
	}
	return append(out, '}')
}

// Response writes the result that answers such a request.
func Response(id, result json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	return append(append(append(out, `,"result":`...), result...), '}')
}

// Required writes the result that asks the questions of a client without sessions. Each has
// params, because some clients cannot read a question without them.
func Required(questions map[string]Question, state string) (json.RawMessage, error) {
	for name, q := range questions {
		if q.Params == nil {
			q.Params = json.RawMessage("{}")
			questions[name] = q
		}
	}
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": questions, "requestState": state})
}

// Missing returns the names of the questions that responses do not answer with an object;
// false if a response has another form.
func Missing(ids map[string]json.RawMessage, responses map[string]json.RawMessage) (names []string, ok bool) {
	for name := range ids {
		switch raw := responses[name]; {
		case raw == nil:
			names = append(names, name)
		case wire.KindOf(raw) != wire.KindObject:
			return nil, false
		}
	}
	slices.Sort(names)
	return names, true
}
