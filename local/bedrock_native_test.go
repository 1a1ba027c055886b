package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gateway/local/mockprovider"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/usage"
)

// toMock sends requests for hosts of the internet to the mock provider, under the host's
// own name, because a signature of AWS is valid for that name only.
type toMock struct {
	http.RoundTripper
	to *url.URL
}

func (d *toMock) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.Host == "" {
		req.Host = req.URL.Host
	}
	req.URL.Scheme, req.URL.Host = d.to.Scheme, d.to.Host
	return d.RoundTripper.RoundTrip(req)
}

// bedrockItself makes saved providers at Bedrock's own host, which is the mock: @native
// with access keys and @bearer with an API key.
func (r *running) bedrockItself() {
	r.t.Helper()
	to, err := url.Parse(r.g.mock.URL())
	if err != nil {
		r.t.Fatal(err)
	}
	r.g.relay.Transport = &toMock{r.g.relay.Transport, to}
	for slug, fields := range map[string]string{
		"native": bedrockKeys + `,"anthropic_beta":"saved-beta"}`,
		"bearer": `"key":"mock-bedrock","configurations":{"aws_auth_type":"apiKey"}`,
	} {
		r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":"bedrock",%s}`, slug, slug, r.workspace(),
			strings.Replace(fields, `"configurations":{`, `"configurations":{"aws_region":"eu-west-1",`, 1)))
	}
}

// bookedAsBilled compares what is recorded of n requests with the mock's bill.
func (r *running) bookedAsBilled(n int) []usage.Record {
	r.t.Helper()
	var input, read, write5m, write1h, output int64
	all := r.records(n)
	for _, rec := range all {
		input, read = input+rec.Usage.N(pricing.Input), read+rec.Usage.N(pricing.CacheRead)
		write5m, write1h = write5m+rec.Usage.N(pricing.CacheWrite5m), write1h+rec.Usage.N(pricing.CacheWrite1h)
		output += rec.Usage.OutputTokens()
	}
	bill := r.mock.Bill().Total
	if len(all) != n || input != bill.Input || read != bill.CacheRead || write5m != bill.CacheWrite5m || write1h != bill.CacheWrite1h || output != bill.Output+bill.Reasoning {
		r.t.Errorf("books of %d: in %d read %d w5 %d w1h %d out %d; bill %+v", len(all), input, read, write5m, write1h, output, bill)
	}
	return all
}

const (
	nativeClaude = "us.anthropic.claude-opus-5"
	nativeGPT    = "global.openai.gpt-5.6-terra"

	chatPath      = "/openai/v1/chat/completions"
	responsesPath = "/openai/v1/responses"
	messagesPath  = "/anthropic/v1/messages"
)

// nativeShapes are the operations that the tests of this file prove.
var nativeShapes = []struct {
	op   provider.Operation
	path string
}{{provider.NativeChat, chatPath}, {provider.NativeResponses, responsesPath}, {provider.NativeMessages, messagesPath}}

