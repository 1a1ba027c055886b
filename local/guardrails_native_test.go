package main

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"
)

// nativeContents are the rows of clients that speak a provider's own format, and of fields
// beside the last text of the others.
func nativeContents(echo func(string) string) (out []judged) {
	const word = "hunter2"
	add := func(endpoint, path, stream, content, scope, request, answers string) {
		rule := word
		if content == "tool arguments" {
			rule = "[a-z]"
		}
		out = append(out, judged{endpoint, content, scope, rule, path, request, answers, true, stream})
	}
	gemini := func(contents, more string) string { return `{"contents":[` + contents + `]` + more + `}` }
	const generate, generates = "/v1beta/models/gpt-4o:generateContent", "/v1beta/models/gpt-4o:streamGenerateContent?alt=sse"
	declared := `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}]}]`
	called := `{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":"hunter2"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"x":"hunter2"}}}]}`
	add("generateContent", generate, generates, "text", "last_message", gemini(`{"role":"user","parts":[{"text":"hunter2"}]}`, ""), gemini(`{"role":"user","parts":[{"text":`+echo(word)+`}]}`, ""))
	add("generateContent", generate, generates, "system", "system", gemini(`{"role":"user","parts":[{"text":"a"}]}`, `,"systemInstruction":{"parts":[{"text":"hunter2"}]}`), "")
	add("generateContent", generate, generates, "tool arguments", "tool_arguments", gemini(called, declared), gemini(`{"role":"user","parts":[{"text":"call f"}]}`, declared))
	add("generateContent", generate, generates, "tool results", "tool_results", gemini(called, declared), "")
	converse := func(content, more string) string {
		return `{"messages":[{"role":"user","content":[` + content + `]}]` + more + `}`
	}
	const model, models = "/model/gpt-4o/converse", "/model/gpt-4o/converse-stream"
	add("converse", model, models, "text", "last_message", converse(`{"text":"hunter2"}`, ""), converse(`{"text":`+echo(word)+`}`, ""))
	add("converse", model, models, "system", "system", converse(`{"text":"a"}`, `,"system":[{"text":"hunter2"}]`), "")
	add("converse", model, models, "document", "last_message", converse(`{"text":"a"},{"document":{"format":"txt","name":"d","source":{"text":"hunter2"}}}`, ""), "")
	cohere := func(content, more string) string {
		return `{"model":"gpt-4o","messages":[{"role":"user","content":` + content + `}]` + more + `}`
	}
	out = append(out, judged{"cohere", "text", "last_message", word, "/v2/chat", `{"model":"@mock/gpt-4o",` + cohere(`"hunter2"`, "")[18:], `{"model":"@mock/gpt-4o",` + cohere(echo(word), "")[18:], true, ""})
	for name, body := range map[string]string{
		"tool description": `"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","description":"hunter2"}}]`,
		"prediction":       `"messages":[{"role":"user","content":"a"}],"prediction":{"type":"content","content":"hunter2"}`,
		"refusal":          `"messages":[{"role":"user","content":"a"},{"role":"assistant","refusal":"hunter2"}]`,
	} {
		scope := map[string]string{"tool description": "system"}[name]
		if scope == "" {
			scope = "last_message"
		}
		out = append(out, judged{"chatComplete", name, scope, word, "/chat/completions", `{"model":"@mock/gpt-4o",` + body + `}`, "", false, ""})
	}
	return sorted(out)
}

// sorted puts rows of one endpoint in the order of their contents.
func sorted(rows []judged) []judged {
	for i := range rows {
		for j := i; j > 0 && rows[j-1].endpoint == rows[j].endpoint && rows[j-1].content > rows[j].content; j-- {
			rows[j-1], rows[j] = rows[j], rows[j-1]
		}
	}
	return rows
}

// chatSpellings are paths by which a provider reaches the route of a chat. Guardrails judge each
// of them.
var chatSpellings = []string{
	"/proxy/chat/completions", "/proxy/v1/chat/completions", "/proxy//chat/completions", "/proxy/chat//completions", "/proxy/chat/completions/",
	"/proxy/./chat/completions", "/proxy/x/../chat/completions", "/proxy/chat/%63ompletions", "/proxy/chat%2Fcompletions", "/proxy/chat/completions;x", "/proxy/Chat/Completions",
	"/openai/chat/completions", "/v1beta/openai/chat/completions", "/openai/v1/chat/completions", "/anthropic/v1/messages",
	"/chat//completions", "/chat/completions/", "/chat/./completions", "/chat/%63ompletions", "//chat/completions",
	"/proxy/responses", "/proxy/anything", "/threads", "/threads/runs", "/conversations", "/v1beta/models/gpt-4o:countTokens", "/v1beta/models/gpt-4o:embedContent",
	"/v1beta/interactions", "/v2/embed", "/anything/at/all",
}

