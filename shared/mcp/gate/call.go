package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
)

// capabilityOf returns the capability that a request names. ok is false if params do not name
// one.
func capabilityOf(v *requestState) (c authz.Capability, ok bool) {
	switch v.req.Method {
	case "tools/call":
		c = authz.Capability{Type: mcp.Tool, Key: v.req.Text("name")}
	case "prompts/get":
		c = authz.Capability{Type: mcp.Prompt, Key: v.req.Text("name")}
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		c = authz.Capability{Type: mcp.Resource, Key: v.req.Text("uri")}
	case "completion/complete":
		var ref map[string]json.RawMessage
		if json.Unmarshal(v.req.Fields["ref"], &ref) != nil {
			return c, false
		}
		text := func(name string) (s string) {
			_ = json.Unmarshal(ref[name], &s) // an unexpected type counts as empty
			return s
		}
		switch text("type") {
		case "ref/prompt":
			c = authz.Capability{Type: mcp.Prompt, Key: text("name")}
		case "ref/resource":
			if c = (authz.Capability{Type: mcp.ResourceTemplate, Key: text("uri")}); v.facts.Decide(c) == authz.Allowed {
				c.Type = mcp.Resource
			}
		}
	case "logging/setLevel":
		return c, true
	}
	return c, c.Key != ""
}

// callCapability serves a request for one capability.
func callCapability(v *requestState, w *bridge) error {
	about, ok := capabilityOf(v)
	if !ok {
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must name a tool, prompt or resource"})
		return nil
	}
	updateRecord(v, about.Key)
	if !authorize(v, about) {
		sendError(v, unknown(v, about))
		return nil
	}
	if about.Type == mcp.Tool && !listsTool(v, w, about.Key) {
		v.record.Decision = authz.NoCapability
		sendError(v, unknown(v, about))
		return nil
	}
	o := &outgoing{req: v.req, params: upstreamParams(v, w), id: v.req.ID}
	if about.Type == mcp.Tool {
		var err error
		if o.headerParams, err = headerParams(v, w.peer, about.Key); err != nil {
			return err
		}
		if v.req.Kind == protocolversion.Stateless {
			if refused := protocolversion.CheckParams(v.call.Request.Header, o.headerParams, v.req.Fields["arguments"]); refused != nil {
				reject(v, refused)
				return nil
			}
		}
	}
	var waiting string
	if v.req.Kind == protocolversion.Stateless {
		var ok bool
		if waiting, ok = reopen(v, o.params); !ok {
			sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.requestState was not issued for this request, or has expired"})
			return nil
		}
	}
	if waiting != "" {
		return resumeCall(v, w, o, waiting, about.Key)
	}
	if about.Type == mcp.Tool {
		if err := v.call.Pipeline.Count(v.facts.Server.Record.Slug, about.Key); err != nil {
			return err
		}
	}
	if stop, err := guardParams(v, about.Key, o); stop || err != nil {
		return err
	}
	return rounds(v, w, o, about.Key)
}

// maxRounds limits how often a server may request input within one request.
const maxRounds = 10

// rounds makes the request and repeats it with the client's input while a stateless server
// requests input from a client with a session.
func rounds(v *requestState, w *bridge, o *outgoing, name string) error {
	for range maxRounds {
		again := false
		err := conclude(v, func() (json.RawMessage, error) { return w.roundTrip(o) }, func(result json.RawMessage) (err error) {
			again, err = collectInput(v, w, o, result)
			return err
		})
		if err != nil || !again {
			return err
		}
		if stop, err := guardParams(v, name, o); stop || err != nil {
			return err
		}
	}
	unable(v, "The server requests input too often.")
	return nil
}

// conclude makes a call. If the server requests input, conclude sends the questions to the
// client; otherwise it passes a result that the guardrails allow to answer.
func conclude(v *requestState, request func() (json.RawMessage, error), answer func(result json.RawMessage) error) error {
	result, err := request()
	if h := (*pendingCall)(nil); errors.As(err, &h) {
		questions, _ := json.Marshal(h.questions) // decoded from JSON
		judged, denied := v.call.Pipeline.Judge(questions)
		if denied {
			h.drop()
			respondDenied(v)
			return nil
		}
		if err = json.Unmarshal(judged, &h.questions); err != nil {
			h.drop()
			return err
		}
		if result, err = holdCall(v, h); err == nil {
			sendResult(v, result)
		}
		return err
	}
	if result, err = judgeResult(v, result, err); result == nil || err != nil {
		return err
	}
	return answer(result)
}

