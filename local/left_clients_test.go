package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/pricing"
)

// longCall are the arguments of a call of the tool f, with which it has 1,309 bytes.
var longCall = `{"a":"` + longText + `"}`

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// leftAnswer is the beginning of a response in the format of a path, with all that was produced.
type leftAnswer struct {
	plain  string
	events []string
}

// leftAnswers are such beginnings by what was produced, each in the format of a path.
var leftAnswers = map[string]map[string]leftAnswer{
	"text": {
		"/chat/completions": {chatLeft(`"content":"` + longText), []string{chatPiece(`{"role":"assistant","content":"` + longText + `"}`)}},
		"/messages":         {messagesLeft(`{"type":"text","text":"` + longText), messagesPieces(`{"type":"text","text":""}`, `{"type":"text_delta","text":"`+longText+`"}`)},
		"/responses": {responsesLeft(`{"type":"message","id":"i_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"` + longText), responsesPieces(`{"type":"message","id":"i_1","status":"in_progress","role":"assistant","content":[]}`,
			`{"type":"response.output_text.delta","sequence_number":2,"item_id":"i_1","output_index":0,"content_index":0,"delta":"`+longText+`"}`)},
		":generateContent": {geminiLeft(`{"text":"` + longText), []string{geminiPiece(`{"text":"` + longText + `"}`)}},
		"/v2/chat": {`{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"` + longText, coherePieces(`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"`+longText+`"}}}}`)},
	},
	"call": {
		"/chat/completions": {chatLeft(`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"` + quoted(longCall) + `"`), []string{chatPiece(`{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"` + quoted(longCall) + `"}}]}`)}},
		"/messages":         {messagesLeft(`{"type":"tool_use","id":"t1","name":"f","input":` + longCall), messagesPieces(`{"type":"tool_use","id":"t1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"`+quoted(longCall)+`"}`)},
		"/responses": {responsesLeft(`{"type":"function_call","id":"i_1","call_id":"c1","name":"f","status":"completed","arguments":"` + quoted(longCall) + `"`), responsesPieces(`{"type":"function_call","id":"i_1","call_id":"c1","name":"f","status":"in_progress","arguments":""}`,
			`{"type":"response.function_call_arguments.delta","sequence_number":2,"item_id":"i_1","output_index":0,"delta":"`+quoted(longCall)+`"}`)},
		":generateContent": {geminiLeft(`{"functionCall":{"name":"f","args":` + longCall), []string{geminiPiece(`{"functionCall":{"name":"f","args":` + longCall + `}}`)}},
		"/v2/chat": {`{"id":"c","message":{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"` + quoted(longCall) + `"`, coherePieces(`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t1","type":"function","function":{"name":"f","arguments":""}}}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"`+quoted(longCall)+`"}}}}}`)},
	},
	"reasoning": {
		"/chat/completions": {chatLeft(`"content":"","reasoning_content":"` + longText), []string{chatPiece(`{"role":"assistant","reasoning_content":"` + longText + `"}`)}},
		"/messages":         {messagesLeft(`{"type":"thinking","signature":"s","thinking":"` + longText), messagesPieces(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"`+longText+`"}`)},
		"/responses": {responsesLeft(`{"type":"reasoning","id":"i_1","status":"completed","summary":[{"type":"summary_text","text":"` + longText), responsesPieces(`{"type":"reasoning","id":"i_1","status":"in_progress","summary":[]}`,
			`{"type":"response.reasoning_summary_text.delta","sequence_number":2,"item_id":"i_1","output_index":0,"summary_index":0,"delta":"`+longText+`"}`)},
		":generateContent": {geminiLeft(`{"thought":true,"text":"` + longText), []string{geminiPiece(`{"text":"` + longText + `","thought":true}`)}},
		"/v2/chat": {`{"id":"c","message":{"role":"assistant","content":[{"type":"thinking","thinking":"` + longText, coherePieces(`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"`+longText+`"}}}}`)},
	},
}

func chatLeft(message string) string {
	return `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",` + message
}

func chatPiece(delta string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
}

func messagesLeft(block string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + block
}

func messagesPieces(start, delta string) []string {
	return []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null}}`,
		`{"type":"content_block_start","index":0,"content_block":` + start + `}`, `{"type":"content_block_delta","index":0,"delta":` + delta + `}`,
	}
}

func responsesLeft(item string) string {
	return `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[` + item
}

func responsesPieces(empty, delta string) []string {
	return []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":` + empty + `}`, delta,
	}
}

func geminiLeft(part string) string {
	return `{"responseId":"r","modelVersion":"m","candidates":[{"index":0,"content":{"role":"model","parts":[` + part
}

func geminiPiece(part string) string { return geminiLeft(part) + `]}}]}` }

func coherePieces(events ...string) []string {
	return append([]string{`{"type":"message-start","id":"c","delta":{"message":{"role":"assistant","content":[]}}}`}, events...)
}

// leftHost begins a response of a kind, waits until its caller is told so and has left, if it is to
// leave, and breaks the connection off. There is one per request: the handler of the request before
// may still be running.
type leftHost struct {
	kind string
	sent chan struct{} // a caller that is to leave may do so
	left chan struct{}
}

// ServeHTTP implements http.Handler.
func (h *leftHost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	path := strings.Replace(req.URL.Path, ":streamGenerateContent", ":generateContent", 1)
	for suffix, a := range leftAnswers[h.kind] {
		if !strings.HasSuffix(path, suffix) {
			continue
		}
		if strings.Contains(string(body), `"stream":true`) || path != req.URL.Path {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, data := range a.events {
				line := "data: " + data + "\n\n"
				if suffix == "/messages" || suffix == "/responses" {
					line = "event: " + eventType(data) + "\n" + line
				}
				_, _ = io.WriteString(w, line)
			}
		} else {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(a.plain)+1000))
			_, _ = io.WriteString(w, a.plain)
		}
		w.(http.Flusher).Flush()
		if h.sent != nil {
			h.sent <- struct{}{}
			<-h.left
		}
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusNotFound)
}

