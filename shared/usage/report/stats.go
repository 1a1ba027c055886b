package report

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/axiomhq/hyperloglog"

	"gateway/shared/pricing"
	"gateway/shared/usage/segment"
)

// Stats aggregates the records in one bucket or group.
type Stats struct {
	Requests  int64
	Errors    int64 // status outside 200-299, and not 101
	Hits      int64 // exact cache hits
	Semantic  int64 // semantic cache hits
	Cost      pricing.NanoDollars
	Saved     pricing.NanoDollars // saved by all cache hits
	Running   pricing.NanoDollars // costs of running the gateway
	TokensIn  int64
	TokensOut int64
	WithUser  int64         // requests with an end user
	Duration  time.Duration // sum
	First     time.Time     // zero if there are no requests
	Last      time.Time

	simpleSaved pricing.NanoDollars
	hitTime     time.Duration // sum over all hits
	first, last int64
	latencies   segment.Histogram
	users       *hyperloglog.Sketch
}

// Users returns the number of distinct end users, if they were requested.
func (s *Stats) Users() int64 {
	if s.users == nil {
		return 0
	}
	return int64(s.users.Estimate())
}

// Latency returns a quantile (0 to 1) of the durations in milliseconds, if latencies were
// requested.
func (s *Stats) Latency(q float64) float64 { return s.latencies.Quantile(q) / 1000 }

// AvgLatency returns the mean duration in milliseconds; 0 without requests.
func (s *Stats) AvgLatency() float64 { return milliseconds(s.Duration, s.Requests) }

func milliseconds(sum time.Duration, n int64) float64 {
	return ratio(float64(sum)/float64(time.Millisecond), n)
}

func ratio(sum float64, n int64) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func (s *Stats) merge(o *Stats) {
	s.Requests += o.Requests
	s.Errors += o.Errors
	s.Hits += o.Hits
	s.Semantic += o.Semantic
	s.Cost += o.Cost
	s.Saved += o.Saved
	s.Running += o.Running
	s.TokensIn += o.TokensIn
	s.TokensOut += o.TokensOut
	s.WithUser += o.WithUser
	s.Duration += o.Duration
	s.simpleSaved += o.simpleSaved
	s.hitTime += o.hitTime
	s.see(o.first, o.last)
	s.latencies.Merge(&o.latencies)
	s.addUsers(o.users)
}

func (s *Stats) see(first, last int64) {
	if last == 0 {
		return
	}
	if s.last == 0 || first < s.first {
		s.first = first
	}
	s.last = max(s.last, last)
}

func (s *Stats) addUsers(u *hyperloglog.Sketch) {
	if u == nil {
		return
	}
	if s.users == nil {
		s.users = hyperloglog.New14()
	}
	_ = s.users.Merge(u) // precisions are equal: all are of New14
}

// aspect is what a query computes besides the counts.
type aspect struct {
	latencies, users bool
	by               segment.Dim // grouping; NumDims for none
	metadataKey      string      // grouping by the values of a metadata key
	share, shares    uint64      // only groups with this hash modulo shares; all if shares is 0
}

// large reports whether the results may be so large that all goroutines must share one
// collector.
func (a *aspect) large() bool { return a.users || a.grouped() }

func (a *aspect) grouped() bool { return a.by < segment.NumDims || a.metadataKey != "" }

// Memory in bytes: of the Stats of a bucket or group, of a group's place in order, of a
// typical histogram, and of a sketch of users.
const (
	statsWeight     = 384
	groupWeight     = 256
	histogramWeight = 2 << 10
	sketchWeight    = 17 << 10
)

// weight estimates the size in bytes of the results for the given number of buckets.
func (a *aspect) weight(buckets int) int64 {
	each := int64(statsWeight)
	if a.latencies {
		each += histogramWeight
	}
	if a.users {
		each += sketchWeight
	}
	switch {
	case a.grouped():
		return groupsBytes
	case a.large():
		return each * int64(buckets)
	}
	return each * int64(buckets) * readers
}

// groupsBytes limits the memory for the groups of one query.
const groupsBytes = 8 << 20

// maxGroups returns how many groups can be collected together.
func (a *aspect) maxGroups() int {
	if a.latencies {
		return groupsBytes / (statsWeight + histogramWeight)
	}
	return groupsBytes / statsWeight
}

func (a *aspect) need() (c columns) {
	for _, d := range [...]segment.Dim{segment.Status, segment.CacheStatus} {
		c.dims[d] = true
	}
	for _, i := range [...]segment.Int{segment.Cost, segment.Saved, segment.TokensIn, segment.TokensOut, segment.Duration, segment.WithUser, segment.Running} {
		c.ints[i] = true
	}
	if a.users {
		c.dims[segment.EndUser] = true
	}
	if a.by < segment.NumDims {
		c.dims[a.by] = true
	}
	if a.metadataKey != "" {
		c.metadata(a.metadataKey)
	}
	return c
}

