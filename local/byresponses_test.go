package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const functionTools = `"tools":[{"type":"function","function":{"name":"now","description":"Tells the time","parameters":{"type":"object","properties":{}}}}]`

// TestToolsWithReasoningGoThroughResponses: if a model accepts both only there, and the
// host is known to have it.
func TestToolsWithReasoningGoThroughResponses(t *testing.T) {
	t.Parallel()
	r := start(t)
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
		{`"provider":"openai","api_key":"k","custom_host":"https://models.example/v1"`, "gpt-5.6", functionTools + `,"reasoning_effort":"high"`, chat},
		{`"provider":"openrouter","api_key":"k"`, "gpt-5.6", functionTools + `,"reasoning_effort":"high"`, chat},
		{`"provider":"azure-openai","api_key":"k","azure_resource_name":"mine","azure_deployment_id":"gpt-5.5","azure_api_version":"v1"`, "gpt-5.5", functionTools, responses},
		{`"provider":"azure-openai","api_key":"k","azure_resource_name":"mine","azure_deployment_id":"d","azure_api_version":"v1","azure_model_name":"gpt-5.5"`, "d", functionTools, responses},
		{`"provider":"azure-openai","api_key":"k","azure_resource_name":"mine","azure_deployment_id":"gpt-5.5","azure_api_version":"v1","custom_host":"https://models.example/v1"`, "gpt-5.5", functionTools, chat},
	} {
		got := r.dryRun(`{"config":{` + c.target + `},"path":"/chat/completions","body":{"model":"` + c.model + `","messages":[{"role":"user","content":"Hello"}],` + c.more + `}}`)
		to := fmt.Sprint(member(got["targets"].([]any)[0], "url"))
		if path, _, _ := strings.Cut(to, "?"); !strings.HasSuffix(path, c.want) {
			t.Errorf("%s with %s at %s: %s, not %s: %v", c.model, c.more, c.target, to, c.want, got["error"])
		}
	}
}

// TestResponsesBetaSendsEveryShapeThroughResponses opts in with the header, in several shapes;
// a provider without the path is called as usual.
func TestResponsesBetaSendsEveryShapeThroughResponses(t *testing.T) {
	t.Parallel()
	r := start(t)
	for path, body := range map[string]string{
		"/chat/completions": `{"model":"@mock/gpt-4o","messages":[{"role":"user","content":"Hello"}]}`,
		"/messages":         `{"model":"@mock/gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`,
		"/v1beta/models/@mock/gpt-4o:generateContent": `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`,
	} {
		for beta, want := range map[string]string{"": "/chat/completions", "x, use-responses-api-2026-07-30": "/responses"} {
			got := r.call("POST", path, body, "X-Gateway-Beta", beta)
			if sent := r.mock.Requests(1)[0].Path; got.status != 200 || !strings.HasSuffix(sent, want) {
				t.Errorf("%s with %q: %d, sent to %s: %s", path, beta, got.status, sent, got.body)
			}
		}
	}
}

// diverted sends what is meant for a host of the internet to the mock provider.
type diverted struct {
	http.RoundTripper
	to *url.URL
}

// divert has it send everything there.
func (r *running) divert() {
	r.t.Helper()
	to, err := url.Parse(r.g.mock.URL())
	if err != nil {
		r.t.Fatal(err)
	}
	r.g.relay.Transport = &diverted{r.g.relay.Transport, to}
}

func (d *diverted) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = d.to.Scheme, d.to.Host, d.to.Host
	return d.RoundTripper.RoundTrip(req)
}

// TestToolsWithReasoningAreAnsweredAsChat: plain and streamed, and booked as billed.
func TestToolsWithReasoningAreAnsweredAsChat(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.divert()
	n := 0
	for _, model := range []string{"gpt-5.4", "gpt-5.6"} {
		for _, stream := range []bool{false, true} {
			body := fmt.Sprintf(`{"model":%q,"reasoning_effort":"low","tool_choice":"required","stream":%t,%s,"messages":[{"role":"user","content":"What is the time?"}]}`, model, stream, functionTools)
			got := r.call("POST", "/chat/completions", body, "X-Gateway-Provider", "openai", "Authorization", "Bearer mock-key")
			object := `"chat.completion"`
			if stream {
				object = `"chat.completion.chunk"`
			}
			if got.status != 200 || !strings.Contains(got.body, object) || !strings.Contains(got.body, `"tool_calls"`) || stream && !strings.Contains(got.body, "[DONE]") {
				t.Errorf("%s %t: %d %s", model, stream, got.status, got.body)
			}
			if _, path, sent, _ := r.last(); !strings.HasSuffix(path, "/responses") || !strings.Contains(sent, `"reasoning":{"effort":"low"`) {
				t.Errorf("%s %t: sent to %s: %s", model, stream, path, sent)
			}
			n++
		}
	}
	for _, rec := range r.records(n) {
		if !rec.Priced && rec.Cost != 0 || rec.Usage.OutputTokens() == 0 || rec.Usage.Estimated {
			t.Errorf("%s: %+v", rec.Model, rec.Usage)
		}
	}
	r.billed(t, n)
}
