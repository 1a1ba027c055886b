package gate

import (
	"bytes"
	"encoding/json"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
)

// guardedMethods are the methods whose params come from a model or a user, and whose
// results a model reads. The others carry no text: subscriptions and levels of logs.
var guardedMethods = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true, "completion/complete": true}

// guard has the guardrails judge the params of a request. stop: it has been answered.
func guard(v *visit, name string, o *outgoing) (stop bool, err error) {
	if !guardedMethods[v.req.Method] {
		return false, nil
	}
	shown := make(map[string]json.RawMessage, len(o.params))
	for field, raw := range o.params {
		if field != "_meta" && field != "requestState" {
			shown[field] = raw
		}
	}
	changed, denied, err := v.call.Guard(name, mcp.AppendMembers(nil, shown))
	if err != nil {
		return false, err
	}
	if denied {
		answerDenied(v)
		return true, nil
	}
	if changed == nil {
		return false, nil
	}
	made := mcp.Members(changed)
	for _, field := range [...]string{"name", "uri", "ref"} {
		if !bytes.Equal(made[field], shown[field]) { // it was allowed for this caller, another was not
			answerDenied(v)
			return true, nil
		}
	}
	for field := range shown {
		if made[field] != nil {
			o.params[field] = made[field]
		}
	}
	return false, nil
}

// answerDenied answers for a guardrail.
func answerDenied(v *visit) {
	v.note.Decision = "guardrail"
	unable(v, "The guardrail checks of the workspace do not let this call through.")
}

// unable answers a request that cannot be served: for a tool as a result, which the model
// behind the client can read, for anything else as an error.
func unable(v *visit, text string) {
	if v.req.Method != "tools/call" {
		wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: text})
		return
	}
	result := `{"content":[{"type":"text","text":"` + text + `"}],"isError":true`
	if v.req.Era == protocolversion.Stateless {
		result += `,"resultType":"complete"`
	}
	sendResult(v, json.RawMessage(result+"}"))
}
