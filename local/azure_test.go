package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gateway/local/mockprovider"
)

// azureMock is a mock of Azure OpenAI and of Entra, which the gateway's process
// takes for Microsoft's.
func azureMock(t *testing.T) (*mockprovider.Server, string) {
	t.Helper()
	mock := mockprovider.New(mockprovider.Options{})
	host, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mock.Close() })
	t.Setenv("AZURE_AUTHORITY_HOST", host+"/azure-openai")
	return mock, host + "/azure-openai"
}

const azureDeployments = `"azure_resource_name":"res","azure_deployment_config":[{"azure_deployment_name":"dep-4o","alias":"gpt-4o","azure_api_version":"2024-10-21"},{"azure_deployment_name":"dep-mini","alias":"gpt-4o-mini","azure_api_version":"v1"},{"azure_deployment_name":"dep-emb","alias":"text-embedding-3-small","azure_api_version":"v1"}]`

func entraFields(secret string) string {
	return fmt.Sprintf(`,"azure_auth_mode":"entra","azure_entra_tenant_id":"mock-tenant","azure_entra_client_id":"app","azure_entra_client_secret":%q`, secret)
}

// In a row: it sets the environment.
func TestAzureWithEntraAndDeployments(t *testing.T) {
	mock, host := azureMock(t)
	r := start(t)
	r.save("az", `"ai_provider_id":"azure-openai","configurations":{`+azureDeployments+entraFields(mockprovider.AzureSecret)+`,"custom_host":"`+host+`"}`)
	r.save("az-key", `"ai_provider_id":"azure-openai","key":"mock-azure","configurations":{`+azureDeployments+`,"azure_auth_mode":"default","custom_host":"`+host+`"}`)
	r.save("az-wrong", `"ai_provider_id":"azure-openai","configurations":{`+azureDeployments+entraFields("another secret")+`,"custom_host":"`+host+`"}`)
	a := &countingClient{running: r}
	for _, c := range []struct{ path, body, sentTo, query, sent, want string }{
		{"/chat/completions", chatBody("@az/gpt-4o", "mock: echo\nHello", ""), "/deployments/dep-4o/chat/completions", "api-version=2024-10-21", `"gpt-4o"`, `Hello`},
		{"/chat/completions", chatBody("@az/gpt-4o", "mock: echo\nHello", `,"stream":true`), "/deployments/dep-4o/chat/completions", "api-version=2024-10-21", "include_usage", `Hello`},
		{"/chat/completions", chatBody("@az/gpt-4o-mini", "Hello", ""), "/v1/chat/completions", "", `"dep-mini"`, `"choices"`},
		{"/chat/completions", chatBody("@az-key/gpt-4o-mini", "Hello", `,"stream":true,"stream_options":{"include_usage":true}`), "/v1/chat/completions", "", `"dep-mini"`, `"prompt_tokens"`},
		{"/messages", chatBody("@az/gpt-4o", "mock: echo\nHello", `,"max_tokens":50,"stream":true`), "/deployments/dep-4o/chat/completions", "api-version=2024-10-21", "include_usage", "message_stop"},
		{"/embeddings", `{"model":"@az/text-embedding-3-small","input":"one two"}`, "/v1/embeddings", "", `"dep-emb"`, `"embedding"`},
		{"/images/generations", `{"model":"@az/dall-e-3","prompt":"a cat"}`, "/deployments/dall-e-3/images/generations", "api-version=2024-10-21", `"dall-e-3"`, `"url"`},
	} {
		got := a.send(c.path, c.body)
		last := mock.Requests(1)[0]
		if !strings.Contains(got.body, c.want) || last.Path != "/azure-openai"+c.sentTo || last.Query != c.query || !strings.Contains(string(last.Body), c.sent) {
			t.Errorf("%s: %.400s\nsent to %s?%s: %s", c.body, got.body, last.Path, last.Query, last.Body)
		}
		if key, token := last.Headers.Get("Api-Key"), last.Headers.Get("Authorization"); strings.Contains(c.body, "az-key") != (key == "mock-azure") || (key == "") != strings.HasPrefix(token, "Bearer entra-mock-") {
			t.Errorf("%s: key %q, token %q", c.body, key, token)
		}
	}
	// The chunk without choices that Azure begins with is for clients that are not
	// strict about OpenAI's shape only.
	for strict, want := range map[string]int{"true": 0, "false": 1} {
		got := a.send("/chat/completions", chatBody("@az/gpt-4o", "mock: echo\nHello", `,"stream":true`), "X-Gateway-Strict-Open-Ai-Compliance", strict)
		if n := strings.Count(got.body, `"prompt_filter_results"`); n != want || !strings.Contains(got.body, "[DONE]") {
			t.Errorf("strict %s: %s", strict, got.body)
		}
	}
	tokens := 0
	for _, req := range mock.Requests(1000) {
		if strings.HasSuffix(req.Path, "/oauth2/v2.0/token") {
			tokens++
		}
	}
	if tokens != 1 {
		t.Errorf("%d tokens were fetched", tokens)
	}
	booked, bill := booked(r.records(a.n)), mock.Bill().Total
	if booked.input != bill.Input || booked.output+booked.reasoning != bill.Output+bill.Reasoning || bill.Input == 0 {
		t.Errorf("books %+v, bill %+v", booked, bill)
	}

	refused := r.call("POST", "/chat/completions", chatBody("@az-key/gpt-4o", "mock: status=400 code=content_filter\nHello", ""))
	if refused.status != 400 || !strings.Contains(refused.body, `"code":"content_filter"`) || !strings.Contains(refused.body, `"innererror":{"code":"ResponsibleAIPolicyViolation"`) {
		t.Errorf("%d %s", refused.status, refused.body)
	}
	wrong := r.call("POST", "/chat/completions", chatBody("@az-wrong/gpt-4o", "Hello", ""))
	if wrong.status != 401 || strings.Contains(wrong.body, "another secret") {
		t.Errorf("%d %s", wrong.status, wrong.body)
	}
}

