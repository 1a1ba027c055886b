package replay

import (
	"context"
	"maps"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/basic"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/scan"
)

// Bodies are a request's bodies as its client saw them; nil if they are not stored.
type Bodies struct {
	Request, Response []byte
}

// Checks are guardrails that evaluate all requests. Only local checks are run.
type Checks struct {
	kit *chain.Kit
	all []*checked
	now func() time.Time
}

type checked struct {
	hooks chain.Hooks // one hook with the checks that are run; empty: none
	phase guard.Phase
	sum   CheckSum
}

// NewChecks gives Checks without any guardrail yet.
func NewChecks(now func() time.Time) *Checks {
	makers := map[string]judge.Maker{}
	maps.Copy(makers, basic.Makers())
	maps.Copy(makers, scan.Makers())
	return &Checks{kit: chain.NewKit(makers), now: now}
}

// Kit prepares guardrails.
func (k *Checks) Kit() *chain.Kit { return k.kit }

// Add adds a guardrail that judges requests (guard.Before) or answers (guard.After).
func (k *Checks) Add(name string, h *chain.Hook, phase guard.Phase) {
	one := &checked{hooks: chain.Hooks{h}, phase: phase, sum: CheckSum{Name: name}}
	if !one.hooks.Local() {
		one.sum.Not = "it has checks that ask somebody else, which are not run"
		one.hooks = one.hooks.Here()
	}
	k.all = append(k.all, one)
}

// Any reports whether there are checks to run.
func (k *Checks) Any() bool { return k != nil && len(k.all) > 0 }

func (k *Checks) sums() []CheckSum {
	out := make([]CheckSum, len(k.all))
	for i, one := range k.all {
		out[i] = one.sum
	}
	return out
}

// check judges a request and its answer.
func (r *Run) check(ctx context.Context, c *course) {
	rec := c.rec
	if c.refused || !c.counted() {
		return
	}
	call := chain.Call{
		Kind: rec.Endpoint, Provider: c.is.Provider, Model: c.is.Model, TraceID: rec.TraceID, Stream: rec.Stream, Metadata: rec.Metadata,
		Request: c.bodies.Request, Now: r.q.Checks.now,
	}
	for _, phase := range [...]guard.Phase{guard.Before, guard.After} {
		if phase == guard.After {
			if c.barred || !rec.Success() {
				return
			}
			call.Response, call.Status = c.bodies.Response, rec.ClientStatus
		}
		for _, one := range r.q.Checks.all {
			if one.phase != phase || len(one.hooks) == 0 {
				continue
			}
			if len(call.Request) == 0 || phase == guard.After && (rec.Stream || len(call.Response) == 0) {
				c.unjudged(BodyUnknown)
				continue
			}
			out := one.hooks.Run(ctx, phase, &call)
			c.judged(one, &out)
		}
		c.barred = c.denied && phase == guard.Before
	}
}

func (c *course) judged(one *checked, out *chain.Outcome) {
	for i := range out.Results {
		one.sum.Run++
		if v := &out.Results[i]; !v.Verdict {
			one.sum.Failed++
			c.tripped = append(c.tripped, one.sum.Name)
			c.denied = c.denied || v.Deny
		}
	}
}
