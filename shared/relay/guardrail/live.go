package guardrail

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/guard/window"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/target"
	"gateway/shared/route"
)

// Live holds the guardrails of a realtime session. They are reloaded while it runs. It is safe
// for concurrent use.
type Live struct {
	means           *Deps
	leaf            *route.Leaf
	kind            string
	call            chain.Call // input of the hooks, without the text itself
	target, request string
	now             atomic.Pointer[SessionGuardrails]

	mu    sync.Mutex
	notes []HookEntry
	aside aside
}

// SessionGuardrails is a snapshot of a session's guardrails, which judge its content in the Responses format:
// as instructions and input, or as output. It is immutable.
type SessionGuardrails struct {
	live            *Live
	secrets         judge.Secrets
	in, hold, after chain.Hooks
	beside, behind  chain.Hooks // asynchronous hooks
}

// SessionVerdict is the guardrails' result for session content.
type SessionVerdict struct {
	Results        chain.Results
	Denied, Failed bool
	Body           []byte // replacement of the content; nil: it is unchanged

	unread *fault.Fault // reason of the denial: a part cannot be read
}

// Denial returns the error for denied content.
func (w *SessionVerdict) Denial() *fault.Fault {
	if w.unread != nil {
		return w.unread
	}
	return fault.New(fault.GuardrailDenied, "", chain.Denial(slices.Concat(w.Results.Before, w.Results.After)))
}

// PrepareSession prepares the guardrails of a session of a target. fetch gets images for them.
func (s *State) PrepareSession(m *Deps, t *target.Target, leaf *route.Leaf, fetch judge.Fetch) (*Live, error) {
	call := m.callOf(t, true, nil, fetch, nil).Clone()
	l := &Live{means: m, leaf: leaf, kind: t.Req.Route.Endpoint, call: call, target: leaf.Path, request: t.Req.ULID}
	if err := l.Renew(t.Req.Base, &t.Req.Caller); err != nil {
		return nil, err
	}
	s.live = l
	return l, nil
}

// callOf returns the input of hooks for a target: for a request with a body, or for the content of
// a session.
func (m *Deps) callOf(t *target.Target, session bool, body []byte, fetch judge.Fetch, budget *guard.Budget) chain.Call {
	id := ""
	if p := t.Choice.Target.Provider; p != nil {
		id = p.ID
	}
	return chain.Call{
		Kind: t.Req.Route.Endpoint, Provider: id, Endpoints: t.Body.Endpoints(), TraceID: t.Req.Headers.TraceID, Model: t.Choice.Model, Stream: t.Stream || session, Metadata: maps.Clone(t.Body.Metadata),
		Headers: t.Req.HeadersForProvider(), Request: body, Passed: len(body) == 0 && !session, Client: m.client, Public: m.public, Fetch: fetch, Secrets: m.secrets(&t.Req.Caller), Now: m.now, Budget: budget,
	}
}

// Renew reloads the guardrails that apply to the session's caller, as re-read by the caller of
// Renew. If they cannot be read, the previous ones remain in force, and the error states the
// reason.
func (l *Live) Renew(ctx context.Context, who *admission.Caller) error {
	of, err := l.means.gather(ctx, who, l.leaf, l.kind)
	if err != nil {
		return err
	}
	beside, in := of.in.SplitAsync(l.kind)
	var hold, after chain.Hooks
	for _, h := range of.out {
		if h.Streams() == guard.StreamAfter {
			after = append(after, h)
		} else {
			hold = append(hold, h)
		}
	}
	l.now.Store(&SessionGuardrails{live: l, secrets: l.means.secrets(who), in: in, hold: hold, after: after, beside: beside, behind: of.outBeside})
	return nil
}

// Live returns the guardrails of the session; nil if it has none.
func (s *State) Live() *Live { return s.live }

// Now returns the current guardrails.
func (l *Live) Now() *SessionGuardrails { return l.now.Load() }

// JudgesInput reports whether a hook judges client input.
func (k *SessionGuardrails) JudgesInput() bool { return len(k.in)+len(k.beside) > 0 }

// BuffersResponses reports whether a response is judged before it is sent.
func (k *SessionGuardrails) BuffersResponses() bool { return len(k.hold) > 0 }

// JudgesResponses reports whether a hook judges responses at all.
func (k *SessionGuardrails) JudgesResponses() bool { return len(k.hold)+len(k.after)+len(k.behind) > 0 }

