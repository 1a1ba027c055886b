package guardrail

import (
	"maps"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/relay/admission"
)

// Around has the guardrails of a workspace that apply to all requests judge a call without a
// model. kind is that of its texts, args is the input of the call. changed is the input as they
// changed it; nil: unchanged. denied reports that one of them denies the call.
func (s *State) Around(m *Means, q *admission.Request, kind, name string, metadata map[string]string, args []byte) (changed []byte, denied bool, err error) {
	input, output := q.WS.Guardrails(q.Org)
	if len(input)+len(output) == 0 {
		return nil, false, nil
	}
	s.On, s.means, s.request, s.ctx = true, m, q.ULID, q.Ctx
	in, err := m.hooks(q.Ctx, &q.Caller, nil, input)
	if err != nil {
		return nil, false, err
	}
	out, err := m.hooks(q.Ctx, &q.Caller, nil, output)
	if err != nil {
		return nil, false, err
	}
	s.hooks.outBeside, s.hooks.out = out.Apart(kind)
	s.call = chain.Call{
		Kind: kind, TraceID: q.Ask.TraceID, Model: name, Metadata: maps.Clone(metadata),
		Headers: q.HeadersForProvider(), Request: args, Client: m.client, Public: m.public, Secrets: m.secrets(&q.Caller), Now: m.now,
		Budget: s.time(),
	}
	s.exempts = func(names []string) bool { return exempt(names, kind, q.Req.URL.EscapedPath()) }
	beside, in := in.Apart(kind)
	if f := unreadBody(in, s.exempts, kind, args, false, "all of this call"); f != nil {
		return nil, false, f
	}
	if len(beside) > 0 {
		runAside(s, beside, guard.Before)
	}
	o := in.Run(admission.ClientContext(q), guard.Before, &s.call)
	s.Results.Before = o.Results
	if o.Body != nil {
		s.Sent, s.call.Request = o.Body, o.Body
	}
	s.Notes.add(o.Results, guard.Before, s.target)
	s.Taken.add(o.Restore)
	if o.Denied {
		s.Verdict.denied = true
		return nil, true, nil
	}
	return o.Body, false, nil
}

// JudgeResult has them judge the result of the call, and restores masked values.
func (s *State) JudgeResult(result []byte) (out []byte, denied bool) {
	if !s.On {
		return result, false
	}
	if s.Outputs() {
		if f := s.Output(result); f != nil {
			return nil, true
		}
		result = s.Answer
	}
	return s.Taken.Restored(result), false
}
