package main

import (
	"strings"
	"testing"

	"gateway/shared/pricing"
)

const (
	bedrockCommand  = "cohere.command-text-v14"
	bedrockJurassic = "ai21.j2-ultra-v1"
)

func TestBedrockTextModels(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	r.mock.Reset()
	requests := 0
	send := func(path, body string) reply {
		t.Helper()
		requests++
		got := r.call("POST", path, body)
		if got.status != 200 {
			t.Fatalf("%s %d %s\n%s", path, got.status, got.body, body)
		}
		return got
	}
	sent := func() string { return string(r.mock.Requests(1)[0].Body) }
	turns := `{"model":"@bedrock/` + bedrockCommand + `","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"mock: echo\nHello"}]}`
	for _, c := range []struct{ path, body, answer, sent string }{
		{"/chat/completions", turns, `"content":"Hello`, `"prompt":"System: Be brief.\nUser: a\nAssistant: b\nUser: mock: echo\nHello\nAssistant:"`},
		{"/chat/completions", chatBody("@bedrock/"+bedrockJurassic, "mock: echo\nHello", `,"max_tokens":50`), `"content":"Hello`, `"maxTokens":50`},
		{"/completions", `{"model":"@bedrock/` + bedrockCommand + `","prompt":"mock: echo\nHello","n":2}`, `"index":1`, `"num_generations":2`},
		{"/completions", `{"model":"@bedrock/` + bedrockJurassic + `","prompt":"mock: echo\nHello"}`, `"text":"Hello`, `"prompt":"mock: echo\nHello"`},
		{"/messages", `{"model":"@bedrock/` + bedrockCommand + `","max_tokens":50,"messages":[{"role":"user","content":"mock: echo\nHello"}]}`, `"stop_reason":"end_turn"`, `"max_tokens":50`},
		{"/responses", `{"model":"@bedrock/` + bedrockCommand + `","input":"mock: echo\nHello"}`, `"status":"completed"`, `"prompt":"User: mock: echo\nHello\nAssistant:"`},
		{"/chat/completions", chatBody("@bedrock/"+bedrockCommand, "mock: finish=MAX_TOKENS\nHello", ""), `"finish_reason":"length"`, `"prompt"`},
		{"/chat/completions", chatBody("@bedrock/"+bedrockCommand, "mock: split-utf8\nHello", `,"stream":true,"stream_options":{"include_usage":true}`), `"prompt_tokens"`, `"stream":true`},
		{"/chat/completions", chatBody("@bedrock/"+bedrockJurassic, "mock: echo\nHello", `,"stream":true`), "data: [DONE]", `"prompt"`},
		{"/completions", `{"model":"@bedrock/` + bedrockCommand + `","prompt":"mock: echo\nHello","stream":true}`, "data: [DONE]", `"stream":true`},
		{"/messages", `{"model":"@bedrock/` + bedrockCommand + `","max_tokens":50,"messages":[{"role":"user","content":"mock: echo\nHello"}],"stream":true}`, "event: message_stop", `"stream":true`},
	} {
		got := send(c.path, c.body)
		if !strings.Contains(got.body, c.answer) || !strings.Contains(sent(), c.sent) {
			t.Errorf("%s %s\n%s\n%s", c.path, c.body, got.body, sent())
		}
	}
	var input, output int64
	for _, rec := range r.records(requests) {
		input, output = input+rec.Usage.N(pricing.Input), output+rec.Usage.OutputTokens()
	}
	if bill := r.mock.Bill().Total; bill.Input == 0 || bill.Output == 0 || input != bill.Input || output != bill.Output {
		t.Errorf("books: in %d out %d; bill %+v", input, output, bill)
	}
}

func TestBedrockTextModelsFail(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	for _, c := range []struct {
		directives string
		status     int
		code       string
	}{
		{"status=429 retry-after=2", 429, "rate_limit_exceeded"}, {"status=403", 403, ""}, {"status=408", 408, ""}, {"status=424", 424, ""},
		{"html", 502, "invalid_provider_response"}, {"garbage", 502, "invalid_provider_response"}, {"finish=ERROR", 502, ""},
	} {
		got := r.call("POST", "/chat/completions", chatBody("@bedrock/"+bedrockCommand, "mock: "+c.directives+"\nHello", ""))
		e, _ := got.json(t)["error"].(map[string]any)
		if code, _ := e["code"].(string); got.status != c.status || code != c.code || e["source"] != "provider" {
			t.Errorf("%s: %d %s", c.directives, got.status, got.body)
		}
	}
	for _, c := range []struct{ directives, want string }{
		{"cut=after:3", "was truncated"}, {"cut=mid:3", "was truncated"}, {"garbage=after:3", "damaged"}, {"no-done", "was truncated"},
		{"error-event=modelStreamErrorException after=3", "modelStreamErrorException"}, {"finish=ERROR", "ERROR"},
	} {
		got := r.call("POST", "/chat/completions", chatBody("@bedrock/"+bedrockCommand, "mock: "+c.directives+"\nHello", `,"stream":true`))
		if got.status != 200 || !strings.Contains(got.body, c.want) || strings.Contains(got.body, "[DONE]") || !strings.Contains(got.body, `"error"`) {
			t.Errorf("%s: %d %s", c.directives, got.status, got.body)
		}
	}
	for _, c := range []struct{ fields, param string }{
		{`,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`, "tools"},
		{`,"response_format":{"type":"json_object"}`, "response_format"}, {`,"n":6`, "n"}, {`,"guardrailConfig":{"guardrailIdentifier":"g","guardrailVersion":"1"}`, "guardrailConfig"},
	} {
		got := r.call("POST", "/chat/completions", chatBody("@bedrock/"+bedrockCommand, "Hello", c.fields))
		if e, _ := got.json(t)["error"].(map[string]any); got.status != 400 || e["param"] != c.param {
			t.Errorf("%s: %d %s", c.fields, got.status, got.body)
		}
	}
	// Counts that never came are estimated.
	got := r.call("POST", "/chat/completions", chatBody("@bedrock/"+bedrockCommand, "mock: no-usage\nHello", `,"stream":true`))
	records := r.records(18)
	if rec := records[len(records)-1]; got.status != 200 || !strings.Contains(got.body, "[DONE]") || !rec.Usage.Estimated || rec.Usage.OutputTokens() == 0 {
		t.Errorf("%d %s: estimated %v, %+v", got.status, got.body, rec.Usage.Estimated, rec.Usage)
	}
}