// call returns the input of hooks, with the secrets of the present caller.
func (k *SessionGuardrails) call(body []byte) chain.Call {
	return k.live.call.WithSecrets(k.secrets).WithRequest(body)
}

// JudgeInput judges client input.
func (k *SessionGuardrails) JudgeInput(ctx context.Context, body []byte) SessionVerdict {
	exempts := func(names []string) bool { return exempt(names, k.live.kind, "") }
	if f := unreadBody(k.in, exempts, k.live.kind, body, false, "all of this event"); f != nil {
		return SessionVerdict{Denied: true, unread: f}
	}
	c := k.call(body)
	k.apart(ctx, k.beside, guard.Before, c)
	o := k.in.Run(ctx, guard.Before, &c)
	if o.Denied {
		o = untold(o)
	}
	k.live.note(o.Results, guard.Before)
	return SessionVerdict{Results: chain.Results{Before: o.Results}, Denied: o.Denied, Failed: o.Failed, Body: o.Body}
}

// JudgeBuffered judges a response before any of it is sent. about are the instructions of the session.
func (k *SessionGuardrails) JudgeBuffered(ctx context.Context, about, answer []byte) SessionVerdict {
	o := untold(k.run(ctx, k.hold, about, answer))
	return SessionVerdict{Results: chain.Results{After: o.Results}, Denied: o.Denied, Failed: o.Failed, Body: o.Body}
}

// JudgeSent judges a response after it was sent: it only reports.
func (k *SessionGuardrails) JudgeSent(ctx context.Context, about, answer []byte) SessionVerdict {
	k.apart(ctx, k.behind, guard.After, k.call(about).WithResponse(answer))
	o := k.run(ctx, k.after, about, answer)
	return SessionVerdict{Results: chain.Results{After: o.Results}, Failed: o.Failed || o.Denied}
}

func (k *SessionGuardrails) run(ctx context.Context, hooks chain.Hooks, about, answer []byte) chain.Outcome {
	c := k.call(about).WithResponse(answer)
	o := hooks.Run(ctx, guard.After, &c)
	k.live.note(o.Results, guard.After)
	return o
}

func (k *SessionGuardrails) apart(ctx context.Context, hooks chain.Hooks, phase guard.Phase, c chain.Call) {
	if l := k.live; len(hooks) > 0 {
		l.aside.run(l.means, ctx, hooks, phase, c, l.target, l.request)
	}
}

// maxNotes limits the number of verdicts that wait for a record. Above it, the oldest are
// dropped.
const maxNotes = 256

func (l *Live) note(results []chain.Result, phase guard.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range results {
		l.notes = append(l.notes, note(&results[i], phase, l.target))
	}
	if over := len(l.notes) - maxNotes; over > 0 {
		l.notes = append(l.notes[:0], l.notes[over:]...)
	}
}

// take returns the verdicts since the last call.
func (l *Live) take() (notes []HookEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	notes, l.notes = l.notes, nil
	return notes
}

// JudgeCall has the guardrails of a workspace that apply to all requests judge a call without a
// model. kind is that of its texts, args is the input of the call. changed is the input as they
// changed it; nil: unchanged. denied reports that one of them denies the call.
func (s *State) JudgeCall(m *Deps, q *admission.Request, kind, name string, metadata map[string]string, args []byte) (changed []byte, denied bool, err error) {
	input, output := q.WS.Guardrails(q.Org)
	if len(input)+len(output) == 0 {
		return nil, false, nil
	}
	s.Enabled, s.means, s.request, s.ctx = true, m, q.ULID, q.Ctx
	in, err := m.hooks(q.Ctx, &q.Caller, nil, input)
	if err != nil {
		return nil, false, err
	}
	out, err := m.hooks(q.Ctx, &q.Caller, nil, output)
	if err != nil {
		return nil, false, err
	}
	outBeside, out := out.SplitAsync(kind)
	s.hooks = found{out: out, outBeside: outBeside}
	s.call = m.withoutModel(q, &q.Caller, kind, name, s.time())
	s.call.Metadata, s.call.Request = maps.Clone(metadata), args
	s.exempts = func(names []string) bool { return exempt(names, kind, q.Req.URL.EscapedPath()) }
	beside, in := in.SplitAsync(kind)
	if f := unreadBody(in, s.exempts, kind, args, false, "all of this call"); f != nil {
		return nil, false, f
	}
	if len(beside) > 0 {
		runAside(s, beside, guard.Before)
	}
	o := in.Run(admission.ClientContext(q), guard.Before, &s.call)
	s.Judged.complete(in)
	s.input(&o, o.Body)
	if o.Denied {
		s.Verdict = Verdict{denied: true}
		return nil, true, nil
	}
	return o.Body, false, nil
}

