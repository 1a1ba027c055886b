package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// readsError reports whether the SDKs of a shape find the text of an error in a body.
var readsError = map[string]func(e errorBodies, status int) bool{
	"openai": func(e errorBodies, _ int) bool {
		return e.text("error", "message") != "" && e.text("error", "type") != ""
	},
	"anthropic": func(e errorBodies, _ int) bool {
		return e.text("type") == "error" && e.text("message") != "" && e.text("error", "message") != "" && e.text("error", "type") != ""
	},
	"google": func(e errorBodies, status int) bool {
		object, _ := e["error"].(map[string]any)
		return object["code"] == float64(status) && e.text("error", "message") != "" && e.text("error", "status") != ""
	},
	"bedrock": func(e errorBodies, _ int) bool {
		return e.text("message") != "" && strings.HasSuffix(e.text("__type"), "Exception")
	},
	"cohere": func(e errorBodies, _ int) bool { return e.text("message") != "" && e["error"] == nil },
}

// errorBodies is the body of an error.
type errorBodies map[string]any

// text returns a text at a path; "" if there is none.
func (e errorBodies) text(path ...string) string {
	var at any = map[string]any(e)
	for _, name := range path {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	s, _ := at.(string)
	return s
}

// exhausted are the headers of requests whose budget is used up.
var exhausted = []string{"X-Gateway-Metadata", `{"team":"exhausted"}`}

// exhaust makes a budget for these headers and uses it up.
func (r *running) exhaust() {
	r.t.Helper()
	r.policy("usage-limits", `"conditions":[{"key":"metadata.team","value":"exhausted"}],"group_by":[{"key":"metadata.team"}],"type":"requests","credit_limit":1`)
	r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", ""), exhausted...)
}

// saveUnreachable saves a provider at whose address nothing listens.
func (r *running) saveUnreachable(slug string) {
	r.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	_ = ln.Close()
	r.save(slug, `"ai_provider_id":"openai","key":"mock-key","configurations":{"custom_host":"http://`+ln.Addr().String()+`/v1"}`)
}

// TestFinalRefusalsAreSentAsEvents: a client that repeats requests after every error status
// gets a final rejection as the one event of its stream.
func TestFinalRefusalsAreSentAsEvents(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.exhaust()
	limited := r.newKey(`"rate_limits":[{"type":"requests","unit":"rpd","value":1}]`)
	r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", ""), "X-Gateway-Api-Key", limited)
	r.saveUnreachable("gone")
	for _, c := range []struct {
		name, model string
		status      int
		event       bool
		headers     []string
	}{
		{"a wrong key", "@mock/gpt-4o-mini", 401, true, []string{"X-Gateway-Api-Key", "wrong", "Accept", "text/event-stream"}},
		{"a budget", "@mock/gpt-4o-mini", 412, true, exhausted},
		{"a long wait", "@mock/gpt-4o-mini", 429, true, []string{"X-Gateway-Api-Key", limited}},
		{"an unknown provider", "@nobody/gpt-4o-mini", 0, true, nil},
		{"a guardrail", "gpt-4o-mini", 446, true, []string{"X-Gateway-Config", `{"provider":"@mock","input_guardrails":[{"default.contains":{"words":["other"],"operator":"any"},"deny":true}]}`}},
		{"no connection", "@gone/gpt-4o-mini", 503, false, nil},
	} {
		for _, stream := range []bool{true, false} {
			body := responseBody(c.model, "x", fmt.Sprintf(`,"stream":%t`, stream))
			headers := append([]string{"X-Gateway-Refusals", "event"}, c.headers...)
			if !stream {
				headers = append(headers, "Accept", "application/json")
			}
			got := r.call("POST", "/responses", body, headers...)
			status, _ := strconv.Atoi(got.header.Get("X-Gateway-Error-Status"))
			if !c.event || !stream {
				if got.status < 400 || status != 0 {
					t.Errorf("%s, stream %t: %d %v", c.name, stream, got.status, got.header)
				}
				continue
			}
			if got.status != 200 || status < 400 || c.status != 0 && status != c.status || got.header.Get("X-Gateway-Error-Code") == "" || strings.Count(got.body, "event: ") != 1 {
				t.Errorf("%s: %d %v %.300s", c.name, got.status, got.header, got.body)
				continue
			}
			_, data, _ := strings.Cut(got.body, "data: ")
			var e map[string]any
			if err := json.Unmarshal([]byte(data), &e); err != nil || e["type"] != "response.failed" || member(e, "response/error/code") != "invalid_prompt" || member(e, "response/error/message") == "" {
				t.Errorf("%s: %s", c.name, got.body)
			}
		}
	}
	// The config asks for it, too; the log has the true status.
	config := `{"provider":"@mock","refusals":"event","input_guardrails":[{"default.contains":{"words":["other"],"operator":"any"},"deny":true}]}`
	got := r.call("POST", "/responses", responseBody("gpt-4o-mini", "the last one", `,"stream":true`), "X-Gateway-Config", config, "X-Gateway-Trace-Id", "as-an-event")
	if got.status != 200 || !strings.Contains(got.body, "response.failed") {
		t.Errorf("by the config: %d %s", got.status, got.body)
	}
	eventually(t, func() error {
		for _, rec := range archived(t, r.g) {
			if rec.TraceID == "as-an-event" {
				if rec.ClientStatus != 446 {
					t.Errorf("the log says %d", rec.ClientStatus)
				}
				return nil
			}
		}
		return errors.New("no record")
	})
	if got := r.call("POST", "/responses", responseBody("@mock/gpt-4o-mini", "x", ""), "X-Gateway-Refusals", "status"); got.status != 400 || !strings.Contains(got.body, "x-gateway-refusals") {
		t.Errorf("another value: %d %s", got.status, got.body)
	}
	// On the WebSocket the same event, once.
	spent := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	r.spend(spent)
	s := r.talk("X-Gateway-Api-Key", spent, "X-Gateway-Refusals", "event")
	s.send(`{"type":"response.create","model":"@mock-anthropic/claude-sonnet-4-5","input":"x","max_output_tokens":10000}`)
	var kinds []string
	for {
		e, err := s.read()
		if err != nil {
			break
		}
		kinds = append(kinds, fmt.Sprint(e["type"]))
	}
	if len(kinds) != 1 {
		t.Errorf("the WebSocket sent %v", kinds)
	}
}

// TestBrokenStreamsEndAsTheirClientsNeed: Codex reads response.failed alone, Gemini CLI asks
// again after an orderly end.
//
//lane:standard
func TestBrokenStreamsEndAsTheirClientsNeed(t *testing.T) {
	t.Parallel()
	r, _ := startGoogle(t)
	// Passed through to a provider of the same shape.
	got, err := r.try("POST", "/v1beta/models/@google/gemini-2.5-flash:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"one two three four\nmock: chunks=12 cut=after:3"}]}]}`)
	pieces := strings.Split(strings.TrimSpace(got.body), "\n\n")
	if strings.Contains(got.body, "\r\n\r\n") {
		pieces = strings.Split(strings.TrimSpace(got.body), "\r\n\r\n")
	}
	if last := pieces[len(pieces)-1]; err == nil || !strings.Contains(last, `data: {"error":{"code":`) {
		t.Errorf("Gemini to Gemini: %v %q", err, got.body)
	}
	for _, fault := range []string{"cut=after:6", "garbage=after:6", "error-event=server_error after=6"} {
		for _, model := range []string{"@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5"} {
			where := fault + ", " + model
			got, err := r.try("POST", "/responses", responseBody(model, "one two three four five six\nmock: chunks=12 "+fault, `,"stream":true`))
			events := strings.Split(strings.TrimSpace(got.body), "\n\n")
			last := events[len(events)-1]
			if err != nil || !strings.HasPrefix(last, "event: response.failed\n") || !strings.Contains(last, `"code":"server_error"`) && !strings.Contains(last, `"code":"server_is_overloaded"`) && !strings.Contains(last, "error-event") {
				t.Errorf("responses, %s: %v %s", where, err, last)
			}
			got, err = r.try("POST", "/v1beta/models/"+model+":streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"one two three four five six\nmock: chunks=12 `+fault+`"}]}]}`)
			events = strings.Split(strings.TrimSpace(got.body), "\r\n\r\n")
			last = events[len(events)-1]
			if err == nil || !strings.HasPrefix(last, `data: {"error":{"code":`) {
				t.Errorf("Gemini, %s: %v %q", where, err, last)
			}
		}
	}
	s := r.talk()
	s.create("@mock/gpt-4o-mini", "x\nmock: chunks=20 cut=after:8", "")
	for {
		e, err := s.read()
		if err != nil {
			t.Fatal(err)
		}
		if e["type"] == "response.failed" {
			t.Error("the error event has come and response.failed follows")
		}
		if e["type"] == "error" {
			if status, _ := e["status"].(float64); status < http.StatusInternalServerError {
				t.Errorf("the error of a WebSocket: %v", e)
			}
			break
		}
	}
	s.create("@mock/gpt-4o-mini", "Hello", "")
	if e, err := s.read(); err != nil || e["type"] != "response.created" {
		t.Errorf("behind the error of another response: %v %v", e, err)
	}
}
