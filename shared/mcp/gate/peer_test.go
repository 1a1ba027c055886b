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

// delayedDiscovery is a server that delays its discovery response until the test releases it.
type delayedDiscovery struct {
	requests atomic.Int32
	answer   chan string
}

func (d *delayedDiscovery) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	if err := req.Context().Err(); err != nil { // as a connection does
		return nil, err
	}
	d.requests.Add(1)
	select {
	case answer := <-d.answer:
		head := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusOK, Header: head, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (d *delayedDiscovery) learn(ctx context.Context, p *peer) error {
	v := new(requestState)
	v.call, v.host = &Call{Context: ctx}, &Host{Options: Options{Timeout: time.Minute}}
	return detectVersions(v, p, &mcp.Upstream{URL: "https://tools.example/mcp", RoundTripper: d})
}

// While one caller waits for a silent server, another may abort. When the first times out, the
// others probe concurrently.
func TestCallersProbeAfterFirstTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, p := &delayedDiscovery{answer: make(chan string)}, new(peer)
		var wg sync.WaitGroup
		probe := func(ctx context.Context, want error) {
			wg.Go(func() {
				if err := d.learn(ctx, p); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			})
			synctest.Wait() // it probes, or waits for the probe
		}
		first, giveUp := context.WithCancel(t.Context())
		probe(first, context.Canceled)
		left, leave := context.WithCancel(t.Context())
		leave()
		probe(left, context.Canceled)
		const others = 5
		for range others {
			probe(t.Context(), nil)
		}
		if n := d.requests.Load(); n != 1 {
			t.Errorf("asked %d times while one asks", n)
		}
		giveUp()
		synctest.Wait()
		if n := d.requests.Load(); n != 1+others {
			t.Errorf("asked %d times once the first has given up", n)
		}
		for range others {
			d.answer <- `{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28","2025-11-25"]}}`
		}
		wg.Wait()
		if !p.known || !p.stateless || !p.sessioned {
			t.Errorf("%+v", p)
		}
	})
}

// The result of one probe serves all waiting and later callers.
func TestProbeIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, p := &delayedDiscovery{answer: make(chan string)}, new(peer)
		var wg sync.WaitGroup
		probe := func() {
			wg.Go(func() {
				if err := d.learn(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		for range 20 {
			probe()
		}
		synctest.Wait()
		d.answer <- `{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28"]}}`
		wg.Wait()
		probe()
		wg.Wait()
		if n := d.requests.Load(); n != 1 || !p.known || !p.stateless || p.sessioned {
			t.Errorf("asked %d times: %+v", n, p)
		}
	})
}
