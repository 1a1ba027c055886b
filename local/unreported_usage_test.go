package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/pricing"
)

// longText is the text of the responses of silentHost: 325 tokens by the estimate.
var longText = strings.Repeat("thirteen char", 100)

// silentHost answers in every format without reporting usage. While cut is set, it closes
// the connection after the text.
type silentHost struct {
	*httptest.Server
	cut atomic.Bool
}

func newSilentHost(t *testing.T) *silentHost {
	h := new(silentHost)
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// silentPlain and silentEvents are the responses, by the end of the path. Each text is in one
// piece.
var silentPlain = map[string]string{
	"/chat/completions": `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + longText + `"},"finish_reason":"stop"}]}`,
	"/messages":         `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"` + longText + `"}],"stop_reason":"end_turn","stop_sequence":null}`,
	"/responses":        `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + longText + `","annotations":[]}]}]}`,
	":generateContent":  `{"candidates":[{"content":{"role":"model","parts":[{"text":"` + longText + `"}]},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}`,
	"/v2/chat":          `{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"` + longText + `"}]},"finish_reason":"COMPLETE"}`,
}

var silentEvents = map[string][]string{
	"/chat/completions": {
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"` + longText + `"},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`,
	},
	"/messages": {
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + longText + `"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}}`, `{"type":"message_stop"}`,
	},
	"/responses": {
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"` + longText + `"}`,
		`{"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + longText + `","annotations":[]}]}]}}`,
	},
	":streamGenerateContent": {`{"candidates":[{"content":{"role":"model","parts":[{"text":"` + longText + `"}]},"index":0}],"modelVersion":"m","responseId":"r"}`, `{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}`},
	"/v2/chat": {
		`{"type":"message-start","id":"c","delta":{"message":{"role":"assistant","content":[]}}}`, `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
		`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"` + longText + `"}}}}`, `{"type":"content-end","index":0}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`,
	},
}

// ServeHTTP implements http.Handler.
func (h *silentHost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	for path, list := range silentEvents {
		if !strings.HasSuffix(req.URL.Path, path) || !strings.Contains(string(body), `"stream":true`) && path[0] != ':' {
			continue
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range list {
			wire := map[string]string{"/messages": "messages", "/responses": "responses"}[path]
			if name := eventType(data); wire != "" {
				data = "event: " + name + "\ndata: " + data
			} else {
				data = "data: " + data
			}
			_, _ = io.WriteString(w, data+"\n\n")
			if h.cut.Load() && strings.Contains(data, longText) {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}
		return
	}
	for path, answer := range silentPlain {
		if !strings.HasSuffix(req.URL.Path, path) {
			continue
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		if h.cut.Load() {
			_, _ = io.WriteString(w, answer[:strings.Index(answer, longText)+len(longText)])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, answer)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

func eventType(data string) string {
	_, rest, _ := strings.Cut(data, `"type":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// Responses without usage cost what their text amounts to: native, translated and passed
// through, plain and streamed, whole and cut off.
func TestUnreportedUsageIsEstimatedByTheText(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := newSilentHost(t)
	r.save("silent", `"ai_provider_id":"openai","key":"k","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	r.save("silent-anthropic", `"ai_provider_id":"anthropic","key":"k","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	r.save("silent-google", `"ai_provider_id":"google","key":"k","configurations":{"custom_host":"`+host.URL+`"}`)
	r.save("silent-cohere", `"ai_provider_id":"cohere","key":"k","configurations":{"custom_host":"`+host.URL+`"}`)
	chat := func(model string) string {
		return `{"model":"` + model + `","max_tokens":500,"messages":[{"role":"user","content":"Hello"}]`
	}
	contents := `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]`
	calls := []struct{ path, provider, body, stream string }{
		{"/chat/completions", "@silent", chat("gpt-4o-mini"), ""},
		{"/proxy/chat/completions", "@silent", chat("gpt-4o-mini"), ""},
		{"/messages", "@silent", chat("gpt-4o-mini"), ""},
		{"/messages", "@silent-anthropic", chat("claude-sonnet-4-5"), ""},
		{"/proxy/messages", "@silent-anthropic", chat("claude-sonnet-4-5"), ""},
		{"/chat/completions", "@silent-anthropic", chat("claude-sonnet-4-5"), ""},
		{"/responses", "@silent-anthropic", `{"model":"claude-sonnet-4-5","max_output_tokens":500,"input":"Hello"`, ""},
		{"/responses", "@silent", `{"model":"gpt-4o-mini","max_output_tokens":500,"input":"Hello"`, ""},
		{"/proxy/responses", "@silent", `{"model":"gpt-4o-mini","max_output_tokens":500,"input":"Hello"`, ""},
		{"/chat/completions", "@silent-google", chat("gemini-2.5-flash"), ""},
		{"/v1beta/models/gemini-2.5-flash:generateContent", "@silent-google", contents, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"/proxy/v1beta/models/gemini-2.5-flash:generateContent", "@silent-google", contents, "/proxy/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"/chat/completions", "@silent-cohere", chat("command-r"), ""},
		{"/v2/chat", "@silent-cohere", chat("command-r"), ""},
		{"/proxy/v2/chat", "@silent-cohere", chat("command-r"), ""},
	}
	var names []string
	for _, c := range calls {
		for _, streamed := range []bool{false, true} {
			for _, cut := range []bool{false, true} {
				path, body := c.path, c.body
				switch {
				case streamed && c.stream != "":
					path = c.stream
				case streamed:
					body += `,"stream":true`
				}
				host.cut.Store(cut)
				name := fmt.Sprintf("%s of %s, cut %t", path, c.provider, cut)
				if streamed {
					name += ", streamed"
				}
				got, err := r.try("POST", path, body+"}", "X-Gateway-Provider", c.provider)
				if !cut && (err != nil || got.status != 200) {
					t.Errorf("%s: %v %d %s", name, err, got.status, got.body)
				}
				names = append(names, name)
			}
		}
	}
	for i, rec := range r.byTime(len(names)) {
		out, in := rec.Usage.OutputTokens(), rec.Usage.N(pricing.Input)
		if out != 325 || in < 2 || in > 30 || !rec.Usage.Estimated || rec.Cost == 0 {
			t.Errorf("%s: %d in, %d out, estimated %t, cost %d", names[i], in, out, rec.Usage.Estimated, rec.Cost)
		}
	}
}