// What was produced before a client left or a response broke off is recorded by its length: text,
// calls of tools and reasoning, in every shape of clients and of providers, plain and streamed;
// once, and never at nothing.
func TestWhatWasProducedIsBookedWhateverBecomesOfIt(t *testing.T) {
	t.Parallel()
	r := start(t)
	var host atomic.Pointer[leftHost]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { host.Load().ServeHTTP(w, req) }))
	t.Cleanup(server.Close)
	r.save("left", `"ai_provider_id":"openai","key":"k","configurations":{"custom_host":"`+server.URL+`/v1"}`)
	r.save("left-anthropic", `"ai_provider_id":"anthropic","key":"k","configurations":{"custom_host":"`+server.URL+`/v1"}`)
	r.save("left-google", `"ai_provider_id":"google","key":"k","configurations":{"custom_host":"`+server.URL+`"}`)
	r.save("left-cohere", `"ai_provider_id":"cohere","key":"k","configurations":{"custom_host":"`+server.URL+`"}`)
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	chat := func(model, tools string) string {
		return `{"model":"` + model + `","max_tokens":500,"messages":[{"role":"user","content":"Hello"}]` + tools
	}
	contents := func(tools string) string { return `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]` + tools }
	const (
		messagesTools  = `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`
		responsesTools = `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`
		geminiTools    = `,"tools":[{"functionDeclarations":[{"name":"f"}]}]`
	)
	models := map[string]string{"@left": "gpt-4o-mini", "@left-anthropic": "claude-sonnet-4-5", "@left-google": "gemini-2.5-flash", "@left-cohere": "command-r-plus"}
	var calls []struct{ path, provider, body, stream string }
	add := func(path, provider, body, stream string) {
		calls = append(calls, struct{ path, provider, body, stream string }{path, provider, body, stream})
	}
	for provider, model := range models { // every shape of clients to every provider
		add("/chat/completions", provider, chat(model, tools), "")
		add("/messages", provider, chat(model, messagesTools), "")
		add("/responses", provider, `{"model":"`+model+`","max_output_tokens":500,"input":"Hello"`+responsesTools, "")
		add("/v1beta/models/"+model+":generateContent", provider, contents(geminiTools), "/v1beta/models/"+model+":streamGenerateContent?alt=sse")
		add("/v2/chat", provider, chat(model, tools), "")
	}
	add("/proxy/chat/completions", "@left", chat("gpt-4o-mini", tools), "")
	add("/proxy/responses", "@left", `{"model":"gpt-4o-mini","max_output_tokens":500,"input":"Hello"`+responsesTools, "")
	add("/proxy/messages", "@left-anthropic", chat("claude-sonnet-4-5", messagesTools), "")
	add("/proxy/v1beta/models/gemini-2.5-flash:generateContent", "@left-google", contents(geminiTools), "/proxy/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse")
	add("/proxy/v2/chat", "@left-cohere", chat("command-r-plus", tools), "")
	type requestCase struct {
		name, kind   string
		leaves, race bool
	}
	var all []requestCase
	for kind := range leftAnswers {
		for _, c := range calls {
			for _, streamed := range []bool{false, true} {
				for _, leaves := range []bool{false, true} {
					path, body := c.path, c.body
					switch {
					case streamed && c.stream != "":
						path = c.stream
					case streamed:
						body += `,"stream":true`
					}
					name := fmt.Sprintf("%s by %s of %s, streamed %t, the client leaves %t", kind, path, c.provider, streamed, leaves)
					h := &leftHost{kind: kind}
					if leaves {
						h.sent, h.left = make(chan struct{}, 1), make(chan struct{})
					}
					host.Store(h)
					if leaves {
						leaveOnce(r, h, path, body+"}", c.provider)
					} else if _, err := r.try("POST", path, body+"}", "X-Gateway-Provider", c.provider); err != nil && !streamed {
						t.Logf("%s: %v", name, err)
					}
					all = append(all, requestCase{name, kind, leaves, leaves && !streamed})
				}
			}
		}
	}
	for i, rec := range r.byTime(len(all)) {
		a, out, in := all[i], rec.Usage.OutputTokens(), rec.Usage.N(pricing.Input)
		most := int64(325)
		if a.kind == "call" {
			most = 328
		}
		least := most
		if a.race { // how much of a plain response had been read when its client left
			least = 0
		}
		// A name of its own event and a bracket that mends a cut response may be one more.
		if out < least || out > most+1 || in < 2 || in > 60 || !rec.Usage.Estimated || rec.Cost == 0 || len(rec.Attempts) != 1 {
			t.Errorf("%s: %d in, %d out, estimated %t, cost %d, %d attempts", a.name, in, out, rec.Usage.Estimated, rec.Cost, len(rec.Attempts))
		}
	}
}

// leaveOnce sends a request and leaves once the host has begun to answer it.
func leaveOnce(r *running, host *leftHost, path, body, provider string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Gateway-Api-Key", workspaceKey)
	req.Header.Set("X-Gateway-Provider", provider)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}()
	select {
	case <-host.sent:
		cancel()
		<-gone
		close(host.left)
	case <-gone:
		r.t.Errorf("%s of %s was answered before its host was asked", path, provider)
	}
}
