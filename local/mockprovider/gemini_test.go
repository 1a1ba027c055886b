package mockprovider

import (
	"strings"
	"testing"
)

const geminiTool = `"tools":[{"functionDeclarations":[{"name":"now","parametersJsonSchema":{"type":"object"}}]}]`

func TestGeminiRefusesWhatTheProviderRefuses(t *testing.T) {
	_, url := start(t, Options{})
	hi := `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	call := func(signature string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"now","args":{}}` + signature + `}]},{"role":"user","parts":[{"functionResponse":{"name":"now","response":{"output":"x"}}}]}],` + geminiTool + `}`
	}
	const flash, three, old = "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-2.0-flash"
	for _, c := range []struct {
		name, model, body string
		status            int
		says              string
	}{
		{"good", flash, `{` + hi + `}`, 200, "candidates"},
		{"unknown field", flash, `{` + hi + `,"user":"u"}`, 400, `Unknown name \"user\"`},
		{"unknown field of the config", flash, `{` + hi + `,"generationConfig":{"max_tokens":5}}`, 400, "generationConfig"},
		{"unknown field of a part", flash, `{"contents":[{"role":"user","parts":[{"text":"hi","cache_control":{}}]}]}`, 400, "cache_control"},
		{"role", flash, `{"contents":[{"role":"assistant","parts":[{"text":"hi"}]}]}`, 400, "contents[0].role"},
		{"no contents", flash, `{}`, 400, "contents: must not be empty"},
		{"no parts", flash, `{"contents":[{"role":"user","parts":[]}]}`, 400, "must not be empty"},
		{"two kinds of data", flash, `{"contents":[{"role":"user","parts":[{"text":"hi","functionCall":{"name":"f"}}]}]}`, 400, "exactly one"},
		{"call without signature", three, call(""), 400, "missing a thought_signature"},
		{"call with the stand-in", three, call(`,"thoughtSignature":"skip_thought_signature_validator"`), 200, "candidates"},
		{"call with a wrong signature", three, call(`,"thoughtSignature":"AAAA"`), 400, "Thought signature is not valid"},
		{"call without signature of an older model", flash, call(""), 200, "candidates"},
		{"a wrong signature for an older model", flash, call(`,"thoughtSignature":"AAAA"`), 400, "not valid"},
		{"results are missing", flash, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a"}},{"functionCall":{"name":"b"}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{}}}]}]}`, 400, "number of function response parts"},
		{"a result that is a text", flash, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a"}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":"x"}}]}]}`, 400, "functionResponse.response"},
		{"schema outside of the subset", old, `{` + hi + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","additionalProperties":false}}]}]}`, 400, "additionalProperties"},
		{"JSON schema of an old model", old, `{` + hi + `,"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}}]}]}`, 400, "not supported"},
		{"JSON beside tools", flash, `{` + hi + `,` + geminiTool + `,"generationConfig":{"responseMimeType":"application/json"}}`, 400, "is unsupported"},
		{"level of an older model", flash, `{` + hi + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}}`, 400, "not supported"},
		{"thinking of an old model", old, `{` + hi + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":5}}}`, 400, "not supported"},
		{"no thinking for pro", "gemini-2.5-pro", `{` + hi + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`, 400, "Budget 0"},
		{"six stop sequences", flash, `{` + hi + `,"generationConfig":{"stopSequences":["1","2","3","4","5","6"]}}`, 400, "stopSequences"},
		{"temperature", flash, `{` + hi + `,"generationConfig":{"temperature":3}}`, 400, "temperature"},
		{"missing model", "mock-missing", `{` + hi + `}`, 404, "NOT_FOUND"},
		{"busy", flash, `{"contents":[{"role":"user","parts":[{"text":"mock: status=429 retry-after=3"}]}]}`, 429, `"retryDelay":"3s"`},
	} {
		got := post(t, url, "/v1beta/models/"+c.model+":generateContent", c.body, "X-Goog-Api-Key", "mock-x")
		if got.status != c.status || !strings.Contains(string(got.body), c.says) {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
	if got := post(t, url, "/v1beta/models/x:generateContent", `{`+hi+`}`, "X-Goog-Api-Key", "gateway-key"); got.status != 400 || !strings.Contains(string(got.body), "API_KEY_INVALID") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestGeminiStreams(t *testing.T) {
	s, url := start(t, Options{})
	body := `{"contents":[{"role":"user","parts":[{"text":"mock: chunks=3"}]}]}`
	sse := post(t, url, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", body, "X-Goog-Api-Key", "mock-x")
	if n := strings.Count(string(sse.body), "\r\n\r\n"); n != 4 || !strings.HasPrefix(string(sse.body), `data: {"candidates"`) {
		t.Errorf("%d events: %s", n, sse.body)
	}
	if total := s.Bill().Total; total.Requests != 1 || total.Output != 3 {
		t.Errorf("%+v", total)
	}
}

func TestVertexAnthropicWantsItsVersion(t *testing.T) {
	_, url := start(t, Options{})
	const path = "/v1/projects/p/locations/global/publishers/anthropic/models/claude-sonnet-4-5:"
	for _, c := range []struct {
		method, body string
		status       int
	}{
		{"rawPredict", `{"anthropic_version":"vertex-2023-10-16","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, 200},
		{"streamRawPredict", `{"anthropic_version":"vertex-2023-10-16","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, 200},
		{"rawPredict", `{"anthropic_version":"vertex-2023-10-16","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, 400},
		{"rawPredict", `{"anthropic_version":"2023-06-01","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, 400},
		{"rawPredict", `{"anthropic_version":"vertex-2023-10-16","model":"claude","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, 400},
	} {
		if got := post(t, url, path+c.method, c.body, "Authorization", "Bearer mock-x"); got.status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.body, got.status, got.body)
		}
	}
}
