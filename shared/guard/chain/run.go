package chain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
	"gateway/shared/wire"
)

// Call is the input of a target's hooks.
type Call struct {
	Kind, Provider, Model, TraceID string
	Endpoints                      []string // request types that a passed-through path reaches
	Format                         string   // format of the bodies, if it differs from Kind
	Stream                         bool
	Passed                         bool // the body is passed through unread: only request types are judged
	Metadata                       map[string]string
	Headers                        http.Header
	Request                        []byte
	Response                       []byte // in the client's format; nil before the response
	Status                         int
	Client, Public                 *http.Client
	Fetch                          judge.Fetch
	Secrets                        judge.Secrets
	Now                            func() time.Time
	// Budget is the remaining time of local checks. If nil, the budget of the context or a new
	// one is used.
	Budget *guard.Budget
}

// WithRequest returns the input with another request body.
func (c Call) WithRequest(body []byte) Call {
	c.Request = body
	return c
}

// WithResponse returns the input with a successful response.
func (c Call) WithResponse(body []byte) Call {
	c.Response, c.Status = body, http.StatusOK
	return c
}

// WithModel returns the input for another model or tool.
func (c Call) WithModel(name string) Call {
	c.Model = name
	return c
}

// WithSecrets returns the input with the secrets of another caller.
func (c Call) WithSecrets(secrets judge.Secrets) Call {
	c.Secrets = secrets
	return c
}

// ForResponses returns the input for output hooks. A response is judged whether or not its
// request had a body.
func (c Call) ForResponses(kind string, request []byte) Call {
	c.Kind, c.Request, c.Passed = kind, request, false
	return c
}

// WithPart returns the input with a part of a stream, in the format of a completion.
func (c Call) WithPart(part []byte) Call {
	c = c.WithResponse(part)
	c.Format = "complete"
	return c
}

// Clone returns a copy that shares no bytes of the header and the bodies.
func (c Call) Clone() Call {
	c.Headers = c.Headers.Clone()
	c.Request, c.Response = bytes.Clone(c.Request), bytes.Clone(c.Response)
	return c
}

// Outcome is the combined result of hooks.
type Outcome struct {
	Results []Result
	Failed  bool   // a hook that does not deny failed
	Denied  bool   // a hook that denies failed
	Soft    bool   // the denial is sent as a response
	Body    []byte // the changed body, or nil
	Headers http.Header
	Restore map[string]string
}

// Hooks are the hooks of one phase of a target, in the order of their results.
type Hooks []*Hook

// SplitAsync separates asynchronous hooks from the others. Asynchronous mutators have nothing to
// change and do not run; nor do mutators of embeddings.
func (hs Hooks) SplitAsync(kind string) (beside, in Hooks) {
	for _, h := range hs {
		switch {
		case h.Mutator && (h.Async || kind == "embed"):
		case h.Async:
			beside = append(beside, h)
		default:
			in = append(in, h)
		}
	}
	return beside, in
}

// Distinct removes hooks that are equivalent to an earlier one.
func (hs Hooks) Distinct() Hooks {
	seen, out := map[[sha256.Size]byte]bool{}, make(Hooks, 0, len(hs))
	for _, h := range hs {
		if !seen[h.print] {
			seen[h.print] = true
			out = append(out, h)
		}
	}
	return out
}

// Without returns the hooks that are equivalent to none of the others.
func (hs Hooks) Without(others Hooks) Hooks {
	if len(others) == 0 {
		return hs
	}
	var out Hooks
	for _, h := range hs {
		if !slices.ContainsFunc(others, func(o *Hook) bool { return o.print == h.print }) {
			out = append(out, h)
		}
	}
	return out
}

// Local reports whether no hook calls another service.
func (hs Hooks) Local() bool {
	for _, h := range hs {
		if !h.local {
			return false
		}
	}
	return true
}