// TestBedrockTakesItsClientsShapes: plain and streamed, signed and with a key. The host
// gets the bytes of the client except for the model, and everything that the shape has.
func TestBedrockTakesItsClientsShapes(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrockItself()
	r.mock.Reset()
	const weather = `"parameters":{"type":"object","properties":{"city":{"type":"string"}}}`
	n := 0
	for _, c := range []struct{ path, model, upstream, rest, whole, ended string }{
		{"/chat/completions", nativeGPT, chatPath, `"messages":[ {"role":"user","content":"Hello"}],"reasoning_effort":"low"`, `"chat.completion"`, "[DONE]"},
		{"/chat/completions", nativeGPT, chatPath, `"messages":[{"role":"user","content":"mock: tools=1\nHello"}],"reasoning_effort":"none","tools":[{"type":"function","function":{"name":"w",` + weather + `}}]`, `"tool_calls"`, "[DONE]"},
		{"/chat/completions", "xai.grok-4.6", chatPath, `"messages":[{"role":"user","content":"Hello"}],"max_tokens":20`, `"chat.completion"`, "[DONE]"},
		{"/responses", nativeGPT, responsesPath, `"input":"Hello","store":false,"truncation":"auto","prompt_cache_key":"k"`, `"output_text"`, "response.completed"},
		{"/responses", nativeGPT, responsesPath, `"input":"mock: tools=1\nHello","tools":[{"type":"function","name":"w",` + weather + `}]`, `"function_call"`, "response.completed"},
		{"/messages", nativeClaude, messagesPath, `"max_tokens":50,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":"Hello"}],"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`, `"type":"message"`, "message_stop"},
		{"/messages", nativeClaude, messagesPath, `"max_tokens":50,"messages":[{"role":"user","content":"mock: tools=1\nHello"}],"tools":[{"name":"w","input_schema":{"type":"object"}}]`, `"tool_use"`, "message_stop"},
	} {
		for _, slug := range []string{"native", "bearer"} {
			for _, stream := range []string{"", `,"stream":true`} {
				body := func(model string) string { return `{ "model":"` + model + `", ` + c.rest + stream + `}` }
				got := r.call("POST", c.path, body("@"+slug+"/"+c.model), "Anthropic-Beta", "context-management-2025-06-27", "Anthropic-Version", "2023-06-01")
				n++
				want := c.whole
				if stream != "" {
					want = c.ended
				}
				if got.status != 200 || !strings.Contains(got.body, want) {
					t.Fatalf("%s of %s: %d %s", c.path, c.model, got.status, got.body)
				}
				sent := r.mock.Requests(1)[0]
				if sent.Path != c.upstream || sent.Host != "bedrock-runtime.eu-west-1.amazonaws.com" {
					t.Errorf("%s of %s went to %s %s", c.path, c.model, sent.Host, sent.Path)
				}
				wantBody := body(c.model)
				if c.upstream == chatPath && stream != "" { // usage is asked for
					wantBody = string(sent.Body)
					if !strings.HasPrefix(wantBody, strings.TrimSuffix(body(c.model), "}")) && !strings.HasSuffix(wantBody, strings.TrimPrefix(body(c.model), "{")) {
						t.Errorf("%s: the bytes are others: %s", c.path, wantBody)
					}
				}
				if string(sent.Body) != wantBody {
					t.Errorf("%s: sent %s, not %s", c.path, sent.Body, wantBody)
				}
				signed := strings.HasPrefix(sent.Headers.Get("Authorization"), "AWS4-HMAC-SHA256") && strings.Contains(sent.Headers.Get("Authorization"), "/eu-west-1/bedrock/aws4_request")
				if signed != (slug == "native") || !signed && sent.Headers.Get("Authorization") != "Bearer mock-bedrock" {
					t.Errorf("%s: %s", slug, sent.Headers.Get("Authorization"))
				}
				betas := ""
				if c.upstream == messagesPath {
					betas = "context-management-2025-06-27"
					if slug == "native" {
						betas += ",saved-beta"
					}
				}
				if b, v := sent.Headers.Get("Anthropic-Beta"), sent.Headers.Get("Anthropic-Version"); b != betas || (v == "2023-06-01") != (betas != "") {
					t.Errorf("%s: betas %q of version %q", c.path, b, v)
				}
			}
		}
	}
	for _, c := range nativeShapes {
		if !slices.ContainsFunc(r.mock.Requests(64), func(sent mockprovider.Received) bool { return sent.Path == c.path }) {
			t.Errorf("nothing went to %s", c.path)
		}
	}
	// The bound of a chat has another name there.
	got := r.call("POST", "/chat/completions", chatBody("@native/"+nativeGPT, "Hello", `,"max_tokens":7`))
	n++
	if sent := string(r.mock.Requests(1)[0].Body); got.status != 200 || strings.Contains(sent, `"max_tokens"`) || !strings.Contains(sent, `"max_completion_tokens":7`) {
		t.Errorf("%d %s: %s", got.status, got.body, sent)
	}
	// Prompts are cached, and the price is that of the model.
	long := strings.Repeat("The quick brown fox. ", 400)
	for range 2 {
		r.call("POST", "/messages", fmt.Sprintf(`{"model":"@native/%s","max_tokens":9,"system":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":"x"}]}`, nativeClaude, long))
		n++
	}
	for _, rec := range r.bookedAsBilled(n) {
		if rec.Provider != "bedrock" || rec.Cost <= 0 || !rec.Priced || len(rec.Attempts) != 1 {
			t.Errorf("%+v", rec)
		}
	}
	if bill := r.mock.Bill().Total; bill.CacheWrite1h == 0 || bill.CacheRead == 0 {
		t.Errorf("nothing was cached: %+v", bill)
	}
}

