package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/shared/app/plane"
	"gateway/shared/pricing"
	"gateway/shared/relay"
	"gateway/shared/usage"
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

func (in *instance) waited() []time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.waits)
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
func TestFallbackCoversEveryFault(t *testing.T) {
	t.Parallel()
	r := start(t)
	faults := []struct {
		name, directives, more string
		stream                 bool
		status                 int    // of the first attempt; 0: no answer
		code                   string // of its error
	}{
		{"rate limit", "status=429", "", false, 429, "rate_limit_exceeded"},
		{"server error", "status=500", "", true, 500, "provider_error"},
		{"overloaded", "status=529", "", false, 529, "overloaded"},
		{"no answer", "drop", "", false, 0, "provider_unreachable"},
		{"a page", "html", "", false, 502, "invalid_provider_response"},
		{"error in the first event", "error-event=server_error&after=0", "", true, 500, ""},
		{"stream that ends before it begins", "cut=after:0", "", true, 502, "invalid_provider_response"},
		{"head that does not come", "delay=60s", `,"request_timeout":150`, false, 408, "request_timeout"},
		{"first token that does not come", "silence=after:0&for=60s", `,"first_token_timeout":150`, true, 408, "request_timeout"},
		{"head that does not come in the time for the first token", "delay=60s", `,"first_token_timeout":150`, true, 408, "request_timeout"},
	}
	for _, c := range faults {
		more := ""
		if c.stream {
			more = `,"stream":true`
		}
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", more), "X-Gateway-Config", fallbackOf(target(c.directives, c.more), target("", "")))
		if got.status != 200 || got.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[1]" || got.header.Get("X-Gateway-Retry-Attempt-Count") != "0" {
			t.Fatalf("%s: %d %v %s", c.name, got.status, got.header, got.body)
		}
		if c.stream && !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
			t.Errorf("%s: not a whole stream: %s", c.name, got.body)
		}
	}
	for i, rec := range r.records(len(faults)) {
		c := faults[i]
		if rec.Mode != "fallback" || len(rec.Attempts) != 2 || rec.OptionIndex != "config.targets[1]" || !rec.Fallback() {
			t.Fatalf("%s: %+v", c.name, rec)
		}
		if a := rec.Attempts[0]; a.Status != c.status || c.code != "" && a.ErrorCode != c.code || a.OptionIndex != "config.targets[0]" {
			t.Errorf("%s: first attempt %+v", c.name, a)
		}
		if a := rec.Attempts[1]; a.Status != 200 || a.ErrorCode != "" || a.Usage.N(pricing.Output) == 0 {
			t.Errorf("%s: second attempt %+v", c.name, a)
		}
	}
}

