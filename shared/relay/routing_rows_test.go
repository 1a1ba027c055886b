package relay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/testkit/relaytest"
	"gateway/shared/usage"
)

const streamed = `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hi"}]}`

var helloStream = sse(piece("Hello", ""), lastChunk+shortly+"}", ended)

// TestFallbackCoversEveryFault requires that each fault of a target before its first token has the
// next one called, with the status and the code of the failed attempt.
func TestFallbackCoversEveryFault(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	for _, c := range []struct {
		name, more string
		reply      relaytest.Reply
		stream     bool
		status     int // of the first attempt; 0: no response
		code       string
	}{
		{"rate limit", "", failure(429, limited), false, 429, "rate_limit_exceeded"},
		{"server error", "", failure(500, broken), true, 500, "provider_error"},
		{"overloaded", "", failure(529, broken), false, 529, "overloaded"},
		{"no response", "", relaytest.Reply{Err: fmt.Errorf("it hung up")}, false, 0, "provider_unreachable"},
		{"a page", "", ok("<html>"), false, 502, "invalid_provider_response"},
		{"an error in the first event", "", ok(sse(`{"error":{"message":"it broke","type":"server_error"}}`)), true, 500, ""},
		{"a stream that ends before it begins", "", relaytest.Reply{Status: 200, Body: ": x\n\n", Cut: true}, true, 502, "invalid_provider_response"},
		{"a head that does not come", `,"request_timeout":50`, relaytest.Reply{Hang: true}, false, 408, "request_timeout"},
		{"a first token that does not come", `,"first_token_timeout":50`, relaytest.Reply{Status: 200, Body: "data: ", Stall: true}, true, 408, "request_timeout"},
		{"a head that does not come in the time of the first token", `,"first_token_timeout":50`, relaytest.Reply{Hang: true}, true, 408, "request_timeout"},
	} {
		body, good := question, reply
		if c.stream {
			body, good = streamed, helloStream
		}
		x := exchange{c.name, chatPath, body, config(fallback(openAI(c.more), openAI(""))), []relaytest.Reply{c.reply, ok(good)}, 200, "X-Gateway-Last-Used-Option-Index: config.targets[1] & X-Gateway-Retry-Attempt-Count: 0 & Hello", "", fmt.Sprint(c.status, " 200")}
		got, _, r := x.run(t, g)
		if c.stream && !strings.HasSuffix(got.Body, "data: [DONE]\n\n") || r.Mode != "fallback" || !r.Fallback() {
			t.Errorf("%s: mode %s: %s", c.name, r.Mode, got.Body)
		}
		if len(r.Attempts) == 2 && (c.code != "" && r.Attempts[0].ErrorCode != c.code || r.Attempts[0].OptionIndex != "config.targets[0]" || r.Attempts[1].Usage.N(pricing.Output) == 0) {
			t.Errorf("%s: %+v", c.name, r.Attempts)
		}
	}
}

