package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"gateway/shared/pricing"
)

const (
	bedrockClaude = "anthropic.claude-sonnet-4-5-20250929-v1:0"
	bedrockOlder  = "us.anthropic.claude-3-7-sonnet-20250219-v1:0"
	bedrockARN    = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/team"
)

// bedrock makes saved providers of Bedrock in front of the mock: @bedrock with
// access keys, and others for the cases of a test.
func (r *running) bedrock(slug, fields string) {
	r.t.Helper()
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":"bedrock",%s,"aws_region":"us-east-1"}}`, slug, slug, r.workspace(),
		strings.Replace(fields, `"configurations":{`, fmt.Sprintf(`"configurations":{"custom_host":%q,`, host), 1)))
}

const bedrockKeys = `"configurations":{"aws_auth_type":"accessKey","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret"`

func TestBedrockConversations(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	r.mock.Reset()
	tools := `,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	requests := 0
	send := func(body string, headers ...string) reply {
		t.Helper()
		requests++
		got := r.call("POST", "/chat/completions", body, headers...)
		if got.status != 200 {
			t.Fatalf("%d %s\n%s", got.status, got.body, body)
		}
		return got
	}
	for _, model := range []string{bedrockClaude, bedrockARN, "amazon.nova-pro-v1:0", "arn:aws:bedrock:us-east-1::foundation-model/" + bedrockClaude} {
		got := send(chatBody("@bedrock/"+model, "mock: echo\nHello", "")).json(t)
		message := got["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)
		if strings.TrimSpace(message["content"].(string)) != "Hello" || got["provider"] != "bedrock" {
			t.Errorf("%s: %v", model, got)
		}
	}
	streamed := send(chatBody("@bedrock/"+bedrockClaude, "mock: split-utf8\nHello", `,"stream":true,"stream_options":{"include_usage":true}`))
	if list := events(streamed.body); list[len(list)-1] != "[DONE]" || !strings.Contains(streamed.body, "東京") || !strings.Contains(list[len(list)-2], `"prompt_tokens"`) {
		t.Errorf("%s", streamed.body)
	}

	// A loop of tools with a model that thinks, by a client that cannot return what
	// it signed and by one that can.
	for _, headers := range [][]string{{}, {"X-Gateway-Strict-Open-Ai-Compliance", "false"}} {
		messages := []any{map[string]any{"role": "user", "content": "mock: reasoning=5\nWeather?"}}
		for turn := range 3 {
			raw, _ := json.Marshal(messages)
			got := send(fmt.Sprintf(`{"model":"@bedrock/%s","max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":%s%s}`, bedrockClaude, raw, tools), headers...)
			if len(headers) == 0 && turn > 0 && got.header.Get("X-Gateway-Translation") != "" {
				t.Error(got.header)
			}
			message := got.json(t)["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)
			messages = append(messages, message)
			calls, _ := message["tool_calls"].([]any)
			if turn == 0 && len(calls) == 0 {
				t.Fatalf("no call: %s", got.body)
			}
			for _, c := range calls {
				messages = append(messages, map[string]any{"role": "tool", "tool_call_id": c.(map[string]any)["id"], "content": "sunny"})
			}
			if len(calls) == 0 {
				messages = append(messages, map[string]any{"role": "user", "content": "mock: tools=1\nAnd the weather tomorrow?"})
			}
		}
		if last := string(r.mock.Requests(1)[0].Body); !strings.Contains(last, `"reasoningContent"`) || !strings.Contains(last, `"thinking"`) {
			t.Errorf("the signed reasoning was not given back (%v): %s", headers, last)
		}
	}

	// History with tool blocks and no tools.
	send(`{"model":"@bedrock/` + bedrockClaude + `","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"c1","content":"1"},{"role":"user","content":"y"}]}`)
	// Cached prompts, written and read.
	long := strings.Repeat("The quick brown fox. ", 400)
	for range 2 {
		send(fmt.Sprintf(`{"model":"@bedrock/%s","messages":[{"role":"system","content":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral","ttl":"1h"}}]},{"role":"user","content":"x"}]}`, bedrockClaude, long))
	}
	// An answer of a schema, by the model itself and by the hidden tool.
	schema := `,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}`
	for _, model := range []string{bedrockClaude, bedrockOlder} {
		got := send(chatBody("@bedrock/"+model, "Hi", schema)).json(t)
		content, _ := got["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"].(string)
		var n struct{ N *int }
		if json.Unmarshal([]byte(content), &n) != nil || n.N == nil {
			t.Errorf("%s: %v", model, got)
		}
	}
	messages := r.call("POST", "/messages", `{"model":"@bedrock/`+bedrockClaude+`","max_tokens":50,"messages":[{"role":"user","content":"Hello"}],"stream":true}`)
	requests++
	if messages.status != 200 || !strings.Contains(messages.body, "event: message_stop") {
		t.Errorf("%d %s", messages.status, messages.body)
	}

	// The books say what the bill says.
	var input, read, write5m, write1h, output int64
	for _, rec := range r.records(requests) {
		input, read = input+rec.Usage.N(pricing.Input), read+rec.Usage.N(pricing.CacheRead)
		write5m, write1h = write5m+rec.Usage.N(pricing.CacheWrite5m), write1h+rec.Usage.N(pricing.CacheWrite1h)
		output += rec.Usage.OutputTokens()
	}
	bill := r.mock.Bill().Total
	if bill.CacheWrite1h == 0 || bill.CacheRead == 0 {
		t.Errorf("nothing was cached: %+v", bill)
	}
	if input != bill.Input || read != bill.CacheRead || write5m != bill.CacheWrite5m || write1h != bill.CacheWrite1h || output != bill.Output+bill.Reasoning {
		t.Errorf("books: in %d read %d w5 %d w1h %d out %d; bill %+v", input, read, write5m, write1h, output, bill)
	}
}

func TestBedrockFailures(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	for _, c := range []struct {
		directives string
		status     int
		code       string
	}{
		{"status=429 retry-after=2", 429, "rate_limit_exceeded"},
		{"status=400 type=ValidationException message=Input is too long for requested model.", 400, "context_length_exceeded"},
		{"status=403", 403, ""}, {"status=408", 408, ""}, {"status=424", 424, ""}, {"status=503", 503, "overloaded"},
		{"status=429 type=ModelNotReadyException", 429, "overloaded"}, {"html", 502, "invalid_provider_response"}, {"garbage", 502, "invalid_provider_response"},
		{"finish=malformed_tool_use", 502, ""},
	} {
		got := r.call("POST", "/chat/completions", chatBody("@bedrock/"+bedrockClaude, "mock: "+c.directives+"\nHello", ""))
		e, _ := got.json(t)["error"].(map[string]any)
		code, _ := e["code"].(string)
		if got.status != c.status || code != c.code || e["source"] != "provider" {
			t.Errorf("%s: %d %s", c.directives, got.status, got.body)
		}
	}
	for _, c := range []struct{ directives, want string }{
		{"cut=after:3", "was truncated"}, {"cut=mid:3", "was truncated"}, {"garbage=after:3", "damaged"}, {"error-event=modelStreamErrorException after=3", "modelStreamErrorException"},
		{"no-done", "was truncated"}, {"finish=malformed_model_output", "malformed_model_output"},
	} {
		got := r.call("POST", "/chat/completions", chatBody("@bedrock/"+bedrockClaude, "mock: "+c.directives+"\nHello", `,"stream":true`))
		if got.status != 200 || !strings.Contains(got.body, c.want) || strings.Contains(got.body, "[DONE]") || !strings.Contains(got.body, `"error"`) {
			t.Errorf("%s: %d %s", c.directives, got.status, got.body)
		}
	}
	first := r.call("POST", "/chat/completions", chatBody("@bedrock/"+bedrockClaude, "mock: error-event=throttlingException after=0\nHello", `,"stream":true`))
	if first.status != 429 {
		t.Errorf("an exception before all else: %d %s", first.status, first.body)
	}
	for _, c := range []struct{ name, body, param string }{
		{"image of the web", `{"model":"@bedrock/` + bedrockClaude + `","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]}]}`, "messages[0].content[0]"},
	} {
		got := r.call("POST", "/chat/completions", c.body)
		if e, _ := got.json(t)["error"].(map[string]any); got.status != 400 || e["param"] != c.param {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
}

// In a row: it sets the environment.
func TestBedrockCredentials(t *testing.T) {
	r := start(t)
	t.Setenv("AWS_ENDPOINT_URL_STS", strings.TrimSuffix(r.mockBase(), "/v1")+"/sts")
	role := `"configurations":{"aws_auth_type":"assumedRole","aws_role_arn":"arn:aws:iam::123456789012:role/`
	r.bedrock("wrong", strings.Replace(bedrockKeys, "mock-secret", "another-secret", 1))
	r.bedrock("bearer", `"key":"mock-bedrock","configurations":{"aws_auth_type":"apiKey"`)
	r.bedrock("role", role+`external","aws_external_id":"mock"`)
	r.bedrock("stranger", role+`external","aws_external_id":"another"`)
	r.bedrock("service", `"configurations":{"aws_auth_type":"serviceRole"`)
	t.Setenv("AWS_ASSUME_ROLE_ACCESS_KEY_ID", "AKIDMOCK")
	t.Setenv("AWS_ASSUME_ROLE_SECRET_ACCESS_KEY", "mock-secret")
	for _, c := range []struct {
		slug   string
		status int
	}{{"wrong", 403}, {"bearer", 200}, {"role", 200}, {"stranger", 401}, {"service", 400}} {
		got := r.call("POST", "/chat/completions", chatBody("@"+c.slug+"/"+bedrockClaude, "Hello", ""))
		if got.status != c.status || strings.Contains(got.body, "another-secret") {
			t.Errorf("%s: %d %s", c.slug, got.status, got.body)
		}
	}
	// The caller's own keys, for a host of the caller's.
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	own := []string{"X-Gateway-Provider", "bedrock", "X-Gateway-Custom-Host", host, "X-Gateway-Aws-Access-Key-Id", "AKIDMOCK", "X-Gateway-Aws-Secret-Access-Key", "mock-secret", "X-Gateway-Aws-Region", "eu-west-3"}
	if got := r.call("POST", "/chat/completions", chatBody(bedrockClaude, "Hello", ""), own...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	// A caller cannot have the gateway assume a role for him.
	if got := r.call("POST", "/chat/completions", chatBody(bedrockClaude, "Hello", ""), "X-Gateway-Provider", "bedrock", "X-Gateway-Custom-Host", host,
		"X-Gateway-Aws-Auth-Type", "assumedRole", "X-Gateway-Aws-Role-Arn", "arn:aws:iam::123456789012:role/x"); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestBedrockOperations(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	r.mock.Reset()
	for _, c := range []struct{ path, body, want string }{
		{"/embeddings", `{"model":"@bedrock/amazon.titan-embed-text-v2:0","input":"Hello","dimensions":256}`, `"embedding":[`},
		{"/embeddings", `{"model":"@bedrock/cohere.embed-english-v3","input":["a","b"],"encoding_format":"base64"}`, `"index":1,"embedding":"`},
		{"/embeddings", `{"model":"@bedrock/amazon.nova-2-multimodal-embeddings-v1:0","input":"Hello"}`, `"embedding":[`},
		{"/images/generations", `{"model":"@bedrock/amazon.nova-canvas-v1:0","prompt":"a cat","n":2,"size":"1024x1024"}`, `"b64_json":"`},
		{"/images/generations", `{"model":"@bedrock/stability.sd3-5-large-v1:0","prompt":"a cat","size":"1024x1024"}`, `"b64_json":"`},
		{"/rerank", `{"model":"@bedrock/cohere.rerank-v3-5:0","query":"cat","documents":["dog","a cat"]}`, `{"index":1,"relevance_score":0.500`},
		{"/messages/count_tokens", `{"model":"@bedrock/us.` + bedrockClaude + `","messages":[{"role":"user","content":"Hello"}]}`, `{"input_tokens":6}`},
		{"/messages/count_tokens", `{"model":"@bedrock/amazon.nova-pro-v1:0","messages":[{"role":"user","content":"Hello"}]}`, `{"input_tokens":6}`},
		{"/completions", `{"model":"@bedrock/` + bedrockClaude + `","prompt":"Hello"}`, `"text_completion"`},
	} {
		got := r.call("POST", c.path, c.body)
		if got.status != 200 || !strings.Contains(got.body, c.want) {
			t.Errorf("%s %s: %d %.300s", c.path, c.body, got.status, got.body)
		}
	}
	var input int64
	for _, rec := range r.records(9) {
		input += rec.Usage.N(pricing.Input)
	}
	if bill := r.mock.Bill().Total; input != bill.Input {
		t.Errorf("books %d, bill %d", input, bill.Input)
	}
	refused := r.call("POST", "/embeddings", `{"model":"@bedrock/amazon.titan-embed-text-v2:0","input":["a","b"]}`)
	if refused.status != 400 {
		t.Errorf("%d %s", refused.status, refused.body)
	}
}

// TestBedrockPassThrough sends what an AWS library would: it is signed again with
// the saved credential, and the answer comes back byte for byte.
func TestBedrockPassThrough(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	path := "/model/" + strings.ReplaceAll(url.PathEscape(bedrockClaude), ":", "%3A")
	headers := []string{
		"X-Gateway-Provider", "@bedrock", "Authorization", "AWS4-HMAC-SHA256 Credential=ANY/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00",
		"X-Amz-Date", "20200101T000000Z", "X-Amz-Security-Token", "client", "X-Amz-Content-Sha256", "0",
		"X-Amzn-Bedrock-GuardrailIdentifier", "g",
	}
	body := `{"messages":[{"role":"user","content":[{"text":"mock: echo\nHello"}]}]}`
	got := r.call("POST", path+"/converse", body, headers...)
	if got.status != 200 || !strings.Contains(got.body, `"text":"Hello"`) && !strings.Contains(got.body, `Hello`) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if sent := r.mock.Requests(1)[0].Headers; sent.Get("X-Amzn-Bedrock-Guardrailidentifier") != "g" || sent.Get("X-Amz-Security-Token") != "" {
		t.Errorf("%v", sent)
	}
	invoked := r.call("POST", path+"/invoke", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":20,"messages":[{"role":"user","content":"Hello"}]}`, headers...)
	if invoked.status != 200 || !strings.Contains(invoked.body, `"type":"message"`) {
		t.Errorf("%d %s", invoked.status, invoked.body)
	}
	streamed := r.call("POST", path+"/converse-stream", body, headers...)
	var names []string
	for reader, dec := bytes.NewReader([]byte(streamed.body)), eventstream.NewDecoder(); reader.Len() > 0; {
		m, err := dec.Decode(reader, nil)
		if err != nil {
			t.Fatalf("%v %q", err, streamed.body)
		}
		names = append(names, m.Headers.Get(":event-type").String())
	}
	if n := len(names); n < 4 || names[0] != "messageStart" || names[n-1] != "metadata" || streamed.header.Get("Content-Type") != "application/vnd.amazon.eventstream" {
		t.Errorf("%v %v", names, streamed.header)
	}
	chunks := r.call("POST", path+"/invoke-with-response-stream", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":20,"messages":[{"role":"user","content":"Hello"}]}`, headers...)
	if chunks.status != 200 || !strings.Contains(chunks.body, `{"bytes":"`) {
		t.Errorf("%d %s", chunks.status, chunks.body)
	}
	var input, output int64
	for _, rec := range r.records(4) {
		if rec.Provider == "bedrock" && rec.Model != bedrockClaude {
			t.Errorf("model %q", rec.Model)
		}
		input, output = input+rec.Usage.N(pricing.Input), output+rec.Usage.OutputTokens()
	}
	if bill := r.mock.Bill().Total; input != bill.Input || output != bill.Output {
		t.Errorf("books: in %d out %d; bill %+v", input, output, bill)
	}
}

// TestModelsOfAPathAreHeldToTheList: a provider that serves only some models does not serve
// others through a path that names them.
func TestModelsOfAPathAreHeldToTheList(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("narrow", bedrockKeys)
	r.admin("PUT", "/integrations/narrow/models?workspace_id="+r.workspace(), `{"allow_all_models":false,"models":[{"slug":"amazon.nova-pro-v1:0","enabled":true}]}`)
	body := `{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`
	for path, want := range map[string]int{
		"/model/amazon.nova-pro-v1%3A0/converse": 200, "/model/amazon.nova-pro-v1:0/converse": 200, "/model/anthropic.claude-sonnet-4-5/converse": 403,
		"/proxy/model/anthropic.claude-sonnet-4-5/converse": 403, "/model/%zz/converse": 403,
	} {
		got, err := r.try("POST", path, body, "X-Gateway-Provider", "@narrow")
		if err != nil {
			continue // no address that a client sends
		}
		if got.status != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// TestProfilesArePricedByTheirModel: an application's inference profile has no
// price of its own.
func TestProfilesArePricedByTheirModel(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	for _, model := range []string{bedrockARN, bedrockClaude} {
		if got := r.call("POST", "/chat/completions", chatBody("@bedrock/"+model, "Hello", "")); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := r.call("POST", "/model/"+url.PathEscape(bedrockARN)+"/converse", `{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`, "X-Gateway-Provider", "@bedrock"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	var costs []pricing.NanoDollars
	for _, rec := range r.records(3) {
		if rec.Provider == "bedrock" {
			costs = append(costs, rec.Cost)
		}
	}
	if len(costs) != 3 || costs[0] == 0 || costs[0] != costs[1] || costs[2] == 0 {
		t.Errorf("%v", costs)
	}
}

func TestSageMakerEndpointsArePassedThrough(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"sm","slug":"sm","workspace_id":%q,"ai_provider_id":"sagemaker","configurations":{"custom_host":%q,"aws_auth_type":"accessKey","aws_region":"us-east-1","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret","amzn_sagemaker_target_model":"m.tar.gz"}}`, r.workspace(), host))
	body := chatBody("gpt-4o-mini", "mock: echo\nHello", "")
	for _, kind := range []string{"application/json", "application/octet-stream"} { // read whole, and streamed
		got := r.call("POST", "/endpoints/my-endpoint/invocations", body, "X-Gateway-Provider", "@sm", "Content-Type", kind)
		if got.status != 200 || !strings.Contains(got.body, "Hello") {
			t.Errorf("%s: %d %s", kind, got.status, got.body)
		}
		if sent := r.mock.Requests(1)[0]; sent.Headers.Get("X-Amzn-Sagemaker-Target-Model") != "m.tar.gz" || string(sent.Body) != body {
			t.Errorf("%s: %v %s", kind, sent.Headers, sent.Body)
		}
	}
}