func TestRetriesRepeatTheSameBytes(t *testing.T) {
	t.Parallel()
	r := start(t)
	in := r.instance(new(atomic.Int64))
	config := `{"retry":{"attempts":3},"provider":"@mock","override_params":{"model":"gpt-4o-mini?status=503&times=2"}}`
	got := in.call("POST", "/chat/completions", chatBody("x", "Hello é", `,"metadata":{"a":"b"}`), "X-Gateway-Config", config)
	if got.status != 200 || got.header.Get("X-Gateway-Retry-Attempt-Count") != "2" {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	sent := r.mock.Requests(10)
	if len(sent) != 3 || string(sent[0].Body) != string(sent[1].Body) || string(sent[0].Body) != string(sent[2].Body) {
		t.Errorf("the bodies differ: %s, %s", sent[0].Body, sent[len(sent)-1].Body)
	}
	if waits := in.waited(); !slices.Equal(waits, []time.Duration{time.Second, 2 * time.Second}) {
		t.Errorf("waits %v", waits)
	}
	rec := r.records(1)[0]
	for i, want := range []usage.Attempt{{}, {Retry: 1, Wait: time.Second, WaitReason: usage.WaitBackoff}, {Retry: 2, Wait: 2 * time.Second, WaitReason: usage.WaitBackoff}} {
		if a := rec.Attempts[i]; a.Retry != want.Retry || a.Wait != want.Wait || a.WaitReason != want.WaitReason {
			t.Errorf("attempt %d: %+v", i, a)
		}
	}
	configText := `{"retry":{"attempts":2,"use_retry_after_headers":true},"provider":"@mock","override_params":{"model":"gpt-4o-mini?status=429&retry-after=7&times=1"}}`
	got = in.call("POST", "/chat/completions", chatBody("x", "told", ""), "X-Gateway-Config", configText)
	if waits := in.waited(); got.status != 200 || waits[len(waits)-1] != 7*time.Second {
		t.Errorf("%d, waits %v", got.status, waits)
	}
	if all := r.records(2); all[1].Attempts[1].WaitReason != usage.WaitNamed {
		t.Errorf("%+v", all[1].Attempts)
	}
	long := strings.NewReplacer("retry-after=7&times=1", "retry-after=61").Replace(configText)
	got = in.call("POST", "/chat/completions", chatBody("x", "long", ""), "X-Gateway-Config", long)
	if got.status != 429 || got.header.Get("X-Gateway-Retry-Attempt-Count") != "-1" || len(in.waited()) != 3 {
		t.Errorf("%d %v, waits %v", got.status, got.header, in.waited())
	}
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

func TestLoadbalanceFollowsItsWeights(t *testing.T) {
	t.Parallel()
	r := start(t)
	const n = 300
	config := `{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@mock","weight":3},{"provider":"@mock","weight":1},{"provider":"@mock","weight":0}]}`
	seen := map[string]int{}
	for range n {
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", config)
		seen[got.header.Get("X-Gateway-Last-Used-Option-Index")]++
	}
	// The deviation is 7.5; 60 are eight of them.
	if got := seen["config.targets[0]"]; got < 225-60 || got > 225+60 || seen["config.targets[0]"]+seen["config.targets[1]"] != n {
		t.Errorf("%v", seen)
	}
	for _, rec := range r.records(n) {
		if len(rec.Draws) != 1 || rec.Draws[0].Path != "config" || fmt.Sprintf("config.targets[%d]", rec.Draws[0].Index) != rec.OptionIndex || rec.Draws[0].Sticky != "" {
			t.Fatalf("%s: %+v", rec.OptionIndex, rec.Draws)
		}
	}
}

func TestStickyRulesHoldInEveryProcess(t *testing.T) {
	t.Parallel()
	r := start(t)
	clock := new(atomic.Int64)
	one, other := r.instance(clock), r.instance(clock)
	slug := r.saveConfig(`{"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["metadata.session"]}},"targets":[{"provider":"@mock"},{"provider":"@mock"},{"provider":"@mock","weight":2}]}`)
	seen := map[string]int{}
	for i := range 40 {
		headers := []string{"X-Gateway-Config", slug, "X-Gateway-Metadata", fmt.Sprintf(`{"session":"s-%d"}`, i)}
		var paths []string
		for _, in := range []*instance{one, other, one} {
			got := in.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), headers...)
			paths = append(paths, got.header.Get("X-Gateway-Last-Used-Option-Index"))
		}
		if paths[0] == "" || paths[0] != paths[1] || paths[0] != paths[2] {
			t.Errorf("session %d: %v", i, paths)
		}
		seen[paths[0]]++
	}
	if len(seen) != 3 {
		t.Errorf("40 sessions went to %v", seen)
	}
	how := map[string]int{}
	for _, rec := range r.records(120) {
		how[rec.Draws[0].Sticky]++
	}
	if how[usage.StickyHash] != 80 || how[usage.StickyReused] != 40 {
		t.Errorf("%v", how)
	}
}

func TestAHeadIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	r := start(t)
	var wg sync.WaitGroup
	for _, c := range []struct{ path, provider, sign string }{
		{"/chat/completions", "@mock", ": keep-alive\n\n"},
		{"/messages", "@mock-anthropic", "event: ping\n"},
		{"/messages", "@mock", "event: ping\n"},
		{"/chat/completions", "@mock-anthropic", ": keep-alive\n\n"},
	} {
		model := map[string]string{"@mock": "gpt-4o-mini", "@mock-anthropic": "claude-sonnet-4-5"}[c.provider]
		config := fmt.Sprintf(`{"strategy":{"mode":"fallback"},"first_event_hold_ms":100,"targets":[{"provider":%q},{"provider":%q}]}`, c.provider, c.provider)
		wg.Go(func() {
			got, err := r.try("POST", c.path, chatBody(model, "mock: silence=after:0 for=3s", `,"stream":true,"max_tokens":50`), "X-Gateway-Config", config)
			all := events(got.body)
			if err != nil || got.status != 200 || !strings.HasPrefix(got.body, c.sign) || strings.Contains(got.body, "[DONE]") || len(all) == 0 || !strings.Contains(all[len(all)-1], `"error"`) {
				t.Errorf("%s %s: %v %d %s", c.path, c.provider, err, got.status, got.body)
			}
			if index := got.header.Get("X-Gateway-Last-Used-Option-Index"); index != "config.targets[0]" {
				t.Errorf("a stream that has begun cannot fall back: %s", index)
			}
		})
		// A stream that only comes late comes whole.
		wg.Go(func() {
			got, err := r.try("POST", c.path, chatBody(model, "mock: pace=60ms chunks=2", `,"stream":true,"max_tokens":50`), "X-Gateway-Config", strings.Replace(config, "100", "20", 1))
			if err != nil || got.status != 200 || strings.Contains(got.body, `"error"`) {
				t.Errorf("%s %s: %v %d %s", c.path, c.provider, err, got.status, got.body)
			}
		})
	}
	wg.Wait()
	// Without a hold the head goes out at once and nothing can be tried again.
	got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "mock: error-event=server_error after=0", `,"stream":true`),
		"X-Gateway-Config", `{"strategy":{"mode":"fallback"},"first_event_hold_ms":0,"targets":[{"provider":"@mock"},{"provider":"@mock"}]}`)
	if got.status != 200 || strings.Contains(got.body, "[DONE]") || !strings.Contains(got.body, `"error"`) || len(r.mock.Requests(100)) != 9 {
		t.Errorf("%d %s, %d requests", got.status, got.body, len(r.mock.Requests(100)))
	}
}

// The first event of a Messages stream goes out before the second is in, where
// no other target or attempt could take its place.
func TestFirstEventsOfMessagesGoOutAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	for config, begins := range map[string]bool{
		`{"provider":"@mock-anthropic"}`:                                                                             true,
		`{"provider":"@mock-anthropic","retry":{"attempts":1,"on_status_codes":[503]}}`:                              false,
		`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock-anthropic"},{"provider":"@mock-anthropic"}]}`: false,
	} {
		got := r.call("POST", "/messages", chatBody("claude-sonnet-4-5", "mock: silence=after:1 for=200ms", `,"stream":true,"max_tokens":50`), "X-Gateway-Config", config)
		if begins != (got.status == 200 && strings.HasPrefix(got.body, "event: message_start\n")) || !strings.Contains(got.body, `"error"`) {
			t.Errorf("%s: %d %s", config, got.status, got.body)
		}
	}
	for _, rec := range r.records(3) {
		if rec.ErrorCode == "" || rec.Usage.InputTokens() == 0 {
			t.Errorf("%q %+v", rec.ErrorCode, rec.Usage)
		}
	}
}

