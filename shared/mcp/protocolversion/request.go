package protocolversion

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/mcp"
	"gateway/shared/wire"
)

// VersionKind is the kind of a protocol version.
type VersionKind uint8

const (
	Sessions  VersionKind = iota + 1 // initialize, then requests with a session id
	Stateless                        // self-contained requests
)

// Version is the stateless version; First is assumed for clients that name none.
const (
	Version = mcp.Modern
	First   = "2025-03-26"
)

// Error codes of the stateless version.
const (
	CodeHeader       = -32020 // header and body disagree
	CodeCapabilities = -32021 // the client lacks a required capability
	CodeVersion      = -32022
	CodeSignIn       = -32042 // only with sessions: the user must open an address
)

// InSession converts an error of a stateless server for a client with a session: codes of the
// stateless version become JSON-RPC codes.
func InSession(e *mcp.Error) *mcp.Error {
	switch e.Code {
	case CodeCapabilities:
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: e.Message, Data: e.Data}
	case CodeHeader, CodeVersion:
		return &mcp.Error{Code: mcp.CodeInternal, Message: e.Message, Data: e.Data}
	}
	return e
}

// WithoutSession converts an error of a server with sessions for a stateless client.
func WithoutSession(e *mcp.Error) *mcp.Error {
	switch e.Code {
	case mcp.CodeResourceNotFound:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: e.Message, Data: e.Data}
	case CodeSignIn:
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: e.Message, Data: e.Data}
	}
	return e
}

// maxDepth is the nesting limit of client messages.
const maxDepth = 128

// maxName is the size limit of names and URIs in bytes.
const maxName = 8 << 10

// Request is one message of a client. Its fields alias the body.
type Request struct {
	mcp.Message
	Kind    VersionKind
	Version string // protocol version of the client
	Session string // session id, may be empty
	Fields  map[string]json.RawMessage
	Meta    map[string]json.RawMessage
	Streams bool // the client accepts event streams
}

// Rejection is an HTTP status and an error for a message that is not served.
type Rejection struct {
	Status int
	mcp.Error
}

func reject(status, code int, message string) *Rejection {
	return &Rejection{status, mcp.Error{Code: code, Message: message}}
}

// Read parses the body of a POST. With a rejection the request contains what was parsed, such
// as its id.
func Read(h http.Header, body []byte) (*Request, *Rejection) {
	r := &Request{Version: First, Kind: Sessions, Session: one(h, mcp.HeaderSession)}
	plain, streams := accepts(h)
	r.Streams = streams
	if !plain && !streams {
		return r, reject(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept must name application/json and text/event-stream")
	}
	if media, _, _ := strings.Cut(one(h, "Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return r, reject(http.StatusUnsupportedMediaType, mcp.CodeInvalidRequest, "content-type must be application/json")
	}
	if refused := r.parse(body); refused != nil {
		return r, refused
	}
	header := one(h, mcp.HeaderVersion)
	if _, modern := r.Meta[mcp.MetaVersion]; modern || isDate(header) && header >= Version {
		r.Kind, r.Version = Stateless, header
		if !plain || !streams {
			return r, reject(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept must name application/json and text/event-stream")
		}
		return r, r.checkStateless(h)
	}
	if header != "" {
		r.Version = header
		if !slices.Contains(mcp.Versions, header) {
			return r, reject(http.StatusBadRequest, mcp.CodeInvalidRequest, "mcp-protocol-version must be one of "+strings.Join(mcp.Versions, ", ")+", or "+Version)
		}
	}
	return r, nil
}

// MetaTrace is the metadata field with the trace context.
const MetaTrace = "traceparent"

// Traceparent returns the W3C trace context of the message, or "".
func (r *Request) Traceparent() (value string) {
	_ = mcp.ParseString(r.Meta[MetaTrace], &value) // an unexpected type counts as empty
	return value
}

// one returns the value of a header that occurs once, otherwise "".
func one(h http.Header, name string) string {
	if v := h[name]; len(v) == 1 {
		return strings.TrimSpace(v[0])
	}
	return ""
}

func isDate(s string) bool {
	return len(s) == 10 && s[4] == '-' && s[7] == '-' && strings.Trim(s, "0123456789-") == ""
}

// accepts reports which response types the client accepts.
func accepts(h http.Header) (plain, streams bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, false
	}
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*":
				return true, true
			case "application/*", "application/json":
				plain = true
			case "text/*", "text/event-stream":
				streams = true
			}
		}
	}
	return plain, streams
}

// securityFields are the fields of params that decisions depend on. They are rejected in
// another case, because the server might accept it.
var securityFields = []string{"name", "uri", "arguments", "cursor", "ref", "taskid", "_meta", "requeststate", "inputresponses"}

// sizedFields are the fields of params that are recorded and mirrored in headers.
var sizedFields = []string{"name", "uri", "cursor", "ref", "taskId"}

// canonicalCase maps lowercase names to those with capitals.
var canonicalCase = map[string]string{"taskid": "taskId", "requeststate": "requestState", "inputresponses": "inputResponses"}

