// Package measure chooses among the targets of a strategy by their measurements: latency,
// price, or requests in flight.
//
// A Board contains the figures of a process, one Room for each workspace. Figures are per
// target (provider, model and host) and, for latencies, per Class of requests, so that long
// prompts are not compared with short ones. The latency of a target is an exponentially
// weighted mean of its recent successful responses; the compared figure adds the mean
// deviation, and grows with the share of failed requests. Failures are no observations of
// latency: a failing target is avoided for 5 s, doubled with every further failure up to 5
// minutes, and then tried by one request at a time.
//
// Choose is a pure function of these figures. Room adds locks and a clock.
package measure

import (
	"math"
	"sync"
	"time"

	"gateway/shared/pricing"
)

// Key identifies a target: a provider, model and host.
type Key uint64

// Class groups requests with comparable latencies.
type Class uint8

// Classes is the number of classes: four sizes, streamed and not.
const Classes = 8

// ClassOf returns the class of a request by the size of its body.
func ClassOf(bytes int64, stream bool) Class {
	c := Class(0)
	for _, bound := range [...]int64{4 << 10, 32 << 10, 256 << 10} {
		if bytes > bound {
			c++
		}
	}
	if stream {
		c += 4
	}
	return c
}

// Failure times: how long a target that failed n times in a row is avoided.
const (
	firstAvoidance = 5 * time.Second
	maxAvoidance   = 5 * time.Minute
)

// latency is the measured latency of one class at one target.
type latency struct {
	mean, dev float64 // nanoseconds
	n         int     // observations, at most maxObserved
	last      int64   // time of the last one, in Unix nanoseconds
	recent    *recent // nil: no percentile was asked for
}

const (
	maxObserved = 1 << 20
	window      = 39 // number of observations in an exponentially weighted mean with weight 0.05
	leastWeight = 0.05
	decay       = 5 * time.Minute // a mean this old weighs 1/e of a new observation
)

// observe adds one latency.
func (l *latency) observe(d time.Duration, now int64) {
	x := float64(max(d, 1))
	if l.n == 0 {
		*l = latency{mean: x, n: 1, last: now, recent: l.recent}
		return
	}
	l.n = min(l.n+1, maxObserved)
	age := float64(max(now-l.last, 0)) / float64(decay)
	weight := max(1/float64(l.n), leastWeight, 1-math.Exp(-age))
	// One outlier moves the figures by little, and many in a row by a lot.
	x = min(x, l.mean+max(4*l.dev, l.mean/2))
	l.dev += weight * (math.Abs(x-l.mean) - l.dev)
	l.mean += weight * (x - l.mean)
	l.last = now
}

// score is the figure by which targets are compared, in nanoseconds; lower is better.
// errors is the share of failed requests. least is the score less the amount by which it
// may be too high because of few observations.
func (l *latency) score(errors float64) (score, least float64, known bool) {
	success := max(1-errors, 0.1)
	score = (l.mean + l.dev) / (success * success)
	spread := max(l.dev, l.mean/10)
	return score, score - spread/math.Sqrt(float64(min(l.n, window))), true
}

// target contains the figures of one target.
type target struct {
	inFlight int
	failures int     // in a row
	errors   float64 // share of failures, exponentially weighted
	retryAt  int64   // Unix nanoseconds until which it is avoided; 0: it is not
	lastUsed int64   // time of the last request, in Unix nanoseconds
	classes  [Classes]latency
}

// fail counts a failure.
func (t *target) fail(now int64) {
	t.failures = min(t.failures+1, 30)
	t.errors += leastWeight * (1 - t.errors)
	t.avoid(now)
}

// avoid postpones the next request, by more after each failure.
func (t *target) avoid(now int64) {
	t.retryAt = now + int64(min(firstAvoidance<<(t.failures-1), maxAvoidance))
}

// succeed counts a success.
func (t *target) succeed() {
	t.failures, t.retryAt = 0, 0
	t.errors -= leastWeight * t.errors
}

// Bounds of what a process remembers.
const (
	maxWorkspaces = 4096
	maxTargets    = 10_000 // of one workspace
	maxPlaces     = 10_000 // strategies of one workspace
)

// Board contains the figures of a process. It is safe for concurrent use.
type Board struct {
	now func() time.Time

	mu         sync.Mutex
	workspaces map[[2]string]*Workspace
}

// NewBoard returns an empty board; now is its clock.
func NewBoard(now func() time.Time) *Board {
	return &Board{now: now, workspaces: make(map[[2]string]*Workspace)}
}