// Clients of Azure name the deployment in the address, and no model or an empty one in the
// body. The deployment is then the model, at any provider.
func TestTheDeploymentOfAnAddressIsTheModel(t *testing.T) {
	t.Parallel()
	r := start(t)
	root := &running{t: t, base: strings.TrimSuffix(r.base, "/v1"), g: r.g, mock: r.mock}
	own := []string{"X-Gateway-Provider", "@mock", "Api-Key", workspaceKey}
	sound := "in.mp3:" + strings.Repeat("x", 2000)
	long := "in.mp3:" + strings.Repeat("x", 6<<20)
	for _, c := range []struct{ path, model, body string }{
		{"/chat/completions", "gpt-4o-mini", `{"messages":[{"role":"user","content":"Hello"}]}`},
		{"/chat/completions", "gpt-4o-mini", `{"model":"","messages":[{"role":"user","content":"Hello"}],"stream":true}`},
		{"/completions", "gpt-3.5-turbo-instruct", `{"prompt":"Hello"}`},
		{"/embeddings", "text-embedding-3-small", `{"input":"Hello"}`},
		{"/images/generations", "dall-e-3", `{"prompt":"a cat"}`},
		{"/audio/speech", "tts-1", `{"input":"Hello","voice":"alloy"}`},
		{"/responses", "gpt-4o-mini", `{"input":"Hello"}`},
		{"/images/edits", "gpt-image-1", form("prompt", "a cat", "image", "a.png:x")},
		{"/audio/transcriptions", "whisper-1", form("file", sound)},
		{"/audio/translations", "whisper-1", form("model", "", "file", sound)},
		{"/audio/transcriptions", "whisper-1", form("file", long)},
	} {
		h := own
		if !strings.HasPrefix(c.body, "{") {
			h = append(slices.Clone(own), formType...)
		}
		for _, at := range []struct {
			*running
			path string
		}{
			{root, "/openai/deployments/" + c.model + c.path + "?api-version=2024-10-21"},
			{r, "/openai/deployments/" + c.model + c.path + "?api-version=2024-10-21"},
			{r, c.path + "?deployment=" + c.model},
			{r, "/openai/deployments/@mock%2F" + c.model + c.path + "?api-version=2024-10-21"},
		} {
			got := at.call("POST", at.path, c.body, h...)
			var last mockprovider.Received
			for _, last = range r.mock.Requests(1) {
			}
			if got.status != 200 || last.Path != "/v1"+c.path || last.Query != "" || !strings.Contains(string(last.Body), c.model) {
				t.Errorf("%s: %d %.300s\nsent to %s?%s: %.300s", at.path, got.status, got.body, last.Path, last.Query, last.Body)
			}
		}
	}
	if got := r.call("POST", "/openai/deployments/gpt-4o/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), own...); got.status != 200 || !strings.Contains(got.body, `"gpt-4o-mini"`) {
		t.Errorf("the model of the body: %d %s", got.status, got.body)
	}
	if got := r.call("POST", "/chat/completions", `{"model":"","messages":[{"role":"user","content":"Hello"}]}`, own...); got.status != 400 || !strings.Contains(got.body, "model") {
		t.Errorf("no model at all: %d %s", got.status, got.body)
	}
	for _, query := range []string{"/realtime?deployment=gpt-realtime", "/openai/realtime?api-version=2025-04-01-preview&deployment=gpt-realtime", "/openai/v1/realtime?model=gpt-realtime"} {
		ws, resp, err := r.dialSocket(query, "X-Gateway-Provider", "@mock")
		if err != nil {
			t.Errorf("%s: %v %v", query, resp, err)
			continue
		}
		_ = ws.Close()
		if last := r.mock.Requests(64); !slices.ContainsFunc(last, func(req mockprovider.Received) bool {
			return req.Path == "/v1/realtime" && strings.Contains(req.Query, "model=gpt-realtime") && !strings.Contains(req.Query, "deployment")
		}) {
			t.Errorf("%s: %+v", query, last)
		}
	}
}
