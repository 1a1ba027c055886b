package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// mockBase is the address of the gateway's mock provider. Of a gateway in another
// process it is asked for, which leaves a record in the accounting of that one.
func (r *running) mockBase() string {
	r.t.Helper()
	if r.mock != nil {
		return r.mock.URL() + "/v1"
	}
	got := r.call("GET", "/proxy/echo/x", "", "X-Gateway-Provider", "@mock")
	return "http://" + got.json(r.t)["host"].(string) + "/v1"
}

func TestEveryWayToChooseAProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	saved := r.admin("POST", "/configs", fmt.Sprintf(`{"name":"one target","workspace_id":%q,"config":{"provider":"@mock","override_params":{"user":"from-the-config"}}}`, r.workspace()))
	slug := saved["data"].(map[string]any)["slug"].(string)
	plain := chatBody("gpt-4o-mini", "Hello", "")
	for _, c := range []struct {
		name, body string
		headers    []string
	}{
		{"saved provider in the header", plain, []string{"X-Gateway-Provider", "@mock"}},
		{"saved provider in the model", chatBody("@mock/gpt-4o-mini", "Hello", ""), nil},
		{"virtual key", plain, []string{"X-Gateway-Virtual-Key", "mock"}},
		{"provider name, own credential, custom host", plain, []string{"X-Gateway-Provider", "openai", "Authorization", "Bearer mock-own", "X-Gateway-Custom-Host", r.mockBase()}},
		{"saved config", plain, []string{"X-Gateway-Config", slug}},
		{"config in place", plain, []string{"X-Gateway-Config", `{"provider":"@mock"}`}},
		{"single strategy in place", plain, []string{"X-Gateway-Config", `{"strategy":{"mode":"single"},"targets":[{"virtual_key":"mock"}]}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.call("POST", "/chat/completions", c.body, c.headers...)
			if got.status != 200 || got.header.Get("X-Gateway-Provider") != "openai" {
				t.Fatalf("%d %v %s", got.status, got.header, got.body)
			}
			if model := got.json(t)["model"]; model != "gpt-4o-mini" {
				t.Errorf("model %v", model)
			}
		})
	}
	if last := r.mock.Requests(3)[0]; !strings.Contains(string(last.Body), `"user":"from-the-config"`) {
		t.Errorf("the config's parameters did not reach the provider: %s", last.Body)
	}
}

func TestStoredCredentialNeverGoesToAHostOfTheRequest(t *testing.T) {
	t.Parallel()
	r := start(t)
	stranger := httptest.NewServer(nil)
	defer stranger.Close()
	for _, headers := range [][]string{
		{"X-Gateway-Provider", "@mock", "X-Gateway-Custom-Host", stranger.URL},
		{"X-Gateway-Virtual-Key", "mock", "X-Gateway-Custom-Host", stranger.URL + "/v1"},
		{"X-Gateway-Config", `{"provider":"@mock","custom_host":"` + stranger.URL + `"}`},
	} {
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), headers...)
		if got.status != 400 || !strings.Contains(got.body, "blocked_host") {
			t.Errorf("%v: %d %s", headers, got.status, got.body)
		}
	}
	same := r.mockBase()
	got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Provider", "@mock", "X-Gateway-Custom-Host", same+"/")
	if got.status != 200 {
		t.Errorf("the saved host itself: %d %s", got.status, got.body)
	}
}

func TestRefusalsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := start(t)
	plain := chatBody("gpt-4o-mini", "Hello", "")
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		param                    string
	}{
		{"no key", "POST", "/chat/completions", plain, []string{"X-Gateway-Api-Key", ""}, 401, "x-gateway-api-key"},
		{"unknown key", "POST", "/chat/completions", plain, []string{"X-Gateway-Api-Key", "nobody"}, 401, "x-gateway-api-key"},
		{"organization key", "POST", "/chat/completions", plain, []string{"X-Gateway-Api-Key", adminKey}, 403, "x-gateway-api-key"},
		{"no provider", "POST", "/chat/completions", plain, nil, 400, "x-gateway-provider"},
		{"unknown provider", "POST", "/chat/completions", plain, []string{"X-Gateway-Provider", "nope"}, 400, "x-gateway-provider"},
		{"unknown saved provider", "POST", "/chat/completions", plain, []string{"X-Gateway-Provider", "@nope"}, 400, "provider"},
		{"metadata address", "POST", "/chat/completions", plain, []string{"X-Gateway-Provider", "openai", "Authorization", "Bearer x", "X-Gateway-Custom-Host", "http://169.254.169.254/v1"}, 400, "custom_host"},
		{"no content type we take", "POST", "/chat/completions", plain, []string{"X-Gateway-Provider", "@mock", "Content-Type", "text/plain"}, 400, "content-type"},
		{"not JSON", "POST", "/chat/completions", `{"model":`, []string{"X-Gateway-Provider", "@mock"}, 400, ""},
		{"too deep", "POST", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"x":` + deep + `}`, []string{"X-Gateway-Provider", "@mock"}, 400, ""},
		{"key twice", "POST", "/chat/completions", `{"model":"a","model":"b","messages":[{"role":"user","content":"x"}]}`, []string{"X-Gateway-Provider", "@mock"}, 400, "model"},
		{"n out of bounds", "POST", "/chat/completions", chatBody("m", "x", `,"n":129`), []string{"X-Gateway-Provider", "@mock"}, 400, "n"},
		{"no messages", "POST", "/chat/completions", `{"model":"m","messages":[]}`, []string{"X-Gateway-Provider", "@mock"}, 400, "messages"},
		{"config that is not JSON", "POST", "/chat/completions", plain, []string{"X-Gateway-Config", "pc-none"}, 400, "x-gateway-config"},
		{"config with an unknown mode", "POST", "/chat/completions", plain, []string{"X-Gateway-Config", `{"strategy":{"mode":"x"},"targets":[{"provider":"@mock"}]}`}, 400, "strategy.mode"},
		{"forward headers that name themselves", "POST", "/chat/completions", plain, []string{"X-Gateway-Provider", "@mock", "X-Gateway-Forward-Headers", "x-gateway-forward-headers"}, 400, "x-gateway-forward-headers"},
		{"embeddings without input", "POST", "/embeddings", `{"model":"@mock/e"}`, nil, 400, "input"},
		{"embeddings of a provider without them", "POST", "/embeddings", `{"model":"@mock-anthropic/e","input":"x"}`, nil, 400, "x-gateway-provider"},
		{"messages without max_tokens", "POST", "/messages", `{"model":"@mock/m","messages":[{"role":"user","content":"x"}]}`, nil, 400, "max_tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.call(c.method, c.path, c.body, c.headers...)
			if got.status != c.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
			e, _ := got.json(t)["error"].(map[string]any)
			if param, _ := e["param"].(string); param != c.param && c.param != "" && !strings.Contains(param, c.param) {
				t.Errorf("param %q, want %q: %s", param, c.param, got.body)
			}
			if got.header.Get("X-Gateway-Trace-Id") == "" {
				t.Error("no trace id")
			}
		})
	}
	if n := len(r.mock.Requests(100)); n != 0 {
		t.Errorf("%d refused requests reached the provider", n)
	}
}

