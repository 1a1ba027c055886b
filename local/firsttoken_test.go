package main

import (
	"testing"
)

// A stream that was begun and aborted before its first content is recorded by an estimate of
// what the provider has read.
func TestAbortedStreamIsEstimated(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("POST", "/chat/completions", `{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"mock: silence=after:0 for=60s"}]}`, "X-Gateway-Config", `{"provider":"@mock","first_token_timeout":150}`)
	if got.status != 408 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	rec := r.records(1)[0]
	if !rec.Usage.Estimated || rec.Usage.InputTokens() == 0 || rec.Usage.OutputTokens() != 0 || rec.Cost == 0 || rec.ClientStatus != 408 {
		t.Errorf("%+v for %d", rec.Usage, rec.Cost)
	}
}
