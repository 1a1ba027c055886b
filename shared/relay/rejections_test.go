package relay_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/testkit/relaytest"
)

// TestProvidersStatusesAreKept requires that what a provider calls its error does not change the
// status that retries, fallbacks, records and clients see.
func TestProvidersStatusesAreKept(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	anthropicError := func(kind string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"x"}}`
	}
	for _, c := range []struct {
		provider, body string
		status         int
	}{
		{"anthropic", anthropicError("overloaded_error"), 503}, {"anthropic", anthropicError("overloaded_error"), 500}, {"anthropic", anthropicError("rate_limit_error"), 503},
		{"anthropic", anthropicError("overloaded_error"), 529}, {"anthropic", "<html>", 503},
		{"openai", `{"error":{"message":"x","code":"insufficient_quota"}}`, 503}, {"openai", "<html>", 503}, {"openai", "<html>", 404}, {"openai", "", 520},
	} {
		for _, path := range []string{chatPath, messagesPath} {
			for _, more := range []string{`,"max_tokens":50`, `,"max_tokens":50,"stream":true`} {
				good := map[string]string{"openai": reply, "anthropic": claudeReply}[c.provider]
				if strings.Contains(more, "stream") {
					good = map[string]string{"openai": helloStream, "anthropic": sse(messageStream(`"input_tokens":1,"output_tokens":1`, `"output_tokens":1`)...)}[c.provider]
				}
				target := fmt.Sprintf(`"provider":%q,"api_key":"k"`, c.provider)
				list := func(status int) string {
					return fmt.Sprintf(`{"strategy":{"mode":"fallback","on_status_codes":[%d]},"targets":[{%s},{%[2]s}]}`, status, target)
				}
				bad, name := failure(c.status, c.body), fmt.Sprint(c, path, more)
				for _, x := range []exchange{
					{name + " retried", path, asks("m", more), config(fmt.Sprintf(`{"retry":{"attempts":1,"on_status_codes":[%d]},%s}`, c.status, target)), []relaytest.Reply{bad, bad}, c.status, "", "", fmt.Sprint(c.status, " ", c.status)},
					{name + " falls back", path, asks("m", more), config(list(c.status)), []relaytest.Reply{bad, ok(good)}, 200, "", "", fmt.Sprint(c.status, " 200")},
					{name + " does not by others", path, asks("m", more), config(list(c.status + 1)), []relaytest.Reply{bad}, c.status, "", "", fmt.Sprint(c.status)},
				} {
					if _, _, r := x.run(t, g); r.ClientStatus != x.status {
						t.Errorf("%s: recorded with %d", x.name, r.ClientStatus)
					}
				}
			}
		}
	}
}

// TestErrorsCarryTheProvidersHeaders requires the provider's id of the request and its rate limits
// in errors of every kind, and in none of the gateway.
func TestErrorsCarryTheProvidersHeaders(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	const busy = `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`
	for name, c := range map[string]struct {
		status int
		body   string
		want   int
	}{
		"limited":     {429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, 429},
		"no JSON":     {500, `<h1>broken</h1>`, 500},
		"in success":  {200, busy, 529},
		"not one":     {200, `<h1>maintenance</h1>`, 502},
		"stream-fail": {200, sse(busy), 529},
	} {
		for _, path := range []string{chatPath, messagesPath} {
			from := relaytest.Reply{Status: c.status, Body: c.body, Header: http.Header{"Request-Id": {"req_of_the_provider"}, "Anthropic-Ratelimit-Requests-Remaining": {"0"}}}
			x := exchange{name + path, path, asks("m", fmt.Sprintf(`,"max_tokens":9,"stream":%t`, name == "stream-fail")), config(claude("")), []relaytest.Reply{from}, c.want, "X-Gateway-Provider-Request-Id: req_of_the_provider & X-Gateway-Provider-Anthropic-Ratelimit-Requests-Remaining: 0", "", ""}
			x.run(t, g)
		}
	}
	x := exchange{"a rejection of the gateway", chatPath, `{"model":"m"}`, config(claude("")), nil, 400, "!X-Gateway-Provider-Request-Id", "", ""}
	x.run(t, g)
}

// TestBoundsAreJudgedByTheTarget sends bodies that exceed a limit of the specification to targets
// that set it wider and to others.
func TestBoundsAreJudgedByTheTarget(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	of := func(id string) string { return `{"provider":"` + id + `","api_key":"k"}` }
	own := `{"provider":"vllm","custom_host":"https://gpu.example.com/v1","api_key":"k"}`
	stops := func(n int) string {
		return `"stop":["` + strings.Join(strings.Fields(strings.Repeat("s ", n)), `","`) + `"]`
	}
	tools := `"tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},`, 129), ",") + `]`
	for i := 0; strings.Contains(tools, `"f"`); i++ {
		tools = strings.Replace(tools, `"f"`, fmt.Sprintf(`"f%d"`, i), 1)
	}
	const chat, completions = `"model":"m","messages":[{"role":"user","content":"Hello"}],`, "/v1/completions"
	for _, c := range []struct{ target, path, body, field string }{ // field: "" when the target takes it
		{of("openai"), chatPath, chat + stops(5), "stop"}, {of("cohere"), chatPath, chat + stops(5), ""}, {of("cohere"), chatPath, chat + stops(6), "stop"},
		{of("google"), chatPath, chat + stops(5), ""}, {of("google"), chatPath, chat + stops(6), "stop"}, {of("deepseek"), chatPath, chat + stops(16), ""},
		{of("deepseek"), chatPath, chat + stops(17), "stop"}, {of("together-ai"), chatPath, chat + `"logprobs":1`, ""}, {of("openai"), chatPath, chat + `"logprobs":1`, "logprobs"},
		{of("mistral-ai"), chatPath, chat + `"tool_choice":"any","tools":[{"type":"function","function":{"name":"f"}}]`, ""},
		{of("anthropic"), chatPath, chat + tools, ""}, {of("google"), chatPath, chat + tools, ""}, {of("groq"), chatPath, chat + tools, "tools"},
		{own, chatPath, chat + `"temperature":3,"logprobs":true,"top_logprobs":50,"max_tokens":-1,` + stops(9), ""},
		{own, completions, `"model":"m","prompt":"x","temperature":3,"logprobs":50,"max_tokens":-1,` + stops(9), ""},
		{own, responsesAt, `"model":"m","input":"x","temperature":3`, ""}, {of("openai"), responsesAt, `"model":"m","input":"x","temperature":3`, "temperature"},
		{of("openai"), completions, `"model":"m","prompt":"x","max_tokens":-1`, "max_tokens"},
		// What a config makes of the body is what counts.
		{openAI(`,"override_params":{"stop":["a"]}`), chatPath, chat + stops(5), ""}, {openAI(`,"override_params":{"temperature":3}`), chatPath, chat + stops(1), "temperature"},
		{strings.Replace(own, "{", `{"override_params":{"temperature":3},`, 1), chatPath, chat + stops(5), ""},
		// A fallback continues to a target that has room.
		{fallback(of("openai"), of("deepseek")), chatPath, chat + stops(9), ""},
	} {
		x := exchange{c.target + " " + c.path + " " + c.body[:min(len(c.body), 90)], c.path, "{" + c.body + "}", config(c.target), nil, 400, `"param":"` + c.field + `"`, "", ""}
		if c.field == "" {
			x.script, x.status, x.has = []relaytest.Reply{failure(418, broken)}, 418, ""
		}
		x.run(t, g)
	}
	x := exchange{"the words", chatPath, "{" + chat + stops(5) + "}", config(of("openai")), nil, 400, "stop must contain at most 4 sequences, not 5", "", ""}
	x.run(t, g)
}

