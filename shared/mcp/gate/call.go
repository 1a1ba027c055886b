package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"

	"gateway/shared/mcp"
	"gateway/shared/mcp/entitled"
	"gateway/shared/mcp/era"
	"gateway/shared/tenant/upstream"
)

// subject is the capability that a request is about; ok is false where it names none as
// the protocol says.
func (v *visit) subject() (c entitled.Capability, ok bool) {
	switch v.req.Method {
	case "tools/call":
		c = entitled.Capability{Type: mcp.Tool, Key: v.req.Text("name")}
	case "prompts/get":
		c = entitled.Capability{Type: mcp.Prompt, Key: v.req.Text("name")}
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		c = entitled.Capability{Type: mcp.Resource, Key: v.req.Text("uri")}
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
			c = entitled.Capability{Type: mcp.Prompt, Key: text("name")}
		case "ref/resource":
			if c = (entitled.Capability{Type: mcp.ResourceTemplate, Key: text("uri")}); v.facts.Decide(c) == entitled.Allowed {
				c.Type = mcp.Resource
			}
		}
	case "logging/setLevel":
		return c, true
	}
	return c, c.Key != ""
}

// call serves what is about one capability.
func (v *visit) call(w *way) error {
	about, ok := v.subject()
	if !ok {
		v.wrong(&mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must name what is asked for"})
		return nil
	}
	v.noted(about.Key)
	if !v.may(about) {
		v.wrong(v.unknown(about))
		return nil
	}
	if about.Type == mcp.Tool && !v.listsTool(w, about.Key) {
		v.note.Decision = entitled.NoCapability
		v.wrong(v.unknown(about))
		return nil
	}
	o := &outgoing{req: v.req, params: v.params(w), id: v.req.ID}
	if about.Type == mcp.Tool {
		var err error
		if o.marks, err = v.marks(w.peer, about.Key); err != nil {
			return err
		}
		if v.req.Era == era.Stateless {
			if refused := era.CheckParams(v.Request.Header, o.marks, v.req.Members["arguments"]); refused != nil {
				v.refuse(refused)
				return nil
			}
		}
	}
	var waiting string
	if v.req.Era == era.Stateless {
		var ok bool
		if waiting, ok = v.reopen(o.params); !ok {
			v.wrong(&mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.requestState is not one that was given for this request"})
			return nil
		}
	}
	if waiting != "" {
		return v.answersHeld(w, o, waiting, about.Key)
	}
	if about.Type == mcp.Tool {
		if err := v.Count(v.facts.Server.Record.Slug, about.Key); err != nil {
			return err
		}
	}
	if stop, err := v.guard(about.Key, o); stop || err != nil {
		return err
	}
	return v.rounds(w, o, about.Key)
}

// maxRounds bounds how often a server asks something of a client within one request.
const maxRounds = 10

// rounds makes the request and, while a server without sessions asks something of a client
// with one, repeats it with the client's answers.
func (v *visit) rounds(w *way, o *outgoing, name string) error {
	for range maxRounds {
		again := false
		err := v.conclude(func() (json.RawMessage, error) { return w.ask(o) }, func(result json.RawMessage) (err error) {
			again, err = v.interview(w, o, result)
			return err
		})
		if err != nil || !again {
			return err
		}
		if stop, err := v.guard(name, o); stop || err != nil {
			return err
		}
	}
	v.unable("The server asks for something too often.")
	return nil
}

// conclude answers with what a server says to a call: its questions where it has some, or a
// result that the guardrails let through, by answer.
func (v *visit) conclude(ask func() (json.RawMessage, error), answer func(result json.RawMessage) error) error {
	result, err := ask()
	if h := (*held)(nil); errors.As(err, &h) {
		asked, _ := json.Marshal(h.questions) // raw members that were JSON
		judged, denied := v.Judge(asked)
		if denied {
			h.drop()
			v.denied()
			return nil
		}
		if err = json.Unmarshal(judged, &h.questions); err != nil {
			h.drop()
			return err
		}
		if result, err = v.keep(h); err == nil {
			v.result(result)
		}
		return err
	}
	if result, err = v.judged(result, err); result == nil || err != nil {
		return err
	}
	return answer(result)
}

// judged returns a result that the guardrails let through; nil if the request has been
// answered.
func (v *visit) judged(result json.RawMessage, err error) (json.RawMessage, error) {
	if refused := (*mcp.Error)(nil); errors.As(err, &refused) && refused.Code == era.CodeSignIn && v.req.Era == era.Stateless && asks[v.req.Method] {
		return nil, v.sends(refused)
	}
	if err != nil {
		return nil, err
	}
	if guardedMethods[v.req.Method] {
		judged, denied := v.Judge(result)
		if denied {
			v.denied()
			return nil, nil
		}
		result = judged
	}
	if limit := v.host.MaxResult; v.Buffered && limit > 0 && len(result) > limit {
		return nil, upstream.Fail(http.StatusOK, "the result has more than %d bytes, which cannot be passed on from here: use the address of the long-running service", limit)
	}
	return result, nil
}

// unknown is the error for what is not there, or not for this caller.
func (v *visit) unknown(c entitled.Capability) *mcp.Error {
	switch {
	case c.Type == mcp.Resource && v.req.Era != era.Stateless:
		return &mcp.Error{Code: mcp.CodeResourceNotFound, Message: "resource not found"}
	case c.Type == mcp.Resource || c.Type == mcp.ResourceTemplate:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "resource not found"}
	case c.Type == mcp.Prompt:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "unknown prompt"}
	}
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "unknown tool"}
}

// params are the request's own, without members of its version that the server's version
// does not have.
func (v *servers) params(w *way) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(v.req.Members))
	for name, raw := range v.req.Members {
		out[name] = raw
	}
	withoutSignIn(out)
	if v.req.Era == era.Stateless && w.kind != toStateless {
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
	if v.trace != "" && v.req.Meta[era.MetaTrace] != nil {
		meta := map[string]json.RawMessage{}
		_ = json.Unmarshal(out["_meta"], &meta) // was made above, or checked to be an object
		meta[era.MetaTrace] = json.RawMessage(`"` + v.trace + `"`)
		out["_meta"], _ = json.Marshal(meta) // raw members that were JSON
	}
	return out
}

// digest tells apart the requests that a state may belong to: by the method and the params,
// except for what a client adds when it comes again.
func (v *tickets) digest() string {
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
func (v *tickets) reopen(params map[string]json.RawMessage) (waiting string, ok bool) {
	if params["requestState"] == nil {
		return "", true
	}
	var s state
	if !v.open(v.binding(sealState), v.req.Text("requestState"), &s) || s.Expires < v.Now().Unix() || s.Digest != v.digest() {
		return "", false
	}
	if delete(params, "requestState"); s.Has {
		params["requestState"], _ = json.Marshal(s.State) // a text
	}
	return s.Held, true
}