// Of returns the figures of a workspace.
func (b *Board) Of(org, workspace string) *Workspace {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{org, workspace}
	r, ok := b.workspaces[key]
	if !ok {
		for k := range b.workspaces { // any: it is measured again
			if len(b.workspaces) < maxWorkspaces {
				break
			}
			delete(b.workspaces, k)
		}
		r = NewWorkspace(b.now)
		b.workspaces[key] = r
	}
	return r
}

// Workspace contains the figures of one workspace. It is safe for concurrent use.
type Workspace struct {
	now func() time.Time

	mu      sync.Mutex
	targets map[Key]*target
	explore map[uint64]float64 // by strategy: the share of an exploring request that is due
	rates   rates
	extra   map[string]*extra // by key
}

// NewWorkspace returns an empty Workspace; now is its clock.
func NewWorkspace(now func() time.Time) *Workspace {
	return &Workspace{now: now, targets: make(map[Key]*target), explore: make(map[uint64]float64)}
}

// target returns the figures of a target. The lock is held.
func (r *Workspace) target(k Key) *target {
	t, ok := r.targets[k]
	if !ok {
		if len(r.targets) >= maxTargets {
			r.evict()
		}
		t = new(target)
		r.targets[k] = t
	}
	return t
}

// evict evicts idle targets until a tenth of the capacity is free. The lock is held.
func (r *Workspace) evict() {
	for k, t := range r.targets {
		if len(r.targets) <= maxTargets*9/10 {
			return
		}
		if t.inFlight == 0 {
			delete(r.targets, k)
		}
	}
}

// Begin counts a request that goes to a target. Each call needs one of End.
func (r *Workspace) Begin(k Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.target(k)
	t.inFlight++
	t.lastUsed = r.now().UnixNano()
}

// End counts a request that is over.
func (r *Workspace) End(k Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.target(k); t.inFlight > 0 {
		t.inFlight--
	}
}

// Observe counts the response of a target: a failure, a success with its latency, or a
// response that contains nothing of its target, such as 400.
func (r *Workspace) Observe(k Key, c Class, status int, duration time.Duration) {
	success, failure := Success(status), Failure(status)
	if !success && !failure {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now().UnixNano()
	t := r.target(k)
	if failure {
		t.fail(now)
		return
	}
	t.succeed()
	if duration > 0 {
		t.classes[c%Classes].observe(duration, now)
		t.classes[c%Classes].recent.add(duration)
	}
}

// Success reports whether a status is that of a target that works.
func Success(status int) bool { return status >= 100 && status <= 299 }

// Failure reports whether a status means that a target does not work: for any request, not
// for this one alone.
func Failure(status int) bool {
	switch status {
	case 401, 402, 403, 404, 408, 429:
		return true
	}
	return status >= 500 || status == 0
}

// rates are prices that were looked up less than ratesAge ago. They are never changed, and pointers
// because a price is too large to be copied for each target of each request.
type rates map[Key]*rate

type rate struct {
	price pricing.Price
	ok    bool
	until int64
}

const (
	ratesAge = time.Second
	maxRates = 1000
)

// Prices sets the cost of each candidate, for a request at a time that uses used. find returns
// the price of the target of a candidate; its response is used for a second. Choices may lag a
// price change by that much; charges do not.
func (r *Workspace) Prices(list []Candidate, c Class, at time.Time, used *pricing.Usage, find func(i int) (pricing.Price, bool)) {
	now := at.UnixNano()
	var room [24]int
	missing := room[:0]
	r.mu.Lock()
	for i := range list {
		p, ok := r.rates[list[i].rateKey(c)]
		if !ok || now >= p.until || now < p.until-int64(ratesAge) {
			missing = append(missing, i)
			continue
		}
		list[i].Cost, list[i].Priced = p.price.Cost(*used), p.ok
	}
	r.mu.Unlock()
	for _, i := range missing {
		p := &rate{until: now + int64(ratesAge)}
		p.price, p.ok = find(i)
		list[i].Cost, list[i].Priced = p.price.Cost(*used), p.ok
		r.storeRate(list[i].rateKey(c), p)
	}
}

// rateKey is the key of a candidate's price for a class of requests.
func (c *Candidate) rateKey(class Class) Key { return c.Key*Classes + Key(class%Classes) }

func (r *Workspace) storeRate(k Key, p *rate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rates == nil || len(r.rates) >= maxRates {
		r.rates = make(rates)
	}
	r.rates[k] = p
}
