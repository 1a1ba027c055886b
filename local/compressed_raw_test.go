package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A response that is passed through reaches the client as the provider compressed it. It is
// booked by the usage that it reports, streamed or plain; if it cannot be read and a budget
// is in force, its usage is estimated.
//
//lane:standard
func TestPassedThroughCompressedAnswersAreBooked(t *testing.T) {
	t.Parallel()
	var coding atomic.Pointer[compressor]
	var bomb atomic.Bool
	var status atomic.Int64
	status.Store(http.StatusOK)
	host := compressedHost(t, &coding, &bomb, &status)
	r := start(t)
	r.save("squeezed", `"ai_provider_id":"openai","key":"sk-squeezed","configurations":{"custom_host":"`+host+`/v1"}`)
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000000}`)
	type expected struct {
		name  string
		known bool
	}
	var all []expected
	for _, co := range compressors {
		coding.Store(&co)
		for _, path := range []string{"/proxy/chat/completions", "/proxy/v1/chat/completions"} {
			for _, more := range []string{"", `,"stream":true`} {
				got := r.call("POST", path, chatBody("gpt-4o-mini", "Hello", `,"max_tokens":100`+more), "X-Gateway-Provider", "@squeezed", "X-Gateway-Api-Key", key, "Accept-Encoding", "identity")
				if got.status != http.StatusOK || got.header.Get("Content-Encoding") != co.name || strings.Contains(got.body, "hello there") || len(got.body) < 50 {
					t.Errorf("%s, %s: %d %v %q", co.name, path, got.status, got.header, got.body)
				}
				all = append(all, expected{co.name + ", " + path + more, co.known})
			}
		}
	}
	for i, rec := range r.byTime(len(all)) {
		in, out := rec.Usage.InputTokens(), rec.Usage.OutputTokens()
		if e := all[i]; e.known && (in != 3 || out != 2 || rec.Usage.Estimated) || !e.known && (in == 0 || out == 0 || out > 100 || !rec.Usage.Estimated) {
			t.Errorf("%s: %+v", e.name, rec.Usage)
		}
	}
}
