package replay

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/route"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// maxTries bounds the targets of one request.
const maxTries = 1000

// reroute finds the targets that the config gives the request.
func (r *Run) reroute(ctx context.Context, c *course) error {
	switch rec := c.rec; {
	case rec.OptionIndex == "":
		c.unjudged(NotRouted)
		return nil
	case hit(rec):
		c.unjudged(Cached)
		return nil
	}
	same := r.q.Config.ID != "" && c.rec.ConfigID == r.q.Config.ID && c.rec.ConfigVersion == r.q.Config.Version
	p := &past{rec: c.rec, body: c.bodies.Request, same: same}
	tried, open, err := r.walk(ctx, c, p)
	if err != nil {
		return err
	}
	if p.unknown {
		open = Parameters
	}
	if open == "" && same && tried[len(tried)-1].Target != c.was {
		open = NotReproduced
	}
	if open != "" {
		c.unjudged(open)
		return nil
	}
	return r.follow(ctx, c, tried)
}

// try is a target that the config chooses.
type try struct {
	Target
	path string
}

// walk returns the targets in their order, or the reason why there are none.
func (r *Run) walk(ctx context.Context, c *course, p *past) (tried []try, open string, err error) {
	rec := c.rec
	w := r.q.Config.Tree.Start(route.Context{Metadata: rec.Metadata, Params: p.param, Path: rec.Path, Breakers: p, Earlier: p, Measures: r.measures(ctx, c)})
	outcome := route.Outcome{}
	for range maxTries {
		leaf, f := w.Next(outcome)
		if f != nil {
			return nil, NoTarget, nil
		}
		if leaf == nil {
			break
		}
		t, ok, err := r.target(ctx, c, leaf)
		if err != nil {
			return nil, "", err
		}
		tried = append(tried, try{t, leaf.Path})
		if open = ""; !ok {
			open, outcome = MissingProvider, route.Outcome{Status: http.StatusNotFound, Rejected: true}
			continue
		}
		outcome = p.outcome(leaf.Path, t)
	}
	w.End()
	if len(tried) == 0 {
		return nil, NoTarget, nil
	}
	return tried, open, nil
}

// target is the target that a leaf calls; ok is false for a saved provider that does not
// exist.
func (r *Run) target(ctx context.Context, c *course, leaf *route.Leaf) (t Target, ok bool, err error) {
	rec := c.rec
	switch {
	case leaf.Slug != "":
		if t.Slug, t.Provider, ok, err = r.means.Saved(ctx, rec.Workspace, leaf.Slug); err != nil {
			return t, false, err
		}
		if !ok {
			t.Slug = leaf.Slug
		}
	case leaf.Provider != "" && !leaf.Passthrough:
		t.Provider, ok = leaf.Provider, true
	default: // the request names it
		t, ok = Target{Slug: c.was.Slug, Provider: c.was.Provider}, true
	}
	for i := range rec.Attempts {
		a := &rec.Attempts[i]
		if at := (Target{a.ProviderSlug, a.Provider, a.Model}); a.OptionIndex == leaf.Path && at.Slug == t.Slug && (ok && at.Provider == t.Provider || !ok) {
			if !ok {
				t.Provider, ok = at.Provider, true // it existed then
			}
			if leaf.Model == "" {
				t.Model = a.Model
			}
		}
	}
	switch {
	case leaf.Model != "":
		t.Model = leaf.Model
	case t.Model != "":
	case rec.RequestModel != "":
		t.Model = rec.RequestModel
	default:
		t.Model = leaf.DefaultModel
	}
	return t, ok, nil
}

// follow sends the request to the targets. Calls that were recorded cost what they cost
// then; a call to another target costs that target's price.
func (r *Run) follow(ctx context.Context, c *course, tried []try) error {
	recorded := c.calls
	used := c.responseUsage()
	c.calls = nil
	var left []call
	take := func(t try) (found bool) {
		left = left[:0:0]
		for _, a := range recorded {
			if a.path == t.path && a.Target == t.Target {
				c.calls, found = append(c.calls, a), true
			} else {
				left = append(left, a)
			}
		}
		recorded = left
		return found
	}
	for i, t := range tried {
		last := i == len(tried)-1
		if take(t) || !last {
			continue
		}
		if c.is = t.Target; c.is == c.was { // it is the same target by another path
			for _, a := range recorded {
				if a.Target == t.Target {
					c.calls = append(c.calls, a)
				}
			}
			continue
		}
		if err := r.callTarget(ctx, c, t, used); err != nil {
			return err
		}
	}
	c.is = tried[len(tried)-1].Target
	return nil
}

// responseUsage is what the response of the request used.
func (c *course) responseUsage() pricing.Usage {
	if n := len(c.calls); n > 0 {
		return c.calls[n-1].usage
	}
	return c.rec.Usage
}

