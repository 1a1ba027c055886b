package gate

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gateway/shared/a2a/wireformat"
	"gateway/shared/wire"
)

const (
	headerVersion    = "A2a-Version"
	headerExtensions = "A2a-Extensions"
	headerOlder      = "X-A2a-Extensions" // of 0.3
	maxDepth         = 64
)

// request is what a client asks for, in whichever version and binding.
type request struct {
	op     *operation
	old    bool // version 0.3
	rest   bool // HTTP+JSON
	id     json.RawMessage
	tenant string
	raw    json.RawMessage   // params as they came; of HTTP+JSON the body
	tree   any               // raw, read
	params wireformat.Object // in the shape of 1.0
}

// shape is that of the client's values.
func (q *request) shape() wireformat.Shape { return shapeOf(q.old, q.rest) }

func shapeOf(old, rest bool) wireformat.Shape {
	switch {
	case !old:
		return wireformat.V1
	case rest:
		return wireformat.OldREST
	}
	return wireformat.Old
}

// read reads a request. below is the path behind the agent's address, split and without
// escapes; an empty path means JSON-RPC. A request that is refused still tells what is
// known of it.
func read(r *http.Request, below []string, body []byte) (*request, *refusal) {
	q := &request{rest: len(below) > 0}
	said := r.Header.Get(headerVersion)
	if said == "" {
		said = r.URL.Query().Get("A2A-Version")
	}
	switch {
	case said == "" && (!q.rest || below[0] == "v1"), said == "0.3", strings.HasPrefix(said, "0.3."):
		q.old = true
	case said == "1.0", strings.HasPrefix(said, "1.0."), said == "":
	default:
		return q, &refusal{code: codeVersion, message: "this version of the protocol is not known; 1.0 and 0.3 are", info: map[string]string{"supported": "1.0,0.3"}}
	}
	if q.rest {
		if said == "" && !q.old {
			q.old = true
			return q, &refusal{code: codeVersion, message: "a request without the header A2A-Version is one of 0.3, whose paths begin with /v1; send A2A-Version: 1.0", info: map[string]string{"supported": "1.0,0.3"}}
		}
		return q, q.readPath(r, below, body)
	}
	return q, q.readMessage(r, body)
}

// readMessage reads JSON-RPC.
func (q *request) readMessage(r *http.Request, body []byte) *refusal {
	if refused := checkBody(r, body, "application/json"); refused != nil {
		return refused
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m == nil {
		return refuse(codeRequest, "the body must be one JSON-RPC request: an object")
	}
	id := bytes.TrimSpace(m["id"])
	if kind := wire.KindOf(id); len(id) > 0 && (kind == wire.KindString || kind == wire.KindNumber || kind == wire.KindNull) {
		q.id = id
	} else if len(id) > 0 {
		return refuse(codeRequest, "id must be a string or a number")
	}
	var version, method string
	if json.Unmarshal(m["jsonrpc"], &version) != nil || version != "2.0" {
		return refuse(codeRequest, `jsonrpc must be "2.0"`)
	}
	if json.Unmarshal(m["method"], &method) != nil || method == "" || len(method) > 256 {
		return refuse(codeRequest, "method must be the name of a method, of up to 256 characters")
	}
	op, other := ofMethod(method, q.old)
	if q.op = op; other {
		q.op = &operation{name: method, custom: true}
		return refuse(codeMethod, "the method is not one of the version that the request names; the header A2A-Version says which it is, and without it 0.3")
	}
	if q.id == nil && !op.custom {
		return refuse(codeRequest, "id is missing: the method answers")
	}
	q.raw = m["params"]
	if q.raw == nil {
		q.raw = json.RawMessage("{}")
	}
	return q.take()
}

// take reads the params.
func (q *request) take() *refusal {
	v, err := wireformat.Read(q.raw)
	o, ok := v.(wireformat.Object)
	if err != nil || !ok {
		if q.op.custom && err == nil {
			return nil
		}
		return refuse(codeParams, "params must be an object")
	}
	if q.op.custom {
		q.tree, q.params = o, o
		return nil
	}
	if refused := q.write(o); refused != nil {
		return refused
	}
	if q.tenant == "" {
		q.tenant, _ = q.params["tenant"].(string)
	}
	return q.check()
}

// write puts the params into the shape of 1.0.
func (q *request) write(o wireformat.Object) *refusal {
	if name := oddName(o); name != "" {
		return refuse(codeParams, "params has a member whose name stands there twice, or in another spelling: "+name)
	}
	q.tree = o
	q.params, _ = wireformat.Between(q.shape(), wireformat.V1, q.op.params, o).(wireformat.Object)
	return nil
}

// decisive are the members that decide what a request is about. An agent may accept other
// spellings of them; it must not read a value that was not judged.
var decisive = func() map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		"id", "taskId", "contextId", "tenant", "message", "request", "configuration", "referenceTaskIds", "parts", "content", "name", "parent", "config", "configId", "url",
		"pushNotificationConfigId", "pushNotificationConfig", "taskPushNotificationConfig", "pushNotification",
	} {
		out[strings.ToLower(name)] = name
	}
	return out
}()