//lane:standard
func TestSilentStreamsEnd(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ path, model, directive, header, value string }{
		{"/chat/completions", "@mock/gpt-4o-mini", "chunks=9 silence=after:4 for=60s", "X-Gateway-Stream-Idle-Timeout", "1000"}, // a slow machine takes some of it for what comes before
		{"/messages", "@mock/gpt-4o-mini", "chunks=9 silence=after:4 for=60s", "X-Gateway-Stream-Idle-Timeout", "1000"},
		{"/chat/completions", "@mock-anthropic/claude-sonnet-4-5", "chunks=9 silence=after:5 for=60s", "X-Gateway-Stream-Idle-Timeout", "1000"},
	} {
		got := r.call("POST", c.path, chatBody(c.model, "mock: "+c.directive, `,"stream":true,"max_tokens":50`), c.header, c.value)
		all := events(got.body)
		if got.status != 200 || strings.Contains(got.body, "[DONE]") || strings.Contains(got.body, "message_stop") || !strings.Contains(all[len(all)-1], "idle timeout") {
			t.Errorf("%s %s: %d %s", c.path, c.model, got.status, got.body)
		}
	}
	for _, rec := range r.records(3) {
		if rec.ErrorCode != "request_timeout" || !rec.Usage.Estimated || rec.Usage.OutputTokens() == 0 {
			t.Errorf("%s %+v", rec.ErrorCode, rec.Usage)
		}
	}
	got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "mock: silence=after:0 for=60s", `,"stream":true`), "X-Gateway-First-Token-Timeout", "150")
	if got.status != 408 || !strings.Contains(got.body, "first token timeout") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, bad := range []string{"x", "-1", "600001", "1.5", "99999999999999999999"} {
		for _, header := range []string{"X-Gateway-First-Token-Timeout", "X-Gateway-Stream-Idle-Timeout"} {
			got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), header, bad)
			if got.status != 400 || !strings.Contains(got.body, strings.ToLower(header)) {
				t.Errorf("%s: %s: %d %s", header, bad, got.status, got.body)
			}
		}
	}
}

func TestTheAnswerFollowsTheBodyThatIsSent(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct {
		path, provider, config, requested string
		stream, usage                     bool
	}{
		{"/chat/completions", "@mock", `"override_params":{"stream":true}`, "", true, false},
		{"/chat/completions", "@mock", `"override_params":{"stream":true,"stream_options":{"include_usage":true}}`, "", true, true},
		{"/chat/completions", "@mock", `"override_params":{"stream":false},"drop_params":["stream_options"]`, `,"stream":true,"stream_options":{"include_usage":true}`, false, true},
		{"/chat/completions", "@mock", `"default_params":{"stream":true}`, "", true, false},
		{"/chat/completions", "@mock", `"default_params":{"stream":true}`, `,"stream":false`, false, true},
		{"/chat/completions", "@mock", `"drop_params":["stream"]`, `,"stream":true`, false, true},
		{"/chat/completions", "@mock-anthropic", `"override_params":{"stream":true}`, "", true, false},
		{"/chat/completions", "@mock-anthropic", `"override_params":{"stream":false}`, `,"stream":true`, false, true},
		{"/messages", "@mock", `"override_params":{"stream":true}`, "", true, true},
		{"/messages", "@mock-anthropic", `"override_params":{"stream":false}`, `,"stream":true`, false, true},
	} {
		model := map[string]string{"@mock": "gpt-4o-mini", "@mock-anthropic": "claude-sonnet-4-5"}[c.provider]
		got := r.call("POST", c.path, chatBody(model, "Hello", `,"max_tokens":50`+c.requested), "X-Gateway-Config", `{"provider":"`+c.provider+`",`+c.config+`}`)
		kind := "application/json"
		if c.stream {
			kind = "text/event-stream; charset=utf-8"
		}
		if got.status != 200 || got.header.Get("Content-Type") != kind || strings.Contains(got.body, `"usage":{`) != c.usage {
			t.Errorf("%+v: %d %s %s", c, got.status, got.header.Get("Content-Type"), got.body)
		}
	}
	for i, rec := range r.records(10) {
		if rec.Usage.Estimated || !rec.Usage.IsReported() || rec.ErrorCode != "" {
			t.Errorf("record %d: %+v %s", i, rec.Usage, rec.ErrorCode)
		}
	}
	// The next target starts from the client's own body again.
	got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", fallbackOf(
		`{"provider":"@mock","override_params":{"stream":true,"model":"gpt-4o-mini?status=500"}}`, `{"provider":"@mock"}`))
	if got.status != 200 || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", got.status, got.header)
	}
	got = r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", `{"provider":"@mock","override_params":{"n":1000}}`)
	if got.status != 400 || !strings.Contains(got.body, `"n"`) {
		t.Errorf("what a config makes of a body keeps to the bounds: %d %s", got.status, got.body)
	}
}

