package main

import (
	"encoding/json"
	"fmt"
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
