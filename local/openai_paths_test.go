package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// openAIPath is one line of testdata/openai_paths.txt.
type openAIPath struct{ letter, method, path string }

func openAISDKPaths(t *testing.T) (all []openAIPath) {
	t.Helper()
	f, err := os.Open("testdata/openai_paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if line := strings.Fields(sc.Text()); len(line) == 3 && line[0] != "#" {
			all = append(all, openAIPath{line[0], line[1], line[2]})
		}
	}
	if len(all) < 300 {
		t.Fatalf("%d paths", len(all))
	}
	return all
}

// everything is a host that answers every path with what one of many shapes has.
type everything struct{ requests atomic.Int64 }

func (e *everything) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := e.requests.Add(1)
	_, _ = io.Copy(io.Discard, req.Body)
	w.Header().Set("Content-Type", "application/json")
	if req.Method == http.MethodGet {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"thing_of_others","object":"model"}],"has_more":false}`)
		return
	}
	fmt.Fprintf(w, `{"id":"thing_%d","object":"response","status":"completed","created":1,"created_at":1,"model":"gpt-4o-mini","output":[],"input_tokens":7,"text":"x",
		"data":[{"embedding":[0.5],"index":0,"object":"embedding","url":"https://x.test"}],"results":[{"flagged":false}],
		"choices":[{"index":0,"text":"x","message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],
		"usage":{"input_tokens":1000,"output_tokens":100,"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`, n)
}

// TestEveryPathOfTheOpenAISDK walks what the SDK can call, by a workspace that shares a
// stored credential with another: each path is governed, passed on with its owner, or
// rejected with a reason.
//
//lane:exhaustive
func TestEveryPathOfTheOpenAISDK(t *testing.T) {
	t.Parallel()
	host := &everything{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Common","slug":"common","ai_provider_id":"openai","key":"sk-common","configurations":{"custom_host":"%s/v1"}}`, server.URL))
	r.admin("PUT", "/integrations/common/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	var keys []string
	for i := range 2 {
		ws := r.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbour %d"}`, i))
		keys = append(keys, r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write","logs.view"]}`, ws["id"]))["key"].(string))
	}
	// The neighbor uses the credential too, so that what nobody made is nobody's.
	r.call("GET", "/files", "", "X-Gateway-Api-Key", keys[1], "X-Gateway-Provider", "@common")
	mine := []string{"X-Gateway-Api-Key", keys[0], "X-Gateway-Provider", "@common"}
	paid := map[string]bool{"/responses": true, "/responses/compact": true, "/decisions": true, "/chat/completions": true, "/completions": true, "/embeddings": true}
	booked := 0
	for _, p := range openAISDKPaths(t) {
		method, headers, body := p.method, mine, ""
		if method == "SOCKET" {
			if p.letter == "G" {
				continue // see realtime_test.go
			}
			method, headers = "GET", append(headers, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		}
		if method == "POST" {
			body = `{"model":"gpt-4o-mini","input":"Hello","voice":"alloy","messages":[{"role":"user","content":"Hello"}]}`
			if p.path == "/completions" || strings.HasPrefix(p.path, "/images/") {
				body = `{"model":"gpt-4o-mini","prompt":"Hello"}`
			}
		}
		for _, prefix := range []string{"", "/proxy", "/proxy/v1"} {
			before := host.requests.Load()
			got := r.call(method, prefix+strings.ReplaceAll(p.path, "{id}", "thing_of_others"), body, headers...)
			reached := host.requests.Load() - before
			where := fmt.Sprintf("%s %s %s%s: %d %.300s", p.letter, p.method, prefix, p.path, got.status, got.body)
			switch {
			case p.letter == "R" && (got.status != 403 || reached != 0 || !strings.Contains(got.body, "not_allowed") || len(got.body) < 80):
				t.Errorf("not refused with a reason: %s", where)
			case p.letter == "R":
			case strings.Contains(p.path, "{id}") && !strings.HasPrefix(p.path, "/models/") && (got.status != 404 || reached != 0):
				t.Errorf("another's thing is reached: %s", where)
			case strings.Contains(p.path, "{id}"):
			case method == "GET" && p.path != "/models" && strings.Contains(got.body, "thing_of_others"):
				t.Errorf("a list tells of others' things: %s", where)
			case got.status == 404 || got.status == 405 || got.status >= 500:
				t.Errorf("it is not served: %s", where)
			case p.method == "POST" && paid[p.path]:
				if got.status != 200 {
					t.Errorf("it is refused: %s", where)
				}
				booked++
			}
		}
	}
	priced := 0
	for _, rec := range r.byTime(booked) {
		if rec.Cost > 0 {
			priced++
			if in := rec.Usage.InputTokens(); in != 1000 || rec.Usage.OutputTokens() != 100 || int64(rec.Cost) != 1000*150+100*600 {
				t.Errorf("%s is booked with %d and %d tokens at %d", rec.Path, in, rec.Usage.OutputTokens(), rec.Cost)
			}
		}
	}
	if priced < booked {
		t.Errorf("%d of %d answers with usage have a price", priced, booked)
	}
}
