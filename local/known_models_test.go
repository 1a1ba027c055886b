package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// The list of models says what is known of each. If the end of a model's life is known, its
// answers say when it is: whole ones, streams, errors and cached ones. Of unknown models
// nothing is said, and none is rejected.
func TestWhatIsKnownOfModels(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	var list struct {
		Data []map[string]any `json:"data"`
	}
	if err := json.Unmarshal([]byte(r.call("GET", "/models", "").body), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, m := range list.Data {
		found[m["id"].(string)] = m
	}
	if m := found["@gpt/gpt-4o-mini"]; m["context_window"] != 128000.0 || m["max_output_tokens"] != 16384.0 || asJSON(m["input_modalities"]) != `["text","image"]` || m["deprecation_date"] != "2026-10-14" || m["shutdown_date"] != "2027-01-14" ||
		!strings.Contains(asJSON(m["pricing"]), `"request_token":{"price":0.000015,"price_usd":1.5e-7}`) {
		t.Errorf("%v", m)
	}
	if m := found["@aws/anthropic.claude-3-haiku-20240307-v1:0"]; m == nil || m["shutdown_date"] != nil {
		t.Errorf("the end of another host: %v", m)
	}
	if got := r.call("GET", "/models", "", "Anthropic-Version", "2023-06-01", "X-Gateway-Provider", "@claude"); !strings.Contains(got.body, `"id":"claude-sonnet-4-5","display_name":"Claude Sonnet 4.5",`) || !strings.Contains(got.body, `"max_input_tokens":200000,"max_tokens":64000,"retires_at":"2026-11-30T00:00:00Z"`) {
		t.Errorf("%.3000s", got.body)
	}
	for _, c := range []struct{ name, path, body, deprecation, sunset string }{
		{"whole", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), "@1791936000", "Thu, 14 Jan 2027 00:00:00 GMT"},
		{"streamed", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", `,"stream":true`), "@1791936000", "Thu, 14 Jan 2027 00:00:00 GMT"},
		{"refused by its provider", "/chat/completions", chatBody("@mock/gpt-4o-mini", "mock: status=404", ""), "@1791936000", "Thu, 14 Jan 2027 00:00:00 GMT"},
		{"without a day of notice", "/messages", chatBody("@claude/claude-sonnet-4-5", "Hello", `,"max_tokens":9`), "", "Mon, 30 Nov 2026 00:00:00 GMT"},
		{"passed through", "/proxy/v1/messages", chatBody("@claude/claude-sonnet-4-5", "Hello", `,"max_tokens":9`), "", "Mon, 30 Nov 2026 00:00:00 GMT"},
		{"unknown", "/messages", chatBody("@claude/claude-of-tomorrow", "Hello", `,"max_tokens":9`), "", ""},
		{"ended long ago", "/messages", chatBody("@claude/claude-2.1", "Hello", `,"max_tokens":9`), "@1737417600", "Mon, 21 Jul 2025 00:00:00 GMT"},
	} {
		host.respond(0, "")
		got := r.call("POST", c.path, c.body)
		if got.header.Get("Deprecation") != c.deprecation || got.header.Get("Sunset") != c.sunset || got.status >= 400 && !strings.Contains(c.name, "refused") {
			t.Errorf("%s: %d %v", c.name, got.status, got.header)
		}
	}
	cached := []string{"X-Gateway-Config", `{"provider":"@mock","cache":{"mode":"simple"}}`}
	for _, want := range []string{"MISS", "HIT"} {
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello again", ""), cached...)
		if got.header.Get("X-Gateway-Cache-Status") != want || got.header.Get("Sunset") == "" {
			t.Errorf("%s: %v", want, got.header)
		}
	}
}
