package protocolversion

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/mcp"
	"gateway/shared/wire"
)

// Era is how a side speaks.
type Era uint8

// The eras.
const (
	Sessions  Era = iota + 1 // initialize, then requests that name a session
	Stateless                // every request stands alone
)

// Version is that of the protocol without sessions; First is the version of clients that
// name none.
const (
	Version = mcp.Modern
	First   = "2025-03-26"
)

// Codes of the protocol without sessions.
const (
	CodeHeader    = -32020 // header and body disagree
	CodeAbilities = -32021 // the client does not declare what is needed
	CodeVersion   = -32022
	CodeSignIn    = -32042 // with sessions: the user is to open an address
)

// InSession returns an error of a server without sessions as a client with a session may
// read it: codes that only the protocol without sessions has become those of JSON-RPC.
func InSession(e *mcp.Error) *mcp.Error {
	switch e.Code {
	case CodeAbilities:
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: e.Message, Data: e.Data}
	case CodeHeader, CodeVersion:
		return &mcp.Error{Code: mcp.CodeInternal, Message: e.Message, Data: e.Data}
	}
	return e
}

// WithoutSession returns an error of a server with sessions as a client without may read
// it.
func WithoutSession(e *mcp.Error) *mcp.Error {
	switch e.Code {
	case mcp.CodeResourceNotFound:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: e.Message, Data: e.Data}
	case CodeSignIn:
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: e.Message, Data: e.Data}
	}
	return e
}

// maxDepth is how deep a client's message may nest.
const maxDepth = 128

// maxName bounds names and addresses in bytes.
const maxName = 8 << 10

// Request is one message of a client. Its members are parts of the body that was read.
type Request struct {
	mcp.Message
	Era     Era
	Version string // of the protocol, as the client speaks it
	Session string // that it names; "": none
	Members map[string]json.RawMessage
	Meta    map[string]json.RawMessage
	Streams bool // the client takes streams
}

// Refusal is a message that is not served: a status of HTTP and an error.
type Refusal struct {
	Status int
	mcp.Error
}

func refuse(status, code int, message string) *Refusal {
	return &Refusal{status, mcp.Error{Code: code, Message: message}}
}

// Read reads the body of a POST. The request is there, as far as it was read, also with
// a refusal, which answers its id.
func Read(h http.Header, body []byte) (*Request, *Refusal) {
	r := &Request{Version: First, Era: Sessions, Session: one(h, mcp.HeaderSession)}
	plain, streams := accepts(h)
	r.Streams = streams
	if !plain && !streams {
		return r, refuse(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept must name application/json and text/event-stream")
	}
	if media, _, _ := strings.Cut(one(h, "Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return r, refuse(http.StatusUnsupportedMediaType, mcp.CodeInvalidRequest, "content-type must be application/json")
	}
	if refused := r.parse(body); refused != nil {
		return r, refused
	}
	header := one(h, mcp.HeaderVersion)
	if _, modern := r.Meta[mcp.MetaVersion]; modern || isDate(header) && header >= Version {
		r.Era, r.Version = Stateless, header
		if !plain || !streams {
			return r, refuse(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept must name application/json and text/event-stream")
		}
		return r, r.checkStateless(h)
	}
	if header != "" {
		r.Version = header
		if !slices.Contains(mcp.Versions, header) {
			return r, refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "mcp-protocol-version must be one of "+strings.Join(mcp.Versions, ", ")+", or "+Version)
		}
	}
	return r, nil
}

// MetaTrace is where a message says of which trace it is.
const MetaTrace = "traceparent"

// Traceparent is the W3C trace context that the message carries; "" for none.
func (r *Request) Traceparent() (value string) {
	_ = mcp.Text(r.Meta[MetaTrace], &value) // what is no text is none
	return value
}

// one is the value of a header that comes once; "" for none and for several.
func one(h http.Header, name string) string {
	if v := h[name]; len(v) == 1 {
		return strings.TrimSpace(v[0])
	}
	return ""
}

func isDate(s string) bool {
	return len(s) == 10 && s[4] == '-' && s[7] == '-' && strings.Trim(s, "0123456789-") == ""
}

// accepts tells which forms of an answer the client takes.
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

// decides are the members of params that decisions depend on. A server behind might also
// read another spelling of one.
var decides = []string{"name", "uri", "arguments", "cursor", "ref", "taskid", "_meta", "requeststate", "inputresponses"}

// bounded are the members of params that name something: they are kept in records, and
// repeated in headers.
var bounded = []string{"name", "uri", "cursor", "ref", "taskId"}

// spelling is how those of them with capitals are written.
var spelling = map[string]string{"taskid": "taskId", "requeststate": "requestState", "inputresponses": "inputResponses"}

// parse reads a message member by member, by exact names: a member whose name differs in
// case is not taken for one of them.
func (r *Request) parse(body []byte) *Refusal {
	if wire.CheckStrict(body, maxDepth) != nil {
		return refuse(http.StatusBadRequest, mcp.CodeParse, "the body is not JSON in UTF-8, has a member twice, or nests too deep")
	}
	m := mcp.Members(body)
	if m == nil {
		return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "the body must be one JSON-RPC object")
	}
	bad := func(message string) *Refusal { return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, message) }
	if id := m["id"]; id != nil {
		if !goodID(id) {
			return bad("id must be a string or a whole number")
		}
		r.ID = id
	}
	if !mcp.Text(m["jsonrpc"], &r.Message.Version) || r.Message.Version != "2.0" {
		return bad(`jsonrpc must be "2.0"`)
	}
	if raw := m["method"]; raw != nil && !mcp.Text(raw, &r.Method) || len(r.Method) > 256 {
		return bad("method must be a text of up to 256 bytes")
	}
	r.Result = m["result"]
	if raw := m["error"]; raw != nil && json.Unmarshal(raw, &r.Error) != nil {
		return bad("error must be an object with code and message")
	}
	if r.Params = m["params"]; r.Params != nil {
		if r.Members = mcp.Members(r.Params); r.Members == nil {
			return bad("params must be an object")
		}
	}
	if r.Method == "" && !r.IsAnswer() || r.Method != "" && (r.Result != nil || r.Error != nil) {
		return bad("the body must be a request, a notification or an answer")
	}
	for name := range r.Members {
		lower := strings.ToLower(name)
		if want := spelling[lower]; want == name || want == "" && lower == name {
			continue
		}
		if slices.Contains(decides, lower) {
			return refuse(http.StatusBadRequest, mcp.CodeInvalidParams, "params has a member that is another only by its capitals")
		}
	}
	for _, name := range bounded {
		if len(r.Members[name]) > maxName {
			return refuse(http.StatusBadRequest, mcp.CodeInvalidParams, "params."+name+" may have up to 8192 bytes")
		}
	}
	if raw := r.Members["_meta"]; raw != nil {
		if r.Meta = mcp.Members(raw); r.Meta == nil {
			return refuse(http.StatusBadRequest, mcp.CodeInvalidParams, "params._meta must be an object")
		}
	}
	return nil
}