// callTarget makes a target give the response that another one gave.
func (r *Run) callTarget(ctx context.Context, c *course, t try, used pricing.Usage) error {
	made := call{t.Target, t.path, used, 0}
	if !used.IsReported() {
		c.unjudged(UsageUnknown)
		c.calls = append(c.calls, made)
		return nil
	}
	o := pricing.Options{ContextTokens: used.InputTokens(), Mode: pricing.ModeOfLine(c.rec.Tariff), At: c.rec.Start}
	price, ok, err := r.means.Price(ctx, c.rec.Workspace, t.Target, o)
	if err != nil {
		return err
	}
	if !ok || !price.Covers(used) {
		c.unjudged(PriceUnknown)
	}
	if ok {
		made.cost = min(price.Cost(used), maxCharge)
	}
	c.calls = append(c.calls, made)
	return nil
}

// past repeats the decisions of a traversal from its record.
type past struct {
	rec     *usage.Record
	body    []byte // the client's body; empty: not read, or not stored
	members map[string]json.RawMessage
	unknown bool // a field of the body was needed that records do not have
	same    bool // the record was routed by this very config
}

// param gives a field of the client's body.
func (p *past) param(name string) (json.RawMessage, bool) {
	switch {
	case len(p.body) > 0:
	case name == "model" && p.rec.RequestModel != "":
		return wire.AppendJSONString(nil, p.rec.RequestModel), true
	case name == "stream" && p.rec.Stream:
		return json.RawMessage("true"), true
	}
	if len(p.body) == 0 {
		p.unknown = true
		return nil, false
	}
	if p.members == nil {
		if p.members = map[string]json.RawMessage{}; json.Unmarshal(p.body, &p.members) != nil {
			p.unknown = true
		}
	}
	raw, ok := p.members[name]
	return raw, ok
}

// Number is the number that was drawn at a path, or one derived from the request's id and
// the path. Over many requests each target gets its share.
func (p *past) Number(path string) uint32 {
	for i := len(p.rec.Draws) - 1; i >= 0; i-- {
		if d := &p.rec.Draws[i]; d.Path == path && d.Sticky == "" {
			return d.Number
		}
	}
	h := fnv.New64a()
	h.Write([]byte(p.rec.ID))
	h.Write([]byte(path))
	n := h.Sum64()
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	return uint32((n ^ n>>33) >> 32)
}

// StickyIndex returns the target to which an earlier request with the same values was sent.
func (p *past) StickyIndex(path string) (int, bool) {
	for i := len(p.rec.Draws) - 1; i >= 0; i-- {
		if d := &p.rec.Draws[i]; d.Path == path && d.Sticky == usage.StickyReused {
			return d.Index, true
		}
	}
	return 0, false
}

// Measured is the target that was chosen by figures, if the strategy compared the same ones.
func (p *past) Measured(path, by string) (int, bool) {
	for i := len(p.rec.Measured) - 1; p.same && i >= 0; i-- {
		if m := &p.rec.Measured[i]; m.Path == path && m.By == by {
			return m.Index, true
		}
	}
	return 0, false
}

// outcome is the response of a target. A target that was not called is assumed to have
// answered well.
func (p *past) outcome(path string, t Target) route.Outcome {
	rec := p.rec
	o := route.Outcome{Status: http.StatusOK}
	called := false
	for i := range rec.Attempts {
		a := &rec.Attempts[i]
		if (Target{a.ProviderSlug, a.Provider, a.Model}) != t || called && a.OptionIndex != path {
			continue
		}
		if called = a.OptionIndex == path; called || o.Status == http.StatusOK {
			o.Status = statusOf(a)
		}
	}
	for i := range rec.Skips {
		if s := &rec.Skips[i]; s.Path == path && s.Reason == usage.SkipRejected {
			o.Status, o.Rejected, called = s.Status, true, true
		}
	}
	if called && path == rec.OptionIndex {
		// No further target could be called once the response had begun, or the client had gone.
		o.Final = rec.ClientGone || rec.Stream && rec.Success()
		o.Exception = fault.Code(rec.ErrorCode) == fault.InternalError
	}
	return o
}

// statusOf is the status by which a call was judged.
func statusOf(a *usage.Attempt) int {
	switch {
	case a.Status != 0:
		return a.Status
	case fault.IsKnown(fault.Code(a.ErrorCode)):
		return fault.New(fault.Code(a.ErrorCode), "", "").Status()
	}
	return http.StatusBadGateway
}

// AllClosed, State, Claim, Release and Record implement Breakers with the states in the record.
func (p *past) AllClosed() bool { return len(p.rec.Breakers) == 0 }

func (p *past) State(path string) route.State {
	for i := range p.rec.Breakers {
		if b := &p.rec.Breakers[i]; b.Path == path {
			switch {
			case b.Probe:
				return route.HalfOpen
			case b.Open:
				return route.Open
			}
		}
	}
	return route.Closed
}

func (p *past) Claim(string, *route.Breaker) bool        { return true }
func (p *past) Release(string)                           {}
func (p *past) Record(string, *route.Breaker, int, bool) {}

// names are the names that a policy may use for the model of a target.
func names(t Target, model string) (out []string) {
	if model == "" {
		return nil
	}
	for _, provider := range [...]string{t.Slug, t.Provider} {
		if provider != "" {
			out = append(out, "@"+strings.TrimPrefix(provider, "@")+"/"+model)
		}
	}
	return out
}
