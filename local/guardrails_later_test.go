package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// storedResponses is a provider that makes responses in the background: the first read finds
// one that is not finished, later reads one that says hunter2.
type storedResponses struct {
	mu    sync.Mutex
	made  int
	reads map[string]int
}

func (k *storedResponses) object(id, status string) string {
	output, usage := "[]", "null"
	if status == "completed" {
		output = `[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"my hunter2 is safe","annotations":[]}]}]`
		usage = `{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":150}`
	}
	return fmt.Sprintf(`{"id":%q,"object":"response","created_at":1,"status":%q,"background":true,"error":null,"incomplete_details":null,"model":"gpt-4o-mini","output":%s,"usage":%s}`, id, status, output, usage)
}

// ServeHTTP implements http.Handler.
func (k *storedResponses) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, status := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:], "completed"
	if req.Method == http.MethodPost {
		k.made++
		id, status = fmt.Sprintf("resp_%d", k.made), "queued"
	} else if k.reads[id]++; k.reads[id] == 1 {
		status = "in_progress"
	}
	if req.URL.Query().Get("stream") != "true" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, k.object(id, status))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":%s}\n\n", k.object(id, "in_progress"))
	fmt.Fprint(w, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"my hunter2 is safe\"}\n\n")
	if status == "completed" {
		fmt.Fprintf(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":%s}\n\n", k.object(id, "completed"))
	}
}

// TestWhatWasMadeInTheBackgroundIsJudgedWhenItIsRead: the first response has nothing to
// judge. Each read of the finished response is judged once, plain or streamed; the response
// is booked once, whatever the result.
func TestWhatWasMadeInTheBackgroundIsJudgedWhenItIsRead(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(&storedResponses{reads: map[string]int{}})
	t.Cleanup(host.Close)
	r := start(t)
	r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	const redacts = `{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}`
	cases := []struct {
		name, guardrail, query string
		status                 int
		has, hasNot            string
		judged                 int // hooks on the record of the read; -1: those beside it may be late
	}{
		{"denied", forbids(`,"deny":true`), "", 446, `"after_request_hooks":[{"verdict":false`, `"text":"my`, 1},
		{"softly denied", forbids(`,"deny":true,"soft_deny_200":true`), "", 200, `The guardrail checks defined in the config failed`, `"text":"my`, 1},
		{"failed", forbids(``), "", 246, `"after_request_hooks":[{"verdict":false`, "hooks_failed", 1},
		{"passed", `{"contains":{"words":["safe"]},"deny":true}`, "", 200, `"after_request_hooks":[{"verdict":true`, "hooks_failed", 1},
		{"changed", redacts + `}`, "", 200, `my *** is safe`, "hunter2", 1},
		{"denied, held", forbids(`,"deny":true,"stream":"hold"`), "?stream=true", 446, `"after_request_hooks":[{"verdict":false`, `"text":"my`, 1},
		{"denied, window", forbids(`,"deny":true,"stream":"window"`), "?stream=true", 446, `"after_request_hooks":[{"verdict":false`, `"text":"my`, 1},
		{"failed, held", forbids(`,"stream":"hold"`), "?stream=true", 246, "response.completed", "hooks_failed", 1},
		{"changed, window", redacts + `,"stream":"window"}`, "?stream=true", 200, `my *** is safe`, "hunter2", 1},
		{"denied, by default", forbids(`,"deny":true`), "?stream=true", 446, `"after_request_hooks":[{"verdict":false`, `"text":"my`, 1},
		{"after", forbids(`,"deny":true,"stream":"after"`), "?stream=true", 200, `"after_request_hooks":[{"verdict":false`, "hooks_failed", 1},
		{"none", `{"wordCount":{"maxWords":9},"async":true}`, "?stream=true", 200, `hunter2`, "hook_results", -1},
	}
	for _, c := range cases {
		h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Strict-Open-Ai-Compliance", "false", "X-Gateway-Config", `{"provider":"@later","output_guardrails":[` + c.guardrail + `]}`}
		ticket := r.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello","background":true}`, h...)
		_, id, _ := strings.Cut(ticket.body, `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		waits := r.call("GET", "/responses/"+id, "", h...)
		for i, got := range []reply{ticket, waits} {
			if got.status != 200 || strings.Contains(got.body, "hook_results") || !strings.Contains(got.body, id) {
				t.Errorf("%s: ticket %d: %d %s", c.name, i, got.status, got.body)
			}
		}
		for range 2 {
			if got := r.call("GET", "/responses/"+id+c.query, "", h...); got.status != c.status || !strings.Contains(got.body, c.has) || strings.Contains(got.body, c.hasNot) {
				t.Errorf("%s: %d %s", c.name, got.status, got.body)
			}
		}
	}
	const cost = 100*150 + 50*600 // nano-dollars of gpt-4o-mini
	records := r.byTime(4 * len(cases))
	for i, c := range cases {
		for j, want := range []struct{ cost, judged int }{{0, 0}, {0, 0}, {cost, c.judged}, {0, c.judged}} {
			if rec := records[4*i+j]; int(rec.Cost) != want.cost || want.judged >= 0 && len(rec.Guards) != want.judged {
				t.Errorf("%s, %d: %d, %+v", c.name, j, rec.Cost, rec.Guards)
			}
		}
	}
	eventually(t, func() error { return usageIs(r, key, int64(len(cases))*cost) })
}

// TestCutStreamIsNotSentAfterGuardrails: if a guardrail could not see the end of an
// answer, the client gets nothing of it.
func TestCutStreamIsNotSentAfterGuardrails(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(&storedResponses{reads: map[string]int{}})
	t.Cleanup(host.Close)
	r := start(t)
	r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	got := r.call("GET", "/responses/resp_x?stream=true", "", "X-Gateway-Config", `{"provider":"@later","output_guardrails":[`+forbids(`,"deny":true,"stream":"hold"`)+`]}`)
	if got.status != 502 || strings.Contains(got.body, "safe") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestStoredItemsAreJudged: the items of a response that a provider stores are judged when they
// are read, as the response is.
func TestStoredItemsAreJudged(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if req.Method == http.MethodPost {
			_, _ = io.WriteString(w, `{"id":"resp_items","object":"response","created_at":1,"status":"completed","model":"gpt-4o-mini","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
			return
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"my hunter2 is safe"}]}],"first_id":"msg_1","last_id":"msg_1","has_more":false}`)
	}))
	t.Cleanup(host.Close)
	r := start(t)
	r.save("items", `"ai_provider_id":"openai","key":"sk-items","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	config := func(guardrail string) string { return `{"provider":"@items","output_guardrails":[` + guardrail + `]}` }
	if got := r.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"hi","store":true}`, "X-Gateway-Config", `{"provider":"@items"}`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for _, c := range []struct {
		guardrail   string
		status      int
		has, hasNot string
	}{
		{forbids(`,"deny":true`), 446, "hooks_failed", "is safe"},
		{forbids(``), 246, "hunter2", "hooks_failed"},
		{`{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}}`, 200, "my *** is safe", "hunter2"},
	} {
		if got := r.call("GET", "/responses/resp_items/input_items", "", "X-Gateway-Config", config(c.guardrail)); got.status != c.status || !strings.Contains(got.body, c.has) || strings.Contains(got.body, c.hasNot) {
			t.Errorf("%s: %d %s", c.guardrail, got.status, got.body)
		}
	}
}
