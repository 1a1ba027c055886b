package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

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
	if v.req.Era == era.Stateless && !v.reopen(o.params) {
		v.wrong(&mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.requestState is not one that was given for this request"})
		return nil
	}
	guarded := guardedMethods[v.req.Method]
	if about.Type == mcp.Tool {
		if err := v.Count(v.facts.Server.Record.Slug, about.Key); err != nil {
			return err
		}
	}
	if guarded {
		if stop, err := v.guard(about.Key, o); stop || err != nil {
			return err
		}
	}
	result, err := w.ask(o)
	if refused := (*mcp.Error)(nil); errors.As(err, &refused) && refused.Code == era.CodeSignIn && v.req.Era == era.Stateless {
		return v.sends(refused)
	}
	if err != nil {
		return err
	}
	if guarded {
		judged, denied := v.Judge(result)
		if denied {
			v.denied()
			return nil
		}
		result = judged
	}
	if limit := v.host.MaxResult; v.Buffered && limit > 0 && len(result) > limit {
		return upstream.Fail(http.StatusOK, "the result has more than %d bytes, which cannot be passed on from here: use the address of the long-running service", limit)
	}
	return v.finish(w, result)
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

// guardedMethods are the methods whose params come from a model or a user, and whose
// results a model reads. The others carry no text: subscriptions and levels of logs.
var guardedMethods = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true, "completion/complete": true}

