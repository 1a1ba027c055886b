package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// parked is an idle connection that notes that it was closed.
type parked struct {
	piecewise
	closed atomic.Bool
}

func (p *parked) Close() error { p.closed.Store(true); return nil }

func park(p *idlePool, host, tenant string) *parked {
	c := new(parked)
	p.put(&conn{pool: p, key: hostKey{host: host, lane: lane{tenant: tenant}}, net: c})
	return c
}

func TestTheConnectionUsedLeastRecentlyGoesFirst(t *testing.T) {
	t.Parallel()
	p := &idlePool{idleTimeout: time.Hour}
	defer p.closeAll()
	var first []*parked
	for i := range maxIdle {
		c := park(p, fmt.Sprint("host", i%8), fmt.Sprint("tenant", i%4))
		if i < 16 {
			first = append(first, c)
		}
	}
	if p.all.n != maxIdle {
		t.Fatalf("%d idle, want %d", p.all.n, maxIdle)
	}
	// host0 is used: its newest connection becomes the newest of all.
	used := p.get(hostKey{host: "host0", lane: lane{tenant: "tenant0"}})
	p.put(used)
	for i := range 10 {
		newest := park(p, "another host", "tenant0")
		if !first[i].closed.Load() || newest.closed.Load() || p.all.n != maxIdle {
			t.Errorf("%d beyond the bound: the oldest closed %v, the newest closed %v, %d idle", i+1, first[i].closed.Load(), newest.closed.Load(), p.all.n)
		}
	}
	for i := 10; i < len(first); i++ {
		if first[i].closed.Load() {
			t.Errorf("connection %d went before its time", i)
		}
	}
}

func TestATenantHasAShareOfIdleConnections(t *testing.T) {
	t.Parallel()
	p := &idlePool{idleTimeout: time.Hour}
	defer p.closeAll()
	quiet := park(p, "host", "quiet")
	var greedy []*parked
	for i := range maxIdlePerTenant + 5 {
		greedy = append(greedy, park(p, fmt.Sprint("host", i), "greedy"))
	}
	if quiet.closed.Load() || p.tenants["greedy"].n != maxIdlePerTenant {
		t.Errorf("the other tenant's is closed: %v; the greedy one has %d", quiet.closed.Load(), p.tenants["greedy"].n)
	}
	for i, c := range greedy {
		if c.closed.Load() != (i < 5) {
			t.Errorf("connection %d of the greedy tenant: closed %v", i, c.closed.Load())
		}
	}
	for i := range maxIdlePerHost + 5 {
		c := park(p, "one host", "quiet")
		if c.closed.Load() || p.hosts[hostKey{host: "one host", lane: lane{tenant: "quiet"}}].n > maxIdlePerHost {
			t.Errorf("connection %d of one host", i)
		}
	}
}

// TestClosedConnectionsDoNotCount: connections closed by hosts do not evict others.
func TestClosedConnectionsDoNotCount(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	s := script(t, false, func(conn net.Conn, r *bufio.Reader, _ int) {
		if _, _, ok := request(r); ok {
			_, _ = io.WriteString(conn, answer)
		}
		<-ends
	})
	tr := NewHTTP1(mustAllow(t, "127.0.0.0/8"))
	defer tr.CloseIdleConnections()
	if _, _, err := call(client{tr: tr}, newRequest("POST", s.url, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	p := &tr.idle
	p.mu.Lock()
	dead := p.all.first
	p.mu.Unlock()
	if dead == nil || dead.sock == nil {
		t.Skip("sockets cannot be looked at here")
	}
	dead.idleSince = time.Now() // still the oldest of the list
	live := park(p, "live", "")
	for i := range maxIdle - 2 {
		park(p, fmt.Sprint("host", i%8), fmt.Sprint("tenant", i%4))
	}
	close(ends)
	eventually(t, "the host's end has come", func() bool { return !dead.silent() })
	p.mu.Lock()
	p.all.remove(ofAll, dead) // the newest of the list: what goes by age is not it
	p.all.push(ofAll, dead)
	p.mu.Unlock()
	park(p, "one more", "")
	if live.closed.Load() {
		t.Error("a live connection went, though a closed one was there")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all.n != maxIdle {
		t.Errorf("%d idle, want %d", p.all.n, maxIdle)
	}
}
