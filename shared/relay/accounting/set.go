package accounting

import (
	"context"
	"slices"
	"strings"
	"sync"

	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Facts returns a request's values of a key that conditions and groups use; none if it has none.
// Several values are names of the same thing; counters are named by the first.
type Facts func(key string) []string

// ofTarget are the keys that only a target decides.
var ofTarget = []string{"virtual_key", "provider", "model"}

// rule is a policy with the counters that requests have used.
type rule struct {
	*ledger.SavedPolicy
	late bool // it has a condition or group that only a target decides

	mu       sync.Mutex
	counters map[string]*ledger.Subject
}

// maxCounters limits the counters of one policy that are cached; further ones are created again,
// which only costs memory.
const maxCounters = 4096

func decode(rec resource.Record) (*rule, error) {
	p, err := ledger.DecodePolicy(rec)
	if err != nil {
		return nil, err
	}
	r := &rule{SavedPolicy: p, counters: map[string]*ledger.Subject{}}
	for i := range p.Conditions {
		r.late = r.late || slices.Contains(ofTarget, p.Conditions[i].Key)
	}
	for _, g := range p.GroupBy {
		r.late = r.late || slices.Contains(ofTarget, g.Key)
	}
	return r, nil
}

// subject is what the policy counts a request by; nil: it does not count it.
func (r *rule) subject(facts Facts) *ledger.Subject {
	if !r.Matches(facts) {
		return nil
	}
	key, ok := r.ValueKey(facts)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.counters[key]
	if s == nil {
		key = strings.Clone(key)
		s = r.SubjectOf(r.Scope, r.ID, label(r.SavedPolicy, key), r.Revision, key)
		if len(r.counters) >= maxCounters {
			clear(r.counters)
		}
		r.counters[key] = s
	}
	return s
}

// label is the name of the counter in a rejection.
func label(p *ledger.SavedPolicy, valueKey string) string {
	name := p.Name
	if name == "" {
		name = p.ID
	}
	if valueKey == ledger.Wildcard {
		return name
	}
	return name + " (" + valueKey + ")"
}

// Set are the policies of a workspace. The zero value has none.
type Set struct {
	usage, rates []*rule
}

// Load returns the live policies of a workspace.
func Load(ctx context.Context, v *resource.View, sc store.Scope) (s Set, err error) {
	if s.usage, err = resource.LoadAll(ctx, v, sc, ledger.KindUsagePolicy, decode); err != nil {
		return s, err
	}
	s.rates, err = resource.LoadAll(ctx, v, sc, ledger.KindRatePolicy, decode)
	return s, err
}

// Empty reports whether there are no policies.
func (s Set) Empty() bool { return len(s.usage)+len(s.rates) == 0 }

// Early returns the counters of the policies that the request's own facts decide.
func (s Set) Early(facts Facts) []*ledger.Subject { return s.pick(false, facts) }

// Late returns those of the policies that a target decides.
func (s Set) Late(facts Facts) []*ledger.Subject { return s.pick(true, facts) }

// Tools returns those of the policies that count tool calls.
func (s Set) Tools(facts Facts) (out []*ledger.Subject) {
	for _, r := range s.rates {
		if r.Target != ledger.TargetMCPTools {
			continue
		}
		if sub := r.subject(facts); sub != nil {
			out = append(out, sub)
		}
	}
	return out
}

func (s Set) pick(late bool, facts Facts) (out []*ledger.Subject) {
	for _, list := range [...][]*rule{s.usage, s.rates} {
		for _, r := range list {
			if r.late != late || r.Target == ledger.TargetMCPTools {
				continue
			}
			if sub := r.subject(facts); sub != nil {
				out = append(out, sub)
			}
		}
	}
	return out
}
