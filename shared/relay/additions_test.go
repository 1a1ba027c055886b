package relay_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/testkit/relaytest"
)

const functionTools = `"tools":[{"type":"function","function":{"name":"now","description":"Tells the time","parameters":{"type":"object","properties":{}}}}]`

// TestToolsWithReasoningGoThroughResponses requires the path of chats with tools: that of responses
// if the model accepts tools with reasoning only there, and the host is known to have it.
func TestToolsWithReasoningGoThroughResponses(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const chat, responses = "/chat/completions", "/responses"
	const openai = `"provider":"openai","api_key":"k"`
	for _, c := range []struct{ target, model, more, want string }{
		{openai, "gpt-5.4", functionTools + `,"reasoning_effort":"low"`, responses},
		{openai, "gpt-5.4", functionTools + `,"reasoning_effort":"none"`, chat},
		{openai, "gpt-5.4", functionTools, chat},
		{openai, "gpt-5.4-mini", functionTools + `,"reasoning_effort":"high"`, responses},
		{openai, "gpt-5.4-chat-latest", functionTools + `,"reasoning_effort":"high"`, chat},
		{openai, "gpt-5.5", functionTools + `,"reasoning_effort":"medium","stream":true`, responses},
		{openai, "gpt-5.5", functionTools, responses},
		{openai, "gpt-5.6-terra", functionTools + `,"reasoning_effort":null`, responses},
		{openai, "gpt-5.6", functionTools + `,"reasoning_effort":"none"`, chat},
		{openai, "gpt-5.6", `"reasoning_effort":"high"`, chat},
		{openai, "gpt-5.6", `"tools":[ ],"reasoning_effort":"high"`, chat},
		{openai, "gpt-5.60", functionTools + `,"reasoning_effort":"high"`, chat},
		{openai, "gpt-5.1", functionTools + `,"reasoning_effort":"high"`, chat},
		{openai, "gpt-5", functionTools + `,"reasoning_effort":"high"`, chat},
		{openai, "gpt-4o", functionTools, chat},
		{openai + `,"override_params":{"reasoning_effort":"high"}`, "gpt-5.4", functionTools, responses},
		{openai + `,"override_params":{"reasoning_effort":"none"}`, "gpt-5.4", functionTools + `,"reasoning_effort":"high"`, chat},
		{openai + `,"override_params":{"model":"gpt-5.5"}`, "gpt-4o", functionTools, responses},
		{openai + `,"custom_host":"https://models.example/v1"`, "gpt-5.6", functionTools + `,"reasoning_effort":"high"`, chat},
		{`"provider":"openrouter","api_key":"k"`, "gpt-5.6", functionTools + `,"reasoning_effort":"high"`, chat},
		{`"provider":"azure-openai","api_key":"k","azure_resource_name":"mine","azure_deployment_id":"gpt-5.5","azure_api_version":"v1"`, "gpt-5.5", functionTools, responses},
		{`"provider":"azure-openai","api_key":"k","azure_resource_name":"mine","azure_deployment_id":"d","azure_api_version":"v1","azure_model_name":"gpt-5.5"`, "d", functionTools, responses},
		{`"provider":"azure-openai","api_key":"k","azure_resource_name":"mine","azure_deployment_id":"gpt-5.5","azure_api_version":"v1","custom_host":"https://models.example/v1"`, "gpt-5.5", functionTools, chat},
	} {
		x := exchange{c.model + " with " + c.more + " at " + c.target, chatPath, asks(c.model, ","+c.more), config("{" + c.target + "}"), []relaytest.Reply{ok(reply)}, 200, `"chat.completion & Hello`, "", "200"}
		if c.want == responses {
			x.script[0].Body = responseBody
		}
		_, calls, r := x.run(t, g)
		if len(calls) == 1 && !strings.HasSuffix(strings.Split(calls[0].URL, "?")[0], c.want) || r.Usage.InputTokens() != 100 || r.Usage.Estimated {
			t.Errorf("%s: called %+v, %+v", x.name, calls, r.Usage)
		}
	}
	for path, body := range map[string]string{chatPath: question, messagesPath: anthropicAsks + "}", "/v1/v1beta/models/gpt-4o:generateContent": geminiAsks} {
		for beta, want := range map[string]string{"": chat, "x, use-responses-api-2026-07-30": responses} {
			x := exchange{path + " with " + beta, path, body, on("{"+openai+"}", "X-Gateway-Beta", beta), []relaytest.Reply{ok(map[string]string{chat: reply, responses: responseBody}[want])}, 200, "Hello", want + "\n", ""}
			x.run(t, g)
		}
	}
}

