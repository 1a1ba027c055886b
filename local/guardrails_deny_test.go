package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// streamErrors are how each client format tells an error within a stream.
var streamErrors = map[string]string{
	"OpenAI chat":        `"error":{"message":`,
	"OpenAI responses":   `"type":"response.failed"`,
	"Anthropic messages": `event: error`,
	"Gemini":             `"error":{`,
	"Bedrock Converse":   `:exception-type`,
	"Cohere":             `"finish_reason":"ERROR"`,
	"completions":        `"error":{"message":`,
}

// formats are the client formats, each asking a provider of OpenAI's chat.
func formats() []shape {
	all := shapes()
	chat := all[0]
	for i := range all {
		all[i].model, all[i].headers = chat.model, chat.headers
	}
	return append(all, shape{name: "completions", path: func(string, bool) string { return "/completions" }, model: "@mock/gpt-3.5-turbo-instruct",
		body: func(model, text string, _, stream bool) string {
			return fmt.Sprintf(`{"model":%q,"max_tokens":500,"prompt":%q,"stream":%t}`, model, text, stream)
		}})
}

// logOf reads the newest log as administrators see it.
func logOf(t *testing.T, r *running, id string) (log map[string]any, raw string) {
	t.Helper()
	log = r.admin("GET", "/logs/"+id, "")
	text, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	return log, string(text)
}

// TestDenyDeniesStreamsOfEveryClient: without any setting for streams, a denied text never
// leaves. It is 446 as long as nothing was sent, and ends in the client's own error form
// after that. Set to judge the stream afterwards, the text is sent; the log shows the
// verdict in each case.
//
//lane:exhaustive
func TestDenyDeniesStreamsOfEveryClient(t *testing.T) {
	t.Parallel()
	r, _ := startShapes(t)
	long := strings.Repeat("one two three ", 60)
	type requestCase struct {
		name           string
		status, logged int
		denies         bool
	}
	var want []requestCase
	for _, c := range formats() {
		for name, k := range map[string]struct {
			more, text     string
			status, logged int
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
			where := c.name + ", " + name
			got, err := r.try("POST", c.path(c.model, true), c.body(c.model, "mock: no-tools echo pace=1ms\n"+k.text, false, true), append([]string{"x-gateway-config", `{"output_guardrails":[` + forbids(k.more) + `]}`}, c.headers...)...)
			if cut := c.name == "Gemini" && k.status == 200 && k.logged == 446; cut != (err != nil) { // see gemini.BreaksConnection
				t.Fatalf("%s: %v", where, err)
			}
			leaks := strings.Contains(got.body, "hunter2")
			sends := name == "afterwards" || name == "without denying"
			if got.status != k.status || leaks != sends {
				t.Errorf("%s: %d, leaks: %t, %.600s", where, got.status, leaks, got.body)
			}
			// A stream that comes at once is denied before its text is written, behind its head.
			if k.status == 200 && k.logged == 446 && (!strings.Contains(got.body, streamErrors[c.name]) || name == "on its way" && !strings.Contains(got.body, "three") || strings.Contains(got.body, "[DONE]")) {
				t.Errorf("%s: it does not end with an error: ...%s", where, got.body[max(0, len(got.body)-900):])
			}
			if k.status == 446 && strings.Contains(got.body, "three") {
				t.Errorf("%s: something was sent: %.300s", where, got.body)
			}
			want = append(want, requestCase{name: where, status: k.status, logged: k.logged, denies: strings.Contains(k.more, "deny") && name != "nothing to deny"})
		}
	}
	for i, rec := range r.byTime(len(want)) {
		w := want[i]
		log, _ := logOf(t, r, rec.ID)
		after, _ := member(log, "hook_results/after_request_hooks").([]any)
		judged := w.name[strings.Index(w.name, ", ")+2:]
		if len(after) != 1 {
			if judged == "afterwards" || judged == "without denying" {
				if c := w.name[:strings.Index(w.name, ",")]; c == "Gemini" || c == "Bedrock Converse" || c == "Cohere" {
					continue
				}
			}
			t.Errorf("%s: the log has the verdicts %v", w.name, member(log, "hook_results"))
			continue
		}
		verdict := after[0].(map[string]any)
		fails := judged != "nothing to deny"
		readable := true
		if c := w.name[:strings.Index(w.name, ",")]; (c == "Gemini" || c == "Bedrock Converse" || c == "Cohere") && (judged == "afterwards" || judged == "without denying") {
			readable = false // see said
		}
		if readable && (verdict["verdict"] == fails || verdict["deny"] != w.denies) {
			t.Errorf("%s: the log has the verdict %v", w.name, verdict)
		}
		if denied := w.logged == 446 || judged == "softly"; int(rec.ClientStatus) != w.logged || rec.Success() != (w.logged == 200) || denied != (rec.ErrorCode == "guardrail_denied") {
			t.Errorf("%s: the record has %d, %q", w.name, rec.ClientStatus, rec.ErrorCode)
		}
		if answer, _ := json.Marshal(member(log, "response")); w.logged == 446 && strings.Contains(string(answer), "hunter2") {
			t.Errorf("%s: the log has what was withheld: %s", w.name, answer)
		}
	}
}

