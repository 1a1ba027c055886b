package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"gateway/local/mockprovider"
	"gateway/shared/pricing"
)

// googleMock is a mock provider of its own whose token endpoint knows a service
// account; it gives the account's key file too.
func googleMock(t *testing.T) (mock *mockprovider.Server, host string, account map[string]string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	mock = mockprovider.New(mockprovider.Options{ServiceAccount: &key.PublicKey})
	host, err = mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mock.Close() })
	return mock, host, map[string]string{
		"type": "service_account", "project_id": "proj", "private_key_id": "kid", "client_email": "svc@proj.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": host + "/token",
	}
}

// startGoogle runs a gateway with the saved providers @google and @vertex in
// front of one mock.
func startGoogle(t *testing.T) (*running, *mockprovider.Server) {
	t.Helper()
	r := start(t)
	mock, host, account := googleMock(t)
	raw, _ := json.Marshal(account)
	r.save("google", `"ai_provider_id":"google","key":"mock-google","configurations":{"custom_host":"`+host+`"}`)
	r.save("vertex", `"ai_provider_id":"vertex-ai","configurations":{"vertex_auth_type":"serviceAccount","vertex_region":"us-central1","vertex_service_account_json":`+string(raw)+`,"custom_host":"`+host+`"}`)
	return r, mock
}

