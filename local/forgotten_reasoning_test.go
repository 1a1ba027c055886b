package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// reasoningHost rejects a turn without the reasoning of earlier turns with calls, as DeepSeek does.
func reasoningHost(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Reasoning string `json:"reasoning_content"`
			Calls     []any  `json:"tool_calls"`
		}
	}
	_ = json.NewDecoder(req.Body).Decode(&in)
	turn := 0
	for _, m := range in.Messages {
		if len(m.Calls) == 0 {
			continue
		}
		if turn++; m.Reasoning != fmt.Sprintf("thought %d", turn) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"The reasoning_content of turn %d must be passed back: %q","type":"invalid_request_error"}}`, turn, m.Reasoning)
			return
		}
	}
	turn++
	calls := fmt.Sprintf(`"tool_calls":[{"index":0,"id":"call_%s_%d","type":"function","function":{"name":"f","arguments":"{}"}}]`, in.Model, turn)
	if !in.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"reasoning_content":"thought %d",%s}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, turn, calls)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []string{fmt.Sprintf(`"delta":{"role":"assistant","reasoning_content":"thought %d"},"finish_reason":null`, turn), `"delta":{` + calls + `},"finish_reason":null`, `"delta":{},"finish_reason":"tool_calls"`} {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,%s}]}\n\n", choice)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// TestForgottenReasoningIsRestored: a chat client that does not return reasoning_content has its tool
// loop done by a host that requires it, whole and streamed; its other bytes are forwarded as they are.
// For a client that asks for fields beside OpenAI's nothing is stored.
func TestForgottenReasoningIsRestored(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(reasoningHost))
	t.Cleanup(host.Close)
	r := start(t)
	for _, id := range []string{"deepseek", "moonshot"} {
		r.save(id, `"ai_provider_id":"`+id+`","key":"k","configurations":{"custom_host":"`+host.URL+`"}`)
	}
	for i, c := range []struct {
		provider, stream, strict string
		status                   int
	}{
		{"deepseek", "false", "true", 200}, {"deepseek", "true", "true", 200}, {"moonshot", "false", "true", 200}, {"moonshot", "true", "true", 200},
		{"deepseek", "false", "false", 400}, {"deepseek", "true", "false", 400},
	} {
		model, messages := fmt.Sprint("m", i), []string{`{"role":"user","content":"go"}`}
		for turn := 1; turn <= 3; turn++ {
			got := r.call("POST", "/chat/completions", `{"model":"@`+c.provider+`/`+model+`","stream":`+c.stream+`,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"messages":[`+strings.Join(messages, ",")+`]}`,
				"X-Gateway-Strict-Open-Ai-Compliance", c.strict)
			want := 200
			if turn > 1 {
				want = c.status
			}
			if got.status != want || want == 200 && !strings.Contains(got.body, fmt.Sprintf(`"call_%s_%d"`, model, turn)) {
				t.Errorf("%+v, turn %d: %d %s", c, turn, got.status, got.body)
			}
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%s_%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, model, turn), fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%s_%d","content":"done"}`, model, turn))
		}
	}
}
