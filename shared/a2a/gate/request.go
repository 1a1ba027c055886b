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

// request is a client's request in any version and binding.
type request struct {
	op     *operation
	old    bool // version 0.3
	rest   bool // HTTP+JSON
	id     json.RawMessage
	tenant string
	raw    json.RawMessage   // params verbatim, or the body in HTTP+JSON
	value  any               // raw, decoded
	params wireformat.Object // in the format of 1.0
}

// format returns the format of the client's values.
func (q *request) format() wireformat.Format { return formatOf(q.old, q.rest) }

func formatOf(old, rest bool) wireformat.Format {
	switch {
	case !old:
		return wireformat.V1
	case rest:
		return wireformat.OldREST
	}
	return wireformat.Old
}

// read parses a request. below is the unescaped and split path below the agent's address; an
// empty path means JSON-RPC. With an error the request contains what was parsed.
func read(r *http.Request, below []string, body []byte) (*request, *protocolError) {
	q := &request{rest: len(below) > 0}
	version := r.Header.Get(headerVersion)
	if version == "" {
		version = r.URL.Query().Get("A2A-Version")
	}
	switch {
	case version == "" && (!q.rest || below[0] == "v1"), version == "0.3", strings.HasPrefix(version, "0.3."):
		q.old = true
	case version == "1.0", strings.HasPrefix(version, "1.0."), version == "":
	default:
		return q, &protocolError{code: codeVersion, message: "this protocol version is not supported; use 1.0 or 0.3", info: map[string]string{"supported": "1.0,0.3"}}
	}
	if q.rest {
		if version == "" && !q.old {
			q.old = true
			return q, &protocolError{code: codeVersion, message: "a request without the header A2A-Version uses version 0.3, whose paths begin with /v1; send A2A-Version: 1.0", info: map[string]string{"supported": "1.0,0.3"}}
		}
		return q, q.readPath(r, below, body)
	}
	return q, q.readMessage(r, body)
}

// readMessage parses JSON-RPC.
func (q *request) readMessage(r *http.Request, body []byte) *protocolError {
	if refused := checkBody(r, body, "application/json"); refused != nil {
		return refused
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m == nil {
		return newError(codeRequest, "the body must be one JSON-RPC request: an object")
	}
	id := bytes.TrimSpace(m["id"])
	if kind := wire.KindOf(id); len(id) > 0 && (kind == wire.KindString || kind == wire.KindNumber || kind == wire.KindNull) {
		q.id = id
	} else if len(id) > 0 {
		return newError(codeRequest, "id must be a string or a number")
	}
	var version, method string
	if json.Unmarshal(m["jsonrpc"], &version) != nil || version != "2.0" {
		return newError(codeRequest, `jsonrpc must be "2.0"`)
	}
	if json.Unmarshal(m["method"], &method) != nil || method == "" || len(method) > 256 {
		return newError(codeRequest, "method must be the name of a method, of up to 256 characters")
	}
	op, other := operationByMethod(method, q.old)
	if q.op = op; other {
		q.op = &operation{name: method, custom: true}
		return newError(codeMethod, "the method does not exist in the request's protocol version; set it with the header A2A-Version (default 0.3)")
	}
	if q.id == nil && !op.custom {
		return newError(codeRequest, "id is missing: the method has a response")
	}
	q.raw = m["params"]
	if q.raw == nil {
		q.raw = json.RawMessage("{}")
	}
	return q.readParams()
}

// readParams parses the params.
func (q *request) readParams() *protocolError {
	v, err := wireformat.Read(q.raw)
	o, ok := v.(wireformat.Object)
	if err != nil || !ok {
		if q.op.custom && err == nil {
			return nil
		}
		return newError(codeParams, "params must be an object")
	}
	if q.op.custom {
		q.value, q.params = o, o
		return nil
	}
	if refused := q.setParams(o); refused != nil {
		return refused
	}
	if q.tenant == "" {
		q.tenant, _ = q.params["tenant"].(string)
	}
	return q.check()
}

// setParams converts the params to the format of 1.0.
func (q *request) setParams(o wireformat.Object) *protocolError {
	if name := ambiguousField(o); name != "" {
		return newError(codeParams, "params has a field twice or in another spelling: "+name)
	}
	q.value = o
	q.params, _ = wireformat.Convert(q.format(), wireformat.V1, q.op.params, o).(wireformat.Object)
	return nil
}

// securityFields are the fields that decide what a request refers to. Other spellings are
// rejected: an agent might accept them and read a value that was not checked.
var securityFields = func() map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		"id", "taskId", "contextId", "tenant", "message", "request", "configuration", "referenceTaskIds", "parts", "content", "name", "parent", "config", "configId", "url",
		"pushNotificationConfigId", "pushNotificationConfig", "taskPushNotificationConfig", "pushNotification",
	} {
		out[strings.ToLower(name)] = name
	}
	return out
}()