// picky is a host with OpenAI's format that rejects some fields.
func picky(status int, refused ...string) func(relaytest.Call) relaytest.Reply {
	return func(c relaytest.Call) relaytest.Reply {
		for _, field := range refused {
			if strings.Contains(c.Body, `"`+field+`"`) {
				return failure(status, `{"error":{"message":"Extra inputs are not permitted: `+field+`","type":"invalid_request_error"}}`)
			}
		}
		if strings.Contains(c.Body, `"stream":true`) {
			return ok(sse(`{"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"{}"},"finish_reason":"stop"}]}`, "[DONE]"))
		}
		return ok(strings.Replace(reply, "Hello", "{}", 1))
	}
}

// bodies returns the bodies of the calls since the last call of Calls.
func bodies(g *relaytest.Gateway) (all []string) {
	for _, c := range g.Calls() {
		all = append(all, c.Body)
	}
	return all
}

// TestRejectedAdditionsAreRetriedWithout requires that a host is called again without what the
// gateway added, and from then on never with it, for the host and model that rejected it. What the
// client wrote stays.
func TestRejectedAdditionsAreRetriedWithout(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const schema = `"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`
	for _, c := range []struct{ name, provider, path, body, field string }{
		{"chat", "openai", "/chat/completions", `"messages":[{"role":"user","content":"x"}],"stream":true`, "stream_options"},
		{"completions", "vllm", "/completions", `"prompt":"x","stream":true`, "stream_options"},
		{"messages", "openai", "/messages", `"max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":true`, "stream_options"},
		{"schema", "openai", "/messages", `"max_tokens":9,"messages":[{"role":"user","content":"x"}],` + schema, "strict"},
		{"both", "openai", "/messages", `"max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":true,` + schema, "strict"},
	} {
		for _, status := range []int{400, 422} {
			g.Respond(picky(status, c.field))
			h := config(fmt.Sprintf(`{"provider":%q,"api_key":"k","custom_host":"https://%s-%d.example/v1"}`, c.provider, c.name, status))
			for i, calls := range []int{2, 1, 2} { // the third request is for another model
				got := g.Do("POST", "/v1"+c.path, fmt.Sprintf(`{"model":"m%d",%s}`, i/2, c.body), h...)
				sent := bodies(g)
				if got.Status != 200 || len(sent) != calls || strings.Contains(sent[0], c.field) != (calls == 2) || strings.Contains(sent[calls-1], c.field) {
					t.Errorf("%s, %d, request %d: %d %s after %q", c.name, status, i, got.Status, got.Body, sent)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		status       int
		refuse, body string
	}{
		"usage that was requested": {400, "stream_options", `"stream":true,"stream_options":{"include_usage":true}`},
		"a field of the client":    {400, "logit_bias", `"stream":true,"logit_bias":{"1":1}`},
		"another status":           {403, "stream_options", `"stream":true`},
	} {
		g.Respond(picky(c.status, c.refuse))
		got := g.Do("POST", chatPath, `{"model":"m","messages":[{"role":"user","content":"x"}],`+c.body+`}`, config(openAI(`,"custom_host":"https://client.example/v1"`))...)
		if sent := bodies(g); got.Status != c.status || len(sent) != 1 {
			t.Errorf("%s: %d after %q: %s", name, got.Status, sent, got.Body)
		}
	}
	// A host that rejects for another reason too is called twice, and not remembered.
	g.Respond(picky(400, "stream_options", "logit_bias"))
	for range 2 {
		got := g.Do("POST", chatPath, `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"logit_bias":{"1":1}}`, config(openAI(`,"custom_host":"https://two.example/v1"`))...)
		if sent := bodies(g); got.Status != 400 || !strings.Contains(got.Body, "logit_bias") || len(sent) != 2 {
			t.Errorf("%d %s after %q", got.Status, got.Body, sent)
		}
	}
}

// reasoningHost rejects a turn without the reasoning of earlier turns with calls, as DeepSeek does.
func reasoningHost(c relaytest.Call) relaytest.Reply {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Reasoning string `json:"reasoning_content"`
			Calls     []any  `json:"tool_calls"`
		}
	}
	_ = json.Unmarshal([]byte(c.Body), &in)
	turn := 0
	for _, m := range in.Messages {
		if len(m.Calls) == 0 {
			continue
		}
		if turn++; m.Reasoning != fmt.Sprintf("thought %d", turn) {
			return failure(http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":"The reasoning_content of turn %d must be passed back: %q","type":"invalid_request_error"}}`, turn, m.Reasoning))
		}
	}
	turn++
	calls := fmt.Sprintf(`"tool_calls":[{"index":0,"id":"call_%s_%d","type":"function","function":{"name":"f","arguments":"{}"}}]`, in.Model, turn)
	if !in.Stream {
		return ok(fmt.Sprintf(`{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"reasoning_content":"thought %d",%s}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, turn, calls))
	}
	chunk := func(choice string) string {
		return `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` + choice + `}]}`
	}
	return ok(sse(chunk(fmt.Sprintf(`"delta":{"role":"assistant","reasoning_content":"thought %d"},"finish_reason":null`, turn)), chunk(`"delta":{`+calls+`},"finish_reason":null`), chunk(`"delta":{},"finish_reason":"tool_calls"`), "[DONE]"))
}

// TestForgottenReasoningIsRestored requires that the tool loop of a chat client that does not return
// reasoning_content succeeds at a host that requires it. For a client that asks for fields beyond
// OpenAI's nothing is stored.
func TestForgottenReasoningIsRestored(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	g.Respond(reasoningHost)
	for i, c := range []struct {
		provider, stream, strict string
		status                   int
	}{
		{"deepseek", "false", "true", 200}, {"deepseek", "true", "true", 200}, {"moonshot", "false", "true", 200}, {"moonshot", "true", "true", 200},
		{"deepseek", "false", "false", 400}, {"deepseek", "true", "false", 400},
	} {
		model, messages := fmt.Sprint("m", i), []string{`{"role":"user","content":"go"}`}
		for turn := 1; turn <= 3; turn++ {
			got := g.Do("POST", chatPath, `{"model":"`+model+`","stream":`+c.stream+`,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"messages":[`+strings.Join(messages, ",")+`]}`,
				on(`{"provider":"`+c.provider+`","api_key":"k"}`, "X-Gateway-Strict-Open-Ai-Compliance", c.strict)...)
			want := 200
			if turn > 1 {
				want = c.status
			}
			if got.Status != want || want == 200 && !strings.Contains(got.Body, fmt.Sprintf(`"call_%s_%d"`, model, turn)) {
				t.Errorf("%+v, turn %d: %d %s", c, turn, got.Status, got.Body)
			}
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%s_%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, model, turn), fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%s_%d","content":"done"}`, model, turn))
		}
	}
}