// TestRetriesRepeatTheSameBytes requires the bodies and the waits of retries.
func TestRetriesRepeatTheSameBytes(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	named := func(seconds string) relaytest.Reply {
		return relaytest.Reply{Status: 429, Body: limited, Header: map[string][]string{"Retry-After": {seconds}}}
	}
	for _, c := range []struct {
		name, config string
		script       []relaytest.Reply
		status       int
		retries      string
		waits        []time.Duration
		reasons      []string
	}{
		{"backoff", openAI(`,"retry":{"attempts":3}`), []relaytest.Reply{failure(503, broken), failure(503, broken), ok(reply)}, 200, "2", []time.Duration{time.Second, 2 * time.Second}, []string{"", usage.WaitBackoff, usage.WaitBackoff}},
		{"a time that is named", openAI(`,"retry":{"attempts":2,"use_retry_after_headers":true}`), []relaytest.Reply{named("7"), ok(reply)}, 200, "1", []time.Duration{7 * time.Second}, []string{"", usage.WaitNamed}},
		{"a long time", openAI(`,"retry":{"attempts":2,"use_retry_after_headers":true}`), []relaytest.Reply{named("61")}, 429, "-1", nil, []string{""}},
	} {
		x := exchange{c.name, chatPath, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello é"}],"metadata":{"a":"b"}}`, config(c.config), c.script, c.status, "X-Gateway-Retry-Attempt-Count: " + c.retries, "", ""}
		_, calls, r := x.run(t, g)
		for _, call := range calls {
			if call.Body != calls[0].Body {
				t.Errorf("%s: the bodies differ: %s, %s", c.name, call.Body, calls[0].Body)
			}
		}
		if waits := g.Waits(); !slices.Equal(waits, c.waits) {
			t.Errorf("%s: waits %v", c.name, waits)
		}
		for i, a := range r.Attempts {
			if a.Retry != i || a.WaitReason != c.reasons[i] || i > 0 && a.Wait != c.waits[i-1] {
				t.Errorf("%s: attempt %d: %+v", c.name, i, a)
			}
		}
	}
}

// TestDrawsAreRecorded requires that weights decide the target, that a target of a session stays
// the same, and that the record has the draw.
func TestDrawsAreRecorded(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	g.Respond(func(relaytest.Call) relaytest.Reply { return ok(reply) })
	const n = 300
	balance := func(more string) string {
		return `{"strategy":{"mode":"loadbalance"` + more + `},"targets":[` + openAI(`,"weight":3`) + `,` + openAI(`,"weight":1`) + `,` + openAI(`,"weight":0`) + `]}`
	}
	seen := map[string]int{}
	for range n {
		g.Do("POST", chatPath, question, config(balance(""))...)
		r := g.Record()
		seen[r.OptionIndex]++
		if len(r.Draws) != 1 || r.Draws[0].Path != "config" || fmt.Sprintf("config.targets[%d]", r.Draws[0].Index) != r.OptionIndex || r.Draws[0].Sticky != "" {
			t.Fatalf("%s: %+v", r.OptionIndex, r.Draws)
		}
	}
	// The deviation is 7.5; 60 are eight of them.
	if got := seen["config.targets[0]"]; got < 225-60 || got > 225+60 || got+seen["config.targets[1]"] != n {
		t.Errorf("%v", seen)
	}
	sticky := balance(`,"sticky":{"enabled":true,"hash_fields":["metadata.session"]}`)
	options := map[string]bool{}
	for i := range 40 {
		first := ""
		for turn := range 2 {
			g.Do("POST", chatPath, question, on(sticky, "X-Gateway-Metadata", fmt.Sprintf(`{"session":"s-%d"}`, i))...)
			r := g.Record()
			if turn == 0 {
				first = r.OptionIndex
			}
			options[first] = true
			if r.OptionIndex != first || r.Draws[0].Sticky == "" {
				t.Errorf("session %d, turn %d: %s after %s: %+v", i, turn, r.OptionIndex, first, r.Draws)
			}
		}
	}
	if len(options) != 2 {
		t.Errorf("40 sessions went to %v", options)
	}
}

// TestHeadsAndSilence requires when a stream begins that has not yet shown that it succeeds, and how
// silent ones end.
func TestHeadsAndSilence(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	claudeStart := sse(message(`"input_tokens":100,"output_tokens":1`))
	claudeText := claudeStart + strings.ReplaceAll(sse(textEvents[:2]...), "Hi", longText)
	hold := func(ms int, target string) string {
		return fmt.Sprintf(`{"strategy":{"mode":"fallback"},"first_event_hold_ms":%d,"targets":[%s,%s]}`, ms, target, target)
	}
	silent := func(begin string) []relaytest.Reply {
		return []relaytest.Reply{{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Body: begin, Stall: true}}
	}
	cut := func(begin string) []relaytest.Reply {
		return []relaytest.Reply{{Status: 200, Body: begin, Cut: true}}
	}
	const idle = "X-Gateway-Stream-Idle-Timeout"
	claudeStreamed := strings.Replace(claudeAsked, "{", `{"stream":true,`, 1)
	for _, x := range []exchange{
		{"a head is not held forever", chatPath, streamed, on(hold(20, openAI("")), "X-Gateway-First-Token-Timeout", "800"), silent("data: "), 200, ": keep-alive & X-Gateway-Last-Used-Option-Index: config.targets[0] & \"error\" & ![DONE]", "", ""},
		{"nor that of Messages", messagesPath, claudeStreamed, on(hold(20, claude("")), "X-Gateway-First-Token-Timeout", "800"), silent("data: "), 200, "event: ping & event: error", "", ""},
		{"nor that of translated Messages", messagesPath, claudeStreamed, on(hold(20, openAI("")), "X-Gateway-First-Token-Timeout", "800"), silent("data: "), 200, "event: ping & event: error", "", ""},
		{"nor that of a translated chat", chatPath, streamed, on(hold(20, claude("")), "X-Gateway-First-Token-Timeout", "800"), silent("data: "), 200, ": keep-alive & \"error\"", "", ""},
		{"a late stream is complete", chatPath, streamed, config(hold(20, openAI(""))), []relaytest.Reply{{Status: 200, Body: helloStream, Pace: 40 * time.Millisecond}}, 200, "Hello & [DONE] & !\"error\"", "", "200"},
		{"without a hold nothing can be retried", chatPath, streamed, config(hold(0, openAI(""))), []relaytest.Reply{ok(sse(`{"error":{"message":"it broke","type":"server_error"}}`))}, 200, "\"error\" & ![DONE]", "", ""},
		{"the first event of Messages goes out at once", messagesPath, claudeStreamed, config(claude("")), cut(claudeStart), 200, "event: message_start & \"error\"", "", ""},
		{"but not if a retry could follow", messagesPath, claudeStreamed, config(claude(`,"retry":{"attempts":1,"on_status_codes":[503]}`)), cut(claudeStart), 502, "!event: message_start & \"error\"", "", ""},
		{"a silent chat", chatPath, streamed, on(openAI(""), idle, "500"), silent(sse(piece("Hello", ""))), 200, "Hello & idle timeout & ![DONE]", "", ""},
		{"silent Messages", messagesPath, claudeStreamed, on(openAI(""), idle, "500"), silent(sse(piece("Hello", ""))), 200, "Hello & idle timeout & !message_stop", "", ""},
		{"a silent translated chat", chatPath, streamed, on(claude(""), idle, "500"), silent(claudeText), 200, "thirteen & idle timeout & ![DONE]", "", ""},
		{"no first token", chatPath, streamed, on(openAI(""), "X-Gateway-First-Token-Timeout", "50"), silent("data: "), 408, "first token timeout", "", "408"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			_, _, r := x.run(t, relaytest.New(t, routes))
			if strings.Contains(x.has, "idle timeout") && (r.ErrorCode != "request_timeout" || !r.Usage.Estimated || r.Usage.OutputTokens() == 0) || r.ErrorCode == "" && !strings.Contains(x.has, "!\"error\"") {
				t.Errorf("%s: %q %+v", x.name, r.ErrorCode, r.Usage)
			}
		})
	}
	for _, bad := range []string{"x", "-1", "600001", "1.5", "99999999999999999999"} {
		for _, header := range []string{"X-Gateway-First-Token-Timeout", idle} {
			x := exchange{header + bad, chatPath, question, on(openAI(""), header, bad), nil, 400, strings.ToLower(header), "", ""}
			x.run(t, g)
		}
	}
}