func goodID(id json.RawMessage) bool {
	return mcp.GoodID(id) && len(id) <= maxName
}

// Text is a member of params that is a text; "" for another.
func (r *Request) Text(member string) (s string) {
	_ = mcp.Text(r.Members[member], &s) // another form is none
	return s
}

// named is the member of params that Mcp-Name repeats.
var named = map[string]string{
	"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
}

// Name is the name or address that the request is about, which headers repeat.
func (r *Request) Name() string {
	if member := named[r.Method]; member != "" {
		return r.Text(member)
	}
	return ""
}

// checkStateless holds a request without session against its headers.
func (r *Request) checkStateless(h http.Header) *Refusal {
	if r.IsAnswer() {
		return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "answers are not sent in this version of the protocol")
	}
	if r.IsNotification() {
		return nil // nothing comes of it
	}
	var version string
	if raw := r.Meta[mcp.MetaVersion]; raw == nil || !mcp.Text(raw, &version) || version == "" {
		return refuse(http.StatusBadRequest, mcp.CodeInvalidParams, "params._meta must have "+mcp.MetaVersion)
	}
	if raw := r.Meta[mcp.MetaAbilities]; wire.KindOf(raw) != wire.KindObject {
		return refuse(http.StatusBadRequest, mcp.CodeInvalidParams, "params._meta must have "+mcp.MetaAbilities+", an object")
	}
	r.Version = version
	if one(h, mcp.HeaderVersion) != version {
		return refuse(http.StatusBadRequest, CodeHeader, "mcp-protocol-version must be there once and be that of params._meta")
	}
	if version != Version {
		data, _ := json.Marshal(map[string]any{"supported": []string{Version}, "requested": version}) // texts
		return &Refusal{http.StatusBadRequest, mcp.Error{Code: CodeVersion, Message: "the version of the protocol is not supported", Data: data}}
	}
	if one(h, mcp.HeaderMethod) != r.Method {
		return refuse(http.StatusBadRequest, CodeHeader, "mcp-method must be there once and be the method of the body")
	}
	if member := named[r.Method]; member != "" {
		if got, ok := DecodeHeader(one(h, mcp.HeaderName)); !ok || got == "" || got != r.Text(member) {
			return refuse(http.StatusBadRequest, CodeHeader, "mcp-name must be there once and be params."+member+" of the body")
		}
	}
	return nil
}
