package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// sendResult sends the response to the request.
func sendResult(v *requestState, raw json.RawMessage) {
	v.record.Failed = v.record.Method == "tools/call" && isToolError(raw)
	room := newBuffer(len(raw) + len(v.req.ID) + 64)
	defer room.free()
	room.b = append(append(appendResponseHead(room.b, v.req.ID, "result"), raw...), '}')
	sendLast(v, http.StatusOK, room.b, nil)
}

// buffer is pooled memory for responses. The receiver of a response must not retain it.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// maxPooledBuffer is the largest buffer that returns to the pool, in bytes.
const maxPooledBuffer = 64 << 10

func newBuffer(size int) *buffer {
	r := buffers.Get().(*buffer)
	r.b = slices.Grow(r.b[:0], size)
	return r
}

func (r *buffer) free() {
	if cap(r.b) <= maxPooledBuffer {
		buffers.Put(r)
	}
}

// isToolError reports whether the result of a tool has isError set.
func isToolError(result []byte) bool {
	const member = "isError"
	var tool struct {
		IsError bool `json:"isError"`
	}
	return bytes.Contains(result, []byte(member)) && json.Unmarshal(result, &tool) == nil && tool.IsError
}

// response returns a response to the request with a result or an error.
func response(v *requestState, member string, raw []byte) []byte {
	out := make([]byte, 0, len(raw)+len(v.req.ID)+48)
	return append(append(appendResponseHead(out, v.req.ID, member), raw...), '}')
}

// appendResponseHead appends the beginning of a response. Without an id the field is omitted:
// the protocol does not allow null.
func appendResponseHead(out []byte, id json.RawMessage, member string) []byte {
	out = append(out, `{"jsonrpc":"2.0"`...)
	if len(id) > 0 {
		out = append(append(out, `,"id":`...), id...)
	}
	out = append(append(out, `,"`...), member...)
	return append(out, `":`...)
}

// sendLast sends the last message, as an event if a stream has begun.
func sendLast(v *requestState, status int, body []byte, failure *fault.Fault) {
	if v.streaming {
		v.call.Pipeline.Event(wire.AppendSSE(nil, "message", body), true, failure)
		return
	}
	v.call.Pipeline.Send(status, "application/json", body, failure)
}

// statusOf returns the HTTP status for an error in the stateless protocol. Other errors get
// 200, because clients abort on a 400 although they could continue.
func statusOf(code int) int {
	switch code {
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeInvalidRequest, mcp.CodeParse, protocolversion.CodeHeader, protocolversion.CodeCapabilities, protocolversion.CodeVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// reject responds with an error of the protocol.
func reject(v *requestState, r *protocolversion.Rejection) { sendErrorStatus(v, r.Status, &r.Error) }

func sendErrorStatus(v *requestState, status int, e *mcp.Error) {
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.record.Code = int64(e.Code)
	raw, err := json.Marshal(e)
	if err != nil { // the upstream's data is not JSON
		raw, _ = json.Marshal(&mcp.Error{Code: e.Code, Message: e.Message}) // only strings
	}
	sendLast(v, status, response(v, "error", raw), fault.Newf(fault.Code("mcp_error"), "", "The request failed with the protocol's error %d", e.Code))
}

// sendError responds with an error, with the status of the client's protocol version.
func sendError(v *requestState, e *mcp.Error) {
	status := http.StatusOK
	if v.req.Kind == protocolversion.Stateless {
		status = statusOf(e.Code)
	}
	sendErrorStatus(v, status, e)
}

func unknownMethod(v *requestState) {
	sendError(v, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "unknown method in this protocol version"})
}

// sendFailure maps an error to a response. Gateway faults keep their status; failures of the
// server become an internal error of the protocol with the trace id.
func sendFailure(v *requestState, err error) {
	var refused *mcp.Error
	var failed *upstream.Failure
	switch {
	case errors.As(err, &refused):
		sendError(v, refused)
	case errors.Is(err, mcp.ErrSignIn):
		signIn(v)
	case errors.As(err, &failed):
		sendUpstreamError(v, failed.Why, failed)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		sendUpstreamError(v, "the server did not respond in time", err)
	default:
		sendFault(v, fault.From(err))
	}
}

// sendUpstreamError responds with an internal error of the protocol.
func sendUpstreamError(v *requestState, why string, err error) {
	slog.Warn("an MCP server failed", "trace_id", v.call.TraceID, "server", v.record.Server, "error", err.Error())
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.record.Code = mcp.CodeInternal
	data, _ := json.Marshal(map[string]string{"trace_id": v.call.TraceID}) // only strings
	raw, _ := json.Marshal(&mcp.Error{Code: mcp.CodeInternal, Message: why, Data: data})
	f := fault.New(fault.InvalidProviderResponse, "", why)
	f.Source = fault.SourceProvider
	status := http.StatusOK
	if v.call.Request.Method != http.MethodPost { // without a request message the status reports the failure
		status = http.StatusBadGateway
	}
	sendLast(v, status, response(v, "error", raw), f)
}

// sendFault responds with a fault of the gateway.
func sendFault(v *requestState, f *fault.Fault) {
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.record.Code = int64(f.Status())
	oauthserver.Challenge(v.call.Pipeline.Header(), v.host.Public, v.call.Request, v.call.Path, f)
	sendLast(v, f.Status(), response(v, "error", AppendError(nil, f, v.call.TraceID)), f)
}

// AppendError appends a fault as a JSON-RPC error. Its code is the HTTP status, which is
// outside the range of the protocol's codes.
func AppendError(dst []byte, f *fault.Fault, trace string) []byte {
	data := map[string]any{"error": f.Code}
	if trace != "" {
		data["trace_id"] = trace
	}
	if f.Field != "" {
		data["field"] = f.Field
	}
	raw, err := json.Marshal(map[string]any{"code": f.Status(), "message": f.Message, "data": data})
	if err != nil {
		return append(dst, `{"code":500,"message":"internal error"}`...)
	}
	return append(dst, raw...)
}

// sendAccepted acknowledges a notification or a response of the client.
func sendAccepted(v *requestState) { v.call.Pipeline.Send(http.StatusAccepted, "", nil, nil) }

// methodNotAllowed returns the fault for an HTTP method that is not supported here.
func methodNotAllowed(v *requestState, methods string) error {
	v.call.Pipeline.Header().Set("Allow", methods)
	return fault.Newf(fault.MethodNotAllowed, "", "This address accepts %s", methods)
}