// TestATargetsParametersStayWithIt falls back, translated, from a target whose
// config changes the body to one whose config does not.
func TestATargetsParametersStayWithIt(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock-anthropic","override_params":{"model":"claude-sonnet-4-5?status=500","max_tokens":7,"temperature":0.1}},{"provider":"@mock-anthropic"}]}`
	got := r.call("POST", "/chat/completions", chatBody("claude-sonnet-4-5", "Hello", `,"max_tokens":99`), "X-Gateway-Config", config)
	if got.status != 200 || got.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[1]" {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	sent := r.mock.Requests(2)
	if first := string(sent[0].Body); !strings.Contains(first, `"max_tokens":7`) {
		t.Errorf("the first target got %s", first)
	}
	if second := string(sent[1].Body); !strings.Contains(second, `"max_tokens":99`) || strings.Contains(second, "temperature") {
		t.Errorf("the second target got the first one's parameters: %s", second)
	}
}

func TestModelsOfTheGatewayForAnyWayToNameAProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, headers := range [][]string{
		{"X-Gateway-Provider", "openai"}, {"X-Gateway-Provider", "@mock"}, {"X-Gateway-Virtual-Key", "mock"}, {"X-Gateway-Config", `{"provider":"@mock"}`},
	} {
		got := r.call("GET", "/models", "", append(headers, "X-Gateway-Fetch-Integrated-Models", "true")...)
		if got.status != 200 || !strings.Contains(got.body, "@mock/gpt-4o-mini") {
			t.Errorf("%v: %d %.200s", headers, got.status, got.body)
		}
	}
}