// TestLossesOfTranslationAreReported requires that what a translation loses is in the header and in
// the record, of requests and of responses, and that a strict client gets an error instead.
func TestLossesOfTranslationAreReported(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	thinking := strings.Replace(claudeReply, `"content":[`, `"content":[{"type":"thinking","thinking":"Hm","signature":"c2ln"},`, 1)
	thought := sse(message(`"input_tokens":1,"output_tokens":1`), `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello"}}`, `{"type":"content_block_stop","index":1}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":10}}`, `{"type":"message_stop"}`)
	fingerprint := strings.Replace(reply, `"choices"`, `"system_fingerprint":"fp","choices"`, 1)
	lossy, complete := asks("m", `,"max_tokens":9,"logit_bias":{"1":2},"seed":7`), asks("m", `,"max_tokens":9`)
	thinks := `,"max_completion_tokens":3000,"reasoning_effort":"low"`
	lenient := []string{"X-Gateway-Strict-Open-Ai-Compliance", "false"}
	for _, c := range []struct {
		exchange
		missed string // in the record; "-" for nothing, "": not compared
	}{
		{exchange{"a request", chatPath, lossy, on(claude(""), lenient...), []relaytest.Reply{ok(claudeReply)}, 200, "logit_bias & seed", "", ""}, ""},
		{exchange{"a strict client", chatPath, lossy, on(claude(""), "X-Gateway-Translation", "strict"), nil, 400, "logit_bias", "", ""}, ""},
		{exchange{"nothing to lose", chatPath, complete, on(claude(""), "X-Gateway-Translation", "strict"), []relaytest.Reply{ok(claudeReply)}, 200, "", "", ""}, "-"},
		{exchange{"an unknown value", chatPath, complete, on(claude(""), "X-Gateway-Translation", "lax"), nil, 400, "x-gateway-translation", "", ""}, ""},
		{exchange{"thinking", chatPath, asks("claude-sonnet-4-5", thinks), config(claude("")), []relaytest.Reply{ok(thinking)}, 200, "!missed=choices & !content_blocks & !c2ln", "", ""}, "choices[0].message.thinking"},
		{exchange{"a stream of it", chatPath, asks("claude-sonnet-4-5", thinks+`,"stream":true`), config(claude("")), []relaytest.Reply{ok(thought)}, 200, "", "", ""}, "choices[0].message.thinking"},
		{exchange{"with its place", chatPath, asks("claude-sonnet-4-5", thinks), on(claude(""), lenient...), []relaytest.Reply{ok(thinking)}, 200, "content_blocks & c2ln", "", ""}, "-"},
		{exchange{"a stream with its place", chatPath, asks("claude-sonnet-4-5", thinks+`,"stream":true`), on(claude(""), lenient...), []relaytest.Reply{ok(thought)}, 200, "content_blocks", "", ""}, "-"},
		{exchange{"as reasoning", responsesAt, `{"model":"claude-sonnet-4-5","input":"Hello","max_output_tokens":3000,"reasoning":{"effort":"low"}}`, config(claude("")), []relaytest.Reply{ok(thinking)}, 200, "", "", ""}, "-"},
		{exchange{"a fingerprint", messagesPath, complete, config(openAI("")), []relaytest.Reply{ok(fingerprint)}, 200, "missed=system_fingerprint", "", ""}, "system_fingerprint"},
		{exchange{"a lenient client", messagesPath, complete, on(openAI(""), lenient...), []relaytest.Reply{ok(fingerprint)}, 200, "missed=system_fingerprint", "", ""}, "system_fingerprint"},
		{exchange{"its own place", chatPath, question, on(openAI(""), lenient...), []relaytest.Reply{ok(fingerprint)}, 200, "", "", ""}, "-"},
	} {
		_, _, r := c.run(t, g)
		missed, _ := json.Marshal(r.Losses)
		if c.missed == "-" && strings.Contains(string(missed), "answer: ") || c.missed != "-" && !strings.Contains(string(missed), c.missed) {
			t.Errorf("%s: the record says %s", c.name, missed)
		}
	}
}