// ambiguousField returns a field in another spelling, or a message under both of its names.
func ambiguousField(v any) string {
	switch v := v.(type) {
	case wireformat.Object:
		if v["message"] != nil && v["request"] != nil {
			return "message"
		}
		for name, m := range v {
			if known, ok := securityFields[strings.ToLower(strings.ReplaceAll(name, "_", ""))]; ok && known != name {
				return known
			}
			if name == "metadata" || name == "parts" || name == "content" {
				continue
			}
			if odd := ambiguousField(m); odd != "" {
				return odd
			}
		}
	case []any:
		for _, m := range v {
			if odd := ambiguousField(m); odd != "" {
				return odd
			}
		}
	}
	return ""
}

// check validates the params that the gateway depends on.
func (q *request) check() *protocolError {
	if name := q.op.taskField; name != "" {
		if id, ok := q.params[name].(string); !ok || id == "" || len(id) > maxID {
			return newError(codeParams, "params must name a task, by "+name+" of up to "+strconv.Itoa(maxID)+" bytes")
		}
	}
	if q.op.sendsMessage {
		m, ok := q.params["message"].(wireformat.Object)
		if !ok {
			return newError(codeParams, "params.message must be an object")
		}
		if _, ok := m["parts"].([]any); !ok {
			return newError(codeParams, "params.message.parts must be a list of parts")
		}
		for _, name := range []string{"taskId", "contextId"} {
			if v, has := m[name]; has && v != nil {
				if s, ok := v.(string); !ok || len(s) > maxID {
					return newError(codeParams, "params.message."+name+" must be a string of up to "+strconv.Itoa(maxID)+" bytes")
				}
			}
		}
		if list, has := m["referenceTaskIds"]; has && list != nil {
			if _, ok := list.([]any); !ok {
				return newError(codeParams, "params.message.referenceTaskIds must be a list of ids")
			}
		}
	}
	return nil
}

// readPath parses HTTP+JSON.
func (q *request) readPath(r *http.Request, below []string, body []byte) *protocolError {
	switch {
	case q.old && below[0] == "v1" && len(below) > 1:
		below = below[1:]
	case q.old:
		below = []string{""}
	}
	op, named := operationByPath(r.Method, below)
	if op == nil && !q.old && len(below) > 1 {
		q.tenant = below[0]
		op, named = operationByPath(r.Method, below[1:])
	}
	if op == nil || op == opCard && (below[len(below)-1] == "card") != q.old {
		q.op = &operation{name: r.Method, custom: true}
		return newError(codeMethod, "there is no such operation at this path in the request's protocol version; set it with the header A2A-Version")
	}
	q.op = op
	params := wireformat.Object{}
	if len(bytes.TrimSpace(body)) > 0 && (op.sendsMessage || op == opPushSet) {
		if refused := checkBody(r, body, "application/json", "application/a2a+json"); refused != nil {
			return refused
		}
		v, err := wireformat.Read(body)
		o, ok := v.(wireformat.Object)
		if err != nil || !ok {
			return newError(codeParse, "the body must be an object")
		}
		q.raw = body
		if refused := q.setParams(o); refused != nil {
			return refused
		}
		params = q.params
	}
	for name, values := range r.URL.Query() {
		if name != "A2A-Version" && len(values) > 0 && r.Method == http.MethodGet {
			params[name] = queryValue(name, values[0])
		}
	}
	if name := ambiguousField(params); name != "" {
		return newError(codeParams, "the query has a field twice or in another spelling: "+name)
	}
	for name, v := range named {
		if value, has := params[name].(string); has && value != v && name == "taskId" {
			return newError(codeParams, "taskId must equal that of the path, or be omitted")
		}
		params[name] = v
	}
	q.params = params
	if q.tenant == "" {
		q.tenant, _ = params["tenant"].(string)
	}
	return q.check()
}

// queryValue converts a query parameter to the type of the params.
func queryValue(name, v string) any {
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

func checkBody(r *http.Request, body []byte, types ...string) *protocolError {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	ok := false
	for _, t := range types {
		ok = ok || err == nil && media == t
	}
	if !ok {
		return &protocolError{code: -32005, message: "content-type must be " + strings.Join(types, " or ")}
	}
	if err := wire.CheckStrict(body, maxDepth); err != nil {
		return newError(codeParse, "the body must be JSON in UTF-8, of up to "+strconv.Itoa(maxDepth)+" levels, with no key twice in an object")
	}
	return nil
}

// splitPath splits and unescapes a path. It returns false for an invalid or ambiguous path.
func splitPath(path string) ([]string, bool) {
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

// maxID is the size limit of task and context ids in bytes.
const maxID = 256

// rereadParams parses the params after guardrails changed them.
func (q *request) rereadParams() *protocolError {
	v, err := wireformat.Read(q.raw)
	o, ok := v.(wireformat.Object)
	if err != nil || !ok {
		return newError(codeInternal, "a guardrail removed the request")
	}
	if q.op.custom {
		q.value, q.params = o, o
		return nil
	}
	was := q.params
	if refused := q.setParams(o); refused != nil {
		return refused
	}
	if name := q.op.taskField; q.rest && name != "" {
		q.params[name] = was[name] // it is in the path
	}
	return q.check()
}
