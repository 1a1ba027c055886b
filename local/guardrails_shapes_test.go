package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuardedStreamsOfEveryShape judges streams of every format of provider for every format of
// client, in each way: denied text does not arrive, redacted text arrives redacted, also in
// streams that are passed through in a native format.
func TestGuardedStreamsOfEveryShape(t *testing.T) {
	t.Parallel()
	r, _ := startShapes(t)
	text := "my hunter2 " + strings.Repeat("is safe and ", 30) + "sound"
	for _, c := range shapes() {
		for _, p := range shapes() {
			for _, way := range []string{"window", "hold"} {
				for _, g := range []struct{ name, guardrail string }{
					{"denied", forbids(`,"deny":true,"stream":"` + way + `"`)},
					{"redacted", `{"regexReplace":{"rule":"/hunter[0-9]/g","redactText":"***"},"stream":"` + way + `"}`},
				} {
					where := fmt.Sprintf("%s to %s, %s, %s", c.name, p.name, way, g.name)
					got := r.call("POST", c.path(p.model, true), c.body(p.model, "mock: no-tools say="+text+"\nHi", false, true), append([]string{"X-Gateway-Config", `{"output_guardrails":[` + g.guardrail + `]}`}, p.headers...)...)
					denied := g.name == "denied"
					switch {
					case strings.Contains(got.body, "hunter2"):
						t.Errorf("%s: %d %.300s", where, got.status, got.body)
					case denied && got.status != 446:
						t.Errorf("%s: %d %.300s", where, got.status, got.body)
					case !denied && (got.status != 200 || !strings.Contains(got.body, "***")):
						t.Errorf("%s: %d %.300s", where, got.status, got.body)
					}
				}
			}
		}
	}
}

// TestHostedItemsPassGuardedStreams: items of tools that a provider runs are judged in streams of
// responses, and those that pass are not lost.
func TestHostedItemsPassGuardedStreams(t *testing.T) {
	t.Parallel()
	items := []string{
		`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"weather"}}`,
		`{"id":"ci_1","type":"code_interpreter_call","status":"completed","container_id":"c","code":"1+1","outputs":[{"type":"logs","logs":"2"}]}`,
		`{"id":"ig_1","type":"image_generation_call","status":"completed","result":"iVBORw0KGgo="}`,
		`{"id":"mcp_1","type":"mcp_call","server_label":"docs","name":"find","arguments":"{}","output":"found it","error":null}`,
		`{"id":"fs_1","type":"file_search_call","status":"completed","queries":["a"],"results":[{"filename":"a.txt","text":"result"}]}`,
	}
	const message = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"It is so.","annotations":[],"logprobs":[]}]}`
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		all := append(append([]string{}, items...), message)
		if strings.Contains(string(body), "tell me") {
			all[3] = strings.Replace(all[3], "found it", "found hunter2", 1)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		n := 0
		event := func(kind, rest string) {
			fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, n, rest)
			n++
		}
		const head = `"response":{"id":"resp_h","object":"response","created_at":1,"model":"gpt-4o-mini","status":`
		event("response.created", head+`"in_progress","output":[]}`)
		for i, item := range all {
			at := fmt.Sprintf(`"output_index":%d,"item":`, i)
			event("response.output_item.added", at+item)
			if item == message {
				event("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":%d,"content_index":0,"delta":"It is so."`, i))
			}
			event("response.output_item.done", at+item)
		}
		event("response.completed", head+`"completed","output":[`+strings.Join(all, ",")+`],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(host.Close)
	r := start(t)
	r.save("hosted", `"ai_provider_id":"openai","key":"sk-hosted","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	for _, way := range []string{"window", "hold", "after"} {
		config := `{"provider":"@hosted","output_guardrails":[` + forbids(`,"deny":true,"stream":"`+way+`"`) + `]}`
		got := r.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"go on","stream":true}`, "X-Gateway-Config", config)
		for _, item := range append(items, "It is so.") {
			if strings.Count(got.body, item) < 2 { // in an event, and in the whole response
				t.Errorf("%s: %d, no %s in %s", way, got.status, item, got.body)
			}
		}
		got = r.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"tell me","stream":true}`, "X-Gateway-Config", config)
		if denied := way != "after"; strings.Contains(got.body, "hunter2") == denied || denied && !strings.Contains(got.body, "guardrail checks") {
			t.Errorf("%s: %d %s", way, got.status, got.body)
		}
	}
}
