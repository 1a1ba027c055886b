package gate

import (
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

// capabilityOf is the capability that a request is about; ok is false where it names none as
// the protocol says.
func capabilityOf(v *visit) (c authz.Capability, ok bool) {
	switch v.req.Method {
	case "tools/call":
		c = authz.Capability{Type: mcp.Tool, Key: v.req.Text("name")}
	case "prompts/get":
		c = authz.Capability{Type: mcp.Prompt, Key: v.req.Text("name")}
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		c = authz.Capability{Type: mcp.Resource, Key: v.req.Text("uri")}
	case "completion/complete":
		var ref map[string]json.RawMessage
		if json.Unmarshal(v.req.Members["ref"], &ref) != nil {
			return c, false
		}
		text := func(name string) (s string) {
			_ = json.Unmarshal(ref[name], &s) // another form is none
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

// callCapability serves what is about one capability.
func callCapability(v *visit, w *way) error {
	about, ok := capabilityOf(v)
	if !ok {
		wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must name what is asked for"})
		return nil
	}
	noted(v, about.Key)
	if !may(v, about) {
		wrong(v, unknown(v, about))
		return nil
	}
	if about.Type == mcp.Tool && !listsTool(v, w, about.Key) {
		v.note.Decision = authz.NoCapability
		wrong(v, unknown(v, about))
		return nil
	}
	o := &outgoing{req: v.req, params: upstreamParams(v, w), id: v.req.ID}
	if about.Type == mcp.Tool {
		var err error
		if o.marks, err = headerMarks(v, w.peer, about.Key); err != nil {
			return err
		}
		if v.req.Era == protocolversion.Stateless {
			if refused := protocolversion.CheckParams(v.call.Request.Header, o.marks, v.req.Members["arguments"]); refused != nil {
				refuse(v, refused)
				return nil
			}
		}
	}
	var waiting string
	if v.req.Era == protocolversion.Stateless {
		var ok bool
		if waiting, ok = reopen(v, o.params); !ok {
			wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.requestState is not one that was given for this request"})
			return nil
		}
	}
	if waiting != "" {
		return answersHeld(v, w, o, waiting, about.Key)
	}
	if about.Type == mcp.Tool {
		if err := v.call.Count(v.facts.Server.Record.Slug, about.Key); err != nil {
			return err
		}
	}
	if stop, err := guard(v, about.Key, o); stop || err != nil {
		return err
	}
	return rounds(v, w, o, about.Key)
}

// maxRounds bounds how often a server asks something of a client within one request.
const maxRounds = 10

// rounds makes the request and, while a server without sessions asks something of a client
// with one, repeats it with the client's answers.
func rounds(v *visit, w *way, o *outgoing, name string) error {
	for range maxRounds {
		again := false
		err := conclude(v, func() (json.RawMessage, error) { return w.ask(o) }, func(result json.RawMessage) (err error) {
			again, err = interview(v, w, o, result)
			return err
		})
		if err != nil || !again {
			return err
		}
		if stop, err := guard(v, name, o); stop || err != nil {
			return err
		}
	}
	unable(v, "The server asks for something too often.")
	return nil
}

// conclude answers with what a server says to a call: its questions where it has some, or a
// result that the guardrails let through, by answer.
func conclude(v *visit, ask func() (json.RawMessage, error), answer func(result json.RawMessage) error) error {
	result, err := ask()
	if h := (*held)(nil); errors.As(err, &h) {
		asked, _ := json.Marshal(h.questions) // raw members that were JSON
		judged, denied := v.call.Judge(asked)
		if denied {
			h.drop()
			answerDenied(v)
			return nil
		}
		if err = json.Unmarshal(judged, &h.questions); err != nil {
			h.drop()
			return err
		}
		if result, err = keep(v, h); err == nil {
			sendResult(v, result)
		}
		return err
	}
	if result, err = judgeResult(v, result, err); result == nil || err != nil {
		return err
	}
	return answer(result)
}

// judgeResult returns a result that the guardrails let through; nil if the request has been
// answered.
func judgeResult(v *visit, result json.RawMessage, err error) (json.RawMessage, error) {
	if refused := (*mcp.Error)(nil); errors.As(err, &refused) && refused.Code == protocolversion.CodeSignIn && v.req.Era == protocolversion.Stateless && asks[v.req.Method] {
		return nil, sends(v, refused)
	}
	if err != nil {
		return nil, err
	}
	if guardedMethods[v.req.Method] {
		judged, denied := v.call.Judge(result)
		if denied {
			answerDenied(v)
			return nil, nil
		}
		result = judged
	}
	if limit := v.host.MaxResult; v.call.Buffered && limit > 0 && len(result) > limit {
		return nil, upstream.Fail(http.StatusOK, "the result has more than %d bytes, which cannot be passed on from here: use the address of the long-running service", limit)
	}
	return result, nil
}

// unknown is the error for what is not there, or not for this caller.
func unknown(v *visit, c authz.Capability) *mcp.Error {
	switch {
	case c.Type == mcp.Resource && v.req.Era != protocolversion.Stateless:
		return &mcp.Error{Code: mcp.CodeResourceNotFound, Message: "resource not found"}
	case c.Type == mcp.Resource || c.Type == mcp.ResourceTemplate:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "resource not found"}
	case c.Type == mcp.Prompt:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "unknown prompt"}
	}
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "unknown tool"}
}

// upstreamParams are the request's own, without members of its version that the server's version
// does not have.
func upstreamParams(v *visit, w *way) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(v.req.Members))
	for name, raw := range v.req.Members {
		out[name] = raw
	}
	withoutSignIn(out)
	if v.req.Era == protocolversion.Stateless && w.kind != toStateless {
		meta := map[string]json.RawMessage{}
		for name, raw := range v.req.Meta {
			if len(name) < len(mcp.MetaPrefix) || name[:len(mcp.MetaPrefix)] != mcp.MetaPrefix {
				meta[name] = raw
			}
		}
		delete(out, "inputResponses") // answers to what the gateway made of the server's word
		delete(out, "_meta")
		if len(meta) > 0 {
			out["_meta"] = mcp.AppendMembers(nil, meta)
		}
	}
	if v.trace != "" && v.req.Meta[protocolversion.MetaTrace] != nil {
		meta := map[string]json.RawMessage{}
		_ = json.Unmarshal(out["_meta"], &meta) // was made above, or checked to be an object
		meta[protocolversion.MetaTrace] = json.RawMessage(`"` + v.trace + `"`)
		out["_meta"], _ = json.Marshal(meta) // raw members that were JSON
	}
	return out
}

// digest tells apart the requests that a state may belong to: by the method and the params,
// except for what a client adds when it comes again.
func digest(v *visit) string {
	h := sha256.New()
	h.Write([]byte(v.req.Method))
	for _, name := range []string{"name", "uri", "arguments"} {
		h.Write([]byte{0})
		h.Write(v.req.Members[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// reopen puts the server's own state in the place of the one that the client was given.
// waiting names the call that waits for the client's answers.
func reopen(v *visit, params map[string]json.RawMessage) (waiting string, ok bool) {
	if params["requestState"] == nil {
		return "", true
	}
	var s state
	if !openSealed(v, binding(v, sealState), v.req.Text("requestState"), &s) || s.Expires < v.call.Now().Unix() || s.Digest != digest(v) {
		return "", false
	}
	if delete(params, "requestState"); s.Has {
		params["requestState"], _ = json.Marshal(s.State) // a text
	}
	return s.Held, true
}
