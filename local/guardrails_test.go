package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// forbids is a guardrail against a word, with more members.
func forbids(more string) string {
	return `{"regexMatch":{"rule":"hunter2","not":true}` + more + `}`
}

// echoRequest returns a request of each format, which the mock repeats.
func echoRequest(kind, text, more string) (path, body string) {
	prompt, _ := json.Marshal("mock: echo\n" + text)
	switch kind {
	case "messages":
		return "/messages", fmt.Sprintf(`{"model":"@mock-anthropic/claude-sonnet-4-5","max_tokens":500,"messages":[{"role":"user","content":%s}]%s}`, prompt, more)
	case "complete":
		return "/completions", fmt.Sprintf(`{"model":"@mock/gpt-3.5-turbo-instruct","max_tokens":500,"prompt":%s%s}`, prompt, more)
	case "createModelResponse":
		return "/responses", fmt.Sprintf(`{"model":"@mock/gpt-4o","input":%s%s}`, prompt, more)
	case "translated":
		return "/chat/completions", fmt.Sprintf(`{"model":"@mock-anthropic/claude-sonnet-4-5","messages":[{"role":"user","content":%s}]%s}`, prompt, more)
	}
	return "/chat/completions", fmt.Sprintf(`{"model":"@mock/gpt-4o","messages":[{"role":"user","content":%s}]%s}`, prompt, more)
}

var conversations = []string{"chatComplete", "translated", "messages", "complete", "createModelResponse"}

func TestGuardrailsBeforeAndBehindEveryShape(t *testing.T) {
	t.Parallel()
	r := start(t)
	const pass = `{"passthrough":true,`
	for _, kind := range conversations {
		for name, c := range map[string]struct {
			config, text string
			status       int
			has, hasNot  string
		}{
			"denied before":    {`"input_guardrails":[` + forbids(`,"deny":true,"id":"g"`) + `]`, "my hunter2", 446, `"type":"hooks_failed"`, "choices"},
			"failed before":    {`"input_guardrails":[` + forbids(``) + `]`, "my hunter2", 246, `"before_request_hooks":[{"verdict":false`, "hooks_failed"},
			"passed before":    {`"input_guardrails":[` + forbids(`,"deny":true`) + `]`, "my word", 200, `"before_request_hooks":[{"verdict":true`, "hooks_failed"},
			"denied behind":    {`"output_guardrails":[` + forbids(`,"deny":true`) + `]`, "my hunter2", 446, `"after_request_hooks":[{"verdict":false`, `"usage"`},
			"failed behind":    {`"output_guardrails":[` + forbids(``) + `]`, "my hunter2", 246, `"after_request_hooks":[{"verdict":false`, "hooks_failed"},
			"changed before":   {`"input_guardrails":[{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}}]`, "my hunter2", 200, `my ***`, `hunter2`},
			"changed behind":   {`"output_guardrails":[{"regexReplace":{"rule":"hunter[0-9]","redactText":"***"}}]`, "my hunter2", 200, `my ***`, `hunter2`},
			"softly denied":    {`"output_guardrails":[` + forbids(`,"deny":true,"soft_deny_200":true`) + `]`, "my hunter2", 200, `The guardrail checks defined in the config failed`, "hooks_failed"},
			"no such check":    {`"input_guardrails":[{"some-vendor.scan":{}}]`, "my word", 200, `NotAvailable`, "hooks_failed"},
			"no check, denied": {`"input_guardrails":[{"some-vendor.scan":{},"deny":true}]`, "my word", 446, `NotAvailable`, "choices"},
		} {
			path, body := echoRequest(kind, c.text, "")
			got := r.call("POST", path, body, "x-gateway-config", pass+c.config+"}")
			if got.status != c.status || !strings.Contains(got.body, c.has) || strings.Contains(got.body, c.hasNot) {
				t.Errorf("%s, %s: %d %s", kind, name, got.status, got.body)
			}
		}
	}
}

func TestGuardrailsOfStreams(t *testing.T) {
	t.Parallel()
	r := start(t)
	long := strings.Repeat("one two three ", 60)
	for _, kind := range conversations {
		for name, c := range map[string]struct {
			config, text string
			status       int
			has, hasNot  string
		}{
			"denied before":          {`"input_guardrails":[` + forbids(`,"deny":true`) + `]`, "my hunter2", 446, `"type":"hooks_failed"`, "data:"},
			"failed before":          {`"input_guardrails":[` + forbids(``) + `]`, "my hunter2", 246, `"before_request_hooks":[{"verdict":false`, "hooks_failed"},
			"after":                  {`"output_guardrails":[` + forbids(`,"deny":true,"stream":"after"`) + `]`, "my hunter2", 200, `"after_request_hooks":[{"verdict":false`, "hooks_failed"},
			"held, denied":           {`"output_guardrails":[` + forbids(`,"deny":true,"stream":"hold"`) + `]`, long + "hunter2", 446, `"type":"hooks_failed"`, "three"},
			"held, changed":          {`"output_guardrails":[{"regexReplace":{"rule":"hunter[0-9]","redactText":"***"},"stream":"hold"}]`, long + "hunter2", 200, `***`, "hunter2"},
			"window, denied":         {`"output_guardrails":[` + forbids(`,"deny":true,"stream":"window"`) + `]`, long + "hunter2 " + long, 200, `one`, "hunter2"},
			"window, denied at once": {`"output_guardrails":[` + forbids(`,"deny":true,"stream":"window"`) + `]`, "hunter2 " + long, 446, `"type":"hooks_failed"`, "three"},
			"window, changed":        {`"output_guardrails":[{"regexReplace":{"rule":"/hunter[0-9]/g","redactText":"***"},"stream":"window"}]`, long + "hunter2 " + long, 200, `***`, "hunter2"},
			"window, whole":          {`"output_guardrails":[{"wordCount":{"maxWords":3},"deny":true,"stream":"window"}]`, long, 446, `"type":"hooks_failed"`, "three"},
		} {
			path, body := echoRequest(kind, c.text, `,"stream":true`)
			got := r.call("POST", path, body, "x-gateway-config", `{"passthrough":true,`+c.config+"}", "x-gateway-strict-open-ai-compliance", "false")
			if got.status != c.status || !strings.Contains(got.body, c.has) || strings.Contains(got.body, c.hasNot) {
				t.Errorf("%s, %s: %d %s", kind, name, got.status, got.body)
			}
		}
	}
}
