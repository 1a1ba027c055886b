package ledger

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gateway/shared/store"
)

func BenchmarkAdmitWithoutLimits(b *testing.B) {
	l := New(newMemory(), time.Now, Hooks{})
	s := []*Subject{rated(Key, "k"), rated(Workspace, "w")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.rates.Admit(ctx, "", s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	for name, s := range map[string]store.Store{"memory": newMemory(), "sqlite": openSQLite(b)} {
		b.Run(name, func(b *testing.B) {
			l := New(s, time.Now, Hooks{})
			subjects := []*Subject{rated(Key, "k", RateLimit{Requests, PerMinute, 1 << 40})}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.rates.Admit(ctx, "", subjects); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReserveSettle(b *testing.B) {
	for name, s := range map[string]store.Store{"memory": newMemory(), "sqlite": openSQLite(b)} {
		b.Run(name, func(b *testing.B) {
			l := New(s, time.Now, Hooks{})
			subjects := []*Subject{budgeted(Key, "k", UsageLimit{Type: Cost, CreditLimit: maxDollars * dollar})}
			b.ReportAllocs()
			for b.Loop() {
				r, err := l.Reserve(ctx, "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C", subjects, cost(0.000001))
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Settle(ctx, 500, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Sixty-four requests at a time on one key: group commit makes up for the queue.
func BenchmarkReserveSettleParallel(b *testing.B) {
	l := New(openSQLite(b), time.Now, Hooks{})
	s := budgeted(Key, "k", UsageLimit{Type: Cost, CreditLimit: maxDollars * dollar})
	var failed atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := l.Reserve(ctx, "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C", []*Subject{s}, cost(0.000001))
			if err != nil || r.Settle(ctx, 500, 0) != nil {
				failed.Add(1)
			}
		}
	})
	if failed.Load() > 0 {
		b.Errorf("%d failed", failed.Load())
	}
}

// BenchmarkReserveAndSettle measures the cost of a request's limits on the embedded store, as
// processor time of the process: no limits, a key with a budget and a rate limit, such a key in
// a workspace with a budget, and a key and a workspace with rate limits; with one key, and with
// a thousand that take turns.
func BenchmarkReserveAndSettle(b *testing.B) {
	l := New(openSQLite(b), time.Now, Hooks{Alert: func(context.Context, Alert) error { return nil }})
	rate, budget := RateLimit{Requests, PerMinute, 1 << 40}, UsageLimit{Type: Cost, CreditLimit: maxDollars * dollar}
	type limits struct {
		Rates   []RateLimit
		Budgets []UsageLimit
	}
	for _, c := range []struct {
		name           string
		key, workspace limits
	}{
		{name: "none"},
		{name: "key", key: limits{Rates: []RateLimit{rate}, Budgets: []UsageLimit{budget}}},
		{name: "key and workspace", key: limits{Rates: []RateLimit{rate}, Budgets: []UsageLimit{budget}}, workspace: limits{Budgets: []UsageLimit{budget}}},
		{name: "rates", key: limits{Rates: []RateLimit{rate}}, workspace: limits{Rates: []RateLimit{rate}}},
	} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, keys), func(b *testing.B) {
				workspace := &Subject{Scope: tenant, Kind: Workspace, ID: c.name, Rates: c.workspace.Rates, Budgets: c.workspace.Budgets}
				subjects := make([][]*Subject, keys)
				for i := range subjects {
					key := &Subject{Scope: tenant, Kind: Key, ID: fmt.Sprint(c.name, i), Rates: c.key.Rates, Budgets: c.key.Budgets}
					subjects[i] = []*Subject{key, workspace}
					if err := limited(l, subjects[i]); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				from := processorTime(b)
				for i := 0; b.Loop(); i++ {
					if err := limited(l, subjects[i%keys]); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((processorTime(b)-from).Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
			})
		}
	}
}

// limited does what the limits of one request ask for, and what the worker repeats.
func limited(l *Ledger, subjects []*Subject) error {
	if _, err := l.rates.Admit(ctx, subjects[0].ID, subjects); err != nil {
		return err
	}
	r, err := l.Reserve(ctx, "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C", subjects, cost(0.000001))
	if err != nil {
		return err
	}
	if err := r.Settle(ctx, 500, 0); err != nil {
		return err
	}
	for _, e := range r.Entries() {
		if err := l.SettleEntry(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
