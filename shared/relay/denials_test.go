package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/testkit/relaytest"
	"gateway/shared/usage"
)

// formats are requests in the formats of clients, without their last braces, with the path of
// streams if that differs, and how a stream in the format reports an error.
var formats = []struct{ name, path, stream, body, failed string }{
	{"chat", chatPath, "", `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"TEXT"}]`, `"error":{"message":`},
	{"responses", responsesAt, "", `{"model":"m","input":"TEXT"`, `"type":"response.failed"`},
	{"messages", messagesPath, "", `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"TEXT"}]`, `event: error`},
	{"gemini", "/v1/v1beta/models/m:generateContent", "/v1/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"TEXT"}]}]`, `"error":{`},
	{"converse", "/v1/model/m/converse", "/v1/model/m/converse-stream", `{"messages":[{"role":"user","content":[{"text":"TEXT"}]}]`, `:exception-type`},
	{"cohere", "/v1/v2/chat", "", `{"model":"m","messages":[{"role":"user","content":"TEXT"}]`, `"finish_reason":"ERROR"`},
	{"completions", "/v1/completions", "", `{"model":"m","prompt":"TEXT"`, `"error":{"message":`},
}

// chatEventsOf is a stream of chat or of completions that writes the words of a text one by one.
func chatEventsOf(format, text string) string {
	var all []string
	for _, word := range strings.SplitAfter(text, " ") {
		if format == "completions" {
			all = append(all, `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"`+word+`","finish_reason":null,"logprobs":null}]}`)
			continue
		}
		all = append(all, piece(word, ""))
	}
	if format == "completions" {
		return sse(append(all, `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","finish_reason":"stop","logprobs":null}]}`, "[DONE]")...)
	}
	return sse(append(all, lastChunk+shortly+"}", "[DONE]")...)
}

// forbids is a guardrail that hunter2 fails, with more fields.
func forbids(more string) string { return `{"regexMatch":{"rule":"hunter2","not":true}` + more + `}` }

// TestDenyDeniesStreamsOfEveryClient requires that a denied text never leaves, in the stream of any
// client: the status is 446 as long as nothing was sent, and the stream ends in the client's own form
// of an error after that. A stream that is judged afterwards is sent.
func TestDenyDeniesStreamsOfEveryClient(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("one two three ", 60)
	for _, c := range formats {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := relaytest.New(t, familyRoutes)
			for name, k := range map[string]struct {
				more, text       string
				status, recorded int
			}{
				"at once":         {`,"deny":true`, "hunter2 " + long, 446, 446},
				"on its way":      {`,"deny":true`, long + "hunter2 " + long, 200, 446},
				"at its end":      {`,"deny":true`, long + "hunter2", 200, 446},
				"softly":          {`,"deny":true,"soft_deny_200":true`, long + "hunter2", 200, 200},
				"held":            {`,"deny":true,"stream":"hold"`, long + "hunter2", 446, 446},
				"afterwards":      {`,"deny":true,"stream":"after"`, long + "hunter2", 200, 200},
				"without denying": {``, "hunter2", 200, 200},
				"nothing to deny": {`,"deny":true`, long, 200, 200},
			} {
				path, body := c.path, c.body+`,"stream":true`
				if c.stream != "" {
					path, body = c.stream, c.body
				}
				made := relaytest.Reply{Status: 200, Body: chatEventsOf(c.name, k.text)}
				if k.status == 200 && strings.Contains(k.more, "deny") { // a stream that comes at once is denied before its head is sent
					made.Pace = 100 * time.Microsecond
				}
				g.Script(made)
				got := g.Do("POST", path, strings.Replace(body, "TEXT", "Hi", 1)+"}", config(`{"provider":"deepinfra","api_key":"k","output_guardrails":[`+forbids(k.more)+`]}`)...)
				if cut := c.name == "gemini" && k.status == 200 && k.recorded == 446; cut != got.Aborted { // see gemini.BreaksConnection
					t.Errorf("%s: aborted %t", name, got.Aborted)
				}
				leaks, sends := strings.Contains(got.Body, "hunter2"), name == "afterwards" || name == "without denying"
				if got.Status != k.status || leaks != sends {
					t.Errorf("%s: %d, leaks %t: %.600s", name, got.Status, leaks, got.Body)
				}
				if k.status == 200 && k.recorded == 446 && (!strings.Contains(got.Body, c.failed) || name == "on its way" && !strings.Contains(got.Body, "three") || strings.Contains(got.Body, "[DONE]")) {
					t.Errorf("%s: it does not end with an error: ...%s", name, got.Body[max(0, len(got.Body)-900):])
				}
				if k.status == 446 && strings.Contains(got.Body, "three") {
					t.Errorf("%s: something was sent: %.300s", name, got.Body)
				}
				r := g.Record()
				unreadable := (c.name == "gemini" || c.name == "converse" || c.name == "cohere") && sends // nothing reads what was sent
				if len(r.Guards) != 1 && !unreadable {
					t.Errorf("%s: verdicts %+v", name, r.Guards)
				}
				for _, v := range r.Guards {
					if denies := strings.Contains(k.more, "deny") && name != "nothing to deny"; !unreadable && (v.Phase != usage.GuardAfter || v.Verdict != (name == "nothing to deny") || v.Denied != denies) {
						t.Errorf("%s: verdict %+v", name, v)
					}
				}
				if denied := k.recorded == 446 || name == "softly"; r.ClientStatus != k.recorded || r.Success() != (k.recorded == 200) || denied != (r.ErrorCode == "guardrail_denied") {
					t.Errorf("%s: the record has %d, %q", name, r.ClientStatus, r.ErrorCode)
				}
				if b := g.Bodies(&r); k.recorded == 446 && strings.Contains(string(b.Response), "hunter2") {
					t.Errorf("%s: the log has what was withheld: %s", name, b.Response)
				}
			}
		})
	}
}