// TestBedrockFallsBackToConverse: if the host does not serve the model in the client's
// shape, Converse is used. The host is tried once for each model and shape, and the result
// remembered.
func TestBedrockFallsBackToConverse(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrockItself()
	r.mock.Reset()
	n := 0
	for _, how := range []string{"no-path", "no-route", "no-api"} {
		for _, c := range []struct{ path, model, native, body, ended string }{
			{"/chat/completions", "openai.gpt-6-" + how, chatPath, `"messages":[{"role":"user","content":"Hello"}]`, "[DONE]"},
			{"/responses", "openai.gpt-5.6-" + how, responsesPath, `"input":"Hello"`, "response.completed"},
			{"/messages", "anthropic.claude-opus-5-" + how, messagesPath, `"max_tokens":50,"messages":[{"role":"user","content":"Hello"}]`, "message_stop"},
		} {
			for i, stream := range []bool{false, true, false} {
				model := c.model
				if i == 2 {
					model += "-x" // another model is asked first
				}
				before := r.mock.Bill().Total.Requests
				got := r.call("POST", c.path, fmt.Sprintf(`{"model":"@native/%s",%s,"stream":%t}`, model, c.body, stream))
				n++
				if got.status != 200 || stream && !strings.Contains(got.body, c.ended) {
					t.Fatalf("%s of %s: %d %s", c.path, model, got.status, got.body)
				}
				sentCount := int(r.mock.Bill().Total.Requests - before)
				if sent := r.mock.Requests(sentCount); sentCount != 2-i%2 || sentCount == 2 && sent[0].Path != c.native || !strings.Contains(sent[sentCount-1].Path, "/converse") {
					t.Errorf("%s of %s, %d: %d requests, the last to %s", c.path, model, i, sentCount, sent[sentCount-1].Path)
				}
			}
		}
	}
	for _, rec := range r.bookedAsBilled(n) {
		if rec.ClientStatus != 200 || rec.Attempts[len(rec.Attempts)-1].Status != 200 || len(rec.Attempts) == 2 && rec.Attempts[0].Cost != 0 {
			t.Errorf("%+v", rec)
		}
	}
}

// TestWhatANativeRouteRefusesGoesByConverse: Converse leaves out members that it does not
// know and reports them, as before; the next request tries the native route again. A client
// that wants nothing left out gets the rejection.
func TestWhatANativeRouteRefusesGoesByConverse(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrockItself()
	const plain, odd = `"messages":[{"role":"user","content":"x"}]`, `"messages":[{"role":"user","content":"x"}],"inference_geo":"us"`
	for i, c := range []struct {
		rest, strict string
		status       int
		paths        []string
	}{
		{odd, "", 200, []string{messagesPath, "/converse"}},
		{plain, "", 200, []string{messagesPath}},
		{odd, "strict", 400, []string{messagesPath}},
	} {
		before := r.mock.Bill().Total.Requests
		headers := []string{}
		if c.strict != "" {
			headers = append(headers, "X-Gateway-Translation", c.strict)
		}
		got := r.call("POST", "/messages", `{"model":"@native/`+nativeClaude+`","max_tokens":9,`+c.rest+`}`, headers...)
		sent := int(r.mock.Bill().Total.Requests - before)
		if got.status != c.status || sent != len(c.paths) {
			t.Errorf("%d: %d after %d requests: %s", i, got.status, sent, got.body)
			continue
		}
		for j, sent := range r.mock.Requests(sent) {
			if !strings.Contains(sent.Path, c.paths[j]) {
				t.Errorf("%d: request %d to %s", i, j, sent.Path)
			}
		}
	}
}

