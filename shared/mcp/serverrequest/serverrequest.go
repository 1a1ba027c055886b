// Package serverrequest contains the requests of a server to the client: forms and addresses
// for the user (elicitation), completions of the client's model (sampling) and the client's
// roots. With sessions they are requests of the server; without they are entries of an
// input_required result. Methods, params and results are the same.
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

// IsInputRequest reports whether method is a question.
func IsInputRequest(method string) bool { return capability[method] != "" }

// InputRequest is a request of a server for input.
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// maxQuestions is the number of questions in one result.
const maxQuestions = 32

// Read decodes inputRequests. It returns false if they are malformed.
func Read(inputRequests json.RawMessage) (map[string]InputRequest, bool) {
	members := mcp.Fields(inputRequests)
	if members == nil || len(members) > maxQuestions {
		return nil, false
	}
	out := make(map[string]InputRequest, len(members))
	for name, raw := range members {
		one := mcp.Fields(raw)
		var q InputRequest
		if one == nil || !mcp.ParseString(one["method"], &q.Method) || !IsInputRequest(q.Method) {
			return nil, false
		}
		if q.Params = one["params"]; q.Params != nil && wire.KindOf(q.Params) != wire.KindObject {
			return nil, false
		}
		out[name] = q
	}
	return out, true
}

// URL reports whether q requests to open an address.
func (q InputRequest) URL() bool {
	var mode string
	return q.Method == Elicit && mcp.ParseString(mcp.Fields(q.Params)["mode"], &mode) && mode == "url"
}

// InputCapabilities returns the client capabilities that allow questions, in the form of both protocol
// versions: elicitation without a mode means forms. It returns nil if there are none.
func InputCapabilities(capabilities json.RawMessage) json.RawMessage {
	has := mcp.Fields(capabilities)
	out := map[string]json.RawMessage{}
	if raw := has["elicitation"]; wire.KindOf(raw) == wire.KindObject {
		modes := map[string]json.RawMessage{}
		for name, mode := range mcp.Fields(raw) {
			if (name == "form" || name == "url") && wire.KindOf(mode) == wire.KindObject {
				modes[name] = json.RawMessage("{}")
			}
		}
		if len(modes) == 0 {
			modes["form"] = json.RawMessage("{}")
		}
		out["elicitation"] = mcp.AppendFields(nil, modes)
	}
	if raw := has["sampling"]; wire.KindOf(raw) == wire.KindObject {
		out["sampling"] = raw
	}
	if wire.KindOf(has["roots"]) == wire.KindObject {
		out["roots"] = json.RawMessage("{}") // changes of roots are not forwarded between protocol versions
	}
	if len(out) == 0 {
		return nil
	}
	return mcp.AppendFields(nil, out)
}

// Allowed reports whether a client with the carried capabilities can be asked q.
func Allowed(carried json.RawMessage, q InputRequest) bool {
	has := mcp.Fields(carried)[capability[q.Method]]
	if q.Method != Elicit || has == nil {
		return has != nil
	}
	mode := "form"
	if q.URL() {
		mode = "url"
	}
	return mcp.Fields(has)[mode] != nil
}

// Request encodes q as a request of a server with sessions.
func Request(id string, q InputRequest) []byte {
	out := wire.AppendJSONString([]byte(`{"jsonrpc":"2.0","id":`), id)
	out = wire.AppendJSONString(append(out, `,"method":`...), q.Method)
	if q.Params != nil {
		out = append(append(out, `,"params":`...), q.Params...)
	}
	return append(out, '}')
}

// Response encodes the result of such a request.
func Response(id, result json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	return append(append(append(out, `,"result":`...), result...), '}')
}

// Required encodes the result for a stateless client. Each question has params, because
// some clients require them.
func Required(questions map[string]InputRequest, state string) (json.RawMessage, error) {
	for name, q := range questions {
		if q.Params == nil {
			q.Params = json.RawMessage("{}")
			questions[name] = q
		}
	}
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": questions, "requestState": state})
}

// Missing returns the names of the questions without a response. It returns false if a response
// is not an object.
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
