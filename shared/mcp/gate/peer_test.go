package gate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/mcp"
)

// discovering is a server that is asked which eras it speaks, and the callers that ask.
type discovering struct {
	*httptest.Server
	asked chan http.ResponseWriter // of each question, which is answered once end is written to
	end   chan struct{}
	count atomic.Int32
}

func newDiscovering(t *testing.T) *discovering {
	d := &discovering{asked: make(chan http.ResponseWriter), end: make(chan struct{})}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		d.count.Add(1)
		w.Header().Set("Content-Type", "application/json")
		select {
		case d.asked <- w:
		case <-r.Context().Done():
			return
		}
		select {
		case <-d.end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { d.CloseClientConnections(); d.Close() })
	return d
}

func (d *discovering) learn(ctx context.Context, p *peer) error {
	v := new(servers)
	v.Call, v.host = &Call{Context: ctx}, &Host{Options: Options{Timeout: time.Minute}}
	return v.learn(p, &mcp.Upstream{URL: d.URL, Via: http.DefaultTransport})
}

// TestCallersOfASilentServer: while one asks a server that does not answer, another may
// leave; and once that one has given up, the others ask at the same time.
func TestCallersOfASilentServer(t *testing.T) {
	t.Parallel()
	d, p := newDiscovering(t), new(peer)
	first, giveUp := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.learn(first, p); !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
	})
	<-d.asked
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := d.learn(left, p); !errors.Is(err, context.Canceled) {
		t.Errorf("one that left: %v", err)
	}
	const others = 5
	for range others {
		wg.Go(func() {
			if err := d.learn(t.Context(), p); err != nil {
				t.Errorf("another: %v", err)
			}
		})
	}
	giveUp()
	for range others {
		_, _ = io.WriteString(<-d.asked, `{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28","2025-11-25"]}}`)
	}
	close(d.end)
	wg.Wait()
	if !p.known || !p.modern || !p.legacy {
		t.Errorf("%+v", p)
	}
}

// TestAServerIsAskedOnce: what one caller was told counts for all that waited.
func TestAServerIsAskedOnce(t *testing.T) {
	t.Parallel()
	d, p := newDiscovering(t), new(peer)
	var wg sync.WaitGroup
	ask := func() {
		wg.Go(func() {
			if err := d.learn(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	ask()
	w := <-d.asked
	for range 20 {
		ask()
	}
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28"]}}`)
	close(d.end)
	wg.Wait()
	if n := d.count.Load(); n != 1 || !p.known || !p.modern || p.legacy {
		t.Errorf("asked %d times: %+v", n, p)
	}
}
