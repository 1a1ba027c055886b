package athena

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// What an organization's questions have read in an hour limits the questions that are begun
// in that hour. It does not limit those that were begun before, whatever became of them,
// those of others, and those of the next hour.
func TestQuestionsOfAnHourAreBounded(t *testing.T) {
	t.Parallel()
	h, ctx := newFixture(t), context.Background()
	h.ingest(t, made(rand.New(rand.NewPCG(1, 1)), 1, noon.Add(-3*time.Hour)))
	h.compact(t)
	s, now := h.service, time.Now().Truncate(time.Hour).Add(10*time.Minute) // rows expire by the real time
	const bound = 100 << 20
	h.engine.hourly = hourly{h.store.Table(store.Usage), bound}
	h.engine.o.Clock = func() time.Time { return now }
	run := func(ctx context.Context, org string, n int) int {
		_, err := h.engine.Query(ctx, org, fmt.Sprintf(`SELECT %d AS n FROM %s WHERE "org" = '%s'`, n, h.engine.Table(), org))
		if err == nil {
			return 200
		}
		f := fault.From(err)
		next := now // until the questions of a turn count in the next hour
		for next.UnixNano()/int64(sameQuery)*int64(sameQuery) < now.Truncate(time.Hour).Add(time.Hour).UnixNano() {
			next = next.Add(time.Second)
		}
		if f.Status() == 429 && (f.RetryAfter != next.Sub(now) || !strings.Contains(f.Message, "time_of_generation_max") || f.Field != "time_of_generation_min") {
			t.Errorf("%+v", f)
		}
		return f.Status()
	}
	queryOf := func(org string, n int) int { return run(ctx, org, n) }
	// Each is charged for 10 MB at least; ten times the same one are one.
	for range 10 {
		if got := queryOf("org-1", 0); got != 200 {
			t.Fatal(got)
		}
	}
	for n := range 9 {
		if got := queryOf("org-1", 1+n); got != 200 {
			t.Fatalf("question %d: %d", n, got)
		}
	}
	before := s.started()
	if got := queryOf("org-1", 100); got != 429 || s.started() != before {
		t.Errorf("a question beyond the bound: %d, %d queries", got, s.started()-before)
	}
	if got := queryOf("org-1", 3); got != 200 {
		t.Errorf("one that was answered: %d", got)
	}
	if got := queryOf("org-2", 100); got != 200 {
		t.Errorf("another organization: %d", got)
	}
	now = now.Add(time.Hour)
	if got := queryOf("org-1", 100); got != 200 {
		t.Errorf("the next hour: %d", got)
	}
	// The second query of a request continues after the first has reached the limit.
	s.set(func() { s.reads = bound })
	whole := h.engine.WithQueryLimits(ctx)
	if a, b, other := run(whole, "org-1", 101), run(h.engine.WithQueryLimits(whole), "org-1", 102), queryOf("org-1", 103); a != 200 || b != 200 || other != 429 {
		t.Errorf("a question of two queries: %d, %d; another: %d", a, b, other)
	}
	// An abandoned one counts by the bytes it was seen to read, and completely when it has
	// ended; its state is queried regardless of the sum.
	now = now.Add(time.Hour)
	s.set(func() { s.reads = bound / 2 })
	leaving := func(n, looks int) {
		t.Helper()
		left, leave := context.WithCancel(ctx)
		s.set(func() {
			s.looks, s.looked = 1<<30, func() {
				if looks--; looks < 0 {
					leave()
				}
			}
		})
		if got := run(left, "org-1", n); got == 200 || got == 429 {
			t.Fatal(got)
		}
		s.set(func() { s.looks, s.looked = 0, nil })
	}
	leaving(200, 1)
	if got := queryOf("org-1", 201); got != 200 { // the other half
		t.Fatal(got)
	}
	if got := queryOf("org-1", 202); got != 429 {
		t.Errorf("beyond what was seen: %d", got)
	}
	s.set(s.end)
	if got := queryOf("org-1", 200); got != 200 {
		t.Errorf("the slow one, asked again: %d", got)
	}
	// One that is left before anything is seen counts for a fiftieth of the bound.
	now = now.Add(time.Hour)
	s.set(func() { s.reads = 0 })
	for n := range 50 {
		leaving(400+n, 0)
	}
	if got := queryOf("org-1", 450); got != 429 {
		t.Errorf("behind fifty that were left: %d", got)
	}
	// What a query reads that the workgroup cuts off is charged too.
	now = now.Add(time.Hour)
	s.set(func() {
		s.fails, s.failures, s.ends, s.reads = "Bytes scanned limit was exceeded", 1, "CANCELLED", bound
	})
	if got := queryOf("org-1", 300); got != 400 {
		t.Fatal(got)
	}
	if got := queryOf("org-1", 301); got != 429 {
		t.Errorf("behind one that was cut off: %d", got)
	}
	if got := queryOf("org-1", 300); got != 400 {
		t.Errorf("that one, asked again: %d", got)
	}
}

// If the bytes read are unknown, no new query is started.
func TestWithoutItsStoreNothingIsQueried(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.engine.hourly = hourly{broken{h.store.Table(store.Usage)}, 1 << 40}
	if _, err := h.engine.Query(context.Background(), "org-1", `SELECT 1 FROM x WHERE "org" = 'org-1'`); fault.From(err).Status() != 503 || h.service.started() != 0 {
		t.Errorf("%v, %d queries", err, h.service.started())
	}
}

type broken struct{ store.Table }

func (broken) Get(context.Context, store.Key, bool) (store.Item, bool, error) {
	return nil, false, store.ErrContended
}