func (r *running) save(slug, fields string) {
	r.t.Helper()
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,%s}`, slug, slug, r.workspace(), fields))
}

// countingClient counts the requests that are recorded.
type countingClient struct {
	*running
	n int
}

func (a *countingClient) send(path, body string, headers ...string) reply {
	a.t.Helper()
	a.n++
	got := a.call("POST", path, body, headers...)
	if got.status != 200 {
		a.t.Fatalf("%d %s\n%s", got.status, got.body, body)
	}
	return got
}

func choiceOf(t *testing.T, got reply) map[string]any {
	t.Helper()
	return got.json(t)["choices"].([]any)[0].(map[string]any)
}

const weatherTools = `,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}},{"type":"function","function":{"name":"now"}}]`

func TestGeminiConversations(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	a := &countingClient{running: r}
	for _, host := range []string{"google", "vertex"} {
		for _, model := range []string{"gemini-2.0-flash", "gemini-2.5-flash", "gemini-3-pro-preview"} {
			name := "@" + host + "/" + model
			got := a.send("/chat/completions", chatBody(name, "mock: echo\nHello", ""))
			if c := choiceOf(t, got); strings.TrimSpace(c["message"].(map[string]any)["content"].(string)) != "Hello" || c["finish_reason"] != "stop" {
				t.Errorf("%s: %s", name, got.body)
			}
			streamed := a.send("/chat/completions", chatBody(name, "mock: split-utf8\nHello", `,"stream":true,"stream_options":{"include_usage":true}`))
			if s, err := mockprovider.ReadOpenAIStream([]byte(streamed.body)); err != nil || !strings.Contains(s.Text, "東京") || s.Prompt <= 0 || s.Completion <= 0 {
				t.Errorf("%s: %v %+v", name, err, s)
			}
			a.send("/chat/completions", chatBody(name, "Hi", `,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"n":{"type":["integer","null"]}},"required":["n"],"additionalProperties":false}}}`))
			a.send("/chat/completions", chatBody(name, "mock: cached=2 parallel\nweather", weatherTools))
			a.send("/messages", chatBody(name, "mock: parallel\nweather", `,"max_tokens":500,"stream":true,"tools":[{"name":"now","input_schema":{"type":"object","properties":{}}}]`))
		}
	}
	a.send("/chat/completions", chatBody("@google/gemini-2.5-flash", "Hi", `,"n":2,"logprobs":true,"top_logprobs":2,"reasoning_effort":"low","max_tokens":60,"seed":7,"temperature":0.2,"top_p":0.9,"stop":["zzz"]`))
	a.send("/chat/completions", chatBody("@google/gemini-2.5-flash", "Hi", `,"n":2,"stream":true`))

	// The books say what the bill says.
	booked, bill := booked(r.records(a.n)), mock.Bill().Total
	if booked.input != bill.Input || booked.cacheRead != bill.CacheRead || booked.output+booked.reasoning != bill.Output+bill.Reasoning || bill.CacheRead == 0 || bill.Reasoning == 0 {
		t.Errorf("books %+v, bill %+v", booked, bill)
	}
	tokens := 0
	for _, req := range mock.Requests(1000) {
		if req.Path == "/token" {
			tokens++
		}
	}
	if tokens > 1 {
		t.Errorf("%d tokens were fetched", tokens)
	}
}

// TestGeminiToolLoop plays a loop of tools with a model that insists on the
// signatures of its calls, with clients that return them, clients that cannot,
// and a move to another host in the middle.
func TestGeminiToolLoop(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	a := &countingClient{running: r}
	for _, c := range []struct {
		name        string
		headers     []string
		hosts       []string
		placeholder bool // the stand-in is sent
	}{
		{"strict", nil, []string{"google", "google", "google"}, false},
		{"lenient", []string{"X-Gateway-Strict-Open-Ai-Compliance", "false"}, []string{"google", "google", "google"}, false},
		{"another host", []string{"X-Gateway-Strict-Open-Ai-Compliance", "false"}, []string{"google", "vertex", "google"}, true},
		{"strict on another host", nil, []string{"vertex", "google", "vertex"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			messages := []any{map[string]any{"role": "user", "content": "mock: parallel tools=2\nweather?"}}
			for turn, host := range c.hosts {
				raw, _ := json.Marshal(messages)
				body := fmt.Sprintf(`{"model":"@%s/gemini-3-pro-preview","reasoning_effort":"low","messages":%s%s}`, host, raw, weatherTools)
				got := a.send("/chat/completions", body, c.headers...)
				message := choiceOf(t, got)["message"].(map[string]any)
				calls, _ := message["tool_calls"].([]any)
				if len(calls) != 2 {
					t.Fatalf("turn %d: %s", turn, got.body)
				}
				messages = append(messages, message)
				for _, call := range calls {
					messages = append(messages, map[string]any{"role": "tool", "tool_call_id": call.(map[string]any)["id"], "content": "sunny"})
				}
			}
			last := string(mock.Requests(1)[0].Body)
			if n := strings.Count(last, `"thoughtSignature"`); n != 2 {
				t.Errorf("%d signatures: %s", n, last)
			}
			if got := strings.Contains(last, "skip_thought_signature_validator"); got != c.placeholder {
				t.Errorf("stand-in %v: %s", got, last)
			}
		})
	}
	t.Run("messages", func(t *testing.T) {
		messages := []any{map[string]any{"role": "user", "content": "mock: tools=2\nweather?"}}
		for range 3 {
			raw, _ := json.Marshal(messages)
			got := a.send("/messages", fmt.Sprintf(`{"model":"@google/gemini-3-pro-preview","max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":%s,"tools":[{"name":"now","input_schema":{"type":"object","properties":{}}}]}`, raw)).json(t)
			var results []any
			for _, b := range got["content"].([]any) {
				if block := b.(map[string]any); block["type"] == "tool_use" {
					results = append(results, map[string]any{"type": "tool_result", "tool_use_id": block["id"], "content": "noon"})
				}
			}
			if len(results) != 2 {
				t.Fatalf("%v", got)
			}
			messages = append(messages, map[string]any{"role": "assistant", "content": got["content"]}, map[string]any{"role": "user", "content": results})
		}
		if last := string(mock.Requests(1)[0].Body); strings.Count(last, `"thoughtSignature"`) != 2 || strings.Contains(last, "skip_thought") {
			t.Errorf("%s", last)
		}
	})
}

func TestGeminiFailures(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	for _, c := range []struct {
		directives, code string
		status           int
	}{
		{"status=429 retry-after=7", "rate_limit_exceeded", 429},
		{"status=503", "overloaded", 503},
		{"status=400", "400", 400},
		{"html", "invalid_provider_response", 502},
		{"empty", "invalid_provider_response", 502},
		{"garbage", "invalid_provider_response", 502},
		{"finish=MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL", 502},
	} {
		got := r.call("POST", "/chat/completions", chatBody("@google/gemini-2.5-flash", "mock: "+c.directives, ""))
		e, _ := got.json(t)["error"].(map[string]any)
		if got.status != c.status || e["code"] != c.code || e["source"] != "provider" {
			t.Errorf("%s: %d %s", c.directives, got.status, got.body)
		}
		if c.status == 429 && got.header.Get("Retry-After") != "7" {
			t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
		}
	}
	for _, c := range []struct {
		directives, want string
		status           int
		done             bool
	}{
		{"error-event=UNAVAILABLE after=0", `"code":"overloaded"`, 503, false},
		{"error-event=INTERNAL after=2", `"type":"INTERNAL"`, 200, false},
		{"cut=after:3", `invalid_provider_response`, 200, false},
		{"no-done", `invalid_provider_response`, 200, false},
		{"finish=SAFETY", `"finish_reason":"content_filter"`, 200, true},
		{"finish=prompt-SAFETY", `"finish_reason":"content_filter"`, 200, true},
		{"ping multi-data", `"finish_reason":"stop"`, 200, true},
		{"no-final-blank", `"finish_reason":"stop"`, 200, true},
		{"no-usage", `"finish_reason":"stop"`, 200, true},
	} {
		got := r.call("POST", "/chat/completions", chatBody("@google/gemini-2.5-flash", "mock: "+c.directives, `,"stream":true`))
		if got.status != c.status || !strings.Contains(got.body, c.want) || strings.Contains(got.body, "[DONE]") != c.done {
			t.Errorf("%s: %d %s", c.directives, got.status, got.body)
		}
	}
	blocked := choiceOf(t, r.call("POST", "/chat/completions", chatBody("@google/gemini-2.5-flash", "mock: finish=prompt-SAFETY", "")))
	if blocked["finish_reason"] != "content_filter" || blocked["message"].(map[string]any)["content"] != nil {
		t.Errorf("%v", blocked)
	}
	retried := r.call("POST", "/chat/completions", chatBody("@google/gemini-2.5-flash", "mock: status=503 times=1", ""), "X-Gateway-Config", `{"provider":"@google","retry":{"attempts":2,"on_status_codes":[503]}}`)
	if retried.status != 200 || retried.header.Get("X-Gateway-Retry-Attempt-Count") != "1" {
		t.Errorf("%d %v %s", retried.status, retried.header, retried.body)
	}
	eventually(t, func() error {
		if open := mock.Bill().Open; open != 0 {
			return fmt.Errorf("%d open", open)
		}
		return nil
	})
}

func TestVertexPublishers(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	a := &countingClient{running: r}
	for _, c := range []struct{ path, body, want, upstream string }{
		{"/chat/completions", chatBody("@vertex/anthropic.claude-sonnet-4-5", "Hello", ""), `"provider":"vertex-ai"`, "/publishers/anthropic/models/claude-sonnet-4-5:rawPredict"},
		{"/chat/completions", chatBody("@vertex/anthropic.claude-sonnet-4-5", "Hello", `,"stream":true`), "[DONE]", "/publishers/anthropic/models/claude-sonnet-4-5:streamRawPredict"},
		{"/messages", chatBody("@vertex/anthropic.claude-sonnet-4-5", "Hello", `,"max_tokens":50`), `"type":"message"`, "/publishers/anthropic/models/claude-sonnet-4-5:rawPredict"},
		{"/messages", chatBody("@vertex/anthropic.claude-sonnet-4-5", "Hello", `,"max_tokens":50,"stream":true`), "message_stop", "/publishers/anthropic/models/claude-sonnet-4-5:streamRawPredict"},
		{"/messages", chatBody("@vertex/gemini-2.5-flash", "Hello", `,"max_tokens":50`), `"type":"message"`, "/publishers/google/models/gemini-2.5-flash:generateContent"},
		{"/chat/completions", chatBody("@vertex/mistralai.mistral-medium-3", "Hello", `,"max_completion_tokens":20`), `"choices"`, "/publishers/mistralai/models/mistral-medium-3:rawPredict"},
		{"/chat/completions", chatBody("@vertex/meta.llama-4-scout", "Hello", `,"stream":true`), "[DONE]", "/v1beta1/projects/proj/locations/us-central1/endpoints/openapi/chat/completions"},
		{"/chat/completions", chatBody("@vertex/endpoints.12345", "Hello", ""), `"choices"`, "/v1/projects/proj/locations/us-central1/endpoints/12345/chat/completions"},
		{"/embeddings", `{"model":"@vertex/text-embedding-005","input":["one","two"],"dimensions":64}`, `"prompt_tokens":2`, "/publishers/google/models/text-embedding-005:predict"},
		{"/embeddings", `{"model":"@google/gemini-embedding-001","input":["one","two"],"dimensions":64}`, `"index":1`, "/v1beta/models/gemini-embedding-001:batchEmbedContents"},
		{"/images/generations", `{"model":"@vertex/imagen-4.0-generate-001","prompt":"a cat","n":2,"size":"1024x1024"}`, `"b64_json"`, "/publishers/google/models/imagen-4.0-generate-001:predict"},
		{"/images/generations", `{"model":"@google/imagen-4.0-generate-001","prompt":"a cat"}`, `"b64_json"`, "/v1beta/models/imagen-4.0-generate-001:predict"},
	} {
		got := a.send(c.path, c.body)
		last := mock.Requests(1)[0]
		if !strings.Contains(got.body, c.want) || !strings.HasSuffix(last.Path, c.upstream) {
			t.Errorf("%s: %s\nsent to %s: %s", c.body, got.body, last.Path, last.Body)
		}
	}
	images := int64(0)
	for _, rec := range r.records(a.n) {
		images += rec.Usage.N(pricing.Images)
	}
	if images != 3 {
		t.Errorf("%d images are in the books", images)
	}
	list := r.call("GET", "/models", "", "X-Gateway-Provider", "@google")
	if list.status != 200 || !strings.Contains(list.body, `"id":"gemini-2.5-flash"`) {
		t.Errorf("%d %s", list.status, list.body)
	}
}

// TestVertexCredentials: a rejected key is the provider's 401, and the key file
// cannot send the gateway where the egress rules close.
func TestVertexCredentials(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, host, account := googleMock(t)
	_, _, stranger := googleMock(t)
	stranger["token_uri"] = host + "/token"
	closed := map[string]string{}
	for k, v := range account {
		closed[k] = v
	}
	closed["token_uri"] = "http://169.254.169.254/token"
	for _, c := range []struct {
		slug    string
		account map[string]string
		status  int
		want    string
	}{
		{"good", account, 200, `"choices"`},
		{"unknown", stranger, 401, `"source":"provider"`},
		{"closed", closed, 400, "blocked_host"},
	} {
		raw, _ := json.Marshal(c.account)
		r.save("vertex-"+c.slug, `"ai_provider_id":"vertex-ai","configurations":{"vertex_auth_type":"serviceAccount","vertex_region":"global","vertex_service_account_json":`+string(raw)+`,"custom_host":"`+host+`"}`)
		got := r.call("POST", "/chat/completions", chatBody("@vertex-"+c.slug+"/gemini-2.5-flash", "Hi", ""))
		if got.status != c.status || !strings.Contains(got.body, c.want) || strings.Contains(got.body, "PRIVATE") {
			t.Errorf("%s: %d %s", c.slug, got.status, got.body)
		}
	}
	r.save("vertex-token", `"ai_provider_id":"vertex-ai","key":"`+mockprovider.VertexToken+`","configurations":{"vertex_auth_type":"basic","vertex_region":"europe-west4","vertex_project_id":"p1","custom_host":"`+host+`"}`)
	if got := r.call("POST", "/chat/completions", chatBody("@vertex-token/gemini-2.5-flash", "Hi", "")); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestGeminiPassThrough: the accounting know what passes through, be it whole, a
// stream of events or one list.
func TestGeminiPassThrough(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	body := `{"contents":[{"role":"user","parts":[{"text":"mock: reasoning=3 cached=1\nHello there"}]}]}`
	for _, path := range []string{":generateContent", ":streamGenerateContent?alt=sse", ":streamGenerateContent"} {
		got := r.call("POST", "/v1beta/models/gemini-2.5-flash"+path, body, "X-Gateway-Provider", "@google")
		if got.status != 200 || !strings.Contains(got.body, `"finishReason":"STOP"`) {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
	}
	records := r.records(3)
	booked, bill := booked(records), mock.Bill().Total
	if booked.input != bill.Input || booked.cacheRead != bill.CacheRead || booked.output != bill.Output || booked.reasoning != bill.Reasoning || booked.nanoDollars != bill.NanoDollars || bill.Reasoning == 0 {
		t.Errorf("books %+v, bill %+v", booked, bill)
	}
	if records[0].Model != "gemini-2.5-flash" || records[0].FinishReason != "STOP" {
		t.Errorf("%+v", records[0])
	}
}

// TestModelsOfGoogleAndAzurePathsAreHeldToTheList: what a path names counts, in
// whatever spelling the provider could read, and not what the body says.
func TestModelsOfGoogleAndAzurePathsAreHeldToTheList(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	r.save("azure", `"ai_provider_id":"azure-openai","key":"mock-azure","configurations":{"azure_auth_mode":"default","azure_resource_name":"res","azure_deployment_config":[{"azure_deployment_name":"gpt-4o-mini","azure_api_version":"2024-10-21","azure_model_slug":"gpt-4o-mini","is_default":true}],"custom_host":"`+host+`"}`)
	allow := func(slug, model string) {
		r.admin("PUT", "/integrations/"+slug+"/models?workspace_id="+r.workspace(), fmt.Sprintf(`{"allow_all_models":false,"models":[{"slug":%q,"enabled":true}]}`, model))
	}
	allow("google", "gemini-2.5-flash")
	allow("vertex", "anthropic.claude-sonnet-4-5")
	allow("azure", "gpt-4o-mini")
	mock.Reset()
	r.mock.Reset()
	gemini := `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`
	named := `{"model":"gemini-2.5-flash","contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`
	claude := `{"anthropic_version":"vertex-2023-10-16","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`
	scope := "/proxy/v1/projects/proj/locations/us-central1/publishers/"
	for _, c := range []struct {
		slug, path, body string
		want             int
	}{
		{"google", "/v1beta/models/gemini-2.5-flash:generateContent", gemini, 200},
		{"google", "/v1beta/models/gemini-2.5-pro:generateContent", gemini, 403}, {"google", "/v1beta/models/gemini-2.5-pro:generateContent", named, 403},
		{"google", "/v1beta/models/gemini-2.5-pro%3AgenerateContent", named, 403}, {"google", "/proxy/v1beta//models/gemini-2.5-pro:generateContent", named, 403},
		{"google", "/proxy/v1beta/models/gemini-2.5-flash/%2e%2e/gemini-2.5-pro:generateContent", named, 403},
		{"vertex", scope + "anthropic/models/claude-sonnet-4-5:rawPredict", claude, 200},
		{"vertex", scope + "anthropic/models/claude-opus-4-1:rawPredict", claude, 403}, {"vertex", scope + "google/models/claude-sonnet-4-5:generateContent", gemini, 403},
		{"azure", "/proxy/deployments/gpt-4o/chat/completions?api-version=2024-10-21", chatBody("gpt-4o-mini", "Hello", ""), 403},
	} {
		got := r.call("POST", c.path, c.body, "X-Gateway-Provider", "@"+c.slug)
		if got.status != c.want || c.want == 403 && got.header.Get("X-Gateway-Error-Code") != "model_not_allowed" {
			t.Errorf("%s %s: %d %s", c.slug, c.path, got.status, got.body)
		}
	}
	if sent := len(mock.Requests(20)) + len(r.mock.Requests(20)); sent > 3 { // two calls, one token
		t.Errorf("%d requests were sent", sent)
	}
	eventually(t, func() error {
		for _, rec := range archived(t, r.g) {
			if strings.Contains(rec.Path, ":rawPredict") && rec.ClientStatus == 200 {
				if rec.Model != "claude-sonnet-4-5" && rec.Model != "anthropic.claude-sonnet-4-5" || !rec.Priced || rec.Cost == 0 {
					return fmt.Errorf("%s, priced %v, %d", rec.Model, rec.Priced, rec.Cost)
				}
				return nil
			}
		}
		return fmt.Errorf("no record")
	})
}

