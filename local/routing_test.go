package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/shared/app/plane"
	"gateway/shared/pricing"
	"gateway/shared/relay"
)

// instance is one more process of the gateway in front of the same stores, with
// a clock that the test moves and waits that take no time.
type instance struct {
	*running
	relay *relay.Relay
	clock *atomic.Int64 // nanoseconds ahead

	mu    sync.Mutex
	waits []time.Duration
}

func (r *running) instance(clock *atomic.Int64) *instance {
	r.t.Helper()
	g := r.g
	in := &instance{clock: clock}
	now := func() time.Time { return time.Now().Add(time.Duration(clock.Load())) }
	in.relay = relay.New(relay.Options{
		Loader: g.core.Loader, Auth: g.core.Auth, Ledger: g.core.Ledger, Prices: pricing.Default(), Sink: g.stores.Journal,
		Sealer: g.core.Sealer, Store: g.core.Store, Egress: g.core.Egress, Transport: g.core.Transport,
		Dialects: plane.Dialects(), Now: now, Cache: g.relay.Cache, CacheTimes: g.relay.CacheTimes,
		Sleep: func(done <-chan struct{}, d time.Duration) bool {
			in.mu.Lock()
			defer in.mu.Unlock()
			in.waits = append(in.waits, d)
			return true
		},
	})
	server := httptest.NewServer(relay.NewMux(in.relay, assembly.DataPlane()))
	r.t.Cleanup(func() { server.Close(); in.relay.Close() })
	moved := *r
	moved.base = server.URL + "/v1"
	in.running = &moved
	return in
}

// saveConfig makes a saved config and gives its slug.
func (r *running) saveConfig(config string) string {
	r.t.Helper()
	got := r.admin("POST", "/configs", fmt.Sprintf(`{"name":"routing","workspace_id":%q,"config":%s}`, r.workspace(), config))
	return got["data"].(map[string]any)["slug"].(string)
}

// target is a target of a config at the mock provider, steered by directives.
func target(directives, more string) string {
	model := "gpt-4o-mini"
	if directives != "" {
		model += "?" + directives
	}
	return fmt.Sprintf(`{"provider":"@mock","override_params":{"model":%q}%s}`, model, more)
}

func fallbackOf(targets ...string) string {
	return `{"strategy":{"mode":"fallback"},"targets":[` + strings.Join(targets, ",") + `]}`
}

//lane:standard
func TestAClientThatLeavesEndsTheWait(t *testing.T) {
	t.Parallel()
	r := start(t) // waits by the machine's clock: 16 s before the fifth retry
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", r.base+"/chat/completions", strings.NewReader(chatBody("gpt-4o-mini", "mock: status=429 retry-after=50", "")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Gateway-Api-Key", workspaceKey)
	req.Header.Set("X-Gateway-Config", `{"strategy":{"mode":"fallback"},"retry":{"attempts":5,"use_retry_after_headers":true},"targets":[{"provider":"@mock"},{"provider":"@mock"}]}`)
	done := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(req)
		done <- err
	}()
	eventually(t, func() error {
		if n := len(r.mock.Requests(10)); n != 1 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	cancel()
	<-done
	rec := r.records(1)[0] // long before the wait would end
	if len(rec.Attempts) != 1 || len(r.mock.Requests(10)) != 1 {
		t.Errorf("a client that went was served on: %+v", rec.Attempts)
	}
}

// In a row: it counts the goroutines of this process.
//
//lane:standard
func TestAProviderThatDiesUnderManyStreams(t *testing.T) {
	r := start(t)
	warm := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", `,"stream":true`))
	if warm.status != 200 {
		t.Fatal(warm.status)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	before := runtime.NumGoroutine()
	const n = 200
	faults := []string{"cut=after:5", "cut=mid:5", "error-event=server_error after=5", "cut=after:7", "silence=after:5 for=50ms", "drop", "error-event=server_error after=0", "status=500"}
	var wg sync.WaitGroup
	var whole, broken atomic.Int64
	for i := range n {
		wg.Go(func() {
			body := chatBody("gpt-4o-mini", fmt.Sprintf("Tell %d\nmock: chunks=20 pace=1ms times=1 %s", i, faults[i%len(faults)]), `,"stream":true`)
			req, err := http.NewRequest("POST", r.base+"/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("X-Gateway-Api-Key", workspaceKey)
			req.Header.Set("X-Gateway-Config", fallbackOf(`{"provider":"@mock"}`, `{"provider":"@mock"}`))
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			all := events(string(got))
			switch {
			case err != nil || resp.StatusCode != 200 || len(all) == 0:
				t.Errorf("%s: %d %v %s", faults[i%len(faults)], resp.StatusCode, err, got)
			case all[len(all)-1] == "[DONE]":
				whole.Add(1)
			case strings.Contains(all[len(all)-1], `"error"`) && !strings.Contains(string(got), "[DONE]"):
				broken.Add(1)
			default:
				t.Errorf("%s: neither whole nor broken: %s", faults[i%len(faults)], got)
			}
		})
	}
	wg.Wait()
	// What dies before the first content is served by the second target.
	if whole.Load() != n*3/8 || broken.Load() != n*5/8 {
		t.Errorf("%d whole, %d broken", whole.Load(), broken.Load())
	}
	client.CloseIdleConnections()
	records := r.records(n + 1)
	ids, failed := map[string]bool{}, int64(0)
	for _, rec := range records {
		ids[rec.ID] = true
		if rec.ClientStatus >= 500 { // a stream that broke is recorded as its failure
			failed++
		} else if rec.ClientStatus != 200 {
			t.Errorf("%d, %+v", rec.ClientStatus, rec.Attempts)
		}
		if len(rec.Attempts) == 0 || len(rec.Attempts) > 2 {
			t.Errorf("%+v", rec.Attempts)
		}
	}
	if failed != broken.Load() {
		t.Errorf("%d records of failures, %d broken streams", failed, broken.Load())
	}
	if len(ids) != n+1 {
		t.Errorf("%d records of %d requests", len(ids), n+1)
	}
	eventually(t, func() error {
		r.g.core.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
		if now := runtime.NumGoroutine(); now > before+20 {
			return fmt.Errorf("%d goroutines, %d before", now, before)
		}
		return nil
	})
}
