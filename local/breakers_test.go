package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/usage"
)

// order steers the next requests for a model at the mock provider.
func (r *running) order(n int, model, directives string) {
	r.t.Helper()
	got := r.call("POST", "/proxy/__mock/faults", fmt.Sprintf(`{"next":%d,"model":%q,"directives":%q}`, n, model, directives), "X-Gateway-Provider", "@mock")
	if got.status != 204 {
		r.t.Fatalf("%d %s", got.status, got.body)
	}
}

func TestBreakersOpenProbeAndCloseAcrossProcesses(t *testing.T) {
	t.Parallel()
	r := start(t)
	clock := new(atomic.Int64)
	one, other := r.instance(clock), r.instance(clock)
	first := `{"provider":"@mock","override_params":{"model":"gpt-4o"}}`
	slug := r.saveConfig(`{"cb_config":{"failure_threshold":3,"cooldown_interval":30000},"strategy":{"mode":"fallback"},"targets":[` + first + `,{"provider":"@mock"}]}`)
	send := func(in *instance) string {
		t.Helper()
		got := in.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", slug)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		in.relay.Close() // what was learned is told
		return got.header.Get("X-Gateway-Last-Used-Option-Index")
	}
	atFirst := func() int {
		n := 0
		for _, b := range r.mock.Bill().Rows {
			if b.Model == "gpt-4o" {
				n++
			}
		}
		return n
	}
	// Two failures in one process, one in another: together they open it.
	r.order(3, "gpt-4o", "status=500")
	for _, in := range []*instance{one, one, other} {
		if got := send(in); got != "config.targets[1]" {
			t.Fatal(got)
		}
	}
	clock.Add(int64(1100 * time.Millisecond)) // what is known is a second old
	for _, in := range []*instance{one, other} {
		if got := send(in); got != "config.targets[1]" {
			t.Fatal(got)
		}
	}
	if n := atFirst(); n != 3 {
		t.Fatalf("an open target was called: %d calls in all", n)
	}
	records := r.records(6) // with the order to the mock provider
	rec := records[len(records)-1]
	if len(rec.Attempts) != 1 || len(rec.Skips) != 1 || rec.Skips[0] != (usage.Skip{Path: "config.targets[0]", Reason: usage.SkipOpen}) {
		t.Errorf("%+v %+v", rec.Attempts, rec.Skips)
	}
	if len(rec.Breakers) != 2 || !rec.Breakers[0].Open || rec.Breakers[1] != (usage.Breaker{Path: "config.targets[1]"}) {
		t.Errorf("%+v", rec.Breakers)
	}

	// A failed probe opens it again, for both.
	clock.Add(int64(30 * time.Second))
	r.order(1, "gpt-4o", "status=500")
	if got := send(one); got != "config.targets[1]" {
		t.Fatal(got)
	}
	clock.Add(int64(1100 * time.Millisecond))
	if got := send(other); got != "config.targets[1]" || atFirst() != 4 {
		t.Fatal(got)
	}

	// After another cooldown one request of all probes it; a good response closes it.
	clock.Add(int64(31 * time.Second))
	r.order(1, "gpt-4o", "delay=300ms")
	var wg sync.WaitGroup
	var served atomic.Int64
	for i := range 20 {
		wg.Go(func() {
			in := []*instance{one, other}[i%2]
			got, err := in.try("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", slug)
			if err != nil || got.status != 200 {
				t.Errorf("%v %d", err, got.status)
			}
			if got.header.Get("X-Gateway-Last-Used-Option-Index") == "config.targets[0]" {
				served.Add(1)
			}
		})
	}
	wg.Wait()
	one.relay.Close()
	other.relay.Close()
	if n := served.Load(); n < 1 {
		t.Error("no request probed the target")
	}
	clock.Add(int64(1100 * time.Millisecond))
	for _, in := range []*instance{one, other} {
		if got := send(in); got != "config.targets[0]" {
			t.Errorf("the breaker is not closed: %s", got)
		}
	}
}

// TestStreamsThatBreakCountForBreakers: a provider whose streams break in the middle is
// left out like one that does not answer.
func TestStreamsThatBreakCountForBreakers(t *testing.T) {
	t.Parallel()
	r := start(t)
	in := r.instance(new(atomic.Int64))
	slug := r.saveConfig(`{"cb_config":{"failure_threshold":2,"cooldown_interval":30000},"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock","override_params":{"model":"gpt-4o"}},{"provider":"@mock"}]}`)
	send := func(path, fault, want string) {
		t.Helper()
		if fault != "" {
			r.order(1, "gpt-4o", fault)
		}
		got := in.call("POST", path, chatBody("gpt-4o-mini", "Hello", `,"stream":true,"max_tokens":50`), "X-Gateway-Config", slug)
		if broken := strings.Contains(got.body, `"error"`); got.status != 200 || broken != (fault != "") || got.header.Get("X-Gateway-Last-Used-Option-Index") != want {
			t.Fatalf("%s: %d %v %s", fault, got.status, got.header, got.body)
		}
	}
	send("/chat/completions", "cut=after:3", "config.targets[0]")
	send("/chat/completions", "", "config.targets[0]") // what began well and ended well does not forget it
	send("/messages", "error-event=server_error after=3", "config.targets[0]")
	send("/chat/completions", "", "config.targets[1]")
	in.relay.Close()
	other := r.instance(new(atomic.Int64))
	if got := other.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", slug); got.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[1]" {
		t.Errorf("another process: %d %v", got.status, got.header)
	}
}

func TestConfigsOfRequestsHaveNoBreaker(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := `{"cb_config":{"failure_threshold":1,"cooldown_interval":30000},"strategy":{"mode":"fallback"},"targets":[` + target("status=500", "") + "," + target("", "") + `]}`
	for range 3 {
		r.call("POST", "/chat/completions", chatBody("x", "Hello", ""), "X-Gateway-Config", config)
	}
	for _, rec := range r.records(3) {
		if len(rec.Attempts) != 2 || len(rec.Breakers) != 0 {
			t.Errorf("%+v %+v", rec.Attempts, rec.Breakers)
		}
	}
}
