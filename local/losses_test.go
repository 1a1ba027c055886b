package main

import (
	"strings"
	"testing"
)

func TestStrictTranslationRefusesWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	r := start(t)
	lossy := chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":9,"logit_bias":{"1":2},"seed":7`)
	got := r.call("POST", "/chat/completions", lossy, "X-Gateway-Strict-Open-Ai-Compliance", "false")
	if got.status != 200 || !strings.Contains(got.header.Get("X-Gateway-Translation"), "logit_bias") || !strings.Contains(got.header.Get("X-Gateway-Translation"), "seed") {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	before := len(r.mock.Requests(100))
	got = r.call("POST", "/chat/completions", lossy, "X-Gateway-Translation", "strict")
	if got.status != 400 || !strings.Contains(got.body, "logit_bias") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := len(r.mock.Requests(100)); n != before {
		t.Errorf("%d requests were sent", n-before)
	}
	whole := chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":9`)
	if got = r.call("POST", "/chat/completions", whole, "X-Gateway-Translation", "strict"); got.status != 200 {
		t.Errorf("nothing to lose: %d %s", got.status, got.body)
	}
	if got = r.call("POST", "/chat/completions", whole, "X-Gateway-Translation", "lax"); got.status != 400 || !strings.Contains(got.body, "x-gateway-translation") {
		t.Errorf("an unknown value: %d %s", got.status, got.body)
	}
}
