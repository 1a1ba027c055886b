package ledger

import (
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
		if _, err := l.Admit(ctx, "", s); err != nil {
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
				if _, err := l.Admit(ctx, "", subjects); err != nil {
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

// A request that two subjects limit, by rates and by budgets, on the embedded store:
// processor time of the whole process.
func BenchmarkTwoLimitedSubjects(b *testing.B) {
	l := New(openSQLite(b), time.Now, Hooks{})
	rate, budget := RateLimit{Requests, PerMinute, 1 << 40}, UsageLimit{Type: Cost, CreditLimit: maxDollars * dollar}
	for name, subjects := range map[string][]*Subject{
		"none":    {rated(Key, "none"), rated(Workspace, "none")},
		"rates":   {rated(Key, "r", rate), rated(Workspace, "r", rate)},
		"budgets": {budgeted(Key, "b", budget), budgeted(Workspace, "b", budget)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			from := processorTime(b)
			for b.Loop() {
				if _, err := l.Admit(ctx, "", subjects); err != nil {
					b.Fatal(err)
				}
				r, err := l.Reserve(ctx, "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C", subjects, cost(0.000001))
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Settle(ctx, 500, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-from).Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
