package relay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/testkit/relaytest"
)

// spoken are conversations by client and provider: a request without its last brace, and the
// response to it, whole and streamed, both with TEXT.
var spoken = []struct{ provider, path, body, plain, stream string }{
	{"openai", chatPath, formats[0].body, strings.Replace(reply, "Hello", "TEXT", 1), sse(piece("TEXT", ""), lastChunk+shortly+"}", "[DONE]")},
	{"anthropic", chatPath, formats[0].body, strings.Replace(claudeReply, "Hello", "TEXT", 1), claudeSpoken},
	{"anthropic", messagesPath, formats[0].body, strings.Replace(claudeReply, "Hello", "TEXT", 1), claudeSpoken},
	{"openai", "/v1/completions", formats[6].body, `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"TEXT","finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		sse(`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"TEXT","finish_reason":"stop","logprobs":null}]}`, "[DONE]")},
	{"openai", responsesAt, formats[1].body, strings.Replace(responseBody, "Hello", "TEXT", 1), strings.ReplaceAll(sse(responseStream(usageOf(`"input_tokens":1,"output_tokens":1`))...), `"Hi"`, `"TEXT"`)},
}

var claudeSpoken = strings.Replace(sse(messageStream(`"input_tokens":1,"output_tokens":1`, `"output_tokens":1`)...), `"Hi"`, `"TEXT"`, 1)

// TestGuardrailsOfEveryFormat requires status and body of conversations in each format that a
// guardrail denies, fails, passes or changes before and after the provider, whole and streamed.
func TestGuardrailsOfEveryFormat(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	long := strings.Repeat("one two three ", 60)
	for _, kind := range spoken {
		for _, c := range []struct {
			name, guards, text string
			stream             bool
			status, calls      int
			has                string
		}{
			{"denied before", `"input_guardrails":[` + forbids(`,"deny":true,"id":"g"`) + `]`, "my hunter2", false, 446, 0, `"type":"hooks_failed" & !choices`},
			{"failed before", `"input_guardrails":[` + forbids(``) + `]`, "my hunter2", false, 246, 1, `"before_request_hooks":[{"verdict":false & !hooks_failed`},
			{"passed before", `"input_guardrails":[` + forbids(`,"deny":true`) + `]`, "my word", false, 200, 1, `"before_request_hooks":[{"verdict":true & !hooks_failed`},
			{"denied after", `"output_guardrails":[` + forbids(`,"deny":true`) + `]`, "my hunter2", false, 446, 1, `"after_request_hooks":[{"verdict":false & !"usage"`},
			{"failed after", `"output_guardrails":[` + forbids(``) + `]`, "my hunter2", false, 246, 1, `"after_request_hooks":[{"verdict":false & !hooks_failed`},
			{"changed before", `"input_guardrails":[{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}}]`, "my hunter2", false, 200, 1, ``},
			{"changed after", `"output_guardrails":[{"regexReplace":{"rule":"hunter[0-9]","redactText":"***"}}]`, "my hunter2", false, 200, 1, `my *** & !hunter2`},
			{"softly denied", `"output_guardrails":[` + forbids(`,"deny":true,"soft_deny_200":true`) + `]`, "my hunter2", false, 200, 1, `The guardrail checks defined in the config failed & !hooks_failed`},
			{"no such check", `"input_guardrails":[{"some-vendor.scan":{}}]`, "my word", false, 200, 1, `NotAvailable & !hooks_failed`},
			{"no check, denied", `"input_guardrails":[{"some-vendor.scan":{},"deny":true}]`, "my word", false, 446, 0, `NotAvailable & !choices`},
			{"a stream denied before", `"input_guardrails":[` + forbids(`,"deny":true`) + `]`, "my hunter2", true, 446, 0, `"type":"hooks_failed" & !data:`},
			{"a stream failed before", `"input_guardrails":[` + forbids(``) + `]`, "my hunter2", true, 246, 1, `"before_request_hooks":[{"verdict":false & !hooks_failed`},
			{"judged afterwards", `"output_guardrails":[` + forbids(`,"deny":true,"stream":"after"`) + `]`, "my hunter2", true, 200, 1, `"after_request_hooks":[{"verdict":false & !hooks_failed`},
			{"held, denied", `"output_guardrails":[` + forbids(`,"deny":true,"stream":"hold"`) + `]`, long + "hunter2", true, 446, 1, `"type":"hooks_failed" & !three`},
			{"held, changed", `"output_guardrails":[{"regexReplace":{"rule":"hunter[0-9]","redactText":"***"},"stream":"hold"}]`, long + "hunter2", true, 200, 1, `*** & !hunter2`},
			{"window, denied at once", `"output_guardrails":[` + forbids(`,"deny":true,"stream":"window"`) + `]`, "hunter2 " + long, true, 446, 1, `"type":"hooks_failed" & !three`},
			{"window, changed", `"output_guardrails":[{"regexReplace":{"rule":"/hunter[0-9]/g","redactText":"***"},"stream":"window"}]`, long + "hunter2 " + long, true, 200, 1, `*** & !hunter2`},
			{"window, complete", `"output_guardrails":[{"wordCount":{"maxWords":3},"deny":true,"stream":"window"}]`, long, true, 446, 1, `"type":"hooks_failed" & !three`},
		} {
			made, body := kind.plain, strings.Replace(kind.body, "TEXT", c.text, 1)
			if c.stream {
				made, body = kind.stream, body+`,"stream":true`
			}
			x := exchange{c.name + " " + kind.provider + kind.path, kind.path, body + "}", on(`{"provider":"`+kind.provider+`","api_key":"k",`+c.guards+`}`, "X-Gateway-Strict-Open-Ai-Compliance", "false"), []relaytest.Reply{ok(strings.ReplaceAll(made, "TEXT", c.text))}[:c.calls], c.status, c.has, "", ""}
			if c.name == "changed before" {
				x.sent = "my *** & !hunter2"
			}
			x.run(t, g)
		}
	}
}

// TestOutputIsJudgedWhateverTheStatusOfSuccess requires that output guardrails judge the body of a
// response with any status of success, because clients read it as that of a 200.
func TestOutputIsJudgedWhateverTheStatusOfSuccess(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, append([]relay.Route{earlier("GET", "/responses/{id}/input_items", "listResponseInputItems", provider.ResponsesInputItems)}, familyRoutes...))
	say := func(text string) string { return strings.Replace(text, "Hello", "hunter2", 1) }
	response := say(responseBody)
	for _, status := range []int{200, 201, 202, 203, 206, 226, 299} {
		for _, deny := range []bool{true, false} {
			for _, c := range []struct{ method, path, body, reply string }{
				{"POST", chatPath, question, say(reply)},
				{"POST", "/v1/completions", `{"model":"m","prompt":"hi"}`, strings.Replace(spoken[3].plain, "TEXT", "hunter2", 1)},
				{"POST", messagesPath, claudeAsked, say(reply)},
				{"POST", responsesAt, `{"model":"m","input":"hi"}`, response},
				{"GET", responsesAt + "/resp_1", "", response},
				{"GET", responsesAt + "/resp_1?stream=true", "", sse(`{"type":"response.completed","sequence_number":0,"response":` + response + `}`)},
				{"GET", responsesAt + "/resp_1/input_items", "", `{"object":"list","data":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hunter2","annotations":[]}]}],"has_more":false}`},
				{"POST", "/v1/images/generations", `{"model":"m","prompt":"hi"}`, `{"created":1,"data":[{"url":"https://images.example/1","revised_prompt":"hunter2"}]}`},
				{"POST", "/v1/proxy/chat/completions", question, say(reply)},
				{"POST", "/v1/anything", `{"a":"hi"}`, `{"said":"hunter2"}`},
			} {
				g.Script(relaytest.Reply{Status: status, Body: c.reply})
				got := g.Do(c.method, c.path, c.body, config(openAI(fmt.Sprintf(`,"output_guardrails":[{"default.contains":{"words":["hunter2"],"operator":"none"},"deny":%t}]`, deny)))...)
				want := map[bool]int{true: 446, false: 246}[deny]
				if got.Status != want && !(strings.Contains(c.path, "stream") && !deny) || deny && strings.Contains(got.Body, "hunter2") {
					t.Errorf("%d %s %s, deny %t: %d %s, want %d", status, c.method, c.path, deny, got.Status, got.Body, want)
				}
			}
		}
	}
}

// TestHostedItemsPassGuardedStreams requires that items of tools that a provider runs are judged in
// streams of responses, and that those that pass are not lost.
func TestHostedItemsPassGuardedStreams(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	items := []string{
		`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"weather"}}`,
		`{"id":"ci_1","type":"code_interpreter_call","status":"completed","container_id":"c","code":"1+1","outputs":[{"type":"logs","logs":"2"}]}`,
		`{"id":"ig_1","type":"image_generation_call","status":"completed","result":"iVBORw0KGgo="}`,
		`{"id":"mcp_1","type":"mcp_call","server_label":"docs","name":"find","arguments":"{}","output":"found it","error":null}`,
		`{"id":"fs_1","type":"file_search_call","status":"completed","queries":["a"],"results":[{"filename":"a.txt","text":"result"}]}`,
		`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"It is so.","annotations":[],"logprobs":[]}]}`,
	}
	stream := func(all []string) string {
		var list []string
		event := func(kind, rest string) {
			list = append(list, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, kind, len(list), rest))
		}
		const head = `"response":{"id":"resp_h","object":"response","created_at":1,"model":"gpt-4o-mini","status":`
		event("response.created", head+`"in_progress","output":[]}`)
		for i, item := range all {
			at := fmt.Sprintf(`"output_index":%d,"item":`, i)
			event("response.output_item.added", at+item)
			if i == len(all)-1 {
				event("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":%d,"content_index":0,"delta":"It is so."`, i))
			}
			event("response.output_item.done", at+item)
		}
		event("response.completed", head+`"completed","output":[`+strings.Join(all, ",")+`],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
		return sse(list...)
	}
	for _, way := range []string{"window", "hold", "after"} {
		headers := config(openAI(`,"output_guardrails":[` + forbids(`,"deny":true,"stream":"`+way+`"`) + `]`))
		g.Script(ok(stream(items)))
		got := g.Do("POST", responsesAt, `{"model":"m","input":"go on","stream":true}`, headers...)
		for _, item := range append(items[:5:5], "It is so.") {
			if got.Status != http.StatusOK || strings.Count(got.Body, item) < 2 { // in an event, and in the whole response
				t.Errorf("%s: %d, no %s in %s", way, got.Status, item, got.Body)
			}
		}
		g.Script(ok(strings.ReplaceAll(stream(items), "found it", "found hunter2")))
		got = g.Do("POST", responsesAt, `{"model":"m","input":"tell me","stream":true}`, headers...)
		if denied := way != "after"; strings.Contains(got.Body, "hunter2") == denied || denied && !strings.Contains(got.Body, "guardrail checks") {
			t.Errorf("%s: %d %s", way, got.Status, got.Body)
		}
	}
}
