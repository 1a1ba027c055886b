package gate

import (
	"bytes"
	"context"
	"encoding/json"

	"gateway/shared/mcp"
)

// deniedText is the error for a denied message.
const deniedText = "The guardrail checks of the workspace denied this message."

// judgeError returns an error of the server as the guardrails allow it: a model reads its text
// like that of a result.
func judgeError(v *requestState, e *mcp.Error) (allowed *mcp.Error, denied bool) {
	if !guardedMethods[v.req.Method] {
		return e, false
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, true // its data is not JSON
	}
	judged, denied := v.call.Pipeline.Judge(raw)
	if denied {
		return nil, true
	}
	if bytes.Equal(judged, raw) {
		return e, false
	}
	allowed = new(mcp.Error)
	if json.Unmarshal(judged, allowed) != nil {
		return nil, true
	}
	allowed.Code = e.Code
	return allowed, false
}

// allowed returns a message that the server sends in addition to a response, as the guardrails
// allow it; nil if they deny it. A denied request of the server is declined.
func (w *bridge) allowed(ctx context.Context, m *serverMessage, raw []byte) []byte {
	judged, denied := judgeMessage(w.v, m.Method, m.Params, false)
	switch {
	case denied && len(m.ID) > 0:
		w.declineRequest(ctx, m)
		return nil
	case denied:
		return nil
	case bytes.Equal(judged, m.Params):
		return raw
	}
	fields := mcp.Fields(raw)
	fields["params"] = judged
	return mcp.AppendFields(nil, fields)
}

// allowedEntries returns the entries of a list as the guardrails allow them, because a model reads
// their descriptions: nil for one that they deny, or whose key they change.
func allowedEntries(v *requestState, key string, entries []json.RawMessage) []json.RawMessage {
	if len(entries) == 0 {
		return entries
	}
	all := []byte(`{"entries":[`)
	for _, raw := range entries {
		all = append(append(all, raw...), ',')
	}
	all[len(all)-1] = ']'
	if _, changed := judgeListed(v, append(all, '}')); !changed {
		return entries
	}
	out := make([]json.RawMessage, len(entries))
	for i, raw := range entries {
		judged, changed := judgeListed(v, raw)
		if changed && judged != nil && !bytes.Equal(mcp.Fields(judged)[key], mcp.Fields(raw)[key]) {
			judged = nil
		}
		out[i] = judged
	}
	return out
}

// allowedText returns a text by which a server describes itself as the guardrails allow it; nil if
// they deny it.
func allowedText(v *requestState, text json.RawMessage) json.RawMessage {
	const name = "description"
	judged, changed := judgeListed(v, mcp.AppendFields(nil, map[string]json.RawMessage{name: text}))
	if !changed {
		return text
	}
	return mcp.Fields(judged)[name]
}

// judgeListed has the output guardrails judge a description of the server. judged is nil if they
// deny it.
func judgeListed(v *requestState, raw json.RawMessage) (judged json.RawMessage, changed bool) {
	judged, denied := judgeMessage(v, v.req.Method, raw, false)
	if denied {
		return nil, true
	}
	return judged, !bytes.Equal(judged, raw)
}

// judgeMessage has the guardrails judge the content of a message beside a request and its
// response: of the client for input guardrails, otherwise of the server for output guardrails.
func judgeMessage(v *requestState, method string, content json.RawMessage, ofClient bool) (judged json.RawMessage, denied bool) {
	if len(content) == 0 {
		return content, false
	}
	judged, denied, err := v.call.Pipeline.JudgeMessage(method, content, ofClient)
	if denied = denied || err != nil; denied && ofClient {
		v.record.Decision = "guardrail"
	}
	return judged, denied
}

// judgeClientMessage replaces the content of a notification or a response of the client by what
// the guardrails allow. It returns false for a notification that they deny; a denied response
// becomes an error, because the server waits for one.
func judgeClientMessage(v *requestState) bool {
	if v.req.Method != "" {
		raw := mcp.AppendFields(nil, v.req.Fields)
		judged, denied := judgeMessage(v, v.req.Method, raw, true)
		if !denied && !bytes.Equal(judged, raw) {
			v.req.Fields = mcp.Fields(judged)
		}
		return !denied
	}
	content, isError := v.req.Result, v.req.Error != nil
	if isError {
		content, _ = json.Marshal(v.req.Error) // decoded from JSON
	}
	judged, denied := judgeMessage(v, "", content, true)
	switch {
	case denied:
		v.req.Result, v.req.Error = nil, &mcp.Error{Code: mcp.CodeInternal, Message: deniedText}
	case !isError:
		v.req.Result = judged
	case !bytes.Equal(judged, content):
		v.req.Error = &mcp.Error{Code: v.req.Error.Code, Message: deniedText}
	}
	return true
}
