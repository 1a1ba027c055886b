package egress

import (
	"context"
	"sync"
	"time"

	"gateway/shared/fault"
)

// Memory is one budget for the bodies that a process buffers completely: large requests,
// responses, inflated ones, fetched media. Small ones are not counted, see Uncounted. One
// tenant may use at most three quarters of it, so that it cannot block the others.
// Callers wait a little when the budget is full.
type Memory struct {
	total, share int64
	wait         time.Duration

	mu      sync.Mutex
	used    int64
	tenants map[string]int64
	freed   chan struct{} // closed when memory is returned; nil while no caller waits
}

const (
	// DefaultMemory is the budget if none is given, in bytes.
	DefaultMemory = 128 << 20
	// Uncounted is how much a body may take without being counted, in bytes.
	Uncounted = 64 << 10
	// memoryWait is how long to wait for a full budget. Waiting requests that already hold a
	// part of it could wait for each other; this ends that.
	memoryWait = 5 * time.Second
)

// NewMemory returns a budget of total bytes; 0: DefaultMemory.
func NewMemory(total int64) *Memory {
	if total <= 0 {
		total = DefaultMemory
	}
	return &Memory{total: total, share: total / 4 * 3, wait: memoryWait, tenants: make(map[string]int64)}
}

// Used is how much of the budget is taken, in bytes.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// try takes n bytes for a tenant, or returns what to wait for.
func (m *Memory) try(tenant string, n int64) (freed <-chan struct{}, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used+n <= m.total && m.tenants[tenant]+n <= m.share {
		m.used += n
		m.tenants[tenant] += n
		return nil, true
	}
	if m.freed == nil {
		m.freed = make(chan struct{})
	}
	return m.freed, false
}

func (m *Memory) release(tenant string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
	if m.tenants[tenant] -= n; m.tenants[tenant] == 0 {
		delete(m.tenants, tenant)
	}
	if m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
}

// Lease is what one request holds of a Memory. The zero value has no budget and counts
// nothing. It is safe for concurrent use. Free must give it back.
type Lease struct {
	memory *Memory
	tenant string

	mu   sync.Mutex
	held int64
}

// Of makes the lease one of m for a tenant. m may be nil: nothing is counted.
func (l *Lease) Of(m *Memory, tenant string) { l.memory, l.tenant = m, tenant }

// Reserve takes n more bytes. If they are not available in time, the error is a 503 fault,
// service_unavailable, or the context's own.
func (l *Lease) Reserve(ctx context.Context, n int64) error {
	m := l.memory
	if m == nil || n <= 0 {
		return nil
	}
	freed, ok := m.try(l.tenant, n)
	if !ok && n <= m.share {
		late := time.NewTimer(m.wait)
		defer late.Stop()
		for waiting := true; !ok && waiting; {
			select {
			case <-freed:
				freed, ok = m.try(l.tenant, n)
			case <-late.C:
				_, ok = m.try(l.tenant, n)
				waiting = false
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if !ok {
		f := fault.New(fault.ServiceUnavailable, "", "The gateway has no memory for another large body at present")
		f.RetryAfter = time.Second
		return f
	}
	l.mu.Lock()
	l.held += n
	l.mu.Unlock()
	return nil
}

// Return returns n bytes back, or as many as are held.
func (l *Lease) Return(n int64) {
	l.mu.Lock()
	n = min(n, l.held)
	l.held -= n
	l.mu.Unlock()
	if n > 0 {
		l.memory.release(l.tenant, n)
	}
}

// Free returns everything back.
func (l *Lease) Free() {
	if l.memory != nil {
		l.Return(l.Size())
	}
}

// Size is how much is held, in bytes.
func (l *Lease) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}
