package ledger

import (
	"context"
	"encoding/json"
	"time"

	"gateway/shared/store"
)

// The states of a budget.
const (
	Active    = "active"
	Exhausted = "exhausted" // a typical request cannot be admitted; see demand
)

// BudgetState is a budget with its counters. Amounts are in the units of the
// measure: nano-dollars, tokens, requests.
type BudgetState struct {
	Limit          UsageLimit
	Usage          int64 // settled in this period
	Reserved       int64 // reserved by running requests
	Raised         int64 // current temporary raise of the limit
	Status         string
	LastResetAt    time.Time // zero means never
	NextResetAt    time.Time // zero means never
	ThresholdAlert bool      // sent in this period
	ExhaustedAlert bool
}

// Available returns what further requests may take. It is negative if unforeseen charges
// exceeded the limit.
func (b *BudgetState) Available() int64 {
	return b.Limit.CreditLimit + b.Raised - b.Usage - b.Reserved
}

// MarshalJSON returns the form of the API's responses.
func (b BudgetState) MarshalJSON() ([]byte, error) {
	out := struct {
		usageJSON
		CurrentUsage json.Number `json:"current_usage"`
		Reserved     json.Number `json:"reserved_usage"`
		Available    json.Number `json:"available"`
		Status       string      `json:"status"`
		Type         Measure     `json:"type,omitempty"`                // in place of usageJSON's
		Next         string      `json:"next_usage_reset_at,omitempty"` // the same
		NextResetAt  *apiTime    `json:"next_reset_at"`
		LastResetAt  *apiTime    `json:"last_reset_at"`
		Threshold    bool        `json:"is_threshold_alerts_sent"`
		Exhausted    bool        `json:"is_exhausted_alerts_sent"`
	}{
		usageJSON: b.Limit.json(), CurrentUsage: b.Limit.Type.Amount(b.Usage), Status: b.Status,
		Reserved: b.Limit.Type.Amount(b.Reserved), Available: b.Limit.Type.Amount(b.Available()),
		Threshold: b.ThresholdAlert, Exhausted: b.ExhaustedAlert,
	}
	out.SetAt, out.ResetAt, out.usageJSON.Untyped, out.NextSent = nil, nil, false, ""
	if out.Next = b.Limit.NextSent; !b.Limit.Untyped {
		out.Type = b.Limit.Type
	}
	out.NextResetAt, out.LastResetAt = optional(b.NextResetAt), optional(b.LastResetAt)
	return json.Marshal(out)
}

// apiTime is a time in the API's format: RFC 3339, UTC, milliseconds.
type apiTime time.Time

func (t apiTime) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

func (t *apiTime) UnmarshalJSON(raw []byte) error { return (*time.Time)(t).UnmarshalJSON(raw) }

func optional(t time.Time) *apiTime {
	if t.IsZero() {
		return nil
	}
	return (*apiTime)(&t)
}

// State returns the state of each of the subject's budgets, in their order. It settles
// entries past due and writes nothing else: an ended period or changed limits are shown
// as after the next update.
func (l *Ledger) State(ctx context.Context, s *Subject) ([]BudgetState, error) {
	if len(s.Budgets) == 0 {
		return nil, nil
	}
	s.at(l.base.clock())
	v, err := l.rows.view(ctx, s.derive().head)
	if err != nil {
		return nil, closed(err)
	}
	return l.state(ctx, s, v)
}

