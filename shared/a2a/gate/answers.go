package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"gateway/shared/a2a/wireformat"
	"gateway/shared/fault"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

// reply is an answer of the agent: a value, or an error.
type reply struct {
	raw     []byte // the value
	refused *refusal
}

// hear reads a whole answer or an event of the agent.
func hear(v *visit, status int, raw []byte, o *outgoing) (*reply, error) {
	mask.Bytes(raw, v.up.secrets)
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return nil, upstream.Fail(status, "the agent refuses the gateway's credentials, with status %d", status)
	}
	if len(bytes.TrimSpace(raw)) == 0 && status/100 == 2 && (v.req.op == opPushDelete || v.req.op.custom) {
		return &reply{raw: []byte("null")}, nil
	}
	if wire.CheckStrict(raw, maxDepth) != nil {
		return nil, garbage(v, status, "is not JSON")
	}
	if v.up.rest() {
		if status/100 == 2 {
			return &reply{raw: raw}, nil
		}
		return &reply{refused: restError(status, raw)}, nil
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
		return nil, garbage(v, status, "is not a JSON-RPC message")
	}
	switch {
	case m.Error != nil:
		return &reply{refused: &refusal{code: m.Error.Code, message: m.Error.Message, data: m.Error.Data, status: status}}, nil
	case status/100 != 2:
		return nil, upstream.Fail(status, "the agent answers with status %d", status)
	case m.Result == nil || !bytes.Equal(bytes.TrimSpace(m.ID), bytes.TrimSpace(o.id)):
		return nil, garbage(v, status, "is not that to the request")
	}
	return &reply{raw: m.Result}, nil
}

// restError reads an error of HTTP+JSON, of either version.
func restError(status int, raw []byte) *refusal {
	r := &refusal{code: codeInternal, message: "the agent answers with an error", status: status}
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
			for code, t := range told {
				if t.reason == info["reason"] && (code > codeMethod || code == codeParams || t.reason != told[codeRequest].reason) {
					r.code = code
					return r
				}
			}
		}
	}
	return r
}

func garbage(v *visit, status int, why string) error {
	return &badAgent{upstream.Fail(status, "what the agent answers %s", why)}
}

// badAgent is an agent that does not speak the protocol.
type badAgent struct{ *upstream.Failure }

func (b *badAgent) Unwrap() error { return b.Failure }

// clientResult is what the client gets for an answer or an event. changed tells that it differs
// from what the agent said.
func clientResult(v *visit, raw []byte) (out []byte, changed, last bool, err error) {
	q := v.req
	judged, denied := v.call.Judge(raw)
	if denied {
		return nil, false, true, answerDenied(v)
	}
	changed = !bytes.Equal(judged, raw)
	if q.op.custom {
		return judged, changed, false, nil
	}
	if q.op == opCard {
		out, err := rewrite(v, judged)
		return out, true, false, err
	}
	value, err := wireformat.Read(judged)
	if err != nil {
		return nil, false, false, err
	}
	if o, ok := value.(wireformat.Object); !ok && q.op.result != wireformat.Nothing && q.op.result != wireformat.Pushes || q.op.result == wireformat.Event && o == nil {
		return nil, false, false, garbage(v, http.StatusOK, "is no object")
	}
	same := v.up.at.Old == q.old && v.up.shape() == q.shape()
	middle := value
	if !same || v.own.shared || q.op.streams {
		middle = wireformat.Between(v.up.shape(), wireformat.V1, q.op.result, value)
	}
	if err := keep(v, q.op.result, middle); err != nil {
		return nil, false, false, err
	}
	last = q.op.streams && ends(middle)
	if q.op == opList && v.own.shared {
		if middle, err = divide(v, middle); err != nil {
			return nil, false, false, err
		}
		same = false
	}
	if same {
		return judged, changed, last, nil
	}
	out, err = json.Marshal(wireformat.Between(wireformat.V1, q.shape(), q.op.result, middle))
	return out, true, last, err
}

// ends tells whether an event of 1.0 is the last of its stream.
func ends(v any) bool {
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

// answer answers with a whole answer of the agent.
func answer(v *visit, status int, raw []byte, o *outgoing) error {
	got, err := hear(v, status, raw, o)
	v.call.Used(len(v.req.raw), len(raw))
	if err != nil {
		return err
	}
	if got.refused != nil {
		return got.refused
	}
	out, changed, _, err := clientResult(v, got.raw)
	if err != nil {
		return err
	}
	if v.up.same && !changed {
		v.call.Send(status, "application/json", raw, nil)
		return nil
	}
	if v.req.op == opPushDelete && v.req.rest {
		v.call.Send(http.StatusNoContent, "", nil, nil)
		return nil
	}
	v.call.Send(http.StatusOK, "application/json", enveloped(v, out), nil)
	return nil
}

// enveloped is a value in the form that the client's binding wants.
func enveloped(v *visit, value []byte) []byte {
	if v.req.rest {
		return value
	}
	return jsonMessage(v, "result", value)
}

// jsonMessage is a JSON-RPC answer with one member.
func jsonMessage(v *visit, member string, raw []byte) []byte {
	id := v.req.id
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	out := append(make([]byte, 0, len(raw)+len(id)+48), `{"jsonrpc":"2.0","id":`...)
	out = append(append(append(out, id...), `,"`...), member...)
	return append(append(append(out, `":`...), raw...), '}')
}

// fail answers with what went wrong. Faults of the gateway keep their status; failures of
// the agent become errors of the protocol, which name the trace.
func fail(v *visit, err error) {
	var refused *refusal
	var bad *badAgent
	var failed *upstream.Failure
	switch {
	case errors.As(err, &refused):
		sendError(v, refused, nil)
	case errors.As(err, &bad):
		broken(v, codeBadAgent, bad.Why, err)
	case errors.As(err, &failed):
		broken(v, codeInternal, failed.Why, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		broken(v, codeInternal, "the agent did not answer in time", err)
	default:
		f := fault.From(err)
		sendError(v, ofFault(f, v.call.TraceID), f)
	}
}

// broken answers for an agent whose answer breaks the protocol.
func broken(v *visit, code int, why string, err error) {
	slog.Warn("an agent failed", "trace_id", v.call.TraceID, "server", v.note.Server, "error", err.Error())
	f := fault.New(fault.InvalidProviderResponse, "", why)
	f.Source = fault.SourceProvider
	sendError(v, &refusal{code: code, message: why, info: map[string]string{"trace_id": v.call.TraceID}}, f)
}

// sendError answers with an error. f is the gateway's own fault; nil for an error of the
// protocol.
func sendError(v *visit, r *refusal, f *fault.Fault) {
	v.note.Code = int64(r.code)
	status := http.StatusOK
	if f == nil {
		f = fault.Newf(fault.Code("a2a_error"), "", "The request was answered with the protocol's error %d", r.code)
	} else if r.code > 0 {
		status = f.Status()
	}
	q := v.req
	if q.rest {
		if status == http.StatusOK {
			status = r.http()
		}
		body := r.rest(q.old)
		if v.began {
			v.call.Event(wire.AppendSSE(nil, "error", body), true, f)
			return
		}
		v.call.Send(status, "application/json", body, f)
		return
	}
	body := jsonMessage(v, "error", r.rpc(q.old))
	if v.began {
		v.call.Event(wire.AppendSSE(nil, "", body), true, f)
		return
	}
	v.call.Send(status, "application/json", body, f)
}