// tally is the collector of Stats: by group, then by bucket.
type tally struct {
	aspect
	buckets  int
	groups   map[string][]Stats
	fromSQL  bool        // the files were read by SQL
	overflow atomic.Bool // there are too many groups to collect together

	t       *view
	group   *segment.Strings // grouping column of the current table; nil for one group
	lists   [][]Stats        // by code of group
	ok, hit []int8           // by code of status and cache status; hit: 1 exact, 2 semantic
}

func newTally(a aspect, buckets int) *tally {
	return &tally{aspect: a, buckets: buckets, groups: make(map[string][]Stats)}
}

// query returns the query for the tally, in time buckets.
func (c *tally) query(b buckets) *query {
	a := c.aspect
	q := &query{
		need:    a.need(),
		cubes:   a.metadataKey == "" && (a.by < segment.NumCubeDims || a.by == segment.NumDims),
		users:   a.users,
		bucket:  b.of,
		collect: func() collector { return newTally(a, b.n) },
		merge:   c.merge,
	}
	if a.large() {
		q.alone, q.collect, q.merge = new(sync.Mutex), func() collector { return c }, func(collector) {}
		q.enough = c.overflow.Load
	}
	return q
}

// finish sets the first and the last time of the result.
func (c *tally) finish(f *Filter) {
	for _, list := range c.groups {
		for i := range list {
			if s := &list[i]; s.last != 0 {
				s.First, s.Last = time.UnixMicro(s.first).In(f.From.Location()), time.UnixMicro(s.last).In(f.From.Location())
			}
		}
	}
}

func (c *tally) begin(t *view) {
	c.t, c.group = t, nil
	switch {
	case c.metadataKey != "":
		c.group = t.meta[c.metadataKey]
	case c.by < segment.NumDims:
		c.group = t.Dims[c.by]
	}
	n := 1
	if c.group != nil {
		n = len(c.group.Values)
	}
	c.lists = make([][]Stats, n)
	status, cache := t.Dims[segment.Status], t.Dims[segment.CacheStatus]
	c.ok = make([]int8, len(status.Values))
	for i, v := range status.Values {
		if len(v) == 3 && v[0] == '2' || v == "101" {
			c.ok[i] = 1
		}
	}
	c.hit = make([]int8, len(cache.Values))
	for i, v := range cache.Values {
		switch v {
		case "HIT":
			c.hit[i] = 1
		case "SEMANTIC HIT":
			c.hit[i] = 2
		}
	}
}

// list returns the buckets of a group; nil if the group is not collected.
func (c *tally) list(name string) []Stats {
	l := c.groups[name]
	if l == nil {
		if c.shares > 1 && segment.HashID(name)%c.shares != c.share {
			return nil
		}
		if c.grouped() && len(c.groups)*c.buckets >= c.maxGroups() {
			c.overflow.Store(true)
			return nil
		}
		l = make([]Stats, c.buckets)
		c.groups[strings.Clone(name)] = l // a clone, to release the page
	}
	return l
}

func (c *tally) row(i, bucket int) {
	code, name := uint32(0), ""
	if c.group != nil {
		if code = c.group.Code(i); code == segment.Absent {
			return
		}
		name = c.group.Values[code]
	}
	if c.lists[code] == nil {
		if c.lists[code] = c.list(name); c.lists[code] == nil {
			return
		}
	}
	s, t := &c.lists[code][bucket], c.t
	n := t.Records(i)
	s.Requests += n
	if c.ok[t.Dims[segment.Status].Code(i)] == 0 {
		s.Errors += n
	}
	duration := time.Duration(t.Ints[segment.Duration][i]) * time.Microsecond
	saved := pricing.NanoDollars(t.Ints[segment.Saved][i])
	switch c.hit[t.Dims[segment.CacheStatus].Code(i)] {
	case 1:
		s.Hits += n
		s.simpleSaved += saved
		s.hitTime += duration
	case 2:
		s.Semantic += n
		s.hitTime += duration
	}
	s.Cost += pricing.NanoDollars(t.Ints[segment.Cost][i])
	s.Saved += saved
	s.Running += pricing.NanoDollars(t.Ints[segment.Running][i])
	s.TokensIn += t.Ints[segment.TokensIn][i]
	s.TokensOut += t.Ints[segment.TokensOut][i]
	s.WithUser += t.Ints[segment.WithUser][i]
	s.Duration += duration
	s.see(t.Seen(i))
	if c.latencies {
		t.Durations(i, &s.latencies)
	}
	if c.aspect.users && t.Count == nil {
		if u := t.Dims[segment.EndUser].At(i); u != "" {
			if s.users == nil {
				s.users = hyperloglog.New14()
			}
			s.users.Insert([]byte(u))
		}
	}
}

func (c *tally) users(u *hyperloglog.Sketch, _ string, bucket int) {
	c.list("")[bucket].addUsers(u)
}

func (c *tally) merge(o collector) {
	for name, list := range o.(*tally).groups {
		own := c.list(name)
		for i := range list {
			own[i].merge(&list[i])
		}
	}
}
