package measure

import (
	"math"
	"slices"
	"time"
)

// recent contains the latest latencies of one class at one target, in microseconds. A nil one
// takes none.
type recent struct {
	n         int       // observations, of which the last ones are stored
	latencies [64]int32 // a type that regexp sorts too: another one adds 4 KB to every function
}

// leastRecent is the number of latencies that a percentile needs.
const leastRecent = 10

func (r *recent) add(d time.Duration) {
	if r == nil {
		return
	}
	r.latencies[r.n%len(r.latencies)] = int32(min(d.Microseconds(), math.MaxInt32))
	r.n++
}

// percentile returns the smallest latency that at least p percent do not exceed.
func (r *recent) percentile(p float64) (time.Duration, bool) {
	if r.n < leastRecent {
		return 0, false
	}
	sorted := r.latencies
	s := sorted[:min(r.n, len(sorted))]
	slices.Sort(s)
	at := int(math.Ceil(p/100*float64(len(s)))) - 1
	return time.Duration(s[max(at, 0)]) * time.Microsecond, true
}

// Percentile returns a percentile of the latest latencies of a class at a target. They are stored
// from the first call on, unless it only looks; it returns false until there are 10 of them.
func (r *Workspace) Percentile(k Key, c Class, p float64, look bool) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.targets[k]; look && (t == nil || t.classes[c%Classes].recent == nil) {
		return 0, false
	}
	l := &r.target(k).classes[c%Classes]
	if l.recent == nil {
		l.recent = new(recent)
	}
	return l.recent.percentile(p)
}

// Exceeded notes a call that was canceled after a time. It counts as a latency of that time if
// it took longer than the mean; otherwise it contains nothing.
func (r *Workspace) Exceeded(k Key, c Class, duration time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.target(k).classes[c%Classes]
	if l.n > 0 && float64(duration) > l.mean {
		l.observe(duration, r.now().UnixNano())
		l.recent.add(duration)
	}
}

// extra is what the requests of one key have cost, in nano-dollars and one for each request, so
// that requests without a price count by their number.
type extra struct {
	requests float64
	used     float64 // by the attempts that were used
	unused   float64 // by the others
	pending  float64 // expected of those in progress
}

// maxSpenders limits the keys of a workspace that are remembered. An evicted one starts again:
// it has no extra cost left until it has made other requests.
const maxSpenders = 10_000

// AllowsHedge reports whether the extra cost of a key allows a second attempt, so that their sum remains
// at most a share of the other cost. The mean cost of its requests is taken as pending, for RecordCost.
func (r *Workspace) AllowsHedge(spender string, share float64) (pending float64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.extra[spender]
	if e == nil || e.requests == 0 {
		return 0, false
	}
	mean := e.used / e.requests
	if e.unused+e.pending+mean > share*e.used {
		return 0, false
	}
	e.pending += mean
	return mean, true
}

// RecordCost counts the cost of a request in nano-dollars: that of the attempt that was used, and that
// of the other one, if AllowsHedge took an amount as pending for it.
func (r *Workspace) RecordCost(spender string, used, unused int64, pending float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.extra[spender]
	if e == nil {
		if r.extra == nil || len(r.extra) >= maxSpenders {
			r.extra = make(map[string]*extra)
		}
		e = new(extra)
		r.extra[spender] = e
	}
	if pending > 0 {
		e.unused += float64(unused) + 1
		e.pending = max(e.pending-pending, 0)
	}
	e.requests++
	e.used += float64(used) + 1
}