// parse parses a message by exact field names.
func (r *Request) parse(body []byte) *Rejection {
	if wire.CheckStrict(body, maxDepth) != nil {
		return reject(http.StatusBadRequest, mcp.CodeParse, "the body is not JSON in UTF-8, has a duplicate field, or is nested too deeply")
	}
	m := mcp.Fields(body)
	if m == nil {
		return reject(http.StatusBadRequest, mcp.CodeInvalidRequest, "the body must be one JSON-RPC object")
	}
	bad := func(message string) *Rejection { return reject(http.StatusBadRequest, mcp.CodeInvalidRequest, message) }
	if id := m["id"]; id != nil {
		if !validID(id) {
			return bad("id must be a string or an integer")
		}
		r.ID = id
	}
	if !mcp.ParseString(m["jsonrpc"], &r.Message.Version) || r.Message.Version != "2.0" {
		return bad(`jsonrpc must be "2.0"`)
	}
	if raw := m["method"]; raw != nil && !mcp.ParseString(raw, &r.Method) || len(r.Method) > 256 {
		return bad("method must be a string of up to 256 bytes")
	}
	r.Result = m["result"]
	if raw := m["error"]; raw != nil && json.Unmarshal(raw, &r.Error) != nil {
		return bad("error must be an object with code and message")
	}
	if r.Params = m["params"]; r.Params != nil {
		if r.Fields = mcp.Fields(r.Params); r.Fields == nil {
			return bad("params must be an object")
		}
	}
	if r.Method == "" && !r.IsResponse() || r.Method != "" && (r.Result != nil || r.Error != nil) {
		return bad("the body must be a request, a notification or a response")
	}
	for name := range r.Fields {
		lower := strings.ToLower(name)
		if want := canonicalCase[lower]; want == name || want == "" && lower == name {
			continue
		}
		if slices.Contains(securityFields, lower) {
			return reject(http.StatusBadRequest, mcp.CodeInvalidParams, "params has a field that differs from a known field only in case")
		}
	}
	for _, name := range sizedFields {
		if len(r.Fields[name]) > maxName {
			return reject(http.StatusBadRequest, mcp.CodeInvalidParams, "params."+name+" may have up to 8192 bytes")
		}
	}
	if raw := r.Fields["_meta"]; raw != nil {
		if r.Meta = mcp.Fields(raw); r.Meta == nil {
			return reject(http.StatusBadRequest, mcp.CodeInvalidParams, "params._meta must be an object")
		}
	}
	return nil
}

func validID(id json.RawMessage) bool {
	return mcp.ValidID(id) && len(id) <= maxName
}

// Text returns a string field of params, or "".
func (r *Request) Text(member string) (s string) {
	_ = mcp.ParseString(r.Fields[member], &s) // an unexpected type counts as empty
	return s
}

// nameFields are the fields of params that Mcp-Name mirrors.
var nameFields = map[string]string{
	"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
}

// Name returns the name or URI that headers mirror.
func (r *Request) Name() string {
	if member := nameFields[r.Method]; member != "" {
		return r.Text(member)
	}
	return ""
}

// checkStateless compares a stateless request with its headers.
func (r *Request) checkStateless(h http.Header) *Rejection {
	if r.IsResponse() {
		return reject(http.StatusBadRequest, mcp.CodeInvalidRequest, "this protocol version has no responses from clients")
	}
	if r.IsNotification() {
		return nil // it has no effect
	}
	var version string
	if raw := r.Meta[mcp.MetaVersion]; raw == nil || !mcp.ParseString(raw, &version) || version == "" {
		return reject(http.StatusBadRequest, mcp.CodeInvalidParams, "params._meta must have "+mcp.MetaVersion)
	}
	if raw := r.Meta[mcp.MetaCapabilities]; wire.KindOf(raw) != wire.KindObject {
		return reject(http.StatusBadRequest, mcp.CodeInvalidParams, "params._meta must have "+mcp.MetaCapabilities+", an object")
	}
	r.Version = version
	if one(h, mcp.HeaderVersion) != version {
		return reject(http.StatusBadRequest, CodeHeader, "mcp-protocol-version must be sent once and equal params._meta")
	}
	if version != Version {
		data, _ := json.Marshal(map[string]any{"supported": []string{Version}, "requested": version}) // only strings
		return &Rejection{http.StatusBadRequest, mcp.Error{Code: CodeVersion, Message: "the protocol version is not supported", Data: data}}
	}
	if one(h, mcp.HeaderMethod) != r.Method {
		return reject(http.StatusBadRequest, CodeHeader, "mcp-method must be sent once and equal the method in the body")
	}
	if member := nameFields[r.Method]; member != "" {
		if got, ok := DecodeHeader(one(h, mcp.HeaderName)); !ok || got == "" || got != r.Text(member) {
			return reject(http.StatusBadRequest, CodeHeader, "mcp-name must be sent once and equal params."+member+" of the body")
		}
	}
	return nil
}
