package guard

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// LocalTime is the time that all local checks of one request may take together, over all
// targets, before and after the provider. It is far above what ordinary checks need and longer
// than scheduling delays on a busy machine.
const LocalTime = 2 * time.Second

// ErrTime is returned when a search takes too long, when the budget of its request is
// spent, or when the client of the request has disconnected.
var ErrTime = errors.New("the pattern took too long on this text")

// Budget is the remaining time for the local checks of one request. The checks take turns, so
// that a request never uses more than one CPU for them. A Budget is safe for concurrent use.
type Budget struct {
	mu      sync.Mutex
	left    time.Duration
	patient bool // it does not end; never changes
}

// NewBudget returns a budget of LocalTime.
func NewBudget() *Budget { return &Budget{left: LocalTime} }

// NewPatientBudget returns a budget for work that is no request: it does not end, and searches
// under it have no time limit, so that a verdict does not depend on the speed of the machine.
func NewPatientBudget() *Budget { return &Budget{left: math.MaxInt64 / 2, patient: true} }

// Spend calls f with a context that ends when the budget is spent, and deducts the time that
// f took. It returns ErrTime without calling f if nothing is left or ctx has ended.
func (b *Budget) Spend(ctx context.Context, f func(ctx context.Context)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left <= 0 || ctx.Err() != nil {
		return ErrTime
	}
	from := time.Now()
	defer func() { b.left -= time.Since(from) }()
	if b.patient {
		ctx = context.WithValue(ctx, patientKey{}, true)
	}
	f(&limited{ctx, from.Add(b.left)})
	return nil
}

// limited is a context with a deadline but without a timer: local checks poll the deadline and
// never wait for Done.
type limited struct {
	context.Context
	at time.Time
}

// Deadline implements context.Context.
func (l *limited) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

// Err implements context.Context.
func (l *limited) Err() error {
	if err := l.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(l.at) {
		return context.DeadlineExceeded
	}
	return nil
}

type (
	budgetKey  struct{}
	patientKey struct{} // set in contexts of a patient budget
)

// WithBudget returns ctx with a budget that all guardrails and assertions below it share.
func WithBudget(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// BudgetOf returns the budget of ctx, or a new one if it has none.
func BudgetOf(ctx context.Context) *Budget {
	if b, ok := ctx.Value(budgetKey{}).(*Budget); ok {
		return b
	}
	return NewBudget()
}