// States is State for many subjects, in one read for those without shards.
func (l *Ledger) States(ctx context.Context, subjects []*Subject) ([][]BudgetState, error) {
	keys := make([]store.Key, 0, len(subjects))
	for _, s := range subjects {
		if s.at(l.base.clock()); len(s.Budgets) > 0 {
			keys = append(keys, s.derive().head)
		}
	}
	rows, err := l.rows.spend.GetMany(ctx, keys)
	if err != nil {
		return nil, closed(err)
	}
	out := make([][]BudgetState, len(subjects))
	for i, s := range subjects {
		head := s.derive().head
		row, ok := rows[head]
		switch {
		case len(s.Budgets) == 0:
			continue
		case !ok:
			out[i], err = l.state(ctx, s, nil)
		case row.Int(attrRows.Attr) > 1:
			out[i], err = l.State(ctx, s)
		default:
			out[i], err = l.state(ctx, s, &view{keys: []store.Key{head}, rows: []store.Item{row}})
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *Ledger) state(ctx context.Context, s *Subject, v *view) ([]BudgetState, error) {
	if v != nil {
		settled := 0
		for i, row := range v.rows {
			n, err := repair(l, ctx, v.keys[i], row)
			settled += n
			l.base.failed(ctx, "repair a budget", err)
		}
		if settled > 0 {
			var err error
			if v, err = l.rows.view(ctx, s.derive().head); err != nil {
				return nil, closed(err)
			}
		}
	}
	out := make([]BudgetState, 0, len(s.Budgets))
	for _, u := range s.Budgets {
		out = append(out, v.state(s.derive().plan, u, l.base.clock()))
	}
	return out, nil
}

// state returns the state of one budget according to the rows; v may be nil.
func (v *view) state(p *plan, u UsageLimit, now time.Time) BudgetState {
	b := BudgetState{Limit: u, LastResetAt: u.ResetAt, Raised: u.Raised(now)}
	b.NextResetAt, _ = u.Schedule().Next(now)
	var a demand
	for i, m := range slotMeasure {
		if v == nil || m != u.Type {
			continue
		}
		for n, row := range v.rows {
			st := evolve(v.keys[n], row, p, now).slots[i]
			if n == 0 {
				b.LastResetAt, b.NextResetAt = fromMillis(st.last), periodEnd(st.resets)
				b.ThresholdAlert, b.ExhaustedAlert = st.flags&flagThreshold != 0, st.flags&flagExhausted != 0
			}
			b.Usage += st.spent
			a = a.and(st.demand)
			b.Reserved += reserved(row)[i]
		}
	}
	b.Status = Active
	if a.exhausted(u.CreditLimit + b.Raised - b.Usage) {
		b.Status = Exhausted
	}
	return b
}

// reserved returns the sum of the row's open entries.
func reserved(row store.Item) (total amounts) {
	for _, v := range row.Map(attrOpen) {
		value, _ := v.([]byte)
		if e, err := decodeEntry(value); err == nil {
			total = sum(total, e.amounts)
		}
	}
	return total
}

// Bucket is one bucket of a policy that has been used.
type Bucket struct {
	ValueKey string
	Budgets  []BudgetState
	Place    string // position at which a list continues after it
}

// Buckets lists the buckets of a policy by their value keys. policy is the
// policy's subject without a Bucket; after is the next of the page before.
func (l *Ledger) Buckets(ctx context.Context, policy *Subject, after string, limit int) (list []Bucket, next string, err error) {
	q := store.Query{Partition: policy.derive().head.Partition(), After: after, Limit: limit}
	for row, err := range store.Rows(ctx, l.rows.spend, q) {
		if err != nil {
			return nil, "", closed(err)
		}
		if !isHead(row.Key) || row.Item.String("bucket") == "" {
			continue
		}
		s := &Subject{Scope: policy.Scope, Kind: policy.Kind, ID: policy.ID, Bucket: row.Item.String("bucket"),
			Label: policy.Label, Budgets: policy.Budgets, Revision: policy.Revision}
		var states []BudgetState
		if row.Item.Int(attrRows.Attr) > 1 {
			states, err = l.State(ctx, s)
		} else { // it is read already
			states, err = l.state(ctx, s, &view{keys: []store.Key{row.Key}, rows: []store.Item{row.Item}})
		}
		if err != nil {
			return nil, "", err
		}
		list = append(list, Bucket{s.Bucket, states, row.Key.SK()})
		if limit > 0 && len(list) == limit {
			return list, row.Key.SK(), nil
		}
	}
	return list, "", nil
}

// Apply updates the counters to the subject's limits immediately. It is not needed for
// correctness, because the next update does the same; it makes a raised limit effective
// before the next request. A subject never used remains without a row.
func (l *Ledger) Apply(ctx context.Context, s *Subject) error {
	v, err := l.rows.view(ctx, s.derive().head)
	if err == nil && v != nil {
		var p *plan
		if p, err = l.rows.bringAll(ctx, v, s.derive().plan); err == nil {
			l.rows.drainOverdrawn(ctx, v.keys[0], v.rows[0], p)
		}
	}
	if err != nil {
		return closed(err)
	}
	return nil
}

// Reset sets the usage of the subject's budgets to zero and clears the alert flags, as
// for one bucket of a policy. Running requests count when they are settled. For a key,
// provider, integration or workspace prefer UsageLimit.ResetUsage, which is part of the
// change of the resource.
func (l *Ledger) Reset(ctx context.Context, s *Subject) error {
	v, err := l.rows.view(ctx, s.derive().head)
	if err != nil || v == nil {
		if err != nil {
			err = closed(err)
		}
		return err
	}
	for i, key := range v.keys {
		if err := resetRow(l, ctx, key, v.rows[i], s.derive().plan); err != nil {
			return closed(err)
		}
	}
	return nil
}

func resetRow(l *Ledger, ctx context.Context, key store.Key, row store.Item, p *plan) error {
	for range attempts {
		var err error
		if row, p, err = l.rows.bring(ctx, key, row, p); err != nil {
			return err
		}
		e := evolution{update: store.Update{Key: key, If: []store.Cond{store.IfEqual(attrPlan, p.text)}}}
		for i := range p.slots {
			if !p.slots[i].on {
				continue
			}
			a, spent := &slotAttr[i], row.Int(slotAttr[i].spent.Attr)
			e.add(a.available, spent)
			e.add(a.spent, -spent)
			e.set(a.last, l.base.clock().UnixMilli())
			e.set(a.demand, int64(0))
			e.set(a.rejected, int64(0))
			e.update.If = append(e.update.If, store.IfEqual(a.spent, spent))
			if isHead(key) {
				e.set(a.flags, int64(0))
			}
		}
		if len(e.update.Set) == 0 {
			return nil
		}
		_, _, err = l.rows.spend.Update(ctx, e.update)
		failed, ok := store.AsCondition(err)
		if !ok {
			return err
		}
		if row = failed.Current; row == nil {
			return nil
		}
	}
	return store.ErrContended
}

// Clear deletes the subject's counters, including rates, as when the subject is deleted.
// Running requests settle to zero.
func (l *Ledger) Clear(ctx context.Context, s *Subject) error {
	c := s.derive()
	v, err := l.rows.view(ctx, c.head)
	if err != nil {
		return closed(err)
	}
	if v != nil {
		for i := len(v.keys) - 1; i >= 0; i-- { // the head last: it lists the others
			if err := l.rows.spend.Delete(ctx, v.keys[i]); err != nil {
				return closed(err)
			}
		}
	}
	if err := l.rows.spend.Delete(ctx, listing(c.head).Key); err != nil {
		return closed(err)
	}
	if err := l.rates.rate.Delete(ctx, c.rate); err != nil {
		return closed(err)
	}
	l.rows.shards.set(c.head, 1)
	return nil
}

// Counts reports whether a subject has counters: whether anything was spent on it.
func (l *Ledger) Counts(ctx context.Context, s *Subject) (bool, error) {
	v, err := l.rows.view(ctx, s.derive().head)
	if err != nil {
		return false, closed(err)
	}
	return v != nil, nil
}
