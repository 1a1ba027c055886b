package ledger

import (
	"context"
	"time"

	"gateway/shared/store"
)

// attrBucket is the value key of the bucket that a rate row counts for. A key of the
// store does not always tell it.
var attrBucket = store.At("bucket")

// RateState is a rate limit with what its window of now has counted.
type RateState struct {
	Limit    RateLimit
	Used     int64
	ResetsAt time.Time // the end of the window
}

// Full tells whether the window takes no more.
func (r RateState) Full() bool { return r.Used >= r.Limit.Value }

// RateBucket is a bucket of a policy that has counted something in a window of now.
type RateBucket struct {
	ValueKey string
	Rates    []RateState
	Place    string // where a list goes on behind it
}

// RateBuckets lists the counts of a policy's buckets; see rates.RateBuckets.
func (l *Ledger) RateBuckets(ctx context.Context, policy *Subject, after string, limit int) (list []RateBucket, next string, err error) {
	return l.rates.RateBuckets(ctx, policy, after, limit)
}

// RateBuckets lists the buckets of a policy of rates, in the order of their rows.
// policy is the policy's subject without a Bucket; after is the next of the page
// before.
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

// rates are the limits as a row counts them; any tells whether it does.
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