func TestAnExhaustedFallbackReportsItsAttempts(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := fallbackOf(target("status=429", ""), `{"provider":"@nobody"}`, target("status=503", ""))
	for _, strict := range []string{"true", "false"} {
		got := r.call("POST", "/chat/completions", chatBody("x", "Hello", ""), "X-Gateway-Config", config, "X-Gateway-Strict-Open-Ai-Compliance", strict)
		if got.status != 503 || got.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[2]" || got.header.Get("X-Gateway-Provider") != "openai" {
			t.Fatalf("%d %v %s", got.status, got.header, got.body)
		}
		list, ok := got.json(t)["attempts"].([]any)
		if ok != (strict == "false") {
			t.Errorf("strict %s: %s", strict, got.body)
		}
		if !ok {
			continue
		}
		want := []string{"config.targets[0] 429", "config.targets[2] 503", "config.targets[1] 400"}
		for i, a := range list {
			a := a.(map[string]any)
			if have := fmt.Sprint(a["option_index"], " ", a["status"]); i >= len(want) || have != want[i] {
				t.Errorf("attempt %d: %s", i, have)
			}
		}
	}
	rec := r.records(2)[1]
	if len(rec.Attempts) != 2 || len(rec.Skips) != 1 || rec.Skips[0].Path != "config.targets[1]" || rec.Skips[0].Reason != usage.SkipRejected || rec.Skips[0].Status != 400 || rec.Skips[0].Code == "" {
		t.Errorf("%+v %+v", rec.Attempts, rec.Skips)
	}
	got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", `{"provider":"@mock","metadata":"`+strings.Repeat("x", 16<<10)+`"}`)
	if got.status != 400 || !strings.Contains(got.body, "16384") {
		t.Errorf("a large config in the header: %d %s", got.status, got.body)
	}
}

func TestPassthroughTargetsTakeTheProviderOfTheRequest(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := fallbackOf(`{"passthrough":true,"override_params":{"user":"passed"}}`, `{"provider":"@mock","override_params":{"user":"kept"}}`)
	for _, c := range []struct {
		name, model, index string
		headers            []string
	}{
		{"saved provider in the header", "gpt-4o-mini", "config.targets[0]", []string{"X-Gateway-Provider", "@mock"}},
		{"saved provider in the model", "@mock/gpt-4o-mini", "config.targets[0]", nil},
		{"header before model", "@nobody/gpt-4o-mini", "config.targets[0]", []string{"X-Gateway-Provider", "@mock"}},
		{"none: the next target", "gpt-4o-mini", "config.targets[1]", nil},
		{"unknown: the next target", "gpt-4o-mini", "config.targets[1]", []string{"X-Gateway-Provider", "@nobody"}},
	} {
		got := r.call("POST", "/chat/completions", chatBody(c.model, "Hello", ""), append(c.headers, "X-Gateway-Config", config)...)
		if got.status != 200 || got.header.Get("X-Gateway-Last-Used-Option-Index") != c.index {
			t.Errorf("%s: %d %v %s", c.name, got.status, got.header, got.body)
		}
	}
	got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", `{"passthrough":true}`)
	if got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
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