// TestTheResponseFollowsTheBodyThatIsSent requires that parameters of a config decide whether the
// response is a stream, with usage or without.
func TestTheResponseFollowsTheBodyThatIsSent(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	claudeStream := sse(messageStream(`"input_tokens":100,"output_tokens":1`, `"output_tokens":10`)...)
	for _, c := range []struct {
		path, provider, config, requested string
		stream, usage                     bool
	}{
		{chatPath, "openai", `"override_params":{"stream":true}`, "", true, false},
		{chatPath, "openai", `"override_params":{"stream":true,"stream_options":{"include_usage":true}}`, "", true, true},
		{chatPath, "openai", `"override_params":{"stream":false},"drop_params":["stream_options"]`, `,"stream":true,"stream_options":{"include_usage":true}`, false, true},
		{chatPath, "openai", `"default_params":{"stream":true}`, "", true, false},
		{chatPath, "openai", `"default_params":{"stream":true}`, `,"stream":false`, false, true},
		{chatPath, "openai", `"drop_params":["stream"]`, `,"stream":true`, false, true},
		{chatPath, "anthropic", `"override_params":{"stream":true}`, "", true, false},
		{chatPath, "anthropic", `"override_params":{"stream":false}`, `,"stream":true`, false, true},
		{messagesPath, "openai", `"override_params":{"stream":true}`, "", true, true},
		{messagesPath, "anthropic", `"override_params":{"stream":false}`, `,"stream":true`, false, true},
	} {
		made, kind, want := map[string]string{"openai": reply, "anthropic": claudeReply}[c.provider], "application/json", `"usage":{`
		if c.stream {
			made, kind = map[string]string{"openai": sse(piece("Hello", ""), lastChunk+"}", bareChunk+shortly+"}", ended), "anthropic": claudeStream}[c.provider], "text/event-stream; charset=utf-8"
		}
		if !c.usage {
			want = "!" + want
		}
		x := exchange{fmt.Sprint(c), c.path, asks("m", `,"max_tokens":50`+c.requested), config(`{"provider":"` + c.provider + `","api_key":"k",` + c.config + `}`), []relaytest.Reply{ok(made)}, 200, "Content-Type: " + kind + "\n & " + want, "", "200"}
		if _, _, r := x.run(t, g); r.Usage.Estimated || !r.Usage.IsReported() || r.ErrorCode != "" {
			t.Errorf("%s: %+v %s", x.name, r.Usage, r.ErrorCode)
		}
	}
	for _, x := range []exchange{
		{"the next target starts from the client's body", chatPath, question, config(fallback(openAI(`,"override_params":{"stream":true}`), openAI(""))), []relaytest.Reply{failure(500, broken), ok(reply)}, 200, "Content-Type: application/json", "!\"stream\"", "500 200"},
		{"what a config makes of a body keeps to the bounds", chatPath, question, config(openAI(`,"override_params":{"n":1000}`)), nil, 400, `"n"`, "", ""},
		{"a large config", chatPath, question, config(openAI(`,"metadata":"` + strings.Repeat("x", 16<<10) + `"`)), nil, 400, "16384", "", ""},
	} {
		x.run(t, g)
	}
}