// JudgeResult has them judge the result of the call, and restores masked values.
func (s *State) JudgeResult(result []byte) (out []byte, denied bool) {
	if !s.Enabled {
		return result, false
	}
	if s.Outputs() {
		if f := s.Output(result); f != nil {
			return nil, true
		}
		result = s.Response
	}
	return s.Masked.RestoreBody(result), false
}

// Message has the guardrails of a workspace that apply to all requests judge a message beside a
// call and its result: as input if phase is guard.Before, as output otherwise. who is the caller
// as re-read now. Each message has its own time budget, because a connection may last for hours.
// Asynchronous guardrails judge calls and results only.
func (s *State) Message(m *Deps, q *admission.Request, who *admission.Caller, phase guard.Phase, name string, message []byte) (out []byte, denied bool, err error) {
	names, output := who.WS.Guardrails(who.Org)
	if phase == guard.After {
		names = output
	}
	kind := q.Route.Endpoint
	if len(names) == 0 || content.Empty(kind, message) {
		return message, false, nil
	}
	hooks, err := m.hooks(q.Ctx, who, nil, names)
	if err != nil {
		return nil, false, err
	}
	if _, hooks = hooks.SplitAsync(kind); len(hooks) == 0 {
		return message, false, nil
	}
	exempts := func(names []string) bool { return exempt(names, kind, q.Req.URL.EscapedPath()) }
	if unreadBody(hooks, exempts, kind, message, phase == guard.After, "all of a message") != nil {
		return nil, true, nil
	}
	c := m.withoutModel(q, who, kind, name, guard.NewBudget())
	if phase == guard.Before {
		c.Request = message
	} else {
		c = c.WithResponse(message)
	}
	o := hooks.Run(q.Ctx, phase, &c)
	if len(s.Entries.list) < maxNotes {
		s.Entries.add(o.Results, phase, "")
	}
	switch {
	case o.Denied:
		return nil, true, nil
	case o.Body != nil:
		message = o.Body
	}
	if phase == guard.After {
		message = s.Masked.RestoreBody(message)
	}
	return message, false, nil
}

// withoutModel returns the input of hooks for a call of a kind that calls no model.
func (m *Deps) withoutModel(q *admission.Request, who *admission.Caller, kind, name string, budget *guard.Budget) chain.Call {
	return chain.Call{
		Kind: kind, TraceID: q.Headers.TraceID, Model: name, Headers: q.HeadersForProvider(),
		Client: m.client, Public: m.public, Secrets: m.secrets(who), Now: m.now, Budget: budget,
	}
}

// MaskedValues are values that guardrails masked in a request, which are restored in its response.
type MaskedValues struct{ values mask.Restorer }

func (t *MaskedValues) add(values map[string]string) {
	if len(values) > 0 {
		t.values.Add(values)
	}
}

// Any reports whether a value was masked.
func (t *MaskedValues) Any() bool { return !t.values.Empty() }

// RestoreBody returns a response in which the request's values replace their tokens.
func (t *MaskedValues) RestoreBody(answer []byte) []byte {
	if !t.Any() {
		return answer
	}
	return t.values.JSON(answer)
}

// MaskBody returns a response with the request's values masked again, for logs.
func (t *MaskedValues) MaskBody(answer []byte) []byte { return t.values.Mask(answer) }

// Restore restores values of the request in a complete response that is sent as a stream.
func (t *MaskedValues) Restore(r *chat.Response) {
	if !t.Any() {
		return
	}
	for i := range r.Choices {
		parts := r.Choices[i].Parts
		for j := range parts {
			parts[j].Change(t.values.Text, t.values.JSON)
		}
	}
}

// Writer returns a writer of responses that restores values of the request.
func (t *MaskedValues) Writer(to chat.ResponseWriter) chat.ResponseWriter {
	if !t.Any() {
		return to
	}
	return window.Restoring(to, &t.values)
}
