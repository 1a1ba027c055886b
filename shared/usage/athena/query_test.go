package athena

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
)

// The outcomes of a query, and their errors.
func TestWhatBecomesOfAQuery(t *testing.T) {
	t.Parallel()
	h, ctx := newFixture(t), context.Background()
	h.ingest(t, made(rand.New(rand.NewPCG(1, 1)), 1, noon.Add(-3*time.Hour)))
	h.compact(t)
	s, sql := h.service, func(n int) string {
		return fmt.Sprintf(`SELECT %d AS n, "model" FROM %s WHERE "org" = 'org-1'`, n, h.engine.Table())
	}
	h.engine.o.Clock = func() time.Time { return noon }
	run := func(n int) ([][]*string, error) { return h.engine.Query(ctx, "org-1", sql(n)) }

	s.set(func() { s.looks = 5 })
	rows, err := run(1)
	if err != nil || len(rows) != 1 || *rows[0][0] != "1" {
		t.Fatalf("%v %v", rows, err)
	}
	s.set(func() {
		if n := len(slices.DeleteFunc(slices.Clone(s.calls), func(c string) bool { return c != "GetQueryExecution" })); n != 6 {
			t.Errorf("%d looks: %v", n, s.calls)
		}
	})
	if _, err := run(1); err != nil || s.started() != 1 {
		t.Errorf("the same question started %d queries: %v", s.started(), err)
	}
	h.engine.o.Clock = func() time.Time { return noon.Add(time.Hour) }
	if _, err := run(1); err != nil || s.started() != 2 {
		t.Errorf("an hour later the same question has started %d queries: %v", s.started(), err)
	}
	s.set(func() { s.looks = 1 << 30 })
	h.engine.o.Patience = time.Second
	if _, err := run(2); fault.From(err).Status() != 503 || fault.From(err).RetryAfter <= 0 {
		t.Errorf("a slow query: %v", err)
	}
	h.engine.o.Patience = time.Minute
	s.set(func() { s.looks = 0; s.end() })
	if rows, err := run(2); err != nil || len(rows) != 1 || s.started() != 3 {
		t.Errorf("asked again it gives %v, %v", rows, err)
	}
	s.set(func() { s.looks, s.fails, s.failures = 1, "Query exhausted resources at this scale factor", 1<<20 })
	if _, err := run(3); fault.From(err).Status() != 503 || strings.Contains(fault.From(err).Message, "exhausted") {
		t.Errorf("a query that fails: %v", err)
	}
	before := s.started()
	s.set(func() { s.fails = "" })
	if rows, err := run(3); err != nil || len(rows) != 1 || s.started() != before+1 {
		t.Errorf("asked again after a failure it gives %v, %v", rows, err)
	}
	s.set(func() { s.fails = "Bytes scanned limit was exceeded" })
	if _, err := run(4); fault.From(err).Status() != 400 || !strings.Contains(err.Error(), "time_of_generation_min") {
		t.Errorf("a query that reads too much: %v", err)
	}
	before = s.started()
	if _, err := run(4); fault.From(err).Status() != 400 || s.started() != before {
		t.Errorf("a query that reads too much is started again: %v", err)
	}
	s.set(func() { s.fails, s.throttle = "", 1 })
	if _, err := run(5); err != nil {
		t.Errorf("a call that is refused once: %v", err)
	}
	s.set(func() { s.throttle = 1 << 20 })
	if _, err := run(6); fault.From(err).Status() != 503 || fault.From(err).RetryAfter <= 0 {
		t.Errorf("too many calls: %v", err)
	}
	s.set(func() { s.throttle = 0 })
	if _, err := h.engine.Query(ctx, "org-1", strings.Repeat("x", mostText+1)); fault.From(err).Status() != 400 {
		t.Errorf("a question that is too long: %v", err)
	}
}

// A query that fails while it is waited for is started again, one that is canceled
// as well; a question that always fails is begun a bounded number of times.
func TestAFailedQueryIsRestarted(t *testing.T) {
	t.Parallel()
	h, ctx := newFixture(t), context.Background()
	h.ingest(t, made(rand.New(rand.NewPCG(1, 1)), 1, noon.Add(-3*time.Hour)))
	h.compact(t)
	h.engine.o.Clock = func() time.Time { return noon }
	s := h.service
	run := func(n int) ([][]*string, error) {
		return h.engine.Query(ctx, "org-1", fmt.Sprintf(`SELECT %d AS n, "model" FROM %s WHERE "org" = 'org-1'`, n, h.engine.Table()))
	}
	for n, state := range []string{"FAILED", "CANCELLED"} {
		before := s.started()
		s.set(func() { s.looks, s.fails, s.ends, s.failures = 2, "it was not to be", state, 1 })
		if rows, err := run(n); err != nil || len(rows) != 1 || s.started() != before+2 {
			t.Errorf("%s: %v, %v after %d queries", state, rows, err, s.started()-before)
		}
	}
	s.set(func() { s.failures = 1 << 20 })
	before := s.started()
	for call, want := range []int{ownAttempts, 2 * ownAttempts, 3 * ownAttempts, mostAttempts, mostAttempts} {
		if _, err := run(7); fault.From(err).Status() != 503 || s.started()-before != want {
			t.Errorf("call %d: %v after %d queries, want %d", call, err, s.started()-before, want)
		}
	}
	h.engine.o.Clock = func() time.Time { return noon.Add(sameQuery) }
	s.set(func() { s.failures = 0 })
	if rows, err := run(7); err != nil || len(rows) != 1 {
		t.Errorf("a turn later: %v, %v", rows, err)
	}
}
