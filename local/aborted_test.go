package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// The gateway ends a request before any part of the response came. The provider has read it
// all the same and charges for that: so each call is recorded by an estimate of what was
// sent, and the budget has spent exactly that.
func TestAbortedRequestIsChargedForItsInput(t *testing.T) {
	t.Parallel()
	r := startDraining(t)
	const late, silent = "mock: delay=1m stop-on-cancel", "mock: silence=after:0 for=1m"
	words := strings.Repeat("many words to pay for ", 200)
	twice := `{"provider":"@mock","request_timeout":3000,"retry":{"attempts":1,"on_status_codes":[408]}}`
	kinds := []struct {
		name, path, model, directives, more, config string
		leaves                                      bool
		calls                                       int
		code                                        string
	}{
		{"plain, its time ran out", "/chat/completions", "@mock/gpt-4o-mini", late, "", `{"request_timeout":3000}`, false, 1, "request_timeout"},
		{"plain, translated", "/chat/completions", "@mock-anthropic/claude-sonnet-4-5", late, "", `{"request_timeout":3000}`, false, 1, "request_timeout"},
		{"a stream, its time ran out", "/messages", "@mock-anthropic/claude-sonnet-4-5", late, `,"stream":true,"max_tokens":50`, `{"request_timeout":3000}`, false, 1, "request_timeout"},
		{"a stream without a head", "/chat/completions", "@mock/gpt-4o-mini", late, `,"stream":true`, `{"first_token_timeout":3000}`, false, 1, "request_timeout"},
		{"a stream with a head", "/chat/completions", "@mock/gpt-4o-mini", silent, `,"stream":true`, `{"first_token_timeout":3000}`, false, 1, "request_timeout"},
		{"retried", "/chat/completions", "@mock/gpt-4o-mini", late, "", twice, false, 2, "request_timeout"},
		{"a fallback", "/chat/completions", "gpt-4o-mini", late, "", `{"strategy":{"mode":"fallback"},"request_timeout":3000,"targets":[{"provider":"@mock"},{"provider":"@mock-anthropic","override_params":{"model":"claude-sonnet-4-5"}}]}`, false, 2, "request_timeout"},
		{"a client that leaves", "/chat/completions", "@mock/gpt-4o-mini", late, "", "", true, 1, ""},
		{"one that leaves a translation", "/messages", "@mock/gpt-4o-mini", late, `,"max_tokens":50`, "", true, 1, ""},
		{"one that leaves a stream", "/chat/completions", "@mock/gpt-4o-mini", late, `,"stream":true`, "", true, 1, ""},
		{"one that leaves a stream with a head", "/messages", "@mock-anthropic/claude-sonnet-4-5", silent, `,"stream":true,"max_tokens":50`, "", true, 1, ""},
		{"one that leaves a held body", "/chat/completions", "@mock/gpt-4o-mini", silent, "", "", true, 1, ""},
		{"one that leaves what is passed through", "/proxy/chat/completions", "gpt-4o-mini", late, "", "", true, 1, ""},
	}
	keys := make([]string, len(kinds))
	var runOut sync.WaitGroup // those whose time runs out: a provider has them long before, also on a slow machine
	for i, c := range kinds {
		keys[i] = r.newKey(`"usage_limits":{"type":"cost","credit_limit":50}`)
		headers := []string{"X-Gateway-Api-Key", keys[i], "X-Gateway-Trace-Id", fmt.Sprint("given-up-", i)}
		if c.config != "" {
			headers = append(headers, "X-Gateway-Config", c.config)
		}
		if strings.HasPrefix(c.path, "/proxy") {
			headers = append(headers, "X-Gateway-Provider", "@mock")
		}
		body := chatBody(c.model, words+"\n"+c.directives, c.more)
		if !c.leaves {
			runOut.Go(func() {
				if got := r.call("POST", c.path, body, headers...); got.status != http.StatusRequestTimeout {
					t.Errorf("%s: %d %s", c.name, got.status, got.body)
				}
			})
			continue
		}
		runOut.Wait()
		r.leaveUnanswered(c.path, body, headers...)
	}
	for i, c := range kinds {
		rec := r.recordOf(fmt.Sprint("given-up-", i))
		if len(rec.Attempts) != c.calls || c.code != "" && rec.ErrorCode != c.code {
			t.Errorf("%s: %q %+v", c.name, rec.ErrorCode, rec.Attempts)
		}
		var sum pricing.NanoDollars
		for n, a := range rec.Attempts {
			if in := a.Usage.N(pricing.Input); in < int64(len(words))/6 || in > int64(len(words)) || a.Usage.OutputTokens() != 0 || !a.Usage.Estimated || a.Cost == 0 {
				t.Errorf("%s: call %d is booked as %+v for %d", c.name, n, a.Usage, a.Cost)
			}
			sum += a.Cost
		}
		if rec.Cost != sum {
			t.Errorf("%s: %d of %d", c.name, rec.Cost, sum)
		}
		eventually(t, func() error { return usageIs(r, keys[i], int64(rec.Cost)) })
	}
}