// TestRedactedDataIsInNoLog: what a guardrail has removed is not in the log, the explanation
// or the response, whoever quotes it, also if another check denies, and if it was put back into
// the response.
//
//lane:exhaustive
func TestRedactedDataIsInNoLog(t *testing.T) {
	t.Parallel()
	r := start(t)
	const (
		redacts  = `{"gateway.pii":{"redact":true,"categories":["EMAIL_ADDRESS"]}}`
		restores = `{"gateway.pii":{"redact":true,"restore":true,"categories":["EMAIL_ADDRESS"]}}`
		denies   = `{"default.regexMatch":{"rule":"project-[0-9]+","not":true},"deny":true}`
		inOne    = `{"default.wordCount":{"maxWords":9},"gateway.pii":{"redact":true},"default.regexMatch":{"rule":"project-[0-9]+","not":true},"deny":true}`
		text     = "mail mary.poppins@example.com"
	)
	n := 0
	for _, kind := range conversations {
		for _, stream := range []string{"", `,"stream":true`} {
			for name, c := range map[string]struct {
				config, text string
				status       int
				reported     bool
			}{
				"before, passed":        {`{"input_guardrails":[` + redacts + `,` + denies + `]}`, text, 200, false},
				"before, denied":        {`{"input_guardrails":[` + redacts + `,` + denies + `]}`, text + " about project-7", 446, false},
				"before, in one":        {`{"input_guardrails":[` + inOne + `]}`, text + " about project-7", 446, false},
				"before, one by one":    {`{"input_guardrails":[` + strings.Replace(inOne, `"deny"`, `"sequential":true,"deny"`, 1) + `]}`, text + " about project-7", 446, false},
				"before, put back":      {`{"input_guardrails":[` + restores + `]}`, text, 200, true},
				"before, target failed": {`{"input_guardrails":[` + redacts + `,` + denies + `]}`, "mock: status=400\n" + text, 400, false},
			} {
				path, body := echoRequest(kind, c.text, stream)
				got := r.call("POST", path, body, "x-gateway-config", c.config, "x-gateway-strict-open-ai-compliance", "false")
				n++
				where := kind + stream + ", " + name
				if got.status != c.status || strings.Contains(got.body, "poppins") != c.reported {
					t.Errorf("%s: %d %s", where, got.status, got.body)
				}
				if c.status == 400 && !strings.Contains(got.body, `"hook_results":{"before_request_hooks":[{`) {
					t.Errorf("%s: an error without verdicts: %s", where, got.body)
				}
				rec := r.byTime(n)[n-1]
				_, raw := logOf(t, r, rec.ID)
				explained, _ := json.Marshal(r.admin("GET", "/logs/"+rec.ID+"/explain", ""))
				for _, shown := range []string{raw, string(explained)} {
					if strings.Contains(shown, "poppins") || strings.Contains(shown, "example.com") {
						t.Errorf("%s: it is kept: %s", where, shown)
					}
				}
				if !strings.Contains(raw, "{{EMAIL_ADDRESS_1}}") {
					t.Errorf("%s: the log has no body: %s", where, raw)
				}
			}
		}
	}
}

// TestDenialsNameTheirPlace checks that the sentence of a denial names a guardrail without a name by
// its place in the config, and its check.
func TestDenialsNameTheirPlace(t *testing.T) {
	t.Parallel()
	r := start(t)
	const passes, denies = `{"default.contains":{"words":["nowhere"],"operator":"none"},"deny":true}`, `{"default.contains":{"words":["house"],"operator":"none"},"deny":true}`
	for where, config := range map[string]string{
		"input_guardrails[0]":  `{"input_guardrails":[` + denies + `]}`,
		"input_guardrails[1]":  `{"input_guardrails":[` + passes + `,` + denies + `]}`,
		"output_guardrails[1]": `{"output_guardrails":[` + passes + `,` + denies + `]}`,
	} {
		want := `Guardrail \"` + where + `\", check default.contains.`
		if got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "mock: echo\nthe house", ""), "x-gateway-provider", "@mock", "x-gateway-config", config); got.status != 446 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", where, got.status, got.body)
		}
	}
}
