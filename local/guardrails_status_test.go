package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// statusForger is an OpenAI-compatible host that responds with a status of success of the
// caller's choice, in its path, and with a text that guardrails deny.
func statusForger(t *testing.T) *httptest.Server {
	t.Helper()
	const message = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hunter2","annotations":[]}]}`
	response := `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[` + message + `],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
	bodies := map[string]string{
		"/chat/completions":             `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hunter2"},"finish_reason":"stop"}]}`,
		"/completions":                  `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"hunter2","finish_reason":"stop"}]}`,
		"/images/generations":           `{"created":1,"data":[{"url":"https://images.example/1","revised_prompt":"hunter2"}]}`,
		"/audio/transcriptions":         `{"text":"hunter2"}`,
		"/responses":                    response,
		"/responses/resp_1":             response,
		"/responses/stream":             "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":0,\"response\":" + response + "}\n\n",
		"/responses/resp_1/input_items": `{"object":"list","data":[` + message + `],"has_more":false}`,
		"/anything":                     `{"said":"hunter2"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		code, path, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
		status, err := strconv.Atoi(code)
		path = "/" + path
		kind := "application/json"
		if req.URL.Query().Get("stream") == "true" {
			path, kind = "/responses/stream", "text/event-stream"
		}
		if err != nil || bodies[path] == "" {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, bodies[path])
	}))
	t.Cleanup(server.Close)
	return server
}

// TestOutputIsJudgedWhateverTheStatusOfSuccess has a host respond with each status of success:
// clients get its body as of a 200, so output guardrails judge it.
//
//lane:exhaustive
func TestOutputIsJudgedWhateverTheStatusOfSuccess(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := statusForger(t)
	const chat = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	for _, status := range []int{200, 201, 202, 203, 206, 226, 299} {
		slug := fmt.Sprintf("forger-%d", status)
		r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"s","slug":%q,"provider":"openai","key":"k","workspace_id":"default","customHost":"%s/%d"}`, slug, host.URL, status))
		for _, deny := range []bool{true, false} {
			config := fmt.Sprintf(`{"provider":"@%s","output_guardrails":[{"default.contains":{"words":["hunter2"],"operator":"none"},"deny":%t}]}`, slug, deny)
			want := 246
			if deny {
				want = 446
			}
			for _, c := range []struct{ method, path, body string }{
				{"POST", "/chat/completions", chat},
				{"POST", "/completions", `{"model":"m","prompt":"hi"}`},
				{"POST", "/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
				{"POST", "/responses", `{"model":"m","input":"hi"}`},
				{"GET", "/responses/resp_1", ""},
				{"GET", "/responses/resp_1?stream=true", ""},
				{"GET", "/responses/resp_1/input_items", ""},
				{"POST", "/images/generations", `{"model":"m","prompt":"hi"}`},
				{"POST", "/proxy/chat/completions", chat},
				{"POST", "/anything", `{"a":"hi"}`},
			} {
				got := r.call(c.method, c.path, c.body, "X-Gateway-Config", config)
				if got.status != want && !(strings.Contains(c.path, "stream") && !deny) {
					t.Errorf("%d %s %s, deny %t: %d %s, want %d", status, c.method, c.path, deny, got.status, got.body, want)
				}
				if deny && strings.Contains(got.body, "hunter2") {
					t.Errorf("%d %s %s: denied text was sent: %s", status, c.method, c.path, got.body)
				}
			}
		}
	}
}