// oddName finds such a member under another spelling, or a message that is given under both
// of its names.
func oddName(v any) string {
	switch v := v.(type) {
	case wireformat.Object:
		if v["message"] != nil && v["request"] != nil {
			return "message"
		}
		for name, m := range v {
			if known, ok := decisive[strings.ToLower(strings.ReplaceAll(name, "_", ""))]; ok && known != name {
				return known
			}
			if name == "metadata" || name == "parts" || name == "content" {
				continue
			}
			if odd := oddName(m); odd != "" {
				return odd
			}
		}
	case []any:
		for _, m := range v {
			if odd := oddName(m); odd != "" {
				return odd
			}
		}
	}
	return ""
}

// check checks the params that the gateway needs to understand.
func (q *request) check() *refusal {
	if name := q.op.task; name != "" {
		if id, ok := q.params[name].(string); !ok || id == "" || len(id) > maxID {
			return refuse(codeParams, "params must name a task, by "+name+" of up to "+strconv.Itoa(maxID)+" bytes")
		}
	}
	if q.op.sends {
		m, ok := q.params["message"].(wireformat.Object)
		if !ok {
			return refuse(codeParams, "params.message must be an object")
		}
		if _, ok := m["parts"].([]any); !ok {
			return refuse(codeParams, "params.message.parts must be a list of parts")
		}
		for _, name := range []string{"taskId", "contextId"} {
			if v, has := m[name]; has && v != nil {
				if s, ok := v.(string); !ok || len(s) > maxID {
					return refuse(codeParams, "params.message."+name+" must be a string of up to "+strconv.Itoa(maxID)+" bytes")
				}
			}
		}
		if list, has := m["referenceTaskIds"]; has && list != nil {
			if _, ok := list.([]any); !ok {
				return refuse(codeParams, "params.message.referenceTaskIds must be a list of ids")
			}
		}
	}
	return nil
}

// readPath reads HTTP+JSON.
func (q *request) readPath(r *http.Request, below []string, body []byte) *refusal {
	switch {
	case q.old && below[0] == "v1" && len(below) > 1:
		below = below[1:]
	case q.old:
		below = []string{""}
	}
	op, named := ofPath(r.Method, below)
	if op == nil && !q.old && len(below) > 1 {
		q.tenant = below[0]
		op, named = ofPath(r.Method, below[1:])
	}
	if op == nil || op == opCard && (below[len(below)-1] == "card") != q.old {
		q.op = &operation{name: r.Method, custom: true}
		return refuse(codeMethod, "there is no such operation at this path in the version that the request names; the header A2A-Version says which it is")
	}
	q.op = op
	params := wireformat.Object{}
	if len(bytes.TrimSpace(body)) > 0 && (op.sends || op == opPushSet) {
		if refused := checkBody(r, body, "application/json", "application/a2a+json"); refused != nil {
			return refused
		}
		v, err := wireformat.Read(body)
		o, ok := v.(wireformat.Object)
		if err != nil || !ok {
			return refuse(codeParse, "the body must be an object")
		}
		q.raw = body
		if refused := q.write(o); refused != nil {
			return refused
		}
		params = q.params
	}
	for name, values := range r.URL.Query() {
		if name != "A2A-Version" && len(values) > 0 && r.Method == http.MethodGet {
			params[name] = ofQuery(name, values[0])
		}
	}
	if name := oddName(params); name != "" {
		return refuse(codeParams, "the query has a member whose name stands there twice, or in another spelling: "+name)
	}
	for name, v := range named {
		if said, has := params[name].(string); has && said != v && name == "taskId" {
			return refuse(codeParams, "taskId must be that of the path, or left out")
		}
		params[name] = v
	}
	q.params = params
	if q.tenant == "" {
		q.tenant, _ = params["tenant"].(string)
	}
	return q.check()
}

// ofQuery is a value of the query in the type that the params have.
func ofQuery(name, v string) any {
	switch name {
	case "historyLength", "pageSize":
		if n, err := strconv.ParseInt(v, 10, 32); err == nil {
			return json.Number(strconv.FormatInt(n, 10))
		}
	case "includeArtifacts":
		if b, err := strconv.ParseBool(v); err == nil {
			return b
		}
	}
	return v
}

func checkBody(r *http.Request, body []byte, types ...string) *refusal {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	ok := false
	for _, t := range types {
		ok = ok || err == nil && media == t
	}
	if !ok {
		return &refusal{code: -32005, message: "content-type must be " + strings.Join(types, " or ")}
	}
	if err := wire.CheckStrict(body, maxDepth); err != nil {
		return refuse(codeParse, "the body must be JSON in UTF-8, of up to "+strconv.Itoa(maxDepth)+" levels, with no key twice in an object")
	}
	return nil
}

// split gives the parts of an escaped path, without escapes. It gives false for a path that
// cannot be read or that can be read in several ways.
func split(path string) ([]string, bool) {
	if path = strings.Trim(path, "/"); path == "" {
		return nil, true
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\") || strings.ContainsFunc(plain, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return nil, false
		}
		parts[i] = plain
	}
	return parts, true
}

// maxID bounds the ids of tasks and contexts, in bytes.
const maxID = 256

// again reads the params that guardrails have changed.
func (q *request) again() *refusal {
	v, err := wireformat.Read(q.raw)
	o, ok := v.(wireformat.Object)
	if err != nil || !ok {
		return refuse(codeInternal, "a guardrail left no request")
	}
	if q.op.custom {
		q.tree, q.params = o, o
		return nil
	}
	was := q.params
	if refused := q.write(o); refused != nil {
		return refused
	}
	if name := q.op.task; q.rest && name != "" {
		q.params[name] = was[name] // it came from the path
	}
	return q.check()
}
