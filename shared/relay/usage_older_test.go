package relay_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/testkit/relaytest"
)

// TestOlderNativeFormatsThatPassThroughAreBooked requires the usage of older and further APIs of
// providers, which tell what is billed in places of their own.
func TestOlderNativeFormatsThatPassThroughAreBooked(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const end = `{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{"response_id":"r","text":"Hi","generation_id":"g","finish_reason":"COMPLETE","meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":3,"output_tokens":4},"tokens":{"input_tokens":69,"output_tokens":4}}}}`
	const begin = `{"is_finished":false,"event_type":"stream-start","generation_id":"g"}`
	for path, c := range map[string]struct {
		kind, body string
		header     http.Header
		want       string // classes and their counts, in the order of their names
	}{
		"/v1/embed":                       {"", `{"id":"e","texts":["a"],"embeddings":[[0.1,0.2]],"meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":7}},"response_type":"embeddings_floats"}`, nil, "input=7"},
		"/v1/rerank":                      {"", `{"id":"r","results":[{"index":0,"relevance_score":0.9}],"meta":{"api_version":{"version":"1"},"billed_units":{"search_units":2}}}`, nil, "pages=2"},
		"/v2/embed":                       {"", `{"id":"e","embeddings":{"float":[[0.1]]},"images":[{"width":1,"height":1,"format":"png","bit_depth":8}],"meta":{"billed_units":{"images":1}}}`, nil, "input_images=1"},
		"/v1/chat":                        {"", `{"response_id":"r","text":"Hi","generation_id":"g","chat_history":[],"finish_reason":"COMPLETE","meta":{"billed_units":{"input_tokens":5,"output_tokens":6}}}`, nil, "input=5 output=6"},
		"/v1/lines":                       {"application/stream+json", begin + "\n" + end + "\n", nil, "input=3 output=4"},
		"/v1/events":                      {"text/event-stream", "event: stream-start\ndata: " + begin + "\n\nevent: stream-end\ndata: " + end + "\n\n", nil, "input=3 output=4"},
		"/openai/v1/chat/completions":     {"", `{"id":"c","object":"chat.completion","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`, nil, "input=9 output=2"},
		"/v1beta/openai/chat/completions": {"", `{"id":"c","object":"chat.completion","model":"m","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`, nil, "input=8 output=2"},
		"/openai/v1/responses":            {"", `{"id":"r","object":"response","status":"completed","model":"m","output":[],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"total_tokens":11}}`, nil, "cache_read=4 input=5 output=2"},
		"/anthropic/v1/messages":          {"", `{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":2}}`, nil, "cache_read=4 input=9 output=2"},
		"/v1/cut":                         {"", `{"id":"e","meta":{"billed_units":{"input_tokens":7}}`, nil, ""},
		"/v1/odd":                         {"", `{"meta":[{"billed_units":{"input_tokens":7}}],"response":{"response":{"meta":{"billed_units":{"input_tokens":7}}}}}`, nil, ""},
		"/v1/none":                        {"", `{"message":"Hi"}`, nil, ""},
		"/v1/header":                      {"", `{"results":[]}`, http.Header{"X-Amzn-Bedrock-Input-Token-Count": {"8"}, "X-Amzn-Bedrock-Output-Token-Count": {"-1"}}, "input=8"},
	} {
		header := c.header.Clone()
		if header == nil {
			header = http.Header{}
		}
		if c.kind != "" {
			header.Set("Content-Type", c.kind)
		}
		x := exchange{path, "/v1/proxy" + path, `{"model":"a-model"}`, config(`{"provider":"cohere","api_key":"k","custom_host":"https://older.example"}`), []relaytest.Reply{{Status: 200, Header: header, Body: c.body}}, 200, c.body, "", ""}
		_, _, r := x.run(t, g)
		var all []string
		for class := range pricing.NumClasses {
			if n, known := r.Usage.Get(class); known && class != pricing.Requests {
				all = append(all, fmt.Sprintf("%s=%d", class, n))
			}
		}
		slices.Sort(all)
		if have := strings.Join(all, " "); have != c.want {
			t.Errorf("%s: %s; want %s", path, have, c.want)
		}
	}
}