// LocalOnly returns the hooks with only those checks that call no other service. It omits hooks
// without such checks.
func (hs Hooks) LocalOnly() Hooks {
	out := make(Hooks, 0, len(hs))
	for _, h := range hs {
		own := *h
		own.local, own.checks = true, nil
		for _, c := range h.checks {
			if c.local {
				own.checks = append(own.checks, c)
			}
		}
		if len(own.checks) > 0 || h.local {
			out = append(out, &own)
		}
	}
	return out
}

// Print returns a fingerprint that differs for hooks that judge or change differently; empty if
// there are none.
func (hs Hooks) Print() string {
	if len(hs) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, h := range hs {
		sum.Write(h.print[:])
	}
	return string(sum.Sum(nil))
}

// Names returns the ids of the hooks.
func (hs Hooks) Names() []string {
	out := []string{}
	for _, h := range hs {
		out = append(out, h.ID)
	}
	return out
}

// Run runs the hooks concurrently on the same body. If several change it, each later one runs
// again on the result of the earlier ones, so that no hook restores what another removed; its
// verdict is still that on the original body. The results do not contain what the hooks
// removed.
func (hs Hooks) Run(ctx context.Context, phase guard.Phase, c *Call) Outcome {
	budget := c.Budget
	if budget == nil && len(hs) > 0 {
		budget = guard.BudgetOf(ctx)
	}
	done := make([]hookRun, len(hs))
	var wait sync.WaitGroup
	for i, h := range hs {
		if h.local || len(hs) == 1 {
			continue
		}
		wait.Go(func() { done[i] = h.run(ctx, phase, c, budget) })
	}
	for i, h := range hs {
		if h.local || len(hs) == 1 {
			done[i] = h.run(ctx, phase, c, budget)
		}
	}
	wait.Wait()
	out := Outcome{Results: make([]Result, 0, len(hs))}
	for i, h := range hs {
		r := &done[i]
		if r.skipped {
			continue
		}
		if r.body != nil && out.Body != nil {
			again := *c
			again.with(phase, out.Body)
			r.repeated(h.run(ctx, phase, &again, budget))
		}
		out.take(h, r)
	}
	if out.Body != nil {
		redactQuotes(out.Results, c.of(phase), out.Body)
	}
	return out
}

// repeated takes the changes of a second run. A hook that failed on the original body stays
// failed.
func (r *hookRun) repeated(again hookRun) {
	if r.Verdict {
		r.Result, r.soft = again.Result, again.soft
	}
	r.body, r.headers, r.restore = again.body, again.headers, again.restore
}

func (o *Outcome) take(h *Hook, r *hookRun) {
	o.Results = append(o.Results, r.Result)
	if r.body != nil {
		o.Body = r.body
	}
	for name, values := range r.headers {
		if o.Headers == nil {
			o.Headers = http.Header{}
		}
		o.Headers[name] = values
	}
	if len(r.restore) > 0 {
		if o.Restore == nil {
			o.Restore = map[string]string{}
		}
		maps.Copy(o.Restore, r.restore)
	}
	switch {
	case r.Deny:
		o.Soft = (o.Soft || !o.Denied) && r.soft // a hard denial takes precedence
		o.Denied = true
	case !r.Verdict && !h.Async:
		o.Failed = true
	}
}

// with replaces the body of the phase.
func (c *Call) with(phase guard.Phase, body []byte) {
	if phase == guard.Before {
		c.Request = body
	} else {
		c.Response = body
	}
}

// shape returns the format of the response.
func (c *Call) shape() string { return cmp.Or(c.Format, c.Kind) }

func (c *Call) of(phase guard.Phase) []byte {
	if phase == guard.Before {
		return c.Request
	}
	return c.Response
}

// hookRun is one run of a hook.
type hookRun struct {
	Result
	skipped bool
	soft    bool
	body    []byte
	headers http.Header
	restore map[string]string
}

// RunAsync runs asynchronous hooks.
func (hs Hooks) RunAsync(ctx context.Context, phase guard.Phase, c *Call) []Result {
	return hs.Run(ctx, phase, c).Results
}

