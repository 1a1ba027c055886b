package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

const (
	nativeClaude = "us.anthropic.claude-opus-5"
	nativeGPT    = "global.openai.gpt-5.6-terra"
	bedrockHost  = "https://bedrock-runtime.eu-west-1.amazonaws.com"
	responsesAt  = "/v1/responses"
)

// converseStream is a stream of Converse.
func converseStream() relaytest.Reply {
	return relaytest.Reply{Status: 200, Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}, Body: string(frames([][2]string{{"messageStart", `{"role":"assistant"}`}, {"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"}}`}, {"contentBlockStop", `{"contentBlockIndex":0}`}, {"messageStop", `{"stopReason":"end_turn"}`}, {"metadata", `{"usage":{"inputTokens":100,"outputTokens":10,"totalTokens":110},"metrics":{"latencyMs":1}}`}}))}
}

// native are the formats that Bedrock takes from clients, with a request without braces and what
// the host responds, whole and as a stream.
var native = []struct{ path, model, upstream, rest, whole, stream, ended string }{
	{chatPath, nativeGPT, "/openai/v1/chat/completions", `"messages":[ {"role":"user","content":"Hello"}],"reasoning_effort":"low"`, reply, helloStream, "[DONE]"},
	{chatPath, "xai.grok-4.6", "/openai/v1/chat/completions", `"messages":[{"role":"user","content":"Hello"}],"max_tokens":20`, reply, helloStream, "[DONE]"},
	{responsesAt, nativeGPT, "/openai/v1/responses", `"input":"Hello","store":false,"truncation":"auto","prompt_cache_key":"k"`, responseBody, sse(responseStream(usageOf(`"input_tokens":100,"output_tokens":10`))...), "response.completed"},
	{messagesPath, nativeClaude, "/anthropic/v1/messages", `"max_tokens":50,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":"Hello"}],"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`, claudeReply, sse(messageStream(`"input_tokens":100,"output_tokens":1`, `"output_tokens":10`)...), "message_stop"},
}

// startNative returns a gateway with @native, which has access keys and a beta, and @bearer, which
// has an API key.
func startNative(t *testing.T) *relaytest.Gateway {
	g := relaytest.New(t, familyRoutes)
	g.Provider("bearer", "mock-bedrock", provider.Integration{AIProviderID: "bedrock", Configurations: map[string]any{"aws_auth_type": "apiKey", "aws_region": "eu-west-1"}})
	g.Provider("beta", "mock-bedrock", provider.Integration{AIProviderID: "bedrock", Configurations: map[string]any{"aws_auth_type": "apiKey", "aws_region": "eu-west-1", "anthropic_beta": "saved-beta"}})
	return g
}

// TestBedrockTakesItsClientsFormats requires that Bedrock gets the bytes of the client but for the
// model, signed or with a key, and what the bytes and headers of each format need.
func TestBedrockTakesItsClientsFormats(t *testing.T) {
	t.Parallel()
	g := startNative(t)
	signed := config(`{"provider":"bedrock","aws_access_key_id":"AKID","aws_secret_access_key":"s","aws_region":"eu-west-1"}`)
	for _, c := range native {
		for how, headers := range map[string][]string{"signed": signed, "bearer": {"X-Gateway-Provider", "@bearer"}, "beta": {"X-Gateway-Provider", "@beta"}} {
			for _, stream := range []string{"", `,"stream":true`} {
				body := `{ "model":"` + c.model + `", ` + c.rest + stream + `}`
				x := exchange{how + " " + c.path + " of " + c.model + stream, c.path, body, append(headers, "Anthropic-Beta", "context-management-2025-06-27", "Anthropic-Version", "2023-06-01"), []relaytest.Reply{ok(c.whole)}, 200, "", "POST " + bedrockHost + c.upstream + "\n", "200"}
				if stream != "" {
					x.script, x.has = []relaytest.Reply{ok(c.stream)}, c.ended
				}
				_, calls, r := x.run(t, g)
				if len(calls) != 1 {
					continue
				}
				sent := calls[0]
				asIs := sent.Body == body
				if c.path == chatPath && stream != "" { // usage is requested
					asIs = strings.Replace(sent.Body, `{"stream_options":{"include_usage":true},`, "{", 1) == body
				}
				if !asIs {
					t.Errorf("%s: sent %s", x.name, sent.Body)
				}
				auth := sent.Header.Get("Authorization")
				if isSigned := strings.HasPrefix(auth, "AWS4-HMAC-SHA256") && strings.Contains(auth, "/eu-west-1/bedrock/aws4_request"); isSigned != (how == "signed") || !isSigned && auth != "Bearer mock-bedrock" {
					t.Errorf("%s: %s", x.name, auth)
				}
				betas := map[bool]map[string]string{true: {"signed": "context-management-2025-06-27", "bearer": "context-management-2025-06-27", "beta": "context-management-2025-06-27,saved-beta"}}[c.path == messagesPath][how]
				if b, v := sent.Header.Get("Anthropic-Beta"), sent.Header.Get("Anthropic-Version"); b != betas || (v == "2023-06-01") != (betas != "") {
					t.Errorf("%s: betas %q of version %q", x.name, b, v)
				}
				if r.Provider != "bedrock" || r.Usage.OutputTokens() == 0 || r.Usage.Estimated || c.model != "xai.grok-4.6" && (r.Cost <= 0 || !r.Priced) {
					t.Errorf("%s: cost %d of %+v", x.name, r.Cost, r.Usage)
				}
			}
		}
	}
	x := exchange{"the bound of a chat has another name", chatPath, asks(nativeGPT, `,"max_tokens":7`), signed, []relaytest.Reply{ok(reply)}, 200, "", `"max_completion_tokens":7 & !"max_tokens"`, ""}
	x.run(t, g)
	x = exchange{"a cached prompt", messagesPath, asks(nativeClaude, `,"max_tokens":9`), signed, []relaytest.Reply{ok(strings.Replace(claudeReply, `"input_tokens":100`, `"input_tokens":10,"cache_read_input_tokens":90,"cache_creation":{"ephemeral_1h_input_tokens":20}`, 1))}, 200, "", "", ""}
	if _, _, r := x.run(t, g); r.Usage.N(pricing.CacheRead) != 90 || r.Usage.N(pricing.CacheWrite1h) != 20 {
		t.Errorf("%+v", r.Usage)
	}
}

// TestBedrockFallsBackToConverse requires that Converse is used if the host does not serve the
// model in the client's format, that the host is tried once for each model and format, and that a
// rejection of the request itself is not remembered.
func TestBedrockFallsBackToConverse(t *testing.T) {
	t.Parallel()
	g := startNative(t)
	headers := []string{"X-Gateway-Provider", "@bearer"}
	for how, refusal := range map[string]relaytest.Reply{
		"no-path":  {Status: 200, Header: http.Header{"Content-Length": {"91"}}, Body: `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`},
		"no-route": failure(400, `{"error":{"message":"model 'm' isn't supported on this route","type":"invalid_request_error"}}`),
		"no-api":   failure(400, `{"error":{"message":"The model 'm' does not support the '/v1/x' API","type":"invalid_request_error","code":"validation_error"}}`),
	} {
		for i, c := range native {
			model := fmt.Sprintf("%s-%s-%d", c.model, how, i)
			for j, stream := range []string{"", `,"stream":true`, ""} {
				if j == 2 {
					model += "-x" // another model is tried again
				}
				last := ok(converseBody)
				if stream != "" {
					last = converseStream()
				}
				x := exchange{how + " " + c.path + " " + model + stream, c.path, `{"model":"` + model + `",` + c.rest + stream + `}`, headers, []relaytest.Reply{refusal, last}, 200, "Hello", "/converse", ""}
				if j == 1 {
					x.script = x.script[1:]
				}
				_, calls, r := x.run(t, g)
				if len(calls) == 2 && !strings.HasSuffix(calls[0].URL, c.upstream) || r.ClientStatus != 200 || len(r.Attempts) == 2 && r.Attempts[0].Cost != 0 {
					t.Errorf("%s: %+v", x.name, calls)
				}
			}
		}
	}
	odd := failure(400, `{"type":"error","error":{"type":"invalid_request_error","message":"inference_geo: Extra inputs are not permitted"}}`)
	const plain, unknown = `"max_tokens":9,"messages":[{"role":"user","content":"x"}]`, `"max_tokens":9,"messages":[{"role":"user","content":"x"}],"inference_geo":"us"`
	for _, x := range []exchange{
		{"an unknown field goes by Converse", messagesPath, `{"model":"` + nativeClaude + `",` + unknown + `}`, headers, []relaytest.Reply{odd, ok(converseBody)}, 200, "", "/converse", ""},
		{"the next request does not", messagesPath, `{"model":"` + nativeClaude + `",` + plain + `}`, headers, []relaytest.Reply{ok(claudeReply)}, 200, "", "/anthropic/v1/messages", ""},
		{"a client that wants no losses", messagesPath, `{"model":"` + nativeClaude + `",` + unknown + `}`, append(headers, "X-Gateway-Translation", "strict"), []relaytest.Reply{odd}, 400, "", "", ""},
		{"a rejection of the request", messagesPath, `{"model":"` + nativeClaude + `",` + plain + `}`, headers, []relaytest.Reply{failure(400, `{"type":"error","error":{"type":"invalid_request_error","message":"no-good"},"request_id":"req_1"}`)}, 400, `"type":"error" & no-good`, "", "400"},
		{"that of a chat", chatPath, `{"model":"` + nativeGPT + `",` + native[0].rest + `}`, headers, []relaytest.Reply{failure(400, strings.Replace(invalid, "no such field", "no-good", 1))}, 400, "no-good", "", "400"},
		{"a signature that is wrong", messagesPath, `{"model":"` + nativeClaude + `",` + plain + `}`, headers, []relaytest.Reply{failure(403, `{"message":"The request signature we calculated does not match the signature you provided."}`)}, 403, "signature we calculated does not match", "", "403"},
		{"that of a chat", chatPath, `{"model":"` + nativeGPT + `",` + native[0].rest + `}`, headers, []relaytest.Reply{failure(403, `{"message":"The request signature we calculated does not match the signature you provided."}`)}, 403, "signature we calculated does not match", "", "403"},
	} {
		x.run(t, g)
	}
}

// TestBedrockUsesConverse requires Converse for models and formats without another way, for fields
// that only Converse has, and at the caller's own hosts.
func TestBedrockUsesConverse(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	for _, c := range []struct {
		path, model, more, target string
		native                    bool
	}{
		{chatPath, nativeGPT, "", "", true},
		{chatPath, "openai.gpt-oss-120b-1:0", "", "", false},
		{chatPath, "openai.gpt-5.5", "", "", false},
		{chatPath, nativeClaude, "", "", false},
		{chatPath, "arn:aws:bedrock:us-east-1::foundation-model/openai.gpt-5.6-sol", "", "", false},
		{chatPath, nativeGPT, `,"guardrail_config":{"guardrailIdentifier":"g","guardrailVersion":"1"}`, "", false},
		{chatPath, nativeGPT, "", `,"override_params":{"performanceConfig":{"latency":"optimized"}}`, false},
		{chatPath, nativeGPT, "," + functionTools, "", false},
		{chatPath, nativeGPT, "", `,"custom_host":"https://models.example"`, false},
		{chatPath, nativeGPT, "", `,"custom_host":"https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com"`, true},
		{responsesAt, nativeGPT, "", "", true},
		{responsesAt, "openai.gpt-oss-120b-1:0", "", "", false},
		{responsesAt, nativeGPT, `,"metadata":{"team":"a"}`, "", false},
		{messagesPath, nativeClaude, "", "", true},
		{messagesPath, "anthropic.claude-sonnet-4-5-20250929-v1:0", "", "", false},
		{messagesPath, nativeClaude, `,"service_tier":"auto"`, "", false},
		{messagesPath, nativeGPT, "", "", false},
	} {
		body := asks(c.model, c.more)
		switch c.path {
		case responsesAt:
			body = `{"model":"` + c.model + `","input":"Hello"` + c.more + `}`
		case messagesPath:
			body = asks(c.model, `,"max_tokens":9`+c.more)
		}
		x := exchange{c.path + " of " + c.model + " with " + c.more + c.target, c.path, body, config(`{"provider":"bedrock","aws_access_key_id":"A","aws_secret_access_key":"s"` + c.target + `}`), []relaytest.Reply{ok(converseBody)}, 200, "Hello", "/converse\n", "200"}
		if c.native {
			x.script, x.sent = []relaytest.Reply{ok(map[string]string{chatPath: reply, responsesAt: responseBody, messagesPath: claudeReply}[c.path])}, "/v1/"
		}
		x.run(t, g)
	}
}

// TestBedrockTakesSystemPromptsWithinTheConversation requires system prompts in their place if the
// model accepts that; otherwise, or if the host rejects the role, at the front, which is reported.
func TestBedrockTakesSystemPromptsWithinTheConversation(t *testing.T) {
	t.Parallel()
	g := startNative(t)
	rejected := failure(400, `{"message":"messages.1.role: Input should be 'user' or 'assistant'; role 'system' is not supported"}`)
	const front = `"system":[{"text":"Lead."},{"text":"Now briefly."}]`
	for i, c := range []struct {
		model    string
		script   []relaytest.Reply
		place    string
		reported bool
	}{
		{"us.anthropic.claude-opus-4-8", []relaytest.Reply{ok(converseBody)}, `{"role":"system","content":[{"text":"Now briefly."}]}`, false},
		{bedrockOlder, []relaytest.Reply{ok(converseBody)}, front, true},
		{"anthropic.claude-opus-5-no-system", []relaytest.Reply{rejected, ok(converseBody)}, front, true},
		{"anthropic.claude-opus-5-no-system", []relaytest.Reply{ok(converseBody)}, front, true},
	} {
		x := exchange{fmt.Sprint(i, c.model), chatPath, `{"model":"` + c.model + `","messages":[{"role":"system","content":"Lead."},{"role":"user","content":"Hello"},{"role":"system","content":"Now briefly."}]}`, []string{"X-Gateway-Provider", "@bearer", "X-Gateway-Strict-Open-Ai-Compliance", "false"}, c.script, 200, "", c.place, ""}
		got, _, _ := x.run(t, g)
		if reported := strings.Contains(got.Header.Get("X-Gateway-Translation"), "messages[2]"); reported != c.reported {
			t.Errorf("%s: reported %q", x.name, got.Header.Get("X-Gateway-Translation"))
		}
	}
	x := exchange{"a client that wants no losses", chatPath, `{"model":"` + bedrockOlder + `","messages":[{"role":"user","content":"Hello"},{"role":"system","content":"x"}]}`, []string{"X-Gateway-Provider", "@bearer", "X-Gateway-Translation", "strict"}, nil, 400, "messages[1]", "", ""}
	x.run(t, g)
}
