package relay

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"gateway/shared/relay/admission"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
)

// RowStage is a stage of a row of a batch that a provider runs.
type RowStage int

// The stages.
const (
	RowPlanned  RowStage = iota // only reports whether its target has guardrails
	RowSent                     // guardrails judge the row
	RowAnswered                 // guardrails judge its response
)

// maxRejection limits the response to a rejected row, in bytes.
const maxRejection = 1 << 20

// RowVerdict is the result of judging a row.
type RowVerdict struct {
	Guarded   bool               // the row's target has guardrails
	Body      []byte             // the row or its response as they changed it; nil: unchanged
	Rejection *response.Recorder // the response to a rejected row; nil: it is not rejected
	Request   string             // id of the record of a rejected row
}

// JudgeRow has the guardrails of a row's target judge the row, or its response, as those of a
// separate request. req is that request. Nothing is sent or counted. A rejected row leaves a
// record, as a request does.
func (m *Mux) JudgeRow(req *http.Request, behalf *admission.InternalCall, stage RowStage, answer []byte) (out RowVerdict) {
	refusal := &response.Recorder{Max: maxRejection}
	rt, id := m.Match(req.Method, req.URL.EscapedPath())
	if rt == nil {
		routes.NotFound(refusal)
		return RowVerdict{Rejection: refusal}
	}
	c := newCall()
	defer func() {
		if v := recover(); v != nil {
			slog.Error("row panicked", "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			out = RowVerdict{Guarded: true, Rejection: &response.Recorder{Status: http.StatusInternalServerError}}
		}
	}()
	c.begin(m.relay, refusal, req, rt, id, behalf)
	err := judgeRow(c, &out, stage, answer)
	if err == nil {
		discard(c)
		return out
	}
	if stage == RowPlanned { // it is rejected when it is judged
		discard(c)
		return RowVerdict{Guarded: true}
	}
	out = RowVerdict{Guarded: out.Guarded, Rejection: refusal, Request: c.req.ULID}
	reject(c, err)
	m.relay.over(c)
	return out
}

// judgeRow resolves the first target of a row's plan, and judges the row.
func judgeRow(c *call, out *RowVerdict, stage RowStage, answer []byte) error {
	if err := c.req.Admit(); err != nil {
		return err
	}
	if err := c.body.Read(); err != nil {
		return err
	}
	if err := c.plan.Resolve(c.relay.sources); err != nil {
		return err
	}
	c.target.ResetDemands()
	leaf, f := c.plan.Traversal.Next(route.Outcome{})
	if f != nil {
		return f
	}
	fresh(c)
	if err := target.Choose(&c.target, leaf); err != nil {
		return err
	}
	if out.Guarded = guardrail.HasGuardrails(leaf, &c.req); !out.Guarded {
		return nil
	}
	switch stage {
	case RowSent:
		if err := guardInput(c.relay, &c.target, &c.guards, leaf); err != nil {
			return err
		}
		out.Body = bytes.Clone(c.guards.Request)
	case RowAnswered:
		asked := requestContent(&c.target)
		asked.Judged = true
		if _, err := c.guards.Input(c.relay.guards, &c.target, leaf, asked, images(c.relay, &c.req)); err != nil || !c.guards.Outputs() {
			return err
		}
		if f := c.guards.Output(answer); f != nil {
			return f
		}
		if c.guards.Changed {
			out.Body = bytes.Clone(c.guards.Response)
		}
	}
	return nil
}