// TestCacheMarkersBecomeBreakpoints requires that cache markers become breakpoints in both formats of
// OpenAI if the model accepts them, and that the response reports those that have no place.
func TestCacheMarkersBecomeBreakpoints(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const marked, breakpoint = `"cache_control":{"type":"ephemeral"}`, `"prompt_cache_breakpoint":{"mode":"explicit"}`
	system := `"system":[{"type":"text","text":"Rules.",` + marked + `}],`
	messages := `"messages":[{"role":"user","content":[{"type":"text","text":"Hello",` + marked + `}]}]`
	tool := `,"tools":[{"name":"w","input_schema":{"type":"object"},` + marked + `}]`
	none := failure(400, `{"error":{"message":"Unknown parameter: 'prompt_cache_breakpoint'.","type":"invalid_request_error","param":"prompt_cache_breakpoint","code":"unknown_parameter"}}`)
	for i, c := range []struct {
		path, model, body, upstream string
		breakpoints                 int
		script                      []relaytest.Reply
		loss                        string
	}{
		{messagesPath, "gpt-5.6", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 2, []relaytest.Reply{ok(reply)}, ""},
		{messagesPath, "gpt-5.6", `"max_tokens":50,` + system + messages + tool, "/v1/responses", 2, []relaytest.Reply{ok(responseBody)}, "tools[0].cache_control"},
		{messagesPath, "gpt-4o", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 0, []relaytest.Reply{ok(reply)}, "system[0].cache_control"},
		{messagesPath, "gpt-5.6-none", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 0, []relaytest.Reply{none, ok(reply)}, "system[0].cache_control"},
		{messagesPath, "gpt-5.6-none", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 0, []relaytest.Reply{ok(reply)}, "system[0].cache_control"},
		{chatPath, "gpt-5.6", messages + `,"tools":[{"type":"function","function":{"name":"w"}}]`, "/v1/responses", 1, []relaytest.Reply{ok(responseBody)}, ""},
	} {
		x := exchange{fmt.Sprint(i, c.path, c.model), c.path, `{"model":"` + c.model + `",` + c.body + `}`, on(openAI(""), "X-Gateway-Strict-Open-Ai-Compliance", "false"), c.script, 200, c.loss, c.upstream + " & !cache_control", ""}
		got, calls, _ := x.run(t, g)
		if n := strings.Count(calls[len(calls)-1].Body, breakpoint); n != c.breakpoints || c.loss == "" && strings.Contains(got.Header.Get("X-Gateway-Translation"), "cache_control") {
			t.Errorf("%s: %d breakpoints, reported %q", x.name, n, got.Header.Get("X-Gateway-Translation"))
		}
	}
}
