package gate

import (
	"encoding/json"
	"net/http"

	"gateway/shared/fault"
)

// Codes of errors: those of JSON-RPC, and the protocol's own.
const (
	codeParse     = -32700
	codeRequest   = -32600
	codeMethod    = -32601
	codeParams    = -32602
	codeInternal  = -32603
	codeTask      = -32001
	codeNoPush    = -32003
	codeNotServed = -32004
	codeBadAgent  = -32006
	codeVersion   = -32009
)

// told are what the protocol says of its codes: the reason of an ErrorInfo, the status
// of HTTP and the word for it.
var told = map[int]struct {
	reason string
	status int
	word   string
}{
	codeParse:     {"INVALID_REQUEST", 400, "INVALID_ARGUMENT"},
	codeRequest:   {"INVALID_REQUEST", 400, "INVALID_ARGUMENT"},
	codeMethod:    {"METHOD_NOT_FOUND", 404, "NOT_FOUND"},
	codeParams:    {"INVALID_PARAMS", 400, "INVALID_ARGUMENT"},
	codeInternal:  {"INTERNAL_ERROR", 500, "INTERNAL"},
	codeTask:      {"TASK_NOT_FOUND", 404, "NOT_FOUND"},
	-32002:        {"TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION"},
	codeNoPush:    {"PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"},
	codeNotServed: {"UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION"},
	-32005:        {"CONTENT_TYPE_NOT_SUPPORTED", 400, "INVALID_ARGUMENT"},
	codeBadAgent:  {"INVALID_AGENT_RESPONSE", 500, "INTERNAL"},
	-32007:        {"EXTENDED_AGENT_CARD_NOT_CONFIGURED", 400, "FAILED_PRECONDITION"},
	-32008:        {"EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION"},
	codeVersion:   {"VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"},
}

const (
	domain    = "a2a-protocol.org"
	errorInfo = "type.googleapis.com/google.rpc.ErrorInfo"
)

// refusal is an error of the protocol. data comes from the agent, in the agent's version.
type refusal struct {
	code    int
	message string
	data    any
	info    map[string]string // details that the gateway adds to its own errors
	status  int               // of HTTP, where the code does not imply it
}

func (r *refusal) Error() string { return r.message }

func refuse(code int, message string) *refusal { return &refusal{code: code, message: message} }

// http is the status of an answer of HTTP+JSON.
func (r *refusal) http() int {
	if t, ok := told[r.code]; ok {
		return t.status
	}
	if r.status >= 400 {
		return r.status
	}
	return http.StatusInternalServerError
}

// details are the data of an error in 1.0, or in 0.3.
func (r *refusal) details(old bool) any {
	if r.data != nil || r.info == nil && old {
		return r.data
	}
	if old {
		return r.info
	}
	reason := told[r.code].reason
	if reason == "" {
		reason = "GATEWAY"
	}
	info := map[string]any{"@type": errorInfo, "reason": reason, "domain": domain}
	if len(r.info) > 0 {
		info["metadata"] = r.info
	}
	return []any{info}
}

// rpc is the error of a JSON-RPC answer.
func (r *refusal) rpc(old bool) []byte {
	e := map[string]any{"code": r.code, "message": r.message}
	if data := r.details(old); data != nil {
		e["data"] = data
	}
	return encode(e, `{"code":-32603,"message":"internal error"}`)
}

// rest is the body of an answer of HTTP+JSON.
func (r *refusal) rest(old bool) []byte {
	if old {
		return r.rpc(true)
	}
	word := told[r.code].word
	if word == "" {
		word = map[int]string{401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[r.http()]
	}
	if word == "" {
		word = "FAILED_PRECONDITION"
	}
	return encode(map[string]any{"error": map[string]any{"code": r.http(), "status": word, "message": r.message, "details": r.details(false)}}, `{"error":{"code":500,"status":"INTERNAL","message":"internal error"}}`)
}

func encode(v any, otherwise string) []byte {
	raw, err := json.Marshal(v)
	if err != nil { // data of an agent that is no JSON
		return []byte(otherwise)
	}
	return raw
}

// ofFault is the gateway's own failure as an error of the protocol. Its code is the HTTP
// status, which no code of the protocol can equal.
func ofFault(f *fault.Fault, trace string) *refusal {
	info := map[string]string{"error": string(f.Code)}
	if f.Field != "" {
		info["field"] = f.Field
	}
	if trace != "" {
		info["trace_id"] = trace
	}
	return &refusal{code: f.Status(), message: f.Message, info: info, status: f.Status()}
}

// AppendError writes the refusal of a request that was not read yet: as HTTP+JSON if rest
// is set, otherwise as JSON-RPC.
func AppendError(dst []byte, f *fault.Fault, rest bool) []byte {
	r := ofFault(f, "")
	if rest {
		return append(dst, r.rest(false)...)
	}
	dst = append(append(dst, `{"jsonrpc":"2.0","id":null,"error":`...), r.rpc(false)...)
	return append(dst, '}')
}