// TestRejectionsNameTheFieldAtFault requires status 400, the field and its name in the message, for
// clients that show nothing else.
func TestRejectionsNameTheFieldAtFault(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const hello = `"messages":[{"role":"user","content":"Hello"}]`
	mock, other := config(openAI("")), config(claude(""))
	for _, c := range []struct {
		path, body string
		headers    []string
		param      string
	}{
		{chatPath, `{` + hello + `}`, mock, "model"},
		{chatPath, `{"model":"m","n":1.5,` + hello + `}`, mock, "n"},
		{chatPath, question, append(mock, "X-Gateway-Trace-Id", strings.Repeat("x", 300)), "x-gateway-trace-id"},
		{chatPath, `{"model":"m","tool_choice":{"type":"function"},` + hello + `}`, other, "tool_choice.function.name"},
		{chatPath, `{"model":"m","function_call":{},` + hello + `}`, other, "function_call.name"},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{}}]}]}`, other, "messages[0].content[0].file"},
		{chatPath, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", other, "messages[0].content"},
		{chatPath, question, append(mock, "Content-Encoding", "gzip"), "content-encoding"},
		{"/v1/embeddings", `{"input":"x"}`, mock, "model"},
		{"/v1/moderations", `{"input":["a",5]}`, mock, "input[1]"},
		{"/v1/rerank", `{"model":"m","query":"q","documents":[{"text":5}]}`, mock, "documents[0].text"},
		{"/v1/ocr", `{"model":"m","document":{"type":"document_url"}}`, mock, "document.document_url"},
		{chatPath, question, config(`{"provider"`), "x-gateway-config"}, {chatPath, question, config(`[]`), "x-gateway-config"}, {chatPath, question, config(`pc-nowhere`), "x-gateway-config"},
		{responsesAt, `{"model":"m","input":"x","temperature":3}`, mock, "temperature"}, {responsesAt, `{"model":"m"}`, other, "input"},
		{responsesAt, `{"model":"m","input":"x","conversation":"conv_1"}`, other, "conversation"}, {responsesAt, `{"model":"m","input":"x","background":true}`, other, "background"},
		{responsesAt, `{"model":"m","input":"x","prompt":{"id":"p"}}`, other, "prompt"}, {responsesAt, `{"model":"m","input":"x","previous_response_id":"resp_1"}`, other, "previous_response_id"},
		{"/v1/messages/count_tokens", `{"model":"m"}`, mock, "messages"}, {"/v1/messages/count_tokens", asks("m", `,"max_tokens":-1`), mock, "max_tokens"},
	} {
		field, _, _ := strings.Cut(c.param, ".")
		x := exchange{c.path + " " + c.body + fmt.Sprint(c.headers), c.path, c.body, c.headers, nil, 400, c.param, "", ""}
		got, _, _ := x.run(t, g)
		var e struct {
			Message string
			Error   struct{ Message, Param string }
		}
		if err := json.Unmarshal([]byte(got.Body), &e); err != nil || !strings.Contains(c.path, "count_tokens") && (e.Error.Param != c.param || e.Error.Message != e.Message) || !strings.Contains(e.Error.Message, field) && !strings.Contains(e.Error.Message, "at byte") && c.headers[0] != "X-Gateway-Config" {
			t.Errorf("%s: %s", x.name, got.Body)
		}
	}
	for text, want := range map[string]string{
		`{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"openai","weight":-1}]}`: "path: targets,0,weight, message: must be at least 0",
		`{"provider":5}`: "path: provider, message: must be a string, not a number",
	} {
		x := exchange{text, chatPath, question, config(text), nil, 400, "Invalid config passed: & " + want, "", ""}
		x.run(t, g)
	}
}

// TestLimitsHoldOnEveryRoute requires that a rate of one request, a missing key and a missing scope
// hold on routes of every kind, and what budgets reject.
func TestLimitsHoldOnEveryRoute(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	reader := g.Key([]string{"configs.list"}, nil, nil)
	for path, body := range map[string]string{
		chatPath: question, "/v1/completions": `{"model":"m","prompt":"x"}`, messagesPath: claudeAsked, responsesAt: `{"model":"m","input":"x"}`, "/v1/embeddings": `{"model":"m","input":"x"}`,
		"/v1/moderations": `{"model":"m","input":"x"}`, "/v1/proxy/echo/x": "", "/v1/echo/unknown": `{"model":"m"}`,
	} {
		key := g.Key([]string{write}, []ledger.RateLimit{{Type: "requests", Unit: "rph", Value: 1}}, nil)
		for i, c := range []struct {
			key    string
			status int
		}{{"gw-none", 401}, {key, 418}, {key, 429}, {reader, 403}} {
			x := exchange{fmt.Sprint(i, path), path, body, on(openAI(""), "X-Gateway-Api-Key", c.key), nil, c.status, "", "", ""}
			if c.status == 418 {
				x.script = []relaytest.Reply{failure(418, broken)}
			}
			x.run(t, g)
		}
	}
	budget := func(rates ...ledger.RateLimit) string {
		return g.Key([]string{write}, rates, &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: 1_000_000_000})
	}
	one := budget(ledger.RateLimit{Type: "requests", Unit: "rpd", Value: 1})
	for _, x := range []exchange{
		{"an unpriced model under a budget", chatPath, asks("nobody-knows-this-model", ""), on(openAI(""), "X-Gateway-Api-Key", budget()), nil, 412, "unpriced_model", "", ""},
		{"an unpriced model", chatPath, asks("nobody-knows-this-model", ""), config(openAI("")), []relaytest.Reply{ok(reply)}, 200, "", "", ""},
		{"what a budget rejects", chatPath, asks("gpt-4o", `,"max_tokens":200000`), on(openAI(""), "X-Gateway-Api-Key", one), nil, 412, "", "", ""},
		{"is not counted by a rate", chatPath, asks("gpt-4o", `,"max_tokens":5`), on(openAI(""), "X-Gateway-Api-Key", one), []relaytest.Reply{ok(reply)}, 200, "", "", ""},
		{"as what is sent is", chatPath, asks("gpt-4o", `,"max_tokens":5`), on(openAI(""), "X-Gateway-Api-Key", one), nil, 429, "Retry-After", "", ""},
	} {
		x.run(t, g)
	}
}

// TestACutStreamOfResponsesIsNumberedToItsEnd requires that the event of the error continues the
// numbers of the provider's events.
func TestACutStreamOfResponsesIsNumberedToItsEnd(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	x := exchange{"a cut stream", responsesAt, `{"model":"m","input":"Hi","stream":true}`, config(openAI("")), []relaytest.Reply{{Status: 200, Body: sse(responseStream("")[:5]...), Cut: true}}, 200, "", "", ""}
	got, _, _ := x.run(t, g)
	next, last := 0, ""
	for _, block := range strings.Split(got.Body, "\n\n") {
		_, data, found := strings.Cut(block, "data: ")
		if !found {
			continue
		}
		var e struct {
			Type   string
			Number *int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Number == nil || *e.Number != next {
			t.Fatalf("event %d: %s", next, data)
		}
		next, last = next+1, e.Type
	}
	if last != "response.failed" || next != 7 {
		t.Errorf("%s after %d events: %s", last, next, got.Body)
	}
}