// TestExhaustedFallbacksReportTheirAttempts requires the attempts in the response, if the client takes
// more than OpenAI has, and in the record, with the targets that were skipped.
func TestExhaustedFallbacksReportTheirAttempts(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	all := fallback(openAI(""), `{"provider":"@nobody"}`, openAI(""))
	for strict, has := range map[string]string{"true": `!"attempts"`, "false": `"attempts":[ & "option_index":"config.targets[0]" & "status":429 & "option_index":"config.targets[2]" & "status":503 & "option_index":"config.targets[1]" & "status":400`} {
		x := exchange{"strict " + strict, chatPath, question, on(all, "X-Gateway-Strict-Open-Ai-Compliance", strict), []relaytest.Reply{failure(429, limited), failure(503, broken)}, 503, "X-Gateway-Last-Used-Option-Index: config.targets[2] & X-Gateway-Provider: openai & " + has, "", "429 503"}
		if _, _, r := x.run(t, g); len(r.Skips) != 1 || r.Skips[0].Path != "config.targets[1]" || r.Skips[0].Reason != usage.SkipRejected || r.Skips[0].Status != 400 || r.Skips[0].Code == "" {
			t.Errorf("%s: %+v", x.name, r.Skips)
		}
	}
	passing := fallback(`{"passthrough":true,"override_params":{"user":"passed"}}`, openAI(`,"override_params":{"user":"kept"}`))
	for _, c := range []struct {
		name, model, user string
		headers           []string
	}{
		{"a saved provider in the header", "gpt-4o", "passed", []string{"X-Gateway-Provider", relaytest.Saved}},
		{"a saved provider in the model", relaytest.Saved + "/gpt-4o", "passed", nil},
		{"the header before the model", "@nobody/gpt-4o", "passed", []string{"X-Gateway-Provider", relaytest.Saved}},
		{"none", "gpt-4o", "kept", nil},
		{"an unknown one", "gpt-4o", "kept", []string{"X-Gateway-Provider", "@nobody"}},
	} {
		x := exchange{c.name, chatPath, asks(c.model, ""), on(passing, c.headers...), []relaytest.Reply{ok(reply)}, 200, "", `"user":"` + c.user + `"`, "200"}
		x.run(t, g)
	}
	x := exchange{"nothing to pass", chatPath, question, config(`{"passthrough":true}`), nil, 400, "", "", ""}
	x.run(t, g)
}