// What a provider continues with automatically is recorded by whoever reads it, and not by a guess
// besides; a picture that is passed through is not counted by the letters that it came in.
func TestAbortedRequestIsChargedOnceAndNotByLetters(t *testing.T) {
	t.Parallel()
	r := startDraining(t)
	host := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		<-req.Context().Done()
	}))
	t.Cleanup(host.Close)
	config := fmt.Sprintf(`{"provider":"openai","api_key":"sk-slow","custom_host":%q,"request_timeout":2000}`, host.URL+"/v1")
	picture := `[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("AAAA", 50_000) + `"}}]}]`
	for i, c := range []struct {
		name, path, body string
		least, most      int64 // tokens
	}{
		{"a run of a thread", "/proxy/threads/thread_1/runs", `{"assistant_id":"asst_1","model":"gpt-4o-mini","additional_instructions":"many words"}`, 0, 0},
		{"a response in the background", "/responses", `{"model":"gpt-4o-mini","background":true,"input":"many words"}`, 0, 0},
		{"a passed response in the background", "/proxy/responses", `{"model":"gpt-4o-mini","background":true,"input":"many words"}`, 0, 0},
		{"a picture", "/chat/completions", `{"model":"gpt-4o-mini","messages":` + picture + `}`, 1, 5000},
		{"a picture that is passed through", "/proxy/chat/completions", `{"model":"gpt-4o-mini","messages":` + picture + `}`, 1, 5000},
	} {
		key, trace := r.newKey(`"usage_limits":{"type":"cost","credit_limit":50}`), fmt.Sprint("later-", i)
		got := r.call("POST", c.path, c.body, "X-Gateway-Api-Key", key, "X-Gateway-Config", config, "X-Gateway-Trace-Id", trace, "Idempotency-Key", trace)
		rec := r.recordOf(trace)
		if in := rec.Usage.N(pricing.Input); got.status != http.StatusRequestTimeout || in < c.least || in > c.most {
			t.Errorf("%s: %d, %d tokens", c.name, got.status, in)
		}
		eventually(t, func() error { return usageIs(r, key, int64(rec.Cost)) })
	}
}

// What never reached a provider whole, or was rejected by it, costs nothing.
func TestWhatNoProviderHadCostsNothing(t *testing.T) {
	t.Parallel()
	r := startDraining(t)
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := shut.Addr().String()
	_ = shut.Close()
	for i, c := range []struct{ name, directives, config string }{
		{"no connection", "", `{"provider":"@mock","custom_host":"http://` + closed + `/v1","request_timeout":300}`},
		{"a refusal", "mock: status=500", `{"provider":"@mock","request_timeout":60000}`},
		{"a refusal that is slow", "mock: delay=50ms status=429", `{"provider":"@mock","request_timeout":60000}`},
		{"a connection that is closed", "mock: drop", `{"provider":"@mock","request_timeout":60000}`},
	} {
		key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":50}`)
		trace := fmt.Sprint("unpaid-", i)
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello\n"+c.directives, ""), "X-Gateway-Api-Key", key, "X-Gateway-Config", c.config, "X-Gateway-Trace-Id", trace)
		if rec := r.recordOf(trace); got.status < 400 || rec.Cost != 0 || rec.Usage.IsReported() {
			t.Errorf("%s: %d %s %+v", c.name, got.status, got.body, rec.Usage)
		}
		eventually(t, func() error { return usageIs(r, key, 0) })
	}
}

// startDraining runs a gateway that reads a response on for a moment only once its client
// has gone.
func startDraining(t *testing.T) *running {
	t.Helper()
	o, err := parse([]string{"-addr", "127.0.0.1:0", "-data", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	o.drain = 50 * time.Millisecond
	return startWith(t, o)
}

// leaveUnanswered asks and goes once the provider has the request.
func (r *running) leaveUnanswered(path, body string, headers ...string) {
	r.t.Helper()
	before := len(r.mock.Bill().Rows)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	eventually(r.t, func() error {
		if len(r.mock.Bill().Rows) == before {
			return fmt.Errorf("the provider was not asked")
		}
		return nil
	})
	cancel()
	<-over
}

// recordOf is the record of the request with a trace id.
func (r *running) recordOf(trace string) (rec usage.Record) {
	r.t.Helper()
	eventually(r.t, func() error {
		for _, rec = range archived(r.t, r.g) {
			if rec.TraceID == trace {
				return nil
			}
		}
		return fmt.Errorf("no record of %s", trace)
	})
	return rec
}