// judgeResult returns a result that the guardrails allow, or nil if a response was sent.
func judgeResult(v *requestState, result json.RawMessage, err error) (json.RawMessage, error) {
	denied := false
	if refused := (*mcp.Error)(nil); errors.As(err, &refused) {
		if refused, denied = judgeError(v, refused); denied {
			respondDenied(v)
			return nil, nil
		}
		if refused.Code == protocolversion.CodeSignIn && v.req.Kind == protocolversion.Stateless && inputMethods[v.req.Method] {
			return nil, sendURLInput(v, refused)
		}
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	if guardedMethods[v.req.Method] {
		if result, denied = v.call.Pipeline.Judge(result); denied {
			respondDenied(v)
			return nil, nil
		}
	}
	if limit := v.host.MaxResult; v.call.Buffered && limit > 0 && len(result) > limit {
		return nil, upstream.Fail(http.StatusOK, "the result has more than %d bytes, which is too large here: use the address of the long-running service", limit)
	}
	return result, nil
}

// unknown returns the error for a capability that does not exist or that the caller may not
// use.
func unknown(v *requestState, c authz.Capability) *mcp.Error {
	switch {
	case c.Type == mcp.Resource && v.req.Kind != protocolversion.Stateless:
		return &mcp.Error{Code: mcp.CodeResourceNotFound, Message: "resource not found"}
	case c.Type == mcp.Resource || c.Type == mcp.ResourceTemplate:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "resource not found"}
	case c.Type == mcp.Prompt:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "unknown prompt"}
	}
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "unknown tool"}
}

// upstreamParams returns the params for the server, without fields that only the client's
// protocol version has.
func upstreamParams(v *requestState, w *bridge) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(v.req.Fields))
	for name, raw := range v.req.Fields {
		out[name] = raw
	}
	withoutSignIn(out)
	if v.req.Kind == protocolversion.Stateless && w.kind != toStateless {
		meta := map[string]json.RawMessage{}
		for name, raw := range v.req.Meta {
			if len(name) < len(mcp.MetaPrefix) || name[:len(mcp.MetaPrefix)] != mcp.MetaPrefix {
				meta[name] = raw
			}
		}
		delete(out, "inputResponses") // responses to input requests that the gateway created
		delete(out, "_meta")
		if len(meta) > 0 {
			out["_meta"] = mcp.AppendFields(nil, meta)
		}
	}
	if v.trace != "" && v.req.Meta[protocolversion.MetaTrace] != nil {
		meta := map[string]json.RawMessage{}
		_ = json.Unmarshal(out["_meta"], &meta) // an object, checked above
		meta[protocolversion.MetaTrace] = json.RawMessage(`"` + v.trace + `"`)
		out["_meta"], _ = json.Marshal(meta) // decoded from JSON
	}
	return out
}

// digest identifies the request that a state belongs to: the method and the params that do not
// change when a client retries.
func digest(v *requestState) string {
	h := sha256.New()
	h.Write([]byte(v.req.Method))
	for _, name := range []string{"name", "uri", "arguments"} {
		h.Write([]byte{0})
		h.Write(v.req.Fields[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// reopen replaces the sealed state of the client with the server's own. waiting is the name of
// the held call that waits for the client's input.
func reopen(v *requestState, params map[string]json.RawMessage) (waiting string, ok bool) {
	if params["requestState"] == nil {
		return "", true
	}
	var s state
	if !openSealed(v, binding(v, sealState), v.req.Text("requestState"), &s) || s.Expires < v.call.Now().Unix() || s.Digest != digest(v) {
		return "", false
	}
	if delete(params, "requestState"); s.HasState {
		params["requestState"], _ = json.Marshal(s.State) // a string
	}
	return s.Held, true
}

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
	changed, denied, err := v.call.Pipeline.Guard(name, mcp.AppendFields(nil, shown))
	if err != nil {
		return false, err
	}
	if denied {
		respondDenied(v)
		return true, nil
	}
	if changed == nil {
		return false, nil
	}
	made := mcp.Fields(changed)
	for _, field := range [...]string{"name", "uri", "ref"} {
		if !bytes.Equal(made[field], shown[field]) { // authorization covered only the original value
			respondDenied(v)
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

// respondDenied responds that a guardrail denied the call.
func respondDenied(v *requestState) {
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
	if v.req.Kind == protocolversion.Stateless {
		result += `,"resultType":"complete"`
	}
	sendResult(v, json.RawMessage(result+"}"))
}
