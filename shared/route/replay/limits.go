package replay

import (
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// Limit is a limit that counts requests by conditions and groups, as policies do. All its
// counters begin at zero.
type Limit struct {
	Name string
	// Replaces is the id of the key, workspace, provider or policy that had another limit of
	// the same measure (and unit) when requests were recorded. Refusals by that limit are
	// judged again.
	Replaces string
	ledger.PolicyForm

	late     bool
	counters map[string]*counter
	sum      LimitSum
}

// counter is the count of a limit for one of its buckets in the present window.
type counter struct {
	window int64 // Unix seconds
	used   int64
	full   bool // it has rejected something
}

// maxBuckets bounds the counters of one simulation.
const maxBuckets = 100_000

// ofTarget are the keys with values that only a target determines.
var ofTarget = []string{"virtual_key", "provider", "model"}

// Begin makes the limit ready; from is when the simulation begins.
func (l *Limit) Begin(from time.Time) {
	l.counters = map[string]*counter{}
	for _, cond := range l.Conditions {
		l.late = l.late || slices.Contains(ofTarget, cond.Key)
	}
	for _, g := range l.GroupBy {
		l.late = l.late || slices.Contains(ofTarget, g.Key)
	}
	if l.Limit != nil && l.Limit.SetAt.IsZero() {
		l.Limit.SetAt = from // the start of periods that are counted in days
	}
}

func (l *Limit) measure() ledger.Measure {
	if l.Rate != nil {
		return l.Rate.Type
	}
	return l.Limit.Type
}

// rejected reports whether an error came from the limit that this one replaces.
func (l *Limit) rejected(f *usage.Refusal) bool {
	unit := ""
	if l.Rate != nil {
		unit = string(l.Rate.Unit)
	}
	return f != nil && l.Replaces != "" && l.Replaces == f.ID && string(l.measure()) == f.Type && unit == f.Unit
}

// window returns the start of the window that contains t.
func (l *Limit) window(t time.Time) int64 {
	if l.Rate != nil {
		start, _ := l.Rate.Unit.Window(t)
		return start.Unix()
	}
	if last, ok := l.Limit.Schedule().Last(t); ok {
		return last.Unix()
	}
	return 0
}

// most is what a window allows at a time.
func (l *Limit) most(t time.Time) int64 {
	if l.Rate != nil {
		return l.Rate.Value
	}
	return l.Limit.CreditLimit + l.Limit.Raised(t)
}

// claim is what a request needs from one counter.
type claim struct {
	l    *Limit
	at   *counter
	need int64 // must be left
	add  int64 // is counted
	last bool  // belongs to the target that was tried last, or to all targets
}

// fits reports whether the counter admits the claim.
func (k *claim) fits(t time.Time) bool {
	left := k.l.most(t) - k.at.used
	if k.l.Rate != nil && k.need > k.l.Rate.Value { // such a request uses the remainder
		return left > 0
	}
	return left >= k.need
}

// limit judges the request by the limits. A request that is rejected is charged to none of
// them.
func (r *Run) limit(c *course) error {
	if len(r.q.Limits) == 0 {
		return nil
	}
	var again *Limit // the limit that judges a rejection again
	if c.rejected {
		if again = r.again(c); again == nil {
			return nil
		}
	} else if !c.counted() {
		return nil // it never reached a limit
	}
	var claims []claim
	for _, rates := range [...]bool{true, false} {
		for _, l := range r.q.Limits {
			if (l.Rate != nil) != rates {
				continue
			}
			more, err := r.claims(c, l, l == again)
			if err != nil {
				return err
			}
			claims = append(claims, more...)
		}
	}
	c.decide(claims)
	if c.by == nil {
		c.released = again != nil
		for i := range claims {
			claims[i].at.used += claims[i].add
		}
	}
	return nil
}

// again finds the limit that judges the request's rejection again; nil: the rejection stays.
func (r *Run) again(c *course) *Limit {
	replaced := false
	for _, l := range r.q.Limits {
		replaced = replaced || l.Replaces != ""
		if l.rejected(c.rec.Refusal) && c.rec.Refusal.Needed > 0 {
			return l
		}
	}
	if f := c.rec.Refusal; replaced && (f == nil || f.Needed == 0) {
		c.unjudged(LimitUnknown)
	}
	return nil
}

// decide finds what rejects the request, and which limits it exceeds.
func (c *course) decide(claims []claim) {
	for i := range claims {
		k := &claims[i]
		l := k.l
		l.sum.Counted++
		if k.fits(c.rec.Start) || !k.last {
			continue
		}
		if l.Limit != nil && l.Limit.OnExceeded != "" {
			l.sum.Exceeded++
			c.exceeded = append(c.exceeded, l)
			continue
		}
		if !k.at.full {
			k.at.full = true
			l.sum.Counters++
		}
		if c.by == nil {
			c.by = l
			l.sum.reject(c.rec)
		}
	}
}

// counted reports whether the request reached a target of the gateway, and so passed the limits
// of its caller. Requests that clients only reported were never admitted, and no limit counts
// them.
func (c *course) counted() bool {
	return c.rec.OptionIndex != "" || c.rec.Unconfirmed || slices.ContainsFunc(c.calls, func(k call) bool { return k.path != "" })
}

// claims are what the request needs from a limit: one counter, or one for each target if
// targets decide the bucket.
func (r *Run) claims(c *course, l *Limit, again bool) (out []claim, err error) {
	targets := []Target{c.is}
	if l.late {
		targets = c.targets()
	}
	for i, t := range targets {
		facts := c.facts(t, r.q.Config)
		if !l.Matches(facts) {
			continue
		}
		key, ok := l.ValueKey(facts)
		if !ok {
			continue
		}
		at, err := r.counter(l, key, c.rec.Start)
		if err != nil {
			return nil, err
		}
		k := claim{l: l, at: at, last: i == len(targets)-1}
		k.need, k.add = c.wants(l, t)
		if again {
			k.need = c.rec.Refusal.Needed
		}
		out = append(out, k)
	}
	return out, nil
}

// targets are the targets that are called, each once, the last one last.
func (c *course) targets() (out []Target) {
	for i := range c.calls {
		if t := c.calls[i].Target; t != c.is && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return append(out, c.is)
}

// wants is how much must be left in a limit for the request, and how much is counted. The
// reserved amount is not recorded, so a request that was let through only needs that
// something is left.
func (c *course) wants(l *Limit, t Target) (need, add int64) {
	if c.barred && l.Rate == nil || c.barred && l.measure() == ledger.Tokens {
		return 0, 0 // nothing is sent
	}
	switch l.measure() {
	case ledger.Requests:
		if l.Rate == nil && len(c.calls) == 0 && !hit(c.rec) && !c.released && !c.rejected {
			return 0, 0 // nothing was sent
		}
		return 1, 1
	case ledger.Tokens:
		for i := range c.calls {
			if k := &c.calls[i]; !l.late || k.Target == t {
				add += k.usage.TotalTokens()
			}
		}
		return min(1, int64(len(c.calls))), add
	}
	free := true
	for i := range c.calls {
		if k := &c.calls[i]; !l.late || k.Target == t {
			add = int64(plus(k.cost, pricing.NanoDollars(add)))
			free = free && k.usage.IsReported() && k.cost == 0
		}
	}
	if len(c.calls) > 0 && !c.rec.Priced && c.is == c.was {
		c.unjudged(PriceUnknown)
	}
	if free {
		return 0, add
	}
	return 1, add
}

// counter finds the counter of a bucket, in the window of a time.
func (r *Run) counter(l *Limit, key string, t time.Time) (*counter, error) {
	at, window := l.counters[key], l.window(t)
	if at == nil {
		if r.buckets == maxBuckets {
			return nil, fault.Invalid("group_by", "needs more than %d counters in this time range: shorten the range or add conditions", maxBuckets)
		}
		r.buckets++
		at = &counter{window: window}
		l.counters[strings.Clone(key)] = at
	}
	if window > at.window {
		at.window, at.used = window, 0
	}
	return at, nil
}

// facts gives a request's values for a key of conditions and groups.
func (c *course) facts(t Target, by *Config) func(key string) []string {
	rec := c.rec
	one := func(v string) []string {
		if v == "" {
			return nil
		}
		return []string{v}
	}
	return func(key string) []string {
		switch key {
		case "api_key":
			return one(rec.KeyID)
		case "workspace_id":
			return one(rec.Workspace)
		case "organisation_id":
			return one(rec.Org)
		case "config":
			if by != nil {
				return one(by.Slug)
			}
			return one(rec.ConfigSlug)
		case "prompt":
			return one(rec.PromptSlug)
		case "endpoint_type":
			return one(rec.Endpoint)
		case "virtual_key":
			return one(t.Slug)
		case "provider":
			return one(t.Provider)
		case "model":
			if rec.RequestModel != "" {
				return names(t, rec.RequestModel)
			}
			return names(t, t.Model)
		}
		if name, ok := strings.CutPrefix(key, "metadata."); ok {
			return one(rec.Metadata[name])
		}
		return nil
	}
}