// run runs the checks of a hook.
func (h *Hook) run(ctx context.Context, phase guard.Phase, c *Call, budget *guard.Budget) hookRun {
	start := c.Now()
	r := hookRun{Result: Result{ID: h.ID, Label: h.Label, Async: h.Async, Type: "guardrail", Created: start.UTC(), Verdict: true}}
	if h.Mutator {
		r.Type = "mutator"
	}
	var which []*check
	for i := range h.checks {
		// In a body that is passed through unread, only the type is judged.
		if !c.Passed || h.checks[i].id == requestTypeCheck {
			which = append(which, &h.checks[i])
		}
	}
	if r.skipped = c.Passed && len(which) == 0; r.skipped {
		return r
	}
	r.Checks = make([]CheckResult, 0, len(which))
	g := group{call: *c, phase: phase, budget: budget, found: map[content.Scope]*content.Found{}}
	if h.Sequential {
		r.sequential(ctx, &g, which)
	} else {
		r.parallel(ctx, &g, which)
	}
	for i := range r.Checks {
		ok := r.Checks[i].passes()
		r.soft = r.soft || !ok && which[i].soft
		r.Verdict = r.Verdict && (ok || h.Mutator)
	}
	r.soft = r.soft || h.Soft
	r.Deny = h.Deny && !r.Verdict && !h.Async
	r.Transformed = r.body != nil
	r.Feedback = h.feedbackOf(r.Checks)
	r.Time = c.Now().Sub(start).Milliseconds()
	return r
}

// group is the shared input of the checks of one hook.
type group struct {
	call   Call
	phase  guard.Phase
	budget *guard.Budget
	found  map[content.Scope]*content.Found
}

// find returns the texts of a scope.
func (g *group) find(s content.Scope) *content.Found {
	f := g.found[s]
	if f == nil {
		one := content.Found{}
		if g.phase == guard.Before {
			one = content.InRequest(g.call.Kind, g.call.Request, s)
		} else {
			one = content.InResponse(g.call.shape(), g.call.Response, s)
		}
		f = &one
		g.found[s] = f
	}
	return f
}

// subject returns the input of one check.
func (g *group) subject(k *check, changed bool) *judge.Subject {
	c, f := &g.call, g.find(k.scope)
	s := &judge.Subject{
		Phase: g.phase, Kind: c.Kind, Endpoints: c.Endpoints, Provider: c.Provider, Model: c.Model, Stream: c.Stream, Status: c.Status, TraceID: c.TraceID,
		Texts: f.Texts, ToolCalls: f.ToolCalls, Changed: changed, Request: c.Request, Metadata: c.Metadata, Headers: c.Headers, Parameters: k.parameters,
		Client: c.Client, Public: c.Public, Fetch: c.Fetch, Saved: k.saved, Secrets: c.Secrets,
	}
	if g.phase == guard.After {
		s.Response = c.Response
		if !k.local || k.mutates {
			s.RequestTexts = content.InRequest(c.Kind, c.Request, content.LastMessage).Texts
		}
	}
	return s
}

// sequential runs the checks in order. Each sees the changes of the earlier ones.
func (r *hookRun) sequential(ctx context.Context, g *group, which []*check) {
	for _, k := range which {
		v, res := g.judge(ctx, k, g.subject(k, r.body != nil))
		if body := g.changed(&v, k, g.call.of(g.phase)); body != nil {
			r.body, res.Transformed = body, true
			g.call.with(g.phase, body)
			clear(g.found)
		}
		r.recordResult(&v, res)
	}
}

