package gate

import (
	"encoding/json"
	"net/http"

	"gateway/shared/fault"
)

// Error codes of JSON-RPC and of the protocol.
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

// errorCodes maps codes to their ErrorInfo reason, HTTP status and status name.
var errorCodes = map[int]struct {
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

// protocolError is an error of the protocol. data comes from the agent, in the agent's version.
type protocolError struct {
	code    int
	message string
	data    any
	info    map[string]string // details of the gateway's errors
	status  int               // HTTP status, if the code does not imply it
}

func (r *protocolError) Error() string { return r.message }

func newError(code int, message string) *protocolError {
	return &protocolError{code: code, message: message}
}

// httpStatus returns the status in the HTTP+JSON binding.
func (r *protocolError) httpStatus() int {
	if t, ok := errorCodes[r.code]; ok {
		return t.status
	}
	if r.status >= 400 {
		return r.status
	}
	return http.StatusInternalServerError
}

// details returns the data of an error in 1.0 or 0.3.
func (r *protocolError) details(old bool) any {
	if r.data != nil || r.info == nil && old {
		return r.data
	}
	if old {
		return r.info
	}
	reason := errorCodes[r.code].reason
	if reason == "" {
		reason = "GATEWAY"
	}
	info := map[string]any{"@type": errorInfo, "reason": reason, "domain": domain}
	if len(r.info) > 0 {
		info["metadata"] = r.info
	}
	return []any{info}
}

// encodeRPC returns the error of a JSON-RPC response.
func (r *protocolError) encodeRPC(old bool) []byte {
	e := map[string]any{"code": r.code, "message": r.message}
	if data := r.details(old); data != nil {
		e["data"] = data
	}
	return encode(e, `{"code":-32603,"message":"internal error"}`)
}

// encodeREST returns the body of an error in the HTTP+JSON binding.
func (r *protocolError) encodeREST(old bool) []byte {
	if old {
		return r.encodeRPC(true)
	}
	word := errorCodes[r.code].word
	if word == "" {
		word = map[int]string{401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[r.httpStatus()]
	}
	if word == "" {
		word = "FAILED_PRECONDITION"
	}
	return encode(map[string]any{"error": map[string]any{"code": r.httpStatus(), "status": word, "message": r.message, "details": r.details(false)}}, `{"error":{"code":500,"status":"INTERNAL","message":"internal error"}}`)
}

func encode(v any, otherwise string) []byte {
	raw, err := json.Marshal(v)
	if err != nil { // the agent's data is not JSON
		return []byte(otherwise)
	}
	return raw
}

// fromFault converts a fault of the gateway. Its code is the HTTP status, which is outside the
// range of the protocol's codes.
func fromFault(f *fault.Fault, trace string) *protocolError {
	info := map[string]string{"error": string(f.Code)}
	if f.Field != "" {
		info["field"] = f.Field
	}
	if trace != "" {
		info["trace_id"] = trace
	}
	return &protocolError{code: f.Status(), message: f.Message, info: info, status: f.Status()}
}

// AppendError appends the error for a request that was not parsed: as HTTP+JSON if rest is set,
// otherwise as JSON-RPC.
func AppendError(dst []byte, f *fault.Fault, rest bool) []byte {
	r := fromFault(f, "")
	if rest {
		return append(dst, r.encodeREST(false)...)
	}
	dst = append(append(dst, `{"jsonrpc":"2.0","id":null,"error":`...), r.encodeRPC(false)...)
	return append(dst, '}')
}
