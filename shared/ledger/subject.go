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

// The kinds, in the documented order: of several limits that refuse a request,
// that of the first kind is named.
const (
	Key         Kind = "key"
	Token       Kind = "token" // a JWT with limits of its own
	Workspace   Kind = "workspace"
	Policy      Kind = "policy"
	Integration Kind = "integration"
	Provider    Kind = "provider"
)

// kinds gives each kind its place in the order and its noun in messages. A kind
// that is not listed comes last under its own name.
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

// UnpricedAllow is the Subject.Unpriced that lets models without a price through.
const UnpricedAllow = "allow"

// Subject is what limits count. It must not be changed after its first use, and
// is used by pointer: it carries what is derived from its limits.
type Subject struct {
	Scope    store.Scope
	Kind     Kind
	ID       string
	Bucket   string // for a policy: the value key of the bucket, such as metadata._user:ada
	Label    string // name or slug that a caller knows it by
	Rates    []RateLimit
	Budgets  []UsageLimit // one per Type
	Unpriced string       // "": with a cost budget a model without a price is refused; UnpricedAllow
	// Revision is the version of the resource that the limits come from. When
	// two processes hold different versions for a moment, the larger one counts.
	Revision int64

	compiled atomic.Pointer[compiled]
}

// compiled is what is derived from a subject once.
type compiled struct {
	rate   store.Key
	head   store.Key
	plan   *plan
	counts []counter                  // one per rate limit
	calls  bool                       // any counter of requests
	tokens bool                       // any counter of tokens
	ends   time.Time                  // when a raise expires, and the plan is another; zero: never
	seen   atomic.Pointer[store.Item] // the row of rates that callers divide, as this process saw it lately
	asked  atomic.Uint32              // for how often
	quiet  atomic.Int64               // until then, in Unix seconds, no entry of the head can be past due
}

func (s *Subject) derive() *compiled {
	if c := s.compiled.Load(); c != nil {
		return c
	}
	s.compiled.CompareAndSwap(nil, s.compile(time.Time{}))
	return s.compiled.Load()
}

// at gives what is derived for a time: an expired raise no longer counts.
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
	c := &compiled{rate: p.Key(bucket), head: p.Key(bucket, "0"), plan: newPlan(s.Budgets, s.Revision, now)}
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

// audits tells whether a budget lets through requests that it has not enough for. A budget
// that sends requests to another model lets through those that go there.
func (s *Subject) audits(slot int, b *Bound) bool {
	for i := range s.Budgets {
		if u := &s.Budgets[i]; u.Type == slotMeasure[slot] {
			return u.OnExceeded == Audit || u.OnExceeded == Fallback && b.Rerouted == u.FallbackModel
		}
	}
	return false
}

// name is the subject in messages: API key "build-bot".
func (s *Subject) name() string {
	noun := s.Kind
	if k, ok := kinds[s.Kind]; ok {
		noun = k.noun
	}
	return noun + " " + strconv.Quote(cmp.Or(s.Label, s.ID))
}

// limit names the subject's limit of a measure in a refusal.
func (s *Subject) limit(m Measure) *fault.Limit {
	return &fault.Limit{Subject: s.Kind, ID: s.ID, Name: cmp.Or(s.Label, s.ID), Entity: s.Bucket, Type: string(m)}
}

// maxSegment bounds an id in a key: partition keys end at 2,048 bytes, sort keys
// at 1,024.
const maxSegment = 256

// noBucket is the sort key of a subject that is not one bucket of several.
const noBucket = "-"

// segment keeps an id of any form (a policy's bucket holds callers' values) in
// its part of a key. Ids that cannot stand there are replaced by their hash.
func segment(id string) string {
	if id == noBucket || len(id) > maxSegment || !utf8.ValidString(id) {
		sum := sha256.Sum256([]byte(id))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return escapes.Replace(id)
}

var escapes = strings.NewReplacer("%", "%25", "#", "%23", "\x00", "%00", "|", "%7C")

// inOrder gives the subjects that pass keep, in the documented order.
func inOrder(subjects []*Subject, keep func(*Subject) bool) []*Subject {
	n := 0
	for _, s := range subjects {
		if s != nil && keep(s) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	out := make([]*Subject, 0, n)
	for _, s := range subjects {
		if s != nil && keep(s) {
			out = append(out, s)
		}
	}
	if n == 1 {
		return out
	}
	slices.SortStableFunc(out, func(a, b *Subject) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	return out
}

func rank(k Kind) int {
	if r, ok := kinds[k]; ok {
		return r.rank
	}
	return len(kinds) + 1
}
