package gate

import (
	"bytes"
	"encoding/json"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
)

// guardedMethods are the methods with params from a model or a user and results that a model
// reads. The other methods carry no text.
var guardedMethods = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true, "completion/complete": true}

// guardParams runs the guardrails on the params of a request. stop is set if a response was
// sent.
func guardParams(v *requestState, name string, o *outgoing) (stop bool, err error) {
	if !guardedMethods[v.req.Method] {
		return false, nil
	}
	shown := make(map[string]json.RawMessage, len(o.params))
	for field, raw := range o.params {
		if field != "_meta" && field != "requestState" {
			shown[field] = raw
		}
	}
	changed, denied, err := v.call.Guard(name, mcp.AppendFields(nil, shown))
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
	made := mcp.Fields(changed)
	for _, field := range [...]string{"name", "uri", "ref"} {
		if !bytes.Equal(made[field], shown[field]) { // authorization covered only the original value
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

// answerDenied responds that a guardrail denied the call.
func answerDenied(v *requestState) {
	v.record.Decision = "guardrail"
	unable(v, "The guardrail checks of the workspace denied this call.")
}

// unable responds that a request cannot be served: to a tool call with a result that the model
// can read, otherwise with an error.
func unable(v *requestState, text string) {
	if v.req.Method != "tools/call" {
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: text})
		return
	}
	result := `{"content":[{"type":"text","text":"` + text + `"}],"isError":true`
	if v.req.Era == protocolversion.Stateless {
		result += `,"resultType":"complete"`
	}
	sendResult(v, json.RawMessage(result+"}"))
}
