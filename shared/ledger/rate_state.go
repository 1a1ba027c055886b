package ledger

import (
	"context"
	"time"

	"gateway/shared/store"
)

// attrBucket is the value key of the bucket of a rate row. The store's key does not
// always contain it.
var attrBucket = store.At("bucket")

// RateState is a rate limit with the count of its current window.
type RateState struct {
	Limit    RateLimit
	Used     int64
	ResetsAt time.Time // the end of the window
}

// Full reports whether the window is full.
func (r RateState) Full() bool { return r.Used >= r.Limit.Value }

// RateStates returns the state of each of the subject's rate limits, in their order.
func (l *Ledger) RateStates(ctx context.Context, s *Subject) ([]RateState, error) {
	c := s.derive()
	if len(c.counts) == 0 {
		return nil, nil
	}
	row, _, err := l.rates.rate.Get(ctx, c.rate, true)
	if err != nil {
		return nil, closed(err)
	}
	out, _ := c.rates(row, l.rates.clock())
	return out, nil
}

// RateBucket is a bucket of a policy with a count in a current window.
type RateBucket struct {
	ValueKey string
	Rates    []RateState
	Place    string // position at which a list continues after it
}

// RateBuckets lists the counts of a policy's buckets; see rates.RateBuckets.
func (l *Ledger) RateBuckets(ctx context.Context, policy *Subject, after string, limit int) (list []RateBucket, next string, err error) {
	return l.rates.RateBuckets(ctx, policy, after, limit)
}

// RateBuckets lists the buckets of a rate policy, in the order of their rows. policy is
// the policy's subject without a Bucket; after is the next of the page before.
func (l *rates) RateBuckets(ctx context.Context, policy *Subject, after string, limit int) (list []RateBucket, next string, err error) {
	c := policy.derive()
	q := store.Query{Partition: c.rate.Partition(), After: after, Limit: limit}
	for {
		page, err := l.rate.Query(ctx, q)
		if err != nil {
			return nil, "", closed(err)
		}
		for _, row := range page.Rows {
			name := row.Item.String(attrBucket.Attr)
			rates, any := c.rates(row.Item, l.clock())
			if name == "" || !any {
				continue
			}
			list = append(list, RateBucket{name, rates, row.Key.SK()})
			if limit > 0 && len(list) == limit {
				return list, row.Key.SK(), nil
			}
		}
		if page.Next == "" {
			return list, "", nil
		}
		q.After = page.Next
	}
}

// rates returns the limits with the row's counts; any reports whether it has some.
func (c *compiled) rates(row store.Item, now time.Time) (out []RateState, any bool) {
	for i := range c.counts {
		n := &c.counts[i]
		w := n.current(now.Unix(), row)
		state := RateState{Limit: n.RateLimit, ResetsAt: time.Unix(w+n.unit.length, 0).UTC()}
		if row.Int(n.id.Attr) == w {
			state.Used = row.Int(n.n.Attr)
		}
		any = any || state.Used > 0
		out = append(out, state)
	}
	return out, any
}