// passedCells are the rows of what is passed through, for every spelling of a path.
func passedCells(r *running) string {
	r.t.Helper()
	var out strings.Builder
	const word = "hunter2"
	row := func(path, content, side, how, outcome string) {
		fmt.Fprintf(&out, "%-25s %-15s %-7s %-13s %s\n", path, content, side, how, outcome)
	}
	call := func(path, body, hooks string, headers ...string) reply {
		return r.call("POST", path, body, append([]string{"X-Gateway-Provider", "@mock", "x-gateway-config", `{"provider":"@mock",` + hooks + `}`}, headers...)...)
	}
	deny := func(list, more string) string {
		return `"` + list + `":[{"regexMatch":{"rule":"` + word + `","not":true},"deny":true` + more + `}]`
	}
	for _, path := range chatSpellings {
		outcome := "denied"
		if got := call(path, chatBody("gpt-4o", word, ""), deny("input_guardrails", "")); got.status != 446 {
			outcome = fmt.Sprint(got.status)
			r.t.Errorf("%s: %d %.200s", path, got.status, got.body)
		}
		row(path, "text", "before", "plain", outcome)
	}
	for _, more := range []string{"", `,"stream":true`} {
		how := map[bool]string{true: "plain", false: "stream"}[more == ""]
		body := chatBody("gpt-4o", "mock: echo\n"+word, more)
		if got := call("/proxy/chat/completions", body, deny("output_guardrails", "")); got.status != 446 || strings.Contains(got.body, `"delta"`) || strings.Contains(got.body, `"message":{"role"`) {
			r.t.Errorf("proxy, %s: %d %.300s", how, got.status, got.body)
		}
		row("/proxy/chat/completions", "text", "behind", how, "denied")
		if got := call("/proxy/chat/completions", chatBody("gpt-4o", word, more), `"input_guardrails":[{"allowedRequestTypes":{"blockedTypes":["proxy"]},"deny":true}]`); got.status != 446 {
			r.t.Errorf("proxy: %d %s", got.status, got.body)
		}
		for _, path := range []string{"/proxy/chat/completions", "/proxy/v1//chat/completions", "/openai/%63hat/completions"} {
			for _, types := range []string{`"blockedTypes":["chatComplete"]`, `"allowedTypes":["proxy","embed"]`} {
				if got := call(path, chatBody("gpt-4o", word, more), `"input_guardrails":[{"allowedRequestTypes":{`+types+`},"deny":true}]`); got.status != 446 {
					r.t.Errorf("%s, %s: %d %s", path, types, got.status, got.body)
				}
			}
		}
		row("/proxy/chat/completions", "its type", "before", how, "denied")
	}
	form := new(bytes.Buffer)
	w := multipart.NewWriter(form)
	_ = w.WriteField("purpose", "user_data") // memory
	_ = w.Close()
	kind := []string{"content-type", w.FormDataContentType()}
	if got := call("/proxy/files", form.String(), deny("input_guardrails", ""), kind...); got.status != 403 || !strings.Contains(got.body, "allow_unread") {
		r.t.Errorf("form: %d %.300s", got.status, got.body)
	}
	row("/proxy/files", "form", "before", "plain", "rejected: it cannot be read")
	for _, name := range []string{"proxy", "/files"} {
		if got := call("/proxy/files", form.String(), deny("input_guardrails", `,"allow_unread":["`+name+`"]`), kind...); strings.Contains(got.body, "allow_unread") || got.status == 446 {
			r.t.Errorf("form, exempt as %s: %d %.300s", name, got.status, got.body)
		}
	}
	row("/proxy/files", "form, exempt", "before", "plain", "passed")
	return out.String()
}

// TestRedactionReachesWhatIsPassedThrough sends bodies and streams with what a guardrail changed
// in them.
func TestRedactionReachesWhatIsPassedThrough(t *testing.T) {
	t.Parallel()
	r := start(t)
	redact := `[{"gateway.pii":{"redact":true,"categories":["EMAIL_ADDRESS"]},"stream":"hold"}]`
	for _, c := range []struct {
		list, more string
		status     int
	}{{"input_guardrails", "", 200}, {"output_guardrails", "", 200}, {"output_guardrails", `,"stream":true`, 200}} {
		got := r.call("POST", "/proxy/chat/completions", chatBody("gpt-4o", "mock: echo\nann@example.com", c.more), "X-Gateway-Provider", "@mock", "x-gateway-config", `{"provider":"@mock","`+c.list+`":`+redact+`}`)
		if got.status != c.status || strings.Contains(got.body, "ann@example.com") || !strings.Contains(got.body, `"finish_reason":"stop"`) {
			t.Errorf("%s%s: %d %.300s", c.list, c.more, got.status, got.body)
		}
	}
}