// TestModelsAreListedForGooglesClients: Google's SDK 3 reads the models at /v1/models, which others
// read in OpenAI's format.
func TestModelsAreListedForGooglesClients(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	key, agent := []string{"X-Goog-Api-Key", workspaceKey}, []string{"X-Goog-Api-Client", "google-genai-sdk/3.3.0 gl-node/v24"}
	const mini = `{"name":"models/@mock/gpt-4o-mini","displayName":"gpt-4o-mini","inputTokenLimit":128000,"outputTokenLimit":16384,"supportedGenerationMethods":["generateContent","countTokens"]}`
	const flash = `{"name":"models/gemini-2.5-flash","displayName":"gemini-2.5-flash","inputTokenLimit":1048576,`
	to := func(headers []string, slug string) []string {
		return append(headers[:len(headers):len(headers)], "X-Gateway-Provider", slug)
	}
	for _, c := range []struct {
		path    string
		headers []string
		status  int
		want    string
		sent    string // to Google
	}{
		{"/models", nil, 200, `{"object":"list","data":[{"id":"@`, ""},
		{"/models", key, 200, mini, ""},
		{"/v1/models/", agent, 404, ``, ""},
		{"/models?pageSize=1", agent, 200, `"nextPageToken":"@`, ""},
		{"/models?pageSize=x", agent, 400, `"status":"INVALID_ARGUMENT"`, ""},
		{"/models?pageToken=@mock/gpt-4o-mini&pageSize=1", agent, 200, `{"models":[` + mini + `],"nextPageToken":"@`, ""},
		{"/models?pageToken=nothing", agent, 400, `"status":"INVALID_ARGUMENT"`, ""},
		{"/models/@mock/gpt-4o-mini", agent, 200, mini, ""},
		{"/models/@mock%2Fgpt-4o-mini", to(agent, "@google"), 200, mini, ""},
		{"/models/gpt-4o-mini", agent, 200, `{"name":"models/gpt-4o-mini","displayName":"gpt-4o-mini",`, ""},
		{"/models/unknown", agent, 404, `"status":"NOT_FOUND"`, ""},
		{"/models", to(agent, "@mock"), 200, `{"name":"models/gpt-4o-mini","displayName":"gpt-4o-mini",`, ""},
		{"/models/gpt-4o-mini", to(agent, "@mock"), 200, `{"name":"models/gpt-4o-mini","displayName":"gpt-4o-mini",`, ""},
		{"/models/unknown", to(agent, "@mock"), 404, `"status":"NOT_FOUND"`, ""},
		{"/models?pageSize=3&pageToken=x&key=secret", to(key, "@google"), 200, `{"models":[{"name":"models/gemini-2.0-flash",`, "/v1beta/models?pageSize=3&pageToken=x"},
		{"/models/gemini-2.5-flash", to(key, "@google"), 200, flash, "/v1beta/models/gemini-2.5-flash"},
		{"/models/does-not-exist", to(key, "@google"), 404, `"status":"NOT_FOUND"`, "/v1beta/models/does-not-exist"},
		{"/models", to(nil, "@google"), 200, `{"object":"list","data":[{"id":"gemini-2.0-flash"`, "/v1beta/models?pageSize=1000"},
		{"/models", to(append(agent, "Anthropic-Version", "2023-06-01"), "@mock"), 200, `"has_more":false`, ""},
	} {
		mock.Reset()
		got := r.call("GET", c.path, "", c.headers...)
		if got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s %v: %d, want %d and %s\n%.600s", c.path, c.headers, got.status, c.status, c.want, got.body)
		}
		sent := ""
		for _, req := range mock.Requests(9) {
			sent = req.Path
			if req.Query != "" {
				sent += "?" + req.Query
			}
		}
		if sent != c.sent {
			t.Errorf("%s %v: sent %q, want %q", c.path, c.headers, sent, c.sent)
		}
	}
}

