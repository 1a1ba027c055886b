package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Kind is the kind of a subject.
type Kind = string

// The kinds, in the documented order: if several limits reject a request, the error names
// that of the first kind.
const (
	Key         Kind = "key"
	Token       Kind = "token" // a JWT with separate limits
	Workspace   Kind = "workspace"
	Policy      Kind = "policy"
	Integration Kind = "integration"
	Provider    Kind = "provider"
)

// kinds has the position of each kind in the order and its noun in messages. A kind that
// is not listed is last under its own name.
var kinds = map[Kind]struct {
	rank int
	noun string
}{
	Key:         {1, "API key"},
	Token:       {1, "token"},
	Workspace:   {2, "workspace"},
	Policy:      {3, "policy"},
	Integration: {4, "integration"},
	Provider:    {5, "provider"},
}

// UnpricedAllow is the value of Subject.Unpriced that admits models without a price.
const UnpricedAllow = "allow"

// Subject is the owner of limits and counters. It must not be changed after its first
// use, and is used by pointer: it caches values derived from its limits.
type Subject struct {
	Scope    store.Scope
	Kind     Kind
	ID       string
	Bucket   string // for a policy: the value key of the bucket, such as metadata._user:ada
	Label    string // name or slug known to the caller
	Rates    []RateLimit
	Budgets  []UsageLimit // one per Type
	Unpriced string       // if "", a cost budget rejects a model without a price; or UnpricedAllow
	// Revision is the version of the resource that the limits come from. If two processes
	// temporarily have different versions, the larger one is effective.
	Revision int64

	compiled atomic.Pointer[compiled]
}

// compiled holds the values derived from a subject.
type compiled struct {
	rate   store.Key
	head   store.Key
	plan   *plan
	rank   int                        // in the documented order
	counts []counter                  // one per rate limit
	calls  bool                       // any counter of requests
	tokens bool                       // any counter of tokens
	ends   time.Time                  // when a raise expires, which changes the plan; zero means never
	seen   atomic.Pointer[store.Item] // the row of shared rates, as last read by this process
	uses   atomic.Uint32              // number of uses of seen
	quiet  atomic.Int64               // until then, in Unix seconds, no entry of the head can be past due
}

func (s *Subject) derive() *compiled {
	if c := s.compiled.Load(); c != nil {
		return c
	}
	s.compiled.CompareAndSwap(nil, s.compile(time.Time{}))
	return s.compiled.Load()
}

// at updates the derived values for a time: an expired raise no longer counts.
func (s *Subject) at(now time.Time) {
	if c := s.derive(); !c.ends.IsZero() && !now.Before(c.ends) {
		s.compiled.CompareAndSwap(c, s.compile(now))
	}
}

func (s *Subject) compile(now time.Time) *compiled {
	p := s.Scope.Partition(strings.ToUpper(segment(s.Kind)), segment(s.ID))
	bucket := noBucket
	if s.Bucket != "" {
		bucket = segment(s.Bucket)
	}
	c := &compiled{rate: p.Key(bucket), head: p.Key(bucket, "0"), plan: newPlan(s.Budgets, s.Revision, now), rank: rank(s.Kind)}
	for i := range s.Budgets {
		if u := &s.Budgets[i]; u.Raised(now) > 0 && (c.ends.IsZero() || u.ExtraUntil.Before(c.ends)) {
			c.ends = u.ExtraUntil
		}
	}
	for _, r := range s.Rates {
		n, ok := newCounter(s.Kind, r)
		if !ok {
			continue
		}
		c.counts = append(c.counts, n)
		c.calls = c.calls || r.Type == Requests
		c.tokens = c.tokens || r.Type == Tokens
	}
	return c
}

// audits reports whether a budget admits requests that exceed it. A budget with a
// fallback model admits those sent to that model.
func (s *Subject) audits(slot int, b *Bound) bool {
	for i := range s.Budgets {
		if u := &s.Budgets[i]; u.Type == slotMeasure[slot] {
			return u.OnExceeded == Audit || u.OnExceeded == Fallback && b.Rerouted == u.FallbackModel
		}
	}
	return false
}

// name returns the subject for messages: API key "build-bot".
func (s *Subject) name() string {
	noun := s.Kind
	if k, ok := kinds[s.Kind]; ok {
		noun = k.noun
	}
	return noun + " " + strconv.Quote(cmp.Or(s.Label, s.ID))
}

// limit returns the subject's limit of a measure for a rejection.
func (s *Subject) limit(m Measure) *fault.Limit {
	return &fault.Limit{Subject: s.Kind, ID: s.ID, Name: cmp.Or(s.Label, s.ID), Entity: s.Bucket, Type: string(m)}
}

// maxSegment limits an id in a key: partition keys have at most 2,048 bytes, sort keys
// 1,024.
const maxSegment = 256

// noBucket is the sort key of a subject without buckets.
const noBucket = "-"

// segment encodes an arbitrary id (a policy's bucket contains callers' values) for a key.
// Unsuitable ids are replaced by their hash.
func segment(id string) string {
	if id == noBucket || len(id) > maxSegment || !utf8.ValidString(id) {
		sum := sha256.Sum256([]byte(id))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return escapes.Replace(id)
}

var escapes = strings.NewReplacer("%", "%25", "#", "%23", "\x00", "%00", "|", "%7C")

// inOrder appends the subjects that pass keep to dst, which is empty, in the documented order.
func inOrder(dst, subjects []*Subject, keep func(*Subject) bool) []*Subject {
	for _, s := range subjects {
		if s != nil && keep(s) {
			dst = append(dst, s)
		}
	}
	if len(dst) > 1 {
		slices.SortStableFunc(dst, func(a, b *Subject) int { return cmp.Compare(a.derive().rank, b.derive().rank) })
	}
	return dst
}

func rank(k Kind) int {
	if r, ok := kinds[k]; ok {
		return r.rank
	}
	return len(kinds) + 1
}
