package relay_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/testkit/relaytest"
)

var routes = []relay.Route{
	{Method: "POST", Path: "/chat/completions", Endpoint: "chatComplete", BodyMode: relay.Unified, Scope: "completions.write", Client: openai.Chat{}, Operation: provider.Chat},
	{Method: "POST", Path: "/messages", Endpoint: "messages", BodyMode: relay.Unified, Scope: "completions.write", Client: anthropic.Messages{}, Operation: provider.Messages},
}

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"
	question     = `{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}]}`
	claudeAsked  = `{"model":"claude-sonnet-4-5","max_tokens":16,"messages":[{"role":"user","content":"Hi"}]}`
	reply        = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`
	claudeReply  = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":10}}`
	limited      = `{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}`
	broken       = `{"error":{"message":"it broke","type":"server_error"}}`
	invalid      = `{"error":{"message":"no such field","type":"invalid_request_error","param":"foo"}}`
)

func ok(body string) relaytest.Reply { return relaytest.Reply{Status: 200, Body: body} }
func failure(status int, body string) relaytest.Reply {
	return relaytest.Reply{Status: status, Body: body}
}

func config(text string) []string { return []string{"X-Gateway-Config", text} }

func openAI(more string) string { return `{"provider":"openai","api_key":"sk-first"` + more + `}` }
func claude(more string) string { return `{"provider":"anthropic","api_key":"sk-second"` + more + `}` }

func fallback(targets ...string) string {
	return `{"strategy":{"mode":"fallback"},"targets":[` + strings.Join(targets, ",") + `]}`
}