// TestGeminiSDKWithoutBeta asks as Google's SDK 3 does, whose paths begin with v1, and as the AI SDK,
// which omits models/ before a name with a slash, at the provider itself and at one of another shape.
func TestGeminiSDKWithoutBeta(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	const body = `{"contents":[{"role":"user","parts":[{"text":"mock: echo\nHello"}]}]}`
	for _, c := range []struct{ path, body, sent, want string }{
		{"/models/@google/gemini-2.5-flash:generateContent", body, "/v1beta/models/gemini-2.5-flash:generateContent", `"Hello`},
		{"/models/@google/gemini-2.5-flash:streamGenerateContent?alt=sse", body, "/v1beta/models/gemini-2.5-flash:streamGenerateContent", `"finishReason":"STOP"`},
		{"/models/gemini-2.5-flash:countTokens", body, "/v1beta/models/gemini-2.5-flash:countTokens", `"totalTokens"`},
		{"/models/gemini-embedding-001:embedContent", `{"content":{"parts":[{"text":"Hello"}]}}`, "/v1beta/models/gemini-embedding-001:embedContent", `"values"`},
		{"/models/@mock/gpt-4o:generateContent", body, "", `"candidates"`},
		{"/v1beta/@google/gemini-2.5-flash:generateContent", body, "/v1beta/models/gemini-2.5-flash:generateContent", `"Hello`},
		{"/v1beta/@mock/gpt-4o:streamGenerateContent?alt=sse", body, "", `"finishReason":"STOP"`},
		{"/models/@mock/gpt-4o:streamGenerateContent?alt=sse", body, "", `"finishReason":"STOP"`},
	} {
		var headers []string
		if !strings.Contains(c.path, "@") {
			headers = []string{"X-Gateway-Provider", "@google"}
		}
		got := r.call("POST", c.path, c.body, headers...)
		if got.status != 200 || !strings.Contains(string(got.body), c.want) {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
		}
		if c.sent != "" && mock.Requests(1)[0].Path != c.sent {
			t.Errorf("%s: sent to %s", c.path, mock.Requests(1)[0].Path)
		}
	}
}

