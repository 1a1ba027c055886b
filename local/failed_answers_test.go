package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/tools/txtar"
)

// failingHost answers each conversation with a success that is none.
type failingHost struct {
	plain, stream string
	calls         atomic.Int64
}

func (h *failingHost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.calls.Add(1)
	body, _ := io.ReadAll(req.Body)
	answer, kind := h.plain, "application/json"
	if strings.Contains(string(body), `"stream":true`) {
		answer, kind = h.stream, "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, answer)
}

// TestFailuresInsideASuccessFallBack sends every failure inside a 200 to a client of each
// shape, plain and streamed: the next target answers, and the log has the failed attempt.
// Without another target the client gets a bad gateway.
//
//lane:exhaustive
func TestFailuresInsideASuccessFallBack(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := new(failingHost)
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r.save("bad", `"ai_provider_id":"deepinfra","key":"bad-key","configurations":{"custom_host":"`+server.URL+`"}`)
	r.save("good", `"ai_provider_id":"deepinfra","key":"mock-key","configurations":{"custom_host":"`+r.mockBase()+`"}`)
	cases, _ := filepath.Glob("../shared/dialect/openai/testdata/answers/failed-*.txtar")
	if len(cases) < 9 {
		t.Fatalf("only %d cases", len(cases))
	}
	n := 0
	for _, path := range cases {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		if name == "failed-after-text" {
			continue // the client has read a part of it
		}
		host.plain, host.stream = files["upstream_response.json"], files["upstream_response.sse"]
		for _, c := range shapes() {
			for _, stream := range []bool{false, true} {
				if stream && host.stream == "" {
					continue
				}
				n++
				where := fmt.Sprintf("%s to %s, stream %t", name, c.name, stream)
				trace := fmt.Sprint("failed-", n)
				before := host.calls.Load()
				got := r.call("POST", c.path("gpt-4o-mini", stream), c.body("gpt-4o-mini", "mock: no-tools say=Hello there\nHi", false, stream),
					"X-Gateway-Trace-Id", trace, "X-Gateway-Config", `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@bad"},{"provider":"@good"}]}`)
				if got.status != 200 || !strings.Contains(got.body, "Hello") || host.calls.Load() != before+1 {
					t.Errorf("%s: %d %.300s", where, got.status, got.body)
				}
				if rec := r.recordOf(trace); len(rec.Attempts) != 2 || rec.Attempts[0].Status < 400 || rec.Attempts[1].Status != 200 {
					t.Errorf("%s: attempts %+v", where, rec.Attempts)
				}
				if alone := r.call("POST", c.path("gpt-4o-mini", stream), c.body("gpt-4o-mini", "Hi", false, stream), "X-Gateway-Provider", "@bad"); alone.status != 502 && alone.status != 429 {
					t.Errorf("%s, alone: %d %.300s", where, alone.status, alone.body)
				}
			}
		}
	}
}
