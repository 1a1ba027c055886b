package ledger

import (
	"context"
	"errors"
	"sync"

	"gateway/shared/fault"
)

// Admission is what a request counted against rate limits. The nil Admission, of a
// request without limits, is ready to use.
type Admission struct {
	l       *rates
	tokened []*Subject // with token rates, in the documented order

	mu     sync.Mutex
	calls  []*counted
	tokens []*counted

	// Memory of calls, for the usual number of subjects.
	subjects [2]*Subject
	few      [2]*counted
	own      [1]counted
}

// Admit counts one request; see rates.Admit.
func (l *Ledger) Admit(ctx context.Context, caller string, subjects []*Subject) (*Admission, error) {
	return l.rates.Admit(ctx, caller, subjects)
}

// Admit counts one request against the request rates of all subjects: one conditional
// update per limited subject, in parallel. When a limit is reached the others are given
// back and the fault (429, with RetryAfter) names the first in the documented order. Of N
// callers on one limited subject with capacity for M, exactly M are admitted. If several
// subjects are full simultaneously, callers that are all rejected in the end may hold
// each other's last place: then fewer than M are admitted, never more. If the store is
// unavailable, requests are admitted and reported to Hooks.FailedOpen. Subjects without
// rates cost nothing. caller identifies who shares a subject's rates with others; see
// fair.
func (l *rates) Admit(ctx context.Context, caller string, subjects []*Subject) (*Admission, error) {
	limited := false
	for _, s := range subjects {
		limited = limited || s != nil && len(s.Rates) > 0
	}
	if !limited {
		return nil, nil
	}
	a := &Admission{l: l, tokened: inOrder(nil, subjects, func(s *Subject) bool { return s.derive().tokens })}
	a.calls = a.few[:0]
	for i, s := range inOrder(a.subjects[:0], subjects, func(s *Subject) bool { return s.derive().calls }) {
		if i < len(a.own) {
			a.calls = append(a.calls, a.own[i].of(s))
		} else {
			a.calls = append(a.calls, new(counted).of(s))
		}
	}
	if err := l.takeAll(ctx, caller, a.calls, Requests, 1); err != nil {
		return nil, err
	}
	return a, nil
}

// takeAll counts against every subject or none. What could not be counted, since the store is
// unavailable, becomes nil.
func (l *rates) takeAll(ctx context.Context, caller string, all []*counted, m Measure, want int64) error {
	for _, h := range all { // a limit of 0 blocks without a store operation
		counts := h.subject.derive().counts
		for i := range counts {
			if n := &counts[i]; n.Type == m && n.Value == 0 {
				return l.rateFault(h.subject, n, n.unit.window(l.clock().Unix()))
			}
		}
	}
	if l.turns {
		for _, h := range all {
			l.take(ctx, h, caller, m, want)
		}
	} else {
		l.each(len(all), func(i int) { l.take(ctx, all[i], caller, m, want) })
	}
	var refusal error
	for i, h := range all {
		if h.err == nil {
			continue
		}
		all[i] = nil
		if f := (*fault.Fault)(nil); errors.As(h.err, &f) {
			if refusal == nil {
				refusal = f
			}
		} else if ctx.Err() != nil {
			refusal = fault.Unavailable(ctx.Err())
		} else if l.hooks.FailedOpen != nil { // admitted without being counted
			l.hooks.FailedOpen(ctx, h.subject, h.err)
		}
	}
	if refusal != nil {
		l.giveAll(ctx, all, 0)
	}
	return refusal
}

// giveAll gives back; after a failure a count is too high until its window ends.
func (l *rates) giveAll(ctx context.Context, helds []*counted, amount int64) {
	late := detach(ctx)
	defer late.end()
	l.each(len(helds), func(i int) {
		if helds[i] != nil {
			l.failed(late, "return a rate reservation", l.adjust(late, helds[i], amount))
		}
	})
}

// ReserveTokens counts an upper bound of tokens against the token rates of the admitted
// subjects, once per request, before it is sent. It rejects like Admit. A bound above an entire
// limit could never pass: such a request is admitted while any capacity is left, and takes all
// of it.
func (a *Admission) ReserveTokens(ctx context.Context, bound int64) error {
	if a == nil || len(a.tokened) == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens != nil {
		return nil
	}
	all := make([]*counted, len(a.tokened))
	for i, s := range a.tokened {
		all[i] = new(counted).of(s)
	}
	if err := a.l.takeAll(ctx, "", all, Tokens, max(bound, 1)); err != nil {
		return err
	}
	a.tokens = all
	return nil
}

// SettleTokens replaces the reserved bound by the actual tokens. The second call does
// nothing.
func (a *Admission) SettleTokens(ctx context.Context, actual int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	helds := a.tokens
	if helds != nil {
		a.tokens = []*counted{}
	}
	a.mu.Unlock()
	if len(helds) > 0 {
		a.l.giveAll(ctx, helds, actual)
	}
}

// Return removes the request from all counts, if it was rejected for another reason
// before it was sent. The second call does nothing.
func (a *Admission) Return(ctx context.Context) {
	if a == nil {
		return
	}
	a.SettleTokens(ctx, 0)
	a.mu.Lock()
	helds := a.calls
	a.calls = nil
	a.mu.Unlock()
	if len(helds) > 0 {
		a.l.giveAll(ctx, helds, 0)
	}
}