// TestRedactedDataIsInNoLog requires that what a guardrail has removed is in no recorded body and
// no error, whoever quotes it, also if another check denies, and if it was put back into the response.
func TestRedactedDataIsInNoLog(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const (
		redacts  = `{"gateway.pii":{"redact":true,"categories":["EMAIL_ADDRESS"]}}`
		restores = `{"gateway.pii":{"redact":true,"restore":true,"categories":["EMAIL_ADDRESS"]}}`
		denies   = `{"default.regexMatch":{"rule":"project-[0-9]+","not":true},"deny":true}`
		inOne    = `{"default.wordCount":{"maxWords":9},"gateway.pii":{"redact":true},"default.regexMatch":{"rule":"project-[0-9]+","not":true},"deny":true}`
		text     = "mail mary.poppins@example.com"
		echoed   = "mail {{EMAIL_ADDRESS_1}}"
	)
	for _, kind := range []struct{ provider, path, body, plain, stream string }{
		{"openai", chatPath, formats[0].body, strings.Replace(reply, "Hello", echoed, 1), chatEventsOf("chat", echoed)},
		{"anthropic", chatPath, formats[0].body, strings.Replace(claudeReply, "Hello", echoed, 1), strings.Replace(sse(messageStream(`"input_tokens":1,"output_tokens":1`, `"output_tokens":1`)...), `"Hi"`, `"`+echoed+`"`, 1)},
		{"anthropic", messagesPath, formats[0].body, strings.Replace(claudeReply, "Hello", echoed, 1), strings.Replace(sse(messageStream(`"input_tokens":1,"output_tokens":1`, `"output_tokens":1`)...), `"Hi"`, `"`+echoed+`"`, 1)},
		{"openai", "/v1/completions", formats[6].body, `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"` + echoed + `","finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, chatEventsOf("completions", echoed)},
		{"openai", responsesAt, formats[1].body, strings.Replace(responseBody, "Hello", echoed, 1), strings.ReplaceAll(sse(responseStream(usageOf(`"input_tokens":1,"output_tokens":1`))...), `"Hi"`, `"`+echoed+`"`)},
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			for name, c := range map[string]struct {
				guards, text string
				status       int
				reported     bool
			}{
				"passed":           {redacts + `,` + denies, text, 200, false},
				"denied":           {redacts + `,` + denies, text + " about project-7", 446, false},
				"in one":           {inOne, text + " about project-7", 446, false},
				"one by one":       {strings.Replace(inOne, `"deny"`, `"sequential":true,"deny"`, 1), text + " about project-7", 446, false},
				"put back":         {restores, text, 200, true},
				"a target failed ": {redacts + `,` + denies, text, 400, false},
			} {
				made := map[string]string{"": kind.plain, `,"stream":true`: kind.stream}[stream]
				x := exchange{kind.provider + kind.path + stream + ", " + name, kind.path, strings.Replace(kind.body, "TEXT", c.text, 1) + stream + "}", on(`{"provider":"`+kind.provider+`","api_key":"k","input_guardrails":[`+c.guards+`]}`, "X-Gateway-Strict-Open-Ai-Compliance", "false"), []relaytest.Reply{ok(made)}, c.status, "", "{{EMAIL_ADDRESS_1}} & !poppins", ""}
				switch c.status {
				case 446:
					x.script, x.sent = nil, ""
				case 400:
					x.script, x.has = []relaytest.Reply{failure(400, strings.Replace(invalid, "foo", "{{EMAIL_ADDRESS_1}}", 1))}, `"hook_results":{"before_request_hooks":[{`
				}
				got, _, r := x.run(t, g)
				if strings.Contains(got.Body, "poppins") != c.reported {
					t.Errorf("%s: %s", x.name, got.Body)
				}
				b := g.Bodies(&r)
				all := fmt.Sprint(string(b.Request), string(b.Sent), string(b.Received), string(b.Response), r.ErrorMessage, r.Guards)
				if strings.Contains(all, "poppins") || strings.Contains(all, "example.com") || !strings.Contains(all, "{{EMAIL_ADDRESS_1}}") {
					t.Errorf("%s: recorded %s", x.name, all)
				}
			}
		}
	}
	const passes, names = `{"default.contains":{"words":["nowhere"],"operator":"none"},"deny":true}`, `{"default.contains":{"words":["Hi","Hello"],"operator":"none"},"deny":true}`
	for where, guards := range map[string]string{
		"input_guardrails[0]":  `"input_guardrails":[` + names + `]`,
		"input_guardrails[1]":  `"input_guardrails":[` + passes + `,` + names + `]`,
		"output_guardrails[1]": `"output_guardrails":[` + passes + `,` + names + `]`,
	} {
		x := exchange{where, chatPath, question, config(openAI("," + guards)), nil, 446, `Guardrail \"` + where + `\", check default.contains.`, "", ""}
		if strings.HasPrefix(where, "output") {
			x.script = []relaytest.Reply{ok(reply)}
		}
		x.run(t, g)
	}
}
