package main

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/usage"
)

// What a provider keeps is recorded when it is made, a run when a response first
// tells of its end, and nothing again when it is read or changed: key, log and
// the provider's bill agree.
func TestStoredObjectsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	for name, way := range map[string][]string{
		"saved": onMock,
		"own":   {"X-Gateway-Provider", "openai", "Authorization", "Bearer mock-own", "X-Gateway-Custom-Host", r.mockBase()},
	} {
		h := append([]string{"X-Gateway-Api-Key", key, "Openai-Beta", "assistants=v2"}, way...)
		chat := r.id("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", `,"store":true`), h...)
		r.id("GET", "/chat/completions/"+chat, "", h...)
		r.id("POST", "/chat/completions/"+chat, `{"metadata":{"a":"b"}}`, h...)
		if got := r.call("GET", "/chat/completions", "", h...); got.status != 200 || !strings.Contains(got.body, chat) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		response := r.id("POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello"}`, h...)
		r.id("GET", "/proxy/responses/"+response, "", h...)
		r.id("POST", "/conversations", `{}`, h...)
		job := r.id("POST", "/proxy/evals", `{"data_source_config":{},"testing_criteria":[]}`, h...)
		if got := r.call("POST", "/evals/"+job+"/runs", `{"data_source":{"type":"completions","source":{"type":"file_content"}}}`, h...); got.status != 412 {
			t.Errorf("%s: a run without a price under a budget: %d %s", name, got.status, got.body)
		}
		assistant := r.id("POST", "/assistants", `{"model":"gpt-4o-mini"}`, h...)
		thread := r.id("POST", "/threads", `{"messages":[{"role":"user","content":"Hello"}]}`, h...)
		run := r.id("POST", "/threads/"+thread+"/runs", fmt.Sprintf(`{"assistant_id":%q,"model":"gpt-4o-mini"}`, assistant), h...)
		for range 4 {
			r.id("GET", "/threads/"+thread+"/runs/"+run, "", h...)
		}
		r.id("POST", "/threads/"+thread+"/runs/"+run, `{"metadata":{"a":"b"}}`, h...)
		stream := r.call("POST", "/threads/runs", fmt.Sprintf(`{"assistant_id":%q,"model":"gpt-4o-mini","stream":true,"instructions":%q,"thread":{"messages":[{"role":"user","content":"Hello"}]}}`, assistant, strings.Repeat("long ", 20_000)), h...)
		if all := events(stream.body); stream.status != 200 || all[len(all)-1] != "[DONE]" {
			t.Fatalf("%s: %d %s", name, stream.status, stream.body)
		}
	}
	const perWay = 18
	var runs, paid int
	var cost int64
	for _, rec := range r.records(2 * perWay) {
		cost += int64(rec.Cost)
		if rec.Cost > 0 {
			paid++
		}
		if strings.Contains(rec.Path, "/runs") && rec.Cost > 0 {
			runs++
			checkRun(t, rec)
		}
	}
	bill := r.mock.Bill().Total
	if cost != bill.NanoDollars || paid != 8 || runs != 4 {
		t.Errorf("%d records cost %d, %d of them runs; the bill is %d", paid, cost, runs, bill.NanoDollars)
	}
	eventually(t, func() error { return usageIs(r, key, bill.NanoDollars) })
}

func checkRun(t *testing.T, rec usage.Record) {
	t.Helper()
	if rec.Model != "gpt-4o-mini" || rec.Usage.Estimated {
		t.Errorf("%s: %s, %+v", rec.Path, rec.Model, rec.Usage)
	}
}

// Stored chats belong to the workspace that made them, streamed and passed
// through as well; those that are not stored are nobody's.
func TestStoredChatsBelongToWhoMadeThem(t *testing.T) {
	t.Parallel()
	n := share(t)
	for _, path := range []string{"/chat/completions", "/proxy/chat/completions"} {
		for _, more := range []string{`,"store":true`, `,"store":true,"stream":true`} {
			got := n.call("POST", path, chatBody("gpt-4o-mini", "Hello", more), as(n.theirs)...)
			_, id, _ := strings.Cut(got.body, `"id":"`)
			id, _, _ = strings.Cut(id, `"`)
			for key, want := range map[string]int{n.theirs: 200, n.mine: 404} {
				for _, below := range []string{"", "/messages"} {
					if got := n.call("GET", "/chat/completions/"+id+below, "", as(key)...); got.status != want {
						t.Errorf("%s %s%s: %d %s", path, more, below, got.status, got.body)
					}
				}
			}
		}
	}
	list := n.call("GET", "/chat/completions", "", as(n.theirs)...).json(t)
	none := n.call("GET", "/chat/completions", "", as(n.mine)...).json(t)
	if len(list["data"].([]any)) != 4 || len(none["data"].([]any)) != 0 {
		t.Errorf("%v\n%v", list, none)
	}
	if got := n.call("POST", "/responses/input_tokens", `{"model":"gpt-4o-mini","input":"Hello"}`, as(n.mine)...); got.status != 200 {
		t.Errorf("counting the tokens of a response: %d %s", got.status, got.body)
	}
}

// An evaluation reads the files of its workspace, and not what all workspaces of
// a shared credential have stored.
func TestEvaluationsReadTheirOwnSources(t *testing.T) {
	t.Parallel()
	n := share(t)
	file := func(key string) string {
		return n.id("POST", "/files", form("purpose", "evals", "file", "rows.jsonl:{}"), as(key, formType...)...)
	}
	theirs, mine := file(n.theirs), file(n.mine)
	eval := n.id("POST", "/evals", `{"data_source_config":{"type":"custom"},"testing_criteria":[]}`, as(n.mine)...)
	for source, want := range map[string]int{
		`{"type":"file_id","id":"` + mine + `"}`:                  200,
		`{"type":"file_id","id":"` + theirs + `"}`:                404,
		`{"id":"` + theirs + `","type":"file_\u0069d"}`:           404,
		`{"type":"stored_completions","model":"gpt-4o-mini"}`:     404,
		`{"type":"responses","created_after":1}`:                  404,
		`{"type":"file_content","content":[{"item":{"id":"x"}}]}`: 200,
	} {
		got := n.call("POST", "/evals/"+eval+"/runs", `{"data_source":{"type":"jsonl","source":`+source+`}}`, as(n.mine)...)
		if got.status != want {
			t.Errorf("%s: %d %s, want %d", source, got.status, got.body, want)
		}
	}
}
