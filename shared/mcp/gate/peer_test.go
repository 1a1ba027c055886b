package gate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gateway/shared/mcp"
)

// discovering is a server that is asked which eras it speaks, and answers once it is told
// what.
type discovering struct {
	asked  atomic.Int32
	answer chan string
}

func (d *discovering) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	if err := req.Context().Err(); err != nil { // as a connection does
		return nil, err
	}
	d.asked.Add(1)
	select {
	case answer := <-d.answer:
		head := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusOK, Header: head, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (d *discovering) learn(ctx context.Context, p *peer) error {
	v := new(visit)
	v.call, v.host = &Call{Context: ctx}, &Host{Options: Options{Timeout: time.Minute}}
	return learn(v, p, &mcp.Upstream{URL: "https://tools.example/mcp", Via: d})
}

// TestCallersOfASilentServer: while one caller asks a server that does not answer, another
// may leave; and when the first has given up, the others ask at the same time.
func TestCallersOfASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, p := &discovering{answer: make(chan string)}, new(peer)
		var wg sync.WaitGroup
		ask := func(ctx context.Context, want error) {
			wg.Go(func() {
				if err := d.learn(ctx, p); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			})
			synctest.Wait() // it asks, or waits for one that does
		}
		first, giveUp := context.WithCancel(t.Context())
		ask(first, context.Canceled)
		left, leave := context.WithCancel(t.Context())
		leave()
		ask(left, context.Canceled)
		const others = 5
		for range others {
			ask(t.Context(), nil)
		}
		if n := d.asked.Load(); n != 1 {
			t.Errorf("asked %d times while one asks", n)
		}
		giveUp()
		synctest.Wait()
		if n := d.asked.Load(); n != 1+others {
			t.Errorf("asked %d times once the first has given up", n)
		}
		for range others {
			d.answer <- `{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28","2025-11-25"]}}`
		}
		wg.Wait()
		if !p.known || !p.modern || !p.legacy {
			t.Errorf("%+v", p)
		}
	})
}

// TestAServerIsAskedOnce: what one caller was told counts for all that waited, and for all
// that come later.
func TestAServerIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, p := &discovering{answer: make(chan string)}, new(peer)
		var wg sync.WaitGroup
		ask := func() {
			wg.Go(func() {
				if err := d.learn(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		for range 20 {
			ask()
		}
		synctest.Wait()
		d.answer <- `{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28"]}}`
		wg.Wait()
		ask()
		wg.Wait()
		if n := d.asked.Load(); n != 1 || !p.known || !p.modern || p.legacy {
			t.Errorf("asked %d times: %+v", n, p)
		}
	})
}
