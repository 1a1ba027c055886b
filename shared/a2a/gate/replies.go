package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"gateway/shared/a2a/wireformat"
	"gateway/shared/fault"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

// reply is a result or an error of the agent.
type reply struct {
	raw []byte // the result
	err *protocolError
}

// parseReply parses a complete response or an event of the agent.
func parseReply(v *requestState, status int, raw []byte, o *outgoing) (*reply, error) {
	mask.Bytes(raw, v.agent.secrets)
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return nil, upstream.Fail(status, "the agent rejected the gateway's credentials with status %d", status)
	}
	if len(bytes.TrimSpace(raw)) == 0 && status/100 == 2 && (v.req.op == opPushDelete || v.req.op.custom) {
		return &reply{raw: []byte("null")}, nil
	}
	if wire.CheckStrict(raw, maxDepth) != nil {
		return nil, malformed(v, status, "is not JSON")
	}
	if v.agent.rest() {
		if status/100 == 2 {
			return &reply{raw: raw}, nil
		}
		return &reply{err: restError(status, raw)}, nil
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Data    any    `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return nil, malformed(v, status, "is not a JSON-RPC message")
	}
	switch {
	case m.Error != nil:
		return &reply{err: &protocolError{code: m.Error.Code, message: m.Error.Message, data: m.Error.Data, status: status}}, nil
	case status/100 != 2:
		return nil, upstream.Fail(status, "the agent responded with status %d", status)
	case m.Result == nil || !bytes.Equal(bytes.TrimSpace(m.ID), bytes.TrimSpace(o.id)):
		return nil, malformed(v, status, "does not belong to the request")
	}
	return &reply{raw: m.Result}, nil
}

// restError parses an error of the HTTP+JSON binding, of either version.
func restError(status int, raw []byte) *protocolError {
	r := &protocolError{code: codeInternal, message: "the agent responded with an error", status: status}
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return r
	}
	if inner, ok := m["error"].(map[string]any); ok {
		m = inner
	}
	if s, ok := m["message"].(string); ok {
		r.message = s
	}
	if code, ok := m["code"].(float64); ok && code < 0 {
		r.code, r.data = int(code), m["data"]
		return r
	}
	if list, ok := m["details"].([]any); ok {
		r.data = list
		for _, one := range list {
			info, _ := one.(map[string]any)
			for code, t := range errorCodes {
				if t.reason == info["reason"] && (code > codeMethod || code == codeParams || t.reason != errorCodes[codeRequest].reason) {
					r.code = code
					return r
				}
			}
		}
	}
	return r
}

func malformed(v *requestState, status int, why string) error {
	return &malformedReply{upstream.Fail(status, "the agent's response %s", why)}
}

// malformedReply is the error of an agent that violates the protocol.
type malformedReply struct{ *upstream.Failure }

func (b *malformedReply) Unwrap() error { return b.Failure }

// clientResult converts a result or an event for the client, after the guardrails have judged
// it. changed reports whether it differs from the agent's. err is the agent's error, if the reply
// is one.
func clientResult(v *requestState, got *reply) (out []byte, changed, last bool, err error) {
	if got.err != nil {
		return nil, false, true, judgeError(v, got.err)
	}
	q, raw := v.req, got.raw
	judged, denied := v.call.Judge(raw)
	if denied {
		return nil, false, true, respondDenied(v)
	}
	changed = !bytes.Equal(judged, raw)
	if q.op.custom {
		return judged, changed, false, nil
	}
	if q.op == opCard {
		out, err := rewriteCard(v, judged)
		return out, true, false, err
	}
	value, err := wireformat.Read(judged)
	if err != nil {
		return nil, false, false, err
	}
	if o, ok := value.(wireformat.Object); !ok && q.op.result != wireformat.Opaque && q.op.result != wireformat.Pushes || q.op.result == wireformat.Event && o == nil {
		return nil, false, false, malformed(v, http.StatusOK, "is not an object")
	}
	same := v.agent.iface.Old == q.old && v.agent.format() == q.format()
	middle := value
	if !same || v.ownership.shared || q.op.streams {
		middle = wireformat.Convert(v.agent.format(), wireformat.V1, q.op.result, value)
	}
	if q.op.streams {
		if err := judgeArtifact(v, middle); err != nil {
			return nil, false, true, err
		}
	}
	if err := recordOwnership(v, q.op.result, middle); err != nil {
		return nil, false, false, err
	}
	last = q.op.streams && isLast(middle)
	if q.op == opList && v.ownership.shared {
		if middle, err = filterTasks(v, middle); err != nil {
			return nil, false, false, err
		}
		same = false
	}
	if same {
		return judged, changed, last, nil
	}
	out, err = json.Marshal(wireformat.Convert(wireformat.V1, q.format(), q.op.result, middle))
	return out, true, last, err
}

// isLast reports whether a 1.0 event is the last of its stream.
func isLast(v any) bool {
	o, _ := v.(wireformat.Object)
	if _, is := o["message"]; is {
		return true
	}
	for _, name := range []string{"statusUpdate", "task"} {
		if of, ok := o[name].(wireformat.Object); ok {
			status, _ := of["status"].(wireformat.Object)
			return wireformat.Final(textOf(status["state"]))
		}
	}
	return false
}

// sendReply responds with a complete response of the agent.
func sendReply(v *requestState, status int, raw []byte, o *outgoing) error {
	got, err := parseReply(v, status, raw, o)
	v.call.RecordSizes(len(v.req.raw), len(raw))
	if err != nil {
		return err
	}
	out, changed, _, err := clientResult(v, got)
	if err != nil {
		return err
	}
	if v.agent.verbatim && !changed {
		v.call.Send(status, "application/json", raw, nil)
		return nil
	}
	if v.req.op == opPushDelete && v.req.rest {
		v.call.Send(http.StatusNoContent, "", nil, nil)
		return nil
	}
	v.call.Send(http.StatusOK, "application/json", envelope(v, out), nil)
	return nil
}

// envelope wraps a result for the client's binding.
func envelope(v *requestState, value []byte) []byte {
	if v.req.rest {
		return value
	}
	return jsonMessage(v, "result", value)
}

// jsonMessage returns a JSON-RPC response with a result or an error.
func jsonMessage(v *requestState, member string, raw []byte) []byte {
	id := v.req.id
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	out := append(make([]byte, 0, len(raw)+len(id)+48), `{"jsonrpc":"2.0","id":`...)
	out = append(append(append(out, id...), `,"`...), member...)
	return append(append(append(out, `":`...), raw...), '}')
}

// sendFailure maps an error to a response. Gateway faults keep their status; failures of the
// agent become protocol errors with the trace id.
func sendFailure(v *requestState, err error) {
	var refused *protocolError
	var bad *malformedReply
	var failed *upstream.Failure
	switch {
	case errors.As(err, &refused):
		sendError(v, refused, nil)
	case errors.As(err, &bad):
		sendAgentError(v, codeBadAgent, bad.Why, err)
	case errors.As(err, &failed):
		sendAgentError(v, codeInternal, failed.Why, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		sendAgentError(v, codeInternal, "the agent did not respond in time", err)
	default:
		f := fault.From(err)
		sendError(v, fromFault(f, v.call.TraceID), f)
	}
}

// sendAgentError responds with a failure of the agent.
func sendAgentError(v *requestState, code int, why string, err error) {
	slog.Warn("an agent failed", "trace_id", v.call.TraceID, "server", v.record.Server, "error", err.Error())
	f := fault.New(fault.InvalidProviderResponse, "", why)
	f.Source = fault.SourceProvider
	sendError(v, &protocolError{code: code, message: why, info: map[string]string{"trace_id": v.call.TraceID}}, f)
}

// sendError responds with an error. f is the gateway's fault, or nil for an error of the
// protocol.
func sendError(v *requestState, r *protocolError, f *fault.Fault) {
	v.record.Code = int64(r.code)
	status := http.StatusOK
	if f == nil {
		f = fault.Newf(fault.Code("a2a_error"), "", "The request failed with the protocol's error %d", r.code)
	} else if r.code > 0 {
		status = f.Status()
	}
	q := v.req
	if q.rest {
		if status == http.StatusOK {
			status = r.httpStatus()
		}
		body := r.encodeREST(q.old)
		if v.streaming {
			v.call.Event(wire.AppendSSE(nil, "error", body), true, f)
			return
		}
		v.call.Send(status, "application/json", body, f)
		return
	}
	body := jsonMessage(v, "error", r.encodeRPC(q.old))
	if v.streaming {
		v.call.Event(wire.AppendSSE(nil, "", body), true, f)
		return
	}
	v.call.Send(status, "application/json", body, f)
}

// operation is an operation of the protocol.
type operation struct {
	name, oldName   string // methods of 1.0 and of 0.3; empty if the version has none
	params, result  wireformat.Kind
	streams, custom bool
	taskField       string // field of the 1.0 params with the task id; may be empty
	sendsMessage    bool   // it sends a message to the agent
}

var operations = []*operation{
	{name: "SendMessage", oldName: "message/send", params: wireformat.Send, result: wireformat.Event, sendsMessage: true},
	{name: "SendStreamingMessage", oldName: "message/stream", params: wireformat.Send, result: wireformat.Event, sendsMessage: true, streams: true},
	opGet, opList, opCancel, opSubscribe, opPushSet, opPushGet, opPushList, opPushDelete, opCard,
}

var (
	opSend, opStream = operations[0], operations[1]

	opGet        = &operation{name: "GetTask", oldName: "tasks/get", result: wireformat.Task, taskField: "id"}
	opList       = &operation{name: "ListTasks", result: wireformat.Tasks}
	opCancel     = &operation{name: "CancelTask", oldName: "tasks/cancel", result: wireformat.Task, taskField: "id"}
	opSubscribe  = &operation{name: "SubscribeToTask", oldName: "tasks/resubscribe", result: wireformat.Event, taskField: "id", streams: true}
	opPushSet    = &operation{name: "CreateTaskPushNotificationConfig", oldName: "tasks/pushNotificationConfig/set", params: wireformat.PushSet, result: wireformat.PushConfig, taskField: "taskId"}
	opPushGet    = &operation{name: "GetTaskPushNotificationConfig", oldName: "tasks/pushNotificationConfig/get", params: wireformat.PushRef, result: wireformat.PushConfig, taskField: "taskId"}
	opPushList   = &operation{name: "ListTaskPushNotificationConfigs", oldName: "tasks/pushNotificationConfig/list", params: wireformat.PushList, result: wireformat.Pushes, taskField: "taskId"}
	opPushDelete = &operation{name: "DeleteTaskPushNotificationConfig", oldName: "tasks/pushNotificationConfig/delete", params: wireformat.PushRef, taskField: "taskId"}
	opCard       = &operation{name: "GetExtendedAgentCard", oldName: "agent/getAuthenticatedExtendedCard"}
)

// method returns the method in a version of the protocol.
func (op *operation) method(old bool) string {
	if old && !op.custom {
		return op.oldName
	}
	return op.name
}

// operationByMethod returns the operation of a method. other is set if only the other version
// has the method.
func operationByMethod(method string, old bool) (op *operation, other bool) {
	for _, op := range operations {
		switch {
		case method == op.method(old) && method != "":
			return op, false
		case method == op.method(!old) && method != "":
			return nil, true
		}
	}
	return &operation{name: method, custom: true}, false
}

// operationByPath returns the operation of an HTTP method and a split path in the HTTP+JSON
// binding, and the params in the path.
func operationByPath(method string, path []string) (op *operation, named map[string]string) {
	last := path[len(path)-1]
	post, get := method == http.MethodPost, method == http.MethodGet
	one := func(op *operation, ok bool, pairs ...string) (*operation, map[string]string) {
		if !ok {
			return nil, nil
		}
		named := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				return nil, nil
			}
			named[pairs[i]] = pairs[i+1]
		}
		return op, named
	}
	switch {
	case len(path) == 1 && last == "message:send":
		return one(opSend, post)
	case len(path) == 1 && last == "message:stream":
		return one(opStream, post)
	case len(path) == 1 && (last == "extendedAgentCard" || last == "card"):
		return one(opCard, get)
	case path[0] != "tasks":
		return nil, nil
	case len(path) == 1:
		return one(opList, get)
	case len(path) == 2:
		if id, ok := strings.CutSuffix(last, ":cancel"); ok {
			return one(opCancel, post, "id", id)
		}
		if id, ok := strings.CutSuffix(last, ":subscribe"); ok {
			return one(opSubscribe, post || get, "id", id)
		}
		return one(opGet, get, "id", last)
	case path[2] != "pushNotificationConfigs":
		return nil, nil
	case len(path) == 3 && post:
		return one(opPushSet, true, "taskId", path[1])
	case len(path) == 3:
		return one(opPushList, get, "taskId", path[1])
	case len(path) == 4 && method == http.MethodDelete:
		return one(opPushDelete, true, "taskId", path[1], "id", last)
	case len(path) == 4:
		return one(opPushGet, get, "taskId", path[1], "id", last)
	}
	return nil, nil
}
