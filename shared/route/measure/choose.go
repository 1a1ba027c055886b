package measure

import (
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// Rule is how a strategy chooses.
type Rule struct {
	By      string  // usage.ByLatency, usage.ByCost or usage.ByLoad
	Explore float64 // share of the requests that try another target than the best one
	Floor   int     // observations of latency that a target needs before figures decide
	InOrder bool    // among equals the first one is chosen, not one by weight
}

// Candidate is a target that may be chosen.
type Candidate struct {
	Key    Key
	Index  int // among its siblings
	Weight float64
	Cost   pricing.NanoDollars // of the request, for usage.ByCost
	Priced bool                // Cost is known
}

// tie is how much worse a latency may be and still count as equal.
const tie = 0.02

// Choose returns the position of the best candidate, with the figures that decided. place
// identifies the strategy. number draws among equals. With look, nothing is noted: the
// choice is not made.
func (r *Workspace) Choose(place uint64, rule Rule, c Class, list []Candidate, number func() uint32, look bool) (int, usage.Measured) {
	var room [24]view
	views := room[:0]
	made := usage.Measured{By: rule.By}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now().UnixNano()
	for i := range list {
		views = append(views, view{})
		r.view(&views[i], &rule, c, &list[i], now)
	}
	explore := rule.Explore > 0 && !look && r.due(place, rule.Explore)
	at, reason := choose(&rule, views, explore, number)
	if reason != usage.ReasonExplore && explore {
		r.explore[place] = 1 // the next request explores
	}
	made.Index, made.Reason, made.Figures = list[at].Index, reason, figures(list, views, at)
	if t := r.targets[list[at].Key]; t != nil && t.failures > 0 && !look {
		t.avoid(now) // this request tries it; others wait for its response
	}
	return at, made
}

// due reports whether the next request of a strategy explores, so that exactly the share
// does. The lock is held.
func (r *Workspace) due(place uint64, share float64) bool {
	if len(r.explore) >= maxPlaces {
		clear(r.explore)
	}
	r.explore[place] += share
	if r.explore[place] < 1 {
		return false
	}
	r.explore[place]--
	return true
}

// Failing reports whether a target is avoided because of failures.
func (r *Workspace) Failing(k Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.targets[k]
	return t != nil && t.retryAt > r.now().UnixNano()
}

// view is a candidate with its figures.
type view struct {
	weight  float64
	value   float64 // the compared figure, lower is better; only if known
	least   float64 // value, less what it may be too high by because of few observations
	retryAt int64
	last    int64
	n       int32 // observations
	busy    int32
	known   bool
	usable  bool // it has a weight and is not failing
	avoided bool
	in      bool // it is among those from which one is chosen
}

// view reads the figures of a candidate. The lock is held.
func (r *Workspace) view(v *view, rule *Rule, c Class, of *Candidate, now int64) {
	v.weight, v.usable = of.Weight, of.Weight > 0
	if t := r.targets[of.Key]; t != nil {
		l := &t.classes[c%Classes]
		v.n, v.busy, v.retryAt, v.last = int32(l.n), int32(t.inFlight), t.retryAt, t.lastUsed
		if t.retryAt > now {
			v.avoided, v.usable = true, false
		}
		if rule.By == usage.ByLatency && l.n > 0 {
			v.value, v.least, v.known = l.score(t.errors)
		}
	}
	switch rule.By {
	case usage.ByCost:
		v.value, v.known = float64(of.Cost), of.Priced
		v.least = v.value
	case usage.ByLoad:
		v.value, v.known = float64(v.busy), true
		v.least = v.value
	}
}

// choose returns the position of the chosen candidate and why it was chosen. At least one
// candidate has a weight.
func choose(rule *Rule, list []view, explore bool, number func() uint32) (int, string) {
	usable, best, few, fewest := 0, -1, 0, int32(0)
	for i := range list {
		v := &list[i]
		if !v.usable {
			continue
		}
		usable++
		if v.known && (best < 0 || v.least < list[best].least) {
			best = i
		}
		if rule.By == usage.ByLatency && int(v.n+v.busy) < rule.Floor {
			if few == 0 || v.n+v.busy < fewest {
				fewest = v.n + v.busy
			}
			few++
		}
	}
	switch {
	case usable == 0:
		return leftAlone(list), usage.ReasonAllFailing
	case few > 0:
		for i := range list {
			list[i].in = list[i].usable && list[i].n+list[i].busy == fewest
		}
		return among(rule, list, number), usage.ReasonTooFew
	case best < 0:
		for i := range list {
			list[i].in = list[i].usable
		}
		return among(rule, list, number), usage.ReasonUnknown
	}
	if explore {
		if at := oldest(list, best); at >= 0 {
			return at, usage.ReasonExplore
		}
	}
	most := list[best].least
	if rule.By == usage.ByLatency {
		most += tie * list[best].value
	}
	equals := 0
	for i := range list {
		v := &list[i]
		if v.in = v.usable && v.known && v.least <= most; v.in {
			equals++
		}
	}
	if equals == 1 {
		return best, usage.ReasonBest
	}
	return among(rule, list, number), usage.ReasonTie
}

// leftAlone returns, of failing candidates, the one that may be retried first.
func leftAlone(list []view) int {
	at := -1
	for i := range list {
		if list[i].weight > 0 && (at < 0 || list[i].retryAt < list[at].retryAt) {
			at = i
		}
	}
	return at
}

// oldest is the candidate besides the best one that was not used for longest; -1: there is
// none.
func oldest(list []view, best int) int {
	at := -1
	for i := range list {
		if i != best && list[i].usable && (at < 0 || list[i].last < list[at].last) {
			at = i
		}
	}
	return at
}

// among chooses one of several candidates by the tie-break: the first, or one by weight.
func among(rule *Rule, list []view, number func() uint32) int {
	total, last := 0.0, -1
	for i := range list {
		if list[i].in {
			if rule.InOrder {
				return i
			}
			total += list[i].weight
			last = i
		}
	}
	at := float64(number()) / (1 << 32) * total
	for i := range list {
		if !list[i].in {
			continue
		}
		if at < list[i].weight {
			return i
		}
		at -= list[i].weight
	}
	return last // rounding left a small rest
}

// maxFigures limits the figures in a record.
const maxFigures = 10

// figures are those of the candidates: of all, or of the first ones and the chosen one.
func figures(list []Candidate, views []view, selected int) []usage.Figure {
	out := make([]usage.Figure, 0, min(len(list), maxFigures))
	for i := range list {
		if len(out) == maxFigures-1 && i < selected || len(out) == maxFigures {
			continue
		}
		v := &views[i]
		f := usage.Figure{Index: list[i].Index, Value: -1, Observed: int(v.n), InFlight: int(v.busy), Avoided: v.avoided}
		if v.known {
			f.Value = int64(v.value)
		}
		out = append(out, f)
	}
	return out
}
