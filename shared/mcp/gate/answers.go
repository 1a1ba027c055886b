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

// sendResult answers the request.
func sendResult(v *visit, raw json.RawMessage) {
	v.note.Failed = v.note.Method == "tools/call" && failed(raw)
	room := newRoom(len(raw) + len(v.req.ID) + 64)
	defer room.free()
	room.b = append(append(appendOpened(room.b, v.req.ID, "result"), raw...), '}')
	sendLast(v, http.StatusOK, room.b, nil)
}

// room is memory in which an answer is written. Whoever is given the answer must not keep
// it.
type room struct{ b []byte }

var rooms = sync.Pool{New: func() any { return new(room) }}

// maxRoom bounds the memory that the next answer gets, in bytes.
const maxRoom = 64 << 10

func newRoom(size int) *room {
	r := rooms.Get().(*room)
	r.b = slices.Grow(r.b[:0], size)
	return r
}

func (r *room) free() {
	if cap(r.b) <= maxRoom {
		rooms.Put(r)
	}
}

// failed tells whether the result of a tool says that it failed.
func failed(result []byte) bool {
	const member = "isError"
	var said struct {
		IsError bool `json:"isError"`
	}
	return bytes.Contains(result, []byte(member)) && json.Unmarshal(result, &said) == nil && said.IsError
}

// message is an answer to the request with one member.
func message(v *visit, member string, raw []byte) []byte {
	out := make([]byte, 0, len(raw)+len(v.req.ID)+48)
	return append(append(appendOpened(out, v.req.ID, member), raw...), '}')
}

// appendOpened appends the beginning of such an answer. Without an id it has none: the
// protocol knows no null there.
func appendOpened(out []byte, id json.RawMessage, member string) []byte {
	out = append(out, `{"jsonrpc":"2.0"`...)
	if len(id) > 0 {
		out = append(append(out, `,"id":`...), id...)
	}
	out = append(append(out, `,"`...), member...)
	return append(out, `":`...)
}

// sendLast sends the last message: as an event where a stream has begun or the client
// takes nothing else.
func sendLast(v *visit, status int, body []byte, failure *fault.Fault) {
	if v.began {
		v.call.Event(wire.AppendSSE(nil, "message", body), true, failure)
		return
	}
	v.call.Send(status, "application/json", body, failure)
}

// statusOf is the status for an error in the protocol without sessions. Errors that are not
// listed get 200, because clients give up at a 400 though they could go on.
func statusOf(code int) int {
	switch code {
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeInvalidRequest, mcp.CodeParse, protocolversion.CodeHeader, protocolversion.CodeAbilities, protocolversion.CodeVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// refuse answers with an error of the protocol.
func refuse(v *visit, r *protocolversion.Refusal) { refuseAs(v, r.Status, &r.Error) }

func refuseAs(v *visit, status int, e *mcp.Error) {
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.note.Code = int64(e.Code)
	raw, err := json.Marshal(e)
	if err != nil { // data of an upstream that is no JSON
		raw, _ = json.Marshal(&mcp.Error{Code: e.Code, Message: e.Message}) // texts
	}
	sendLast(v, status, message(v, "error", raw), fault.Newf(fault.Code("mcp_error"), "", "The request was answered with the protocol's error %d", e.Code))
}

// wrong answers a request with an error, with the status that the client's era says.
func wrong(v *visit, e *mcp.Error) {
	status := http.StatusOK
	if v.req.Era == protocolversion.Stateless {
		status = statusOf(e.Code)
	}
	refuseAs(v, status, e)
}

func unknownMethod(v *visit) {
	wrong(v, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "the method is not known, or is not of this version of the protocol"})
}

// fail answers with what went wrong: faults of the gateway keep their status, what the
// server behind did is an internal error of the protocol, which names the trace.
func fail(v *visit, err error) {
	var refused *mcp.Error
	var failed *upstream.Failure
	switch {
	case errors.As(err, &refused):
		wrong(v, refused)
	case errors.Is(err, mcp.ErrSignIn):
		signIn(v)
	case errors.As(err, &failed):
		broken(v, failed.Why, failed)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		broken(v, "the server did not answer in time", err)
	default:
		sendFault(v, fault.From(err))
	}
}

// broken answers for a server that did not answer as the protocol says.
func broken(v *visit, why string, err error) {
	slog.Warn("an MCP server failed", "trace_id", v.call.TraceID, "server", v.note.Server, "error", err.Error())
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.note.Code = mcp.CodeInternal
	data, _ := json.Marshal(map[string]string{"trace_id": v.call.TraceID}) // texts
	raw, _ := json.Marshal(&mcp.Error{Code: mcp.CodeInternal, Message: why, Data: data})
	f := fault.New(fault.InvalidProviderResponse, "", why)
	f.Source = fault.SourceProvider
	status := http.StatusOK
	if v.call.Request.Method != http.MethodPost { // where no message waits for an answer the status says it
		status = http.StatusBadGateway
	}
	sendLast(v, status, message(v, "error", raw), f)
}

// sendFault answers with a failure of the gateway's own.
func sendFault(v *visit, f *fault.Fault) {
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.note.Code = int64(f.Status())
	oauthserver.Challenge(v.call.Header(), v.host.Public, v.call.Request, v.call.Path, f)
	sendLast(v, f.Status(), message(v, "error", AppendError(nil, f, v.call.TraceID)), f)
}

// AppendError writes a fault as the error of an answer. Its code is the status of HTTP:
// the protocol's own lie elsewhere.
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

// accepted answers a notification or an answer of the client.
func accepted(v *visit) { v.call.Send(http.StatusAccepted, "", nil, nil) }

// only answers a verb that the address does not take here.
func only(v *visit, methods string) error {
	v.call.Header().Set("Allow", methods)
	return fault.Newf(fault.MethodNotAllowed, "", "This address takes %s", methods)
}
