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
// fair.go.
func (l *rates) Admit(ctx context.Context, caller string, subjects []*Subject) (*Admission, error) {
	limited := false
	for _, s := range subjects {
		limited = limited || s != nil && len(s.Rates) > 0
	}
	if !limited {
		return nil, nil
	}
	a := &Admission{l: l, tokened: inOrder(subjects, func(s *Subject) bool { return s.derive().tokens })}
	var err error
	a.calls, err = l.takeAll(ctx, caller, inOrder(subjects, func(s *Subject) bool { return s.derive().calls }), Requests, 1)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// takeAll counts against every subject or none.
func (l *rates) takeAll(ctx context.Context, caller string, subjects []*Subject, m Measure, want int64) ([]*counted, error) {
	for _, s := range subjects { // a limit of 0 blocks without a store operation
		counts := s.derive().counts
		for i := range counts {
			if n := &counts[i]; n.Type == m && n.Value == 0 {
				return nil, l.rateFault(s, n, n.unit.window(l.clock().Unix()))
			}
		}
	}
	helds := make([]*counted, len(subjects))
	if l.turns {
		for i, s := range subjects {
			helds[i] = l.take(ctx, s, caller, m, want)
		}
	} else {
		l.each(len(subjects), func(i int) { helds[i] = l.take(ctx, subjects[i], caller, m, want) })
	}
	var refusal error
	for i, h := range helds {
		err := h.err
		if err == nil {
			continue
		}
		helds[i] = nil
		if f := (*fault.Fault)(nil); errors.As(err, &f) {
			if refusal == nil {
				refusal = f
			}
		} else if ctx.Err() != nil {
			refusal = fault.Unavailable(ctx.Err())
		} else if l.hooks.FailedOpen != nil {
			l.hooks.FailedOpen(ctx, subjects[i], err)
		}
	}
	if refusal != nil {
		l.giveAll(ctx, helds, 0)
		return nil, refusal
	}
	return helds, nil
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
	helds, err := a.l.takeAll(ctx, "", a.tokened, Tokens, max(bound, 1))
	if err != nil {
		return err
	}
	a.tokens = helds
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