// guard has the guardrails judge the params of a request. stop: it has been answered.
func (v *visit) guard(name string, o *outgoing) (stop bool, err error) {
	shown := make(map[string]json.RawMessage, len(o.params))
	for field, raw := range o.params {
		if field != "_meta" && field != "requestState" {
			shown[field] = raw
		}
	}
	changed, denied, err := v.Guard(name, mcp.AppendMembers(nil, shown))
	if err != nil {
		return false, err
	}
	if denied {
		v.denied()
		return true, nil
	}
	if changed == nil {
		return false, nil
	}
	made := mcp.Members(changed)
	for _, field := range [...]string{"name", "uri", "ref"} {
		if !bytes.Equal(made[field], shown[field]) { // it was allowed for this caller, another was not
			v.denied()
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

// denied answers for a guardrail: for a tool as a result, which the model behind the client
// can read, for anything else as an error.
func (v *answers) denied() {
	v.note.Decision = "guardrail"
	const text = "The guardrail checks of the workspace do not let this call through."
	if v.req.Method != "tools/call" {
		v.wrong(&mcp.Error{Code: mcp.CodeInvalidParams, Message: text})
		return
	}
	result := `{"content":[{"type":"text","text":"` + text + `"}],"isError":true`
	if v.req.Era == era.Stateless {
		result += `,"resultType":"complete"`
	}
	v.result(json.RawMessage(result + "}"))
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
func (v *tickets) reopen(params map[string]json.RawMessage) bool {
	if params["requestState"] == nil {
		return true
	}
	var s state
	if !v.open(v.binding(sealState), v.req.Text("requestState"), &s) || s.Expires < v.Now().Unix() || s.Digest != v.digest() {
		return false
	}
	if delete(params, "requestState"); s.Has {
		params["requestState"], _ = json.Marshal(s.State) // a text
	}
	return true
}

// finish answers with a result, in the client's era.
func (v *visit) finish(w *way, result json.RawMessage) error {
	modern := v.req.Era == era.Stateless
	if modern && w.kind != toStateless {
		v.result(dated(result, v.req.Method))
		return nil
	}
	if w.kind != toStateless {
		v.result(result)
		return nil
	}
	members := mcp.Members(result)
	if members == nil {
		return upstream.Fail(http.StatusOK, "the server's result is no object")
	}
	var kind string
	_ = mcp.Text(members["resultType"], &kind) // another form is none
	switch {
	case kind == "input_required" && asks[v.req.Method]:
		return v.wants(modern, members)
	case kind != "" && kind != "complete":
		return upstream.Fail(http.StatusOK, "the server's result is of a type that was not asked for")
	}
	if modern && kind == "complete" && v.req.Method != "resources/read" {
		v.result(result)
		return nil
	}
	age, _ := ageOf(members)
	for _, name := range ours {
		delete(members, name)
	}
	raw := mcp.AppendMembers(nil, members)
	if modern {
		raw = raw[:len(raw)-1]
		if len(members) > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, `"resultType":"complete"`...)
		if v.req.Method == "resources/read" {
			raw = appendAge(raw, age)
		}
		raw = append(raw, '}')
	}
	v.result(raw)
	return nil
}

// ours are the members of results that servers with sessions do not have.
var ours = [...]string{"resultType", "ttlMs", "cacheScope"}

// dated makes a result of a server with sessions into one for a client without. Members
// that only the gateway may write there are removed first.
func dated(result json.RawMessage, method string) json.RawMessage {
	for _, name := range append(ours[:], `\u`) { // a name may be written so
		if bytes.Contains(result, []byte(name)) {
			members := mcp.Members(result)
			for _, name := range ours {
				delete(members, name)
			}
			result = mcp.AppendMembers(nil, members)
			break
		}
	}
	out := append(make([]byte, 0, len(result)+64), `{"resultType":"complete"`...)
	if method == "resources/read" {
		out = appendAge(out, 0)
	}
	if rest := result[1:]; len(bytes.TrimSpace(rest)) > 1 {
		out = append(out, ',')
	}
	return append(out, result[1:]...)
}

// asks are the methods whose results may ask something of the client.
var asks = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// wants passes on that a server asks something of the client: with its state sealed, and to
// a client with a session as far as that era can express it.
func (v *visit) wants(modern bool, members map[string]json.RawMessage) error {
	if !modern {
		return v.wantsInSession(members)
	}
	s := state{Digest: v.digest(), Expires: v.Now().Add(stateLife).Unix()}
	if raw := members["requestState"]; raw != nil {
		if json.Unmarshal(raw, &s.State) != nil {
			return upstream.Fail(http.StatusOK, "the server's state is no text")
		}
		s.Has = true
		text, err := v.seal(v.binding(sealState), &s)
		if err != nil {
			return err
		}
		members["requestState"], _ = json.Marshal(text) // a text
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	v.result(raw)
	return nil
}

// sends has a client without a session send its user to the addresses that a server with
// sessions names, since that server does not know whether the client can do so.
func (v *visit) sends(refused *mcp.Error) error {
	var said struct {
		Elicitations []map[string]json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &said) != nil || len(said.Elicitations) == 0 || !asks[v.req.Method] {
		return upstream.Fail(http.StatusOK, "the server wants an address to be opened, and names none")
	}
	if !v.opens {
		v.refuse(&era.Refusal{Status: http.StatusBadRequest, Error: mcp.Error{
			Code: era.CodeAbilities, Message: "the user has to open an address first, and the client does not declare that it can ask for that", Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`),
		}})
		return nil
	}
	requests := map[string]any{}
	for i, one := range said.Elicitations {
		if one == nil || one["url"] == nil {
			return upstream.Fail(http.StatusOK, "the server wants an address to be opened, and names none")
		}
		one["mode"] = json.RawMessage(`"url"`)
		requests["open-"+strconv.Itoa(i+1)] = map[string]any{"method": "elicitation/create", "params": one}
	}
	sealed, err := v.seal(v.binding(sealState), &state{Digest: v.digest(), Expires: v.Now().Add(stateLife).Unix()})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": requests, "requestState": sealed})
	if err != nil {
		return err
	}
	v.result(raw)
	return nil
}

// wantsInSession tells a client with a session to open addresses, when nothing else is
// asked for.
func (v *visit) wantsInSession(members map[string]json.RawMessage) error {
	var asked map[string]struct {
		Method string                     `json:"method"`
		Params map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(members["inputRequests"], &asked) != nil {
		return upstream.Fail(http.StatusOK, "the server's result is of a type that was not asked for")
	}
	var urls []map[string]json.RawMessage
	for _, one := range asked {
		if one.Method != "elicitation/create" || string(one.Params["mode"]) != `"url"` {
			v.result(json.RawMessage(`{"content":[{"type":"text","text":"The server asks for something that this client cannot be asked for here."}],"isError":true}`))
			return nil
		}
		urls = append(urls, one.Params)
	}
	data, err := json.Marshal(map[string]any{"elicitations": urls})
	if err != nil {
		return err
	}
	v.wrong(&mcp.Error{Code: era.CodeSignIn, Message: "the user has to open an address first", Data: data})
	return nil
}
