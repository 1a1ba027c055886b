package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// callersApart are n callers in slots of their own.
func callersApart(n int) (callers []string) {
	taken := map[string]bool{}
	for i := 0; len(callers) < n; i++ {
		if c := fmt.Sprint("caller-", i); !taken[slotOf(c)] {
			taken[slotOf(c)], callers = true, append(callers, c)
		}
	}
	return callers
}

// instancesOn are gateways on one store, each with its own subject.
func instancesOn(t *testing.T, s store.Store, h *hands, n int, kind Kind, limits ...RateLimit) func(caller string) error {
	random := rand.New(rand.NewPCG(1, 2))
	ls, subjects := make([]*Ledger, n), make([]*Subject, n)
	for i := range ls {
		ls[i] = New(s, h.now, Hooks{FailedOpen: func(_ context.Context, _ *Subject, err error) { t.Error(err) }})
		subjects[i] = rated(kind, "shared", limits...)
	}
	return func(caller string) error {
		i := random.IntN(n)
		_, err := ls[i].rates.Admit(ctx, caller, []*Subject{subjects[i]})
		if err != nil && !fault.Is(err, fault.RateLimited) {
			t.Fatal(err)
		}
		return err
	}
}

// Callers that have not yet had their share of a scarce limit get it, on whatever instance
// they ask, even if they come last. The limit itself is never exceeded, and it is used up.
func TestCallersBelowTheirShareGoFirst(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		const limit = 60
		callers := callersApart(4)
		request := instancesOn(t, s, h, 20, Workspace, RateLimit{Requests, PerMinute, limit})
		for _, c := range callers { // the previous window determines the callers
			if err := request(c); err != nil {
				t.Fatal(err)
			}
		}
		h.add(time.Minute)
		had := map[string]int{}
		for range 2 * limit {
			if request(callers[0]) == nil {
				had[callers[0]]++
			}
		}
		for _, c := range callers[1:] {
			for range limit {
				if request(c) == nil {
					had[c]++
				}
			}
		}
		for _, c := range callers {
			if had[c] != limit/len(callers) {
				t.Errorf("%s had %d of %d: %v", c, had[c], limit, had)
			}
		}
	})
}

// Capacity reserved for absent callers goes to present ones before the window ends; until then
// a rejection says that it is reserved.
func TestWhatIsHeldMelts(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00Z")
	const limit = 1000
	callers := callersApart(5)
	request := instancesOn(t, newMemory(), h, 20, Policy, RateLimit{Requests, PerMinute, limit})
	for _, c := range callers {
		if err := request(c); err != nil {
			t.Fatal(err)
		}
	}
	h.add(time.Minute)
	had, scarce := 0, 0
	for range 60 {
		for range limit {
			err := request(callers[0])
			if err == nil {
				had++
				continue
			}
			f := fault.From(err)
			if f.RetryAfter <= 0 || f.RetryAfter > time.Minute || f.Limit == nil {
				t.Fatalf("%+v", f)
			}
			scarce++
			break
		}
		h.add(time.Second)
	}
	if had < limit*95/100 || had > limit || scarce == 0 {
		t.Errorf("%d of %d let through, %d times refused for others", had, limit, scarce)
	}
}

// A subject with one caller, a key and a daily limit are not divided.
func TestWhatIsNotDivided(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		limit RateLimit
	}{{Key, RateLimit{Requests, PerMinute, 10}}, {Workspace, RateLimit{Requests, PerDay, 10}}, {Policy, RateLimit{Requests, PerWeek, 10}}} {
		h := clockAt("2026-11-20T14:00:00Z")
		m := newMemory()
		request := instancesOn(t, m, h, 2, c.kind, c.limit)
		callers := callersApart(2)
		if err := request(callers[1]); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := request(callers[0]); (err == nil) != (i < 9) {
				t.Errorf("%s %v, %d: %v", c.kind, c.limit, i, err)
			}
		}
	}
}

// At least 95 per cent of a limit of tokens is used while requests keep coming that reserve
// a fiftieth of it each, and never more than the limit, whatever they really use, on twenty
// instances.
func TestTokensOfAWindowAreUsed(t *testing.T) {
	for seed := range uint64(50) {
		h, m := clockAt("2026-11-20T14:00:00Z"), newMemory()
		random := rand.New(rand.NewPCG(seed, 7))
		limit := 5000 + random.Int64N(1_000_000)
		ls := make([]*Ledger, 20)
		subject := rated(Workspace, "w", RateLimit{Tokens, PerMinute, limit})
		for i := range ls {
			ls[i] = New(m, h.now, Hooks{})
		}
		type open struct {
			a    *Admission
			uses int64
		}
		var flying []open
		used, refused := int64(0), 0
		for refused < 200 {
			if len(flying) > 30 || refused > 0 && len(flying) > 0 {
				i := random.IntN(len(flying))
				flying[i].a.SettleTokens(ctx, flying[i].uses)
				used += flying[i].uses
				flying[i] = flying[len(flying)-1]
				flying = flying[:len(flying)-1]
			}
			a, err := ls[random.IntN(len(ls))].rates.Admit(ctx, "", []*Subject{subject})
			if err != nil {
				t.Fatal(err)
			}
			bound := 1 + random.Int64N(limit/50)
			if a.ReserveTokens(ctx, bound) != nil {
				refused++
				continue
			}
			flying = append(flying, open{a, random.Int64N(bound + 1)})
		}
		for _, o := range flying {
			o.a.SettleTokens(ctx, o.uses)
			used += o.uses
		}
		if used > limit || used*100 < limit*95 {
			t.Errorf("seed %d: %d of %d tokens used", seed, used, limit)
		}
	}
}