// TestTokenCountsInEveryShape counts with the paths of each shape at targets of other shapes,
// where the answer says that it is an estimate, and at Google itself.
func TestTokenCountsInEveryShape(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	const contents = `{"contents":[{"role":"user","parts":[{"text":"Count these words, please."}]}]}`
	for _, c := range []struct {
		path, body, member string
		estimated          bool
	}{
		{"/v1beta/models/@mock/gpt-4o:countTokens", contents, "totalTokens", true},
		{"/models/@vertex/anthropic.claude-sonnet-4-5:countTokens", `{"generateContentRequest":` + contents + `}`, "totalTokens", true},
		{"/v1beta/models/@google/gemini-2.5-flash:countTokens", contents, "totalTokens", false},
		{"/responses/input_tokens", `{"model":"@google/gemini-2.5-flash","input":"Count these words, please."}`, "input_tokens", true},
		{"/messages/count_tokens", `{"model":"@google/gemini-2.5-flash","messages":[{"role":"user","content":"Count these words, please."}]}`, "input_tokens", true},
	} {
		before := len(mock.Requests(1000))
		got := r.call("POST", c.path, c.body)
		if got.status != 200 {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
			continue
		}
		answer := got.json(t)
		n, _ := answer[c.member].(float64)
		if reported, _ := answer["estimated"].(bool); reported != c.estimated || n < 3 || n > 20 || (len(mock.Requests(1000)) == before) != c.estimated {
			t.Errorf("%s: %s", c.path, got.body)
		}
	}
}