// errorCode returns the code of an error response.
func errorCode(t *testing.T, body string) string {
	t.Helper()
	var e struct {
		Error struct{ Code, Message, Param string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return e.Error.Code
}

// TestStagesBeforeATarget requires that a request that a stage rejects calls no provider, and
// that its response and record have the status and the code.
func TestStagesBeforeATarget(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	reader := g.Key([]string{"logs.list"}, nil, nil)
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
		code             string // "": any
		says             string // in the response
	}{
		{"no key", chatPath, question, []string{"Authorization", "Bearer gw-wrong"}, 401, "", "key"},
		{"a key without the scope", chatPath, question, append(config(openAI("")), "X-Gateway-Api-Key", reader), 403, "", "completions.write"},
		{"no provider", chatPath, question, nil, 400, "", "provider"},
		{"a body that is no JSON", chatPath, `{"model":`, config(openAI("")), 400, "", ""},
		{"a body that is no object", chatPath, `[1]`, config(openAI("")), 400, "", "object"},
		{"no messages", chatPath, `{"model":"gpt-4o"}`, config(openAI("")), 400, "", "messages"},
		{"no model", chatPath, `{"messages":[{"role":"user","content":"Hi"}]}`, config(openAI("")), 400, "", "model"},
		{"a config that is no JSON", chatPath, question, config(`{`), 400, "", "config"},
		{"an unknown strategy", chatPath, question, config(`{"strategy":{"mode":"dice"},"targets":[` + openAI("") + `]}`), 400, "", "mode"},
		{"weights of zero", chatPath, question, config(`{"strategy":{"mode":"loadbalance"},"targets":[` + openAI(`,"weight":0`) + `]}`), 400, "invalid_config", "weights"},
		{"no condition that holds", chatPath, question, config(`{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.tier":{"$eq":"gold"}},"then":"a"}]},"targets":[` + openAI(`,"name":"a"`) + `]}`), 400, "", "condition"},
		{"an unknown provider", chatPath, question, config(`{"provider":"nobody","api_key":"x"}`), 400, "invalid_config", "a known provider"},
		{"an unknown saved provider", chatPath, question, config(`{"provider":"@gone"}`), 400, "unknown_provider", "gone"},
		{"a private host", chatPath, question, config(openAI(`,"custom_host":"http://10.0.0.1/v1"`)), 400, "", "custom_host"},
		{"a guardrail that denies the input", chatPath, question, config(openAI(`,"input_guardrails":[{"default.contains":{"words":["Hi"],"operator":"none"},"deny":true}]`)), 446, "", "guardrail"},
	} {
		got := g.Do("POST", c.path, c.body, c.headers...)
		if got.Status != c.status || c.code != "" && errorCode(t, got.Body) != c.code || !strings.Contains(strings.ToLower(got.Body), c.says) {
			t.Errorf("%s: %d %s; want %d %s %q", c.name, got.Status, got.Body, c.status, c.code, c.says)
		}
		if calls := g.Calls(); len(calls) > 0 {
			t.Errorf("%s: the provider was called: %+v", c.name, calls)
		}
		if c.status == 401 {
			continue // nobody's request has no record
		}
		if r := g.Record(); r.ClientStatus != c.status || r.ErrorCode == "" || r.Cost != 0 || len(r.Attempts) > 0 {
			t.Errorf("%s: record %d %q, cost %d, %d attempts", c.name, r.ClientStatus, r.ErrorCode, r.Cost, len(r.Attempts))
		}
	}
}

// TestTargetsAndAttempts requires which calls a config makes, with the order of the targets,
// the retries, the waits and the credentials, and what the record says of them.
func TestTargetsAndAttempts(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	retryAfter := relaytest.Reply{Status: 429, Body: limited, Header: http.Header{"Retry-After": {"7"}}}
	for _, c := range []struct {
		name    string
		config  string
		script  []relaytest.Reply
		status  int
		index   string // of the target that responded
		retries string
		hosts   string // of the calls
		waits   int
		says    string
	}{
		{"one target", openAI(""), []relaytest.Reply{ok(reply)}, 200, "config", "0", "api.openai.com", 0, "Hello"},
		{"an error without retries", openAI(""), []relaytest.Reply{failure(500, broken)}, 500, "config", "0", "api.openai.com", 0, "it broke"},
		{"a retry", openAI(`,"retry":{"attempts":2}`), []relaytest.Reply{failure(500, broken), ok(reply)}, 200, "config", "1", "api.openai.com api.openai.com", 1, "Hello"},
		{"all retries", openAI(`,"retry":{"attempts":2}`), []relaytest.Reply{failure(500, broken), failure(500, broken), failure(503, broken)}, 503, "config", "-1", "api.openai.com api.openai.com api.openai.com", 2, "it broke"},
		{"no retry of an invalid request", openAI(`,"retry":{"attempts":2}`), []relaytest.Reply{failure(400, invalid)}, 400, "config", "0", "api.openai.com", 0, "no such field"},
		{"the time that the provider names", openAI(`,"retry":{"attempts":1,"use_retry_after_headers":true}`), []relaytest.Reply{retryAfter, ok(reply)}, 200, "config", "1", "api.openai.com api.openai.com", 1, "Hello"},
		{"only listed statuses", openAI(`,"retry":{"attempts":2,"on_status_codes":[503]}`), []relaytest.Reply{failure(500, broken)}, 500, "config", "0", "api.openai.com", 0, "it broke"},
		{"a fallback", fallback(openAI(""), claude(`,"override_params":{"model":"claude-sonnet-4-5"}`)), []relaytest.Reply{failure(500, broken), ok(claudeReply)}, 200, "config.targets[1]", "0", "api.openai.com api.anthropic.com", 0, "Hello"},
		{"a fallback without a response", fallback(openAI(""), openAI("")), []relaytest.Reply{{Err: http.ErrServerClosed}, ok(reply)}, 200, "config.targets[1]", "0", "api.openai.com api.openai.com", 0, "Hello"},
		{"no further target after a success", fallback(openAI(""), claude("")), []relaytest.Reply{ok(reply)}, 200, "config.targets[0]", "0", "api.openai.com", 0, "Hello"},
		{"no target is left", fallback(openAI(""), openAI("")), []relaytest.Reply{failure(500, broken), failure(429, limited)}, 429, "config.targets[1]", "0", "api.openai.com api.openai.com", 0, "slow down"},
		{"a fallback on listed statuses alone", `{"strategy":{"mode":"fallback","on_status_codes":[429]},"targets":[` + openAI("") + `,` + openAI("") + `]}`, []relaytest.Reply{failure(500, broken)}, 500, "config.targets[0]", "0", "api.openai.com", 0, "it broke"},
		{"a condition", `{"strategy":{"mode":"conditional","conditions":[{"query":{"params.model":{"$eq":"gpt-4o"}},"then":"b"}],"default":"a"},"targets":[` + claude(`,"name":"a"`) + `,` + openAI(`,"name":"b"`) + `]}`, []relaytest.Reply{ok(reply)}, 200, "config.targets[1]", "0", "api.openai.com", 0, "Hello"},
		{"a weight of zero is not called", `{"strategy":{"mode":"loadbalance"},"targets":[` + claude(`,"weight":0`) + `,` + openAI(`,"weight":1`) + `]}`, []relaytest.Reply{ok(reply)}, 200, "config.targets[1]", "0", "api.openai.com", 0, "Hello"},
		{"retries of each target", fallback(openAI(`,"retry":{"attempts":1}`), openAI(`,"retry":{"attempts":1}`)), []relaytest.Reply{failure(500, broken), failure(500, broken), failure(500, broken), ok(reply)}, 200, "config.targets[1]", "1", "api.openai.com api.openai.com api.openai.com api.openai.com", 2, "Hello"},
		{"a success that is no response", fallback(openAI(""), openAI("")), []relaytest.Reply{ok(`<html>`), ok(reply)}, 200, "config.targets[1]", "0", "api.openai.com api.openai.com", 0, "Hello"},
		{"a success without choices", fallback(openAI(""), openAI("")), []relaytest.Reply{ok(`{"id":"a","object":"chat.completion","choices":[]}`), ok(reply)}, 200, "config.targets[1]", "0", "api.openai.com api.openai.com", 0, "Hello"},
	} {
		g.Script(c.script...)
		got := g.Do("POST", chatPath, question, config(c.config)...)
		var hosts []string
		for _, call := range g.Calls() {
			_, rest, _ := strings.Cut(call.URL, "://")
			host, _, _ := strings.Cut(rest, "/")
			hosts = append(hosts, host)
			if key := call.Header.Get("Authorization"); host == "api.openai.com" && key != "Bearer sk-first" {
				t.Errorf("%s: the credential was %q", c.name, key)
			}
			if key := call.Header.Get("X-Api-Key"); host == "api.anthropic.com" && key != "sk-second" {
				t.Errorf("%s: the credential was %q", c.name, key)
			}
			if call.Header.Get("X-Gateway-Config") != "" || call.Header.Get("X-Gateway-Api-Key") != "" {
				t.Errorf("%s: headers of the gateway reached the provider: %v", c.name, call.Header)
			}
		}
		if got.Status != c.status || strings.Join(hosts, " ") != c.hosts || !strings.Contains(got.Body, c.says) {
			t.Errorf("%s: %d %s after calls of %v; want %d %q after %s", c.name, got.Status, got.Body, hosts, c.status, c.says, c.hosts)
		}
		if index, retries := got.Header.Get("X-Gateway-Last-Used-Option-Index"), got.Header.Get("X-Gateway-Retry-Attempt-Count"); index != c.index || retries != c.retries {
			t.Errorf("%s: index %q and %q retries; want %q and %q", c.name, index, retries, c.index, c.retries)
		}
		waits := g.Waits()
		if len(waits) != c.waits {
			t.Errorf("%s: waits %v; want %d", c.name, waits, c.waits)
		}
		if strings.HasPrefix(c.name, "the time that") && waits[0] != 7*time.Second {
			t.Errorf("waited %v; want 7 s", waits)
		}
		r := g.Record()
		if r.ClientStatus != c.status || len(r.Attempts) != len(hosts) || r.OptionIndex != c.index || r.Success() != (c.status == 200) {
			t.Errorf("%s: record of status %d with %d attempts at %q", c.name, r.ClientStatus, len(r.Attempts), r.OptionIndex)
		}
		for i, a := range r.Attempts {
			if want := c.script[i]; a.Status != want.Status && !(want.Status == 200 && a.ErrorCode != "") || a.Server != hosts[i] {
				t.Errorf("%s: attempt %d has status %d at %s; want %d at %s", c.name, i, a.Status, a.Server, want.Status, hosts[i])
			}
		}
		if priced := r.Cost > 0; priced != (c.status == 200) {
			t.Errorf("%s: cost %d", c.name, r.Cost)
		}
	}
}

// TestUsageAndCost requires the exact usage and cost of responses, plain and streamed, native
// and translated, whole and cut.
func TestUsageAndCost(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	const streamed = `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hi"}]}`
	chunk := func(delta, more string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]` + more + "}\n\n"
	}
	const end = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	const sum = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}` + "\n\n"
	text := strings.Repeat("abcd", 100)
	for _, c := range []struct {
		name, path, body, config string
		reply                    relaytest.Reply
		input, output            int64
		estimated                bool
		cost                     pricing.NanoDollars // 2.50 and 10 USD a million; Claude 3 and 15
		says                     string
	}{
		{"plain", chatPath, question, openAI(""), ok(reply), 100, 10, false, 350_000, `"Hello"`},
		{"translated", chatPath, question, claude(`,"override_params":{"model":"claude-sonnet-4-5"}`), ok(claudeReply), 100, 10, false, 450_000, `"finish_reason":"stop"`},
		{"native Messages", messagesPath, claudeAsked, claude(""), ok(claudeReply), 100, 10, false, 450_000, `"end_turn"`},
		{"Messages at OpenAI", messagesPath, claudeAsked, openAI(`,"override_params":{"model":"gpt-4o"}`), ok(reply), 100, 10, false, 350_000, `"end_turn"`},
		{"a stream", chatPath, streamed, openAI(""), ok(chunk(`{"role":"assistant","content":"Hello"}`, "") + end + sum + "data: [DONE]\n\n"), 100, 10, false, 350_000, "[DONE]"},
		{"a stream without usage", chatPath, streamed, openAI(""), ok(chunk(`{"role":"assistant","content":"`+text+`"}`, "") + end + "data: [DONE]\n\n"), -1, 100, true, -1, "[DONE]"},
		{"a stream that is cut", chatPath, streamed, openAI(""), relaytest.Reply{Status: 200, Body: chunk(`{"role":"assistant","content":"`+text+`"}`, ""), Cut: true}, -1, 100, true, -1, "abcd"},
		{"no usage", chatPath, question, openAI(""), ok(`{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}]}`), -1, 100, true, -1, "abcd"},
		{"cached input", chatPath, question, openAI(""), ok(strings.Replace(reply, `"total_tokens":110`, `"total_tokens":110,"prompt_tokens_details":{"cached_tokens":40}`, 1)), 60, 10, false, 300_000, "Hello"},
		{"an absurd count", chatPath, question, openAI(""), ok(strings.Replace(reply, `"prompt_tokens":100`, `"prompt_tokens":9000000000000000000`, 1)), -1, 10, true, -1, "Hello"},
	} {
		g.Script(c.reply)
		got := g.Do("POST", c.path, c.body, config(c.config)...)
		if !strings.Contains(got.Body, c.says) {
			t.Errorf("%s: %d %s; want %q", c.name, got.Status, got.Body, c.says)
		}
		r := g.Record()
		if in := r.Usage.N(pricing.Input); c.input >= 0 && in != c.input || in > 1000 || r.Usage.N(pricing.Output) != c.output || r.Usage.Estimated != c.estimated {
			t.Errorf("%s: %d in, %d out, estimated %t; want %d, %d, %t", c.name, in, r.Usage.N(pricing.Output), r.Usage.Estimated, c.input, c.output, c.estimated)
		}
		if c.cost >= 0 && r.Cost != c.cost || r.Cost <= 0 || !r.Priced {
			t.Errorf("%s: cost %d, priced %t; want %d", c.name, r.Cost, r.Priced, c.cost)
		}
		if cut := c.reply.Cut; cut != (r.ErrorCode != "") || r.Stream != strings.Contains(c.body, `"stream":true`) {
			t.Errorf("%s: error %q, stream %t", c.name, r.ErrorCode, r.Stream)
		}
		g.Calls()
	}
}

// TestUpstreamBodies requires what a target changes in the body that is sent.
func TestUpstreamBodies(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	for _, c := range []struct{ name, path, body, config, want, url string }{
		{"unchanged", chatPath, `{"model":"gpt-4o", "messages":[{"role":"user","content":"Hi"}],"x_new":{"a":[1,2.50]}}`, openAI(""), `{"model":"gpt-4o", "messages":[{"role":"user","content":"Hi"}],"x_new":{"a":[1,2.50]}}`, "https://api.openai.com/v1/chat/completions"},
		{"overridden", chatPath, question, openAI(`,"override_params":{"temperature":0.2,"model":"gpt-4o-mini"}`), `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"temperature":0.2}`, "https://api.openai.com/v1/chat/completions"},
		{"translated", chatPath, question, claude(`,"override_params":{"model":"claude-sonnet-4-5","max_tokens":9}`), `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`, "https://api.anthropic.com/v1/messages"},
		{"a stream asks for usage", chatPath, `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hi"}]}`, openAI(""), `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hi"}],"stream_options":{"include_usage":true}}`, "https://api.openai.com/v1/chat/completions"},
		{"another host", chatPath, question, openAI(`,"custom_host":"https://models.example.com/api/v1"`), question, "https://models.example.com/api/v1/chat/completions"},
		{"Messages at OpenAI", messagesPath, claudeAsked, openAI(`,"override_params":{"model":"gpt-4o"}`), `{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}],"max_tokens":16}`, "https://api.openai.com/v1/chat/completions"},
	} {
		g.Script(ok(reply))
		got := g.Do("POST", c.path, c.body, config(c.config)...)
		calls := g.Calls()
		g.Record()
		if len(calls) != 1 {
			t.Errorf("%s: %d calls, response %d %s", c.name, len(calls), got.Status, got.Body)
			continue
		}
		if c.name == "unchanged" && calls[0].Body != c.want || canonical(t, calls[0].Body) != canonical(t, c.want) || calls[0].URL != c.url || calls[0].Method != "POST" {
			t.Errorf("%s: %s %s\n got %s\nwant %s", c.name, calls[0].Method, calls[0].URL, calls[0].Body, c.want)
		}
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// TestCacheStage requires when the cache responds instead of the provider.
func TestCacheStage(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	cached := openAI(`,"cache":{"mode":"simple","max_age":60}`)
	ask := func(status string, calls int, body string, headers ...string) {
		t.Helper()
		g.Script(ok(reply))
		got := g.Do("POST", chatPath, body, append(config(cached), headers...)...)
		r := g.Record()
		if got.Status != 200 || got.Header.Get("X-Gateway-Cache-Status") != status || r.CacheStatus != status || len(g.Calls()) != calls || !strings.Contains(got.Body, "Hello") {
			t.Errorf("%d with status %q, recorded %q; want %q and %d calls: %s", got.Status, got.Header.Get("X-Gateway-Cache-Status"), r.CacheStatus, status, calls, got.Body)
		}
		if hit := calls == 0; hit != (r.Cost == 0) || hit != (r.CacheSaved > 0) {
			t.Errorf("%s: cost %d, saved %d", status, r.Cost, r.CacheSaved)
		}
	}
	other := strings.Replace(question, "Hi", "Ho", 1)
	ask("MISS", 1, question)
	ask("HIT", 0, question)
	ask("MISS", 1, other)
	ask("MISS", 1, question, "X-Gateway-Cache-Namespace", "elsewhere")
	ask("REFRESH", 1, question, "X-Gateway-Cache-Force-Refresh", "true")
	ask("HIT", 0, question)
	g.Forward(61 * time.Second)
	ask("MISS", 1, question)

	stream := strings.NewReplacer(`{"model`, `{"stream":true,"model`, "Hi", "Stream").Replace(question)
	g.Script(ok(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}` + "\n\ndata: [DONE]\n\n"))
	for i, status := range []string{"MISS", "HIT"} {
		got := g.Do("POST", chatPath, stream, config(cached)...)
		r := g.Record()
		if !strings.Contains(got.Body, "Hello") || !strings.HasSuffix(got.Body, "data: [DONE]\n\n") || r.CacheStatus != status || len(g.Calls()) != 1-i {
			t.Errorf("stream %d: status %q, want %q: %s", i, r.CacheStatus, status, got.Body)
		}
	}

	g.Script(failure(500, broken))
	g.Do("POST", chatPath, strings.Replace(question, "Hi", "Fail", 1), config(cached)...)
	g.Record()
	g.Calls()
	ask("MISS", 1, strings.Replace(question, "Hi", "Fail", 1)) // errors are not cached
}

// TestLimitStages requires that rates and budgets reject requests before a provider is called,
// that what was used is counted, and that a period brings back what it allows.
func TestLimitStages(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	ask := func(key string, want int) relaytest.Response {
		t.Helper()
		g.Script(ok(reply))
		got := g.Do("POST", chatPath, strings.Replace(question, `{`, `{"max_tokens":1000,`, 1), append(config(openAI("")), "X-Gateway-Api-Key", key)...)
		r := g.Record()
		if calls := len(g.Calls()); got.Status != want || (calls == 1) != (want == 200) || r.ClientStatus != want || (r.Refusal != nil) != (want != 200) {
			t.Fatalf("%d with %d calls, refusal %v; want %d: %s", got.Status, calls, r.Refusal, want, got.Body)
		}
		return got
	}
	rated := g.Key([]string{"completions.write"}, []ledger.RateLimit{{Type: ledger.Requests, Unit: ledger.PerMinute, Value: 2}}, nil)
	ask(rated, 200)
	ask(rated, 200)
	if got := ask(rated, 429); got.Header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", got.Header)
	}
	g.Forward(2 * time.Minute)
	ask(rated, 200)

	const limit = 11_000_000 // 0.011 USD; the bound of a request is 0.01 USD and its input
	budgeted := g.Key([]string{"completions.write"}, nil, &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: limit})
	ask(budgeted, 200) // costs 0.00035 USD
	ask(budgeted, 200)
	ask(budgeted, 200) // 0.0103 was left, the bound is 0.0101
	ask(budgeted, 412)
}

// TestOutputGuardrails requires that output guardrails see what the provider sent, and what
// happens to a response that they deny.
func TestOutputGuardrails(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	guard := func(words, more string) string {
		return openAI(`,"output_guardrails":[{"default.contains":{"words":["` + words + `"],"operator":"none"}` + more + `}]`)
	}
	for _, c := range []struct {
		name, config string
		script       []relaytest.Reply
		status       int
		text         bool // the client reads the text
	}{
		{"it passes", guard("secret", `,"deny":true`), []relaytest.Reply{ok(reply)}, 200, true},
		{"it denies", guard("Hello", `,"deny":true`), []relaytest.Reply{ok(reply)}, 446, false},
		{"it only reports", guard("Hello", ""), []relaytest.Reply{ok(reply)}, 246, true},
		{"a denial is repeated", `{"retry":{"attempts":1,"on_status_codes":[446]},` + guard("Hello", `,"deny":true`)[1:], []relaytest.Reply{ok(reply), ok(strings.Replace(reply, "Hello", "Bye", 1))}, 200, false},
		{"a denial goes to the next target", `{"strategy":{"mode":"fallback","on_status_codes":[446]},"targets":[` + guard("Hello", `,"deny":true`) + `,` + openAI("") + `]}`, []relaytest.Reply{ok(reply), ok(reply)}, 200, true},
	} {
		g.Script(c.script...)
		got := g.Do("POST", chatPath, question, config(c.config)...)
		if got.Status != c.status || strings.Contains(got.Body, `"content":"Hello"`) != c.text {
			t.Errorf("%s: %d %s; want %d, text %t", c.name, got.Status, got.Body, c.status, c.text)
		}
		r := g.Record()
		if len(g.Calls()) != len(c.script) || r.Cost == 0 || r.ClientStatus != c.status || len(r.Guards) == 0 {
			t.Errorf("%s: cost %d, status %d, %d guardrails", c.name, r.Cost, r.ClientStatus, len(r.Guards))
		}
	}
}

// TestRecordedBodies requires which bodies the log stores, without credentials.
func TestRecordedBodies(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	for _, c := range []struct {
		name, path, config                string
		script                            []relaytest.Reply
		headers                           []string
		request, sent, received, response string // part of each; "": nothing is stored
	}{
		{"the same format", chatPath, openAI(""), []relaytest.Reply{ok(reply)}, nil, `"Hi"`, "", "", `"Hello"`},
		{"translated", chatPath, claude(`,"override_params":{"model":"claude-sonnet-4-5"}`), []relaytest.Reply{ok(claudeReply)}, nil, `"gpt-4o"`, `"claude-sonnet-4-5"`, `"msg_1"`, `"finish_reason"`},
		{"an error of the provider", chatPath, openAI(""), []relaytest.Reply{failure(401, `{"error":{"message":"wrong key sk-first"}}`)}, nil, `"Hi"`, "", "wrong key", "wrong key"},
		{"a success that is no response", chatPath, openAI(""), []relaytest.Reply{ok(`{"detail":"sk-first is fine"}`)}, nil, `"Hi"`, "", `"detail"`, "invalid_provider_response"},
		{"a response that is cut", chatPath, openAI(""), []relaytest.Reply{{Status: 200, Body: `{"id":"c","choices":[{"ind`, Cut: true}}, nil, `"Hi"`, "", `"choices"`, "error"},
		{"without bodies", chatPath, openAI(""), []relaytest.Reply{ok(reply)}, []string{"X-Gateway-Debug", "false"}, "", "", "", ""},
	} {
		g.Script(c.script...)
		got := g.Do("POST", c.path, question, append(config(c.config), c.headers...)...)
		r := g.Record()
		b := g.Bodies(&r)
		for part, pair := range map[string][2]string{"request": {string(b.Request), c.request}, "sent": {string(b.Sent), c.sent}, "received": {string(b.Received), c.received}, "response": {string(b.Response), c.response}} {
			if !strings.Contains(pair[0], pair[1]) || (pair[0] == "") != (pair[1] == "") {
				t.Errorf("%s: the %s is %q; want %q (%d %s)", c.name, part, pair[0], pair[1], got.Status, got.Body)
			}
		}
		for _, one := range []string{got.Body, string(b.Request), string(b.Sent), string(b.Received), string(b.Response), string(b.RequestHeaders), string(b.SentHeaders), string(b.ResponseHeaders), r.ErrorMessage} {
			if strings.Contains(one, "sk-first") || strings.Contains(one, "sk-second") {
				t.Errorf("%s: a credential is in %s", c.name, one)
			}
		}
		g.Calls()
	}
}
