package egress

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
)

func memoryOf(total int64, wait time.Duration) *Memory {
	m := NewMemory(total)
	m.wait = wait
	return m
}

func leaseOf(m *Memory, tenant string) *Lease {
	l := new(Lease)
	l.Of(m, tenant)
	return l
}

func TestMemoryIsOneBudgetWithAShareForEachTenant(t *testing.T) {
	t.Parallel()
	m := memoryOf(400, 0)
	a, b := leaseOf(m, "a"), leaseOf(m, "a")
	for _, l := range []*Lease{a, b} {
		if err := l.Reserve(t.Context(), 150); err != nil {
			t.Fatal(err)
		}
	}
	err := a.Reserve(t.Context(), 1)
	var f *fault.Fault
	if !errors.As(err, &f) || f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("a tenant has more than three quarters: %v", err)
	}
	other := leaseOf(m, "b")
	if err := other.Reserve(t.Context(), 100); err != nil {
		t.Errorf("the quarter of others: %v", err)
	}
	if err := leaseOf(m, "c").Reserve(t.Context(), 1); err == nil {
		t.Error("more than all is given")
	}
	a.Free()
	a.Free()
	if m.Used() != 250 || a.Size() != 0 {
		t.Errorf("%d used, %d held", m.Used(), a.Size())
	}
	b.Return(1000)
	other.Return(40)
	other.Free()
	if m.Used() != 0 || len(m.tenants) != 0 {
		t.Errorf("%d used, tenants %v", m.Used(), m.tenants)
	}
	none := new(Lease)
	if err := none.Reserve(t.Context(), 1<<40); err != nil || none.Size() != 0 {
		t.Errorf("a lease without a budget: %v", err)
	}
	none.Free()
	none.Return(3)
}

func TestMemoryIsWaitedFor(t *testing.T) {
	t.Parallel()
	m := memoryOf(400, time.Minute)
	full := leaseOf(m, "a")
	if err := full.Reserve(t.Context(), 300); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 3)
	for range 3 {
		go func() { l := leaseOf(m, "a"); got <- l.Reserve(context.Background(), 100) }()
	}
	waits := func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.freed != nil }
	for !waits() {
		time.Sleep(time.Millisecond)
	}
	full.Free()
	for range 3 {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := leaseOf(m, "a").Reserve(gone, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("somebody who has gone: %v", err)
	}
	// What can never be had is not waited for.
	if err := leaseOf(m, "z").Reserve(t.Context(), 301); !fault.Is(err, fault.ServiceUnavailable) {
		t.Error(err)
	}
}

func TestMemoryBalancesUnderLoad(t *testing.T) {
	t.Parallel()
	m := memoryOf(1000, time.Millisecond)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 200 {
				l := leaseOf(m, string(rune('a'+i%3)))
				for range 5 {
					_ = l.Reserve(t.Context(), int64(1+(i*j)%97))
				}
				l.Return(int64(j % 50))
				if m.Used() > 1000 {
					t.Error("more than there is")
				}
				l.Free()
			}
		})
	}
	wg.Wait()
	if m.Used() != 0 || len(m.tenants) != 0 {
		t.Errorf("%d used, %v", m.Used(), m.tenants)
	}
}