// parallel runs the checks concurrently on the same body. If two change it, the later one runs
// again on the result of the earlier one, so that neither restores what the other removed.
// Local checks come last in that order, because repeating them calls no service.
func (r *hookRun) parallel(ctx context.Context, g *group, which []*check) {
	verdicts, results := make([]judge.Verdict, len(which)), make([]CheckResult, len(which))
	var wait sync.WaitGroup
	for i, k := range which {
		if !k.local && len(which) > 1 {
			s := g.subject(k, false)
			wait.Go(func() { verdicts[i], results[i] = g.judge(ctx, k, s) })
		}
	}
	for i, k := range which {
		if k.local || len(which) == 1 {
			verdicts[i], results[i] = g.judge(ctx, k, g.subject(k, false))
		}
	}
	wait.Wait()
	for _, local := range [...]bool{false, true} {
		for i, k := range which {
			if k.local == local && (verdicts[i].Body != nil || verdicts[i].Texts != nil) {
				r.change(ctx, g, k, &verdicts[i], &results[i])
			}
		}
	}
	for i := range which {
		r.recordResult(&verdicts[i], results[i])
	}
}

// change applies the changes of a check to the body, which others may have changed already.
func (r *hookRun) change(ctx context.Context, g *group, k *check, v *judge.Verdict, res *CheckResult) {
	from := g.call.of(g.phase)
	if r.body != nil {
		from = r.body
		on := group{call: g.call, phase: g.phase, budget: g.budget, found: map[content.Scope]*content.Found{}}
		on.call.with(g.phase, from)
		again, _ := on.judge(ctx, k, on.subject(k, true))
		v.Texts, v.Body, v.Restore = again.Texts, again.Body, again.Restore
		if again.Err != nil {
			res.Verdict, res.Error, res.FailOnError = false, again.Err, k.fails(&again)
		}
	}
	if body := g.changed(v, k, from); body != nil {
		r.body, res.Transformed = body, true
	}
}

func (r *hookRun) recordResult(v *judge.Verdict, res CheckResult) {
	r.Checks = append(r.Checks, res)
	if v.Headers != nil {
		if r.headers == nil {
			r.headers = http.Header{}
		}
		maps.Copy(r.headers, v.Headers)
	}
	if len(v.Restore) > 0 {
		if r.restore == nil {
			r.restore = map[string]string{}
		}
		maps.Copy(r.restore, v.Restore)
	}
}

// changed returns the body with the changes of a verdict, or nil if it changes nothing.
func (g *group) changed(v *judge.Verdict, k *check, from []byte) []byte {
	if v.Body != nil {
		if wire.KindOf(v.Body) != wire.KindObject || wire.CheckStrict(v.Body, wire.MaxDepth) != nil {
			return nil
		}
		return v.Body
	}
	if v.Texts == nil {
		return nil
	}
	f := content.Found{}
	if g.phase == guard.Before {
		f = content.InRequest(g.call.Kind, from, k.scope)
	} else {
		f = content.InResponse(g.call.shape(), from, k.scope)
	}
	body := f.ReplaceTexts(from, v.Texts)
	if len(body) == 0 || &body[0] == &from[0] {
		return nil
	}
	return body
}

// judge runs one check. A panic becomes an error of the check.
func (g *group) judge(ctx context.Context, k *check, s *judge.Subject) (v judge.Verdict, res CheckResult) {
	start := g.call.Now()
	defer func() {
		if recover() != nil {
			v = judge.Failed("Check error", "Error executing check")
		}
		res = CheckResult{ID: k.id, Verdict: v.Pass, Data: v.Data, Error: v.Err, Created: start.UTC(), Log: v.Log, FailOnError: k.fails(&v)}
		res.Time = g.call.Now().Sub(start).Milliseconds()
		if v.Data != nil {
			res.Data = nil
			if raw, err := json.Marshal(v.Data); err == nil {
				res.Data = json.RawMessage(raw)
			}
		}
	}()
	if !k.runs(g.phase) {
		return judge.NoContent("The check runs before the request only"), res
	}
	if !k.local {
		return k.run(guard.WithBudget(ctx, g.budget), s), res
	}
	var choices []content.Choice
	if g.phase == guard.After {
		choices = g.find(k.scope).Choices
	}
	if g.budget.Spend(ctx, func(ctx context.Context) { v = k.each(ctx, s, choices) }) != nil {
		v = judge.TooSlow()
	}
	return v, res
}