// TestBedrockRefusesInItsOwnWords: the client gets a rejection of the request itself, byte
// for byte if it reads its provider's errors, and no other target is called.
func TestBedrockRefusesInItsOwnWords(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrockItself()
	for _, c := range []struct{ path, body, want string }{
		{"/messages", `{"model":"@native/` + nativeClaude + `","max_tokens":9,"messages":[{"role":"user","content":"mock: status=400 message=no-good\nHello"}]}`, "no-good"},
		{"/responses", `{"model":"@native/` + nativeGPT + `","input":"x","background":true}`, "background is not supported for this request"},
		{"/chat/completions", chatBody("@native/"+nativeGPT, "mock: status=400 message=no-good\nHello", ""), "no-good"},
	} {
		before := r.mock.Bill().Total.Requests
		got := r.call("POST", c.path, c.body)
		if got.status != 400 || !strings.Contains(got.body, c.want) || r.mock.Bill().Total.Requests != before+1 {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
		}
		if c.path == "/messages" && !strings.HasPrefix(got.body, `{"type":"error","error":{"type":"invalid_request_error","message":"no-good"},"request_id":"req_`) {
			t.Errorf("not the provider's words: %s", got.body)
		}
	}
	// What the front door of AWS says has another shape.
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"wrong","slug":"wrong","workspace_id":%q,"ai_provider_id":"bedrock",%s,"aws_region":"eu-west-1"}}`, r.workspace(), strings.Replace(bedrockKeys, "mock-secret", "another", 1)))
	for path, body := range map[string]string{
		"/messages":         `{"model":"@wrong/` + nativeClaude + `","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`,
		"/chat/completions": chatBody("@wrong/"+nativeGPT, "x", ""), "/responses": `{"model":"@wrong/` + nativeGPT + `","input":"x"}`,
	} {
		if got := r.call("POST", path, body); got.status != 403 || !strings.Contains(got.body, "signature we calculated does not match") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// TestBedrockUsesConverse: Converse is used for models and shapes that are not known to
// have another way, for members that only Converse has, and at the caller's own hosts.
func TestBedrockUsesConverse(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct {
		path, model, more, target string
		native                    bool
	}{
		{"/chat/completions", nativeGPT, "", "", true},
		{"/chat/completions", "openai.gpt-oss-120b-1:0", "", "", false},
		{"/chat/completions", "openai.gpt-5.5", "", "", false},
		{"/chat/completions", nativeClaude, "", "", false},
		{"/chat/completions", "arn:aws:bedrock:us-east-1::foundation-model/openai.gpt-5.6-sol", "", "", false},
		{"/chat/completions", nativeGPT, `,"guardrail_config":{"guardrailIdentifier":"g","guardrailVersion":"1"}`, "", false},
		{"/chat/completions", nativeGPT, "", `,"override_params":{"performanceConfig":{"latency":"optimized"}}`, false},
		{"/chat/completions", nativeGPT, "," + functionTools, "", false},
		{"/chat/completions", nativeGPT, "", `,"custom_host":"https://models.example"`, false},
		{"/chat/completions", nativeGPT, "", `,"custom_host":"https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com"`, true},
		{"/responses", nativeGPT, "", "", true},
		{"/responses", "openai.gpt-oss-120b-1:0", "", "", false},
		{"/responses", nativeGPT, `,"metadata":{"team":"a"}`, "", false},
		{"/messages", nativeClaude, "", "", true},
		{"/messages", "anthropic.claude-sonnet-4-5-20250929-v1:0", "", "", false},
		{"/messages", nativeClaude, `,"service_tier":"auto"`, "", false},
		{"/messages", nativeGPT, "", "", false},
	} {
		messages := `"messages":[{"role":"user","content":"Hello"}]`
		switch c.path {
		case "/responses":
			messages = `"input":"Hello"`
		case "/messages":
			messages += `,"max_tokens":9`
		}
		got := r.dryRun(`{"config":{"provider":"bedrock","aws_access_key_id":"A","aws_secret_access_key":"s"` + c.target + `},"path":"` + c.path + `","body":{"model":"` + c.model + `",` + messages + c.more + `}}`)
		to := fmt.Sprint(member(got["targets"].([]any)[0], "url"))
		if strings.HasSuffix(to, "/converse") == c.native || c.native && !strings.Contains(to, "/v1/") {
			t.Errorf("%s of %s with %s%s: %s", c.path, c.model, c.more, c.target, to)
		}
	}
}

// TestBedrockTakesSystemPromptsWithinTheConversation: in their place if the model accepts
// that; otherwise, or if the host rejects the role, they go to the front and the answer
// says so.
func TestBedrockTakesSystemPromptsWithinTheConversation(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrockItself()
	r.mock.Reset()
	const turn = `{"role":"system","content":[{"text":"Now briefly."}]}`
	n := 0
	for _, c := range []struct {
		model    string
		requests int
		place    string
		reported bool
	}{
		{"us.anthropic.claude-opus-4-8", 1, turn, false},
		{bedrockClaude, 1, `"system":[{"text":"Lead."},{"text":"Now briefly."}]`, true},
		{"anthropic.claude-opus-5-no-system", 2, `"system":[{"text":"Lead."},{"text":"Now briefly."}]`, true},
		{"anthropic.claude-opus-5-no-system", 1, `"system":[{"text":"Lead."},{"text":"Now briefly."}]`, true},
	} {
		before := r.mock.Bill().Total.Requests
		got := r.call("POST", "/chat/completions", `{"model":"@native/`+c.model+`","messages":[{"role":"system","content":"Lead."},{"role":"user","content":"Hello"},{"role":"system","content":"Now briefly."}]}`, "X-Gateway-Strict-Open-Ai-Compliance", "false")
		n++
		sent, requests := string(r.mock.Requests(1)[0].Body), int(r.mock.Bill().Total.Requests-before)
		if got.status != 200 || !strings.Contains(sent, c.place) || requests != c.requests {
			t.Errorf("%s: %d %s after %d requests: %s", c.model, got.status, got.body, requests, sent)
		}
		if reported := strings.Contains(got.header.Get("X-Gateway-Translation"), "messages[2]"); reported != c.reported {
			t.Errorf("%s: told %q", c.model, got.header.Get("X-Gateway-Translation"))
		}
	}
	r.bookedAsBilled(n)
	// One who wants no losses is told before anything is sent.
	if got := r.call("POST", "/chat/completions", `{"model":"@native/`+bedrockClaude+`","messages":[{"role":"user","content":"Hello"},{"role":"system","content":"x"}]}`, "X-Gateway-Translation", "strict"); got.status != 400 || !strings.Contains(got.body, "messages[1]") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
