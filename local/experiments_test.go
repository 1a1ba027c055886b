package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// experiment makes and starts an experiment over versions 1 and 2 of a prompt, and gives
// its id.
func (r *running) experiment(slug, more string) string {
	r.t.Helper()
	id := r.admin("POST", "/prompts/"+slug+"/experiments", fmt.Sprintf(`{"name":"e","workspace_id":%q,"variants":[{"version":1,"weight":1},{"version":2,"weight":1}]%s}`, r.workspace(), more))["id"].(string)
	r.admin("POST", "/prompts/"+slug+"/experiments/"+id+"/start?workspace_id="+r.workspace(), "")
	return id
}

// A user gets one version, whichever way the user is named; requests that name a version
// take no part, and records say which experiment chose.
func TestExperimentsGiveUsersTheirVersion(t *testing.T) {
	t.Parallel()
	r := start(t)
	const messages = `[{"role":"user","content":"mock: say=one {{x}}"}]`
	slug := r.prompt(messages, "")
	r.admin("PUT", "/prompts/"+slug, fmt.Sprintf(`{"workspace_id":%q,"patch":true,"string":%q}`, r.workspace(), strings.Replace(messages, "one", "two", 1)))
	id := r.experiment(slug, "")
	answer := func(ref, body string, headers ...string) string {
		t.Helper()
		got := r.call("POST", "/prompts/"+ref+"/completions", body, headers...)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return fmt.Sprint(member(got.json(t), "choices/0/message/content"))
	}
	texts := map[string]int{}
	const users = 24
	for i := range users {
		user := fmt.Sprintf("user-%d", i)
		meta := fmt.Sprintf(`{"_user":%q}`, user)
		first := answer(slug, `{"variables":{"x":"!"}}`, "X-Gateway-Metadata", meta)
		texts[first]++
		if again := answer(slug, `{"user":"`+user+`","variables":{"x":"!"}}`); again != first {
			t.Errorf("%s gets %q and %q", user, first, again)
		}
		rendered := r.call("POST", "/prompts/"+slug+"/render", `{"variables":{"x":"!"}}`, "X-Gateway-Metadata", meta)
		if !strings.Contains(rendered.body, first) {
			t.Errorf("%s: render gives %s, not %q", user, rendered.body, first)
		}
	}
	if texts["one !"] == 0 || texts["two !"] == 0 || len(texts) != 2 {
		t.Fatalf("of %d users: %v", users, texts)
	}
	for i := range 4 {
		if got := answer(slug+"@1", fmt.Sprintf(`{"user":"user-%d","variables":{"x":"!"}}`, i)); got != "one !" {
			t.Errorf("a version that is named: %q", got)
		}
	}
	named, tried := 0, map[int64]int{}
	for _, rec := range r.records(3*users + 4) {
		_, n := rec.PromptVersion()
		switch {
		case rec.Experiment() == "":
			named++
		case rec.Experiment() == id && rec.PromptSlug == slug:
			tried[n]++
		default:
			t.Errorf("%+v", rec)
		}
	}
	if named != 4 || tried[1] != 3*texts["one !"] || tried[2] != 3*texts["two !"] {
		t.Errorf("%d without an experiment, %v with it; want 4, and three each of %v", named, tried, texts)
	}
	r.admin("POST", "/prompts/"+slug+"/experiments/"+id+"/promote", fmt.Sprintf(`{"workspace_id":%q,"version":2}`, r.workspace()))
	ended := time.Now()
	for i := range 6 {
		if got := answer(slug, fmt.Sprintf(`{"user":"user-%d","variables":{"x":"!"}}`, i)); got != "two !" {
			t.Errorf("the winner is not what users get: %q", got)
		}
	}
	for _, rec := range r.records(3*users + 10) {
		if rec.Start.After(ended) && rec.Experiment() != "" {
			t.Errorf("an experiment that was stopped chose: %+v", rec)
		}
	}
}

// Results count what logs show, and users go by the key of the metadata that is named.
func TestResultsOfExperimentsAreThoseOfTheLogs(t *testing.T) {
	t.Parallel()
	r := start(t)
	slug := r.prompt(`[{"role":"user","content":"mock: say=one"}]`, "")
	r.admin("PUT", "/prompts/"+slug, fmt.Sprintf(`{"workspace_id":%q,"patch":true,"string":%q}`, r.workspace(), `[{"role":"user","content":"mock: status=500"}]`))
	id := r.experiment(slug, `,"sticky_by":"team"`)
	const requests = 12
	for i := range requests {
		r.call("POST", "/prompts/"+slug+"/completions", `{}`, "X-Gateway-Metadata", fmt.Sprintf(`{"team":"t%d","_user":"everybody"}`, i%6), "X-Gateway-Trace-Id", fmt.Sprintf("trace-%d", i))
	}
	count := map[int64]int{}
	teams := map[string]int64{}
	var cost float64
	for _, rec := range r.records(requests) {
		_, n := rec.PromptVersion()
		count[n]++
		cost += float64(rec.Cost) / 1e7
		if was, ok := teams[rec.Metadata["team"]]; ok && was != n {
			t.Errorf("team %s got versions %d and %d", rec.Metadata["team"], was, n)
		}
		teams[rec.Metadata["team"]] = n
	}
	if rated := r.call("POST", "/feedback", `{"trace_id":"trace-0","value":5}`); rated.status != 200 {
		t.Fatalf("%d %s", rated.status, rated.body)
	}
	var got map[string]any
	eventually(t, func() error {
		got = r.admin("GET", "/prompts/"+slug+"/experiments/"+id+"/results?workspace_id="+r.workspace(), "")
		if n := member(got, "variants/0/requests").(float64) + member(got, "variants/1/requests").(float64); n != requests {
			return fmt.Errorf("the results count %v of %d requests", n, requests)
		}
		return nil
	})
	total := member(got, "variants/0/total_cost").(float64) + member(got, "variants/1/total_cost").(float64)
	if member(got, "variants/0/requests") != float64(count[1]) || total < cost-1e-9 || total > cost+1e-9 {
		t.Errorf("%v; the records say %v, %v cents", got, count, cost)
	}
	if count[2] > 0 && member(got, "variants/1/measures/error_rate/value") != 100.0 {
		t.Errorf("%v", got)
	}
	if member(got, "variants/0/feedback_count").(float64)+member(got, "variants/1/feedback_count").(float64) != 1 {
		t.Errorf("feedback: %v", got)
	}
	logs := r.get("/logs?experiment_ids="+id, workspaceKey)
	if member(logs, "total") != float64(requests) {
		t.Fatalf("%v", logs)
	}
	if log := r.get("/logs/"+member(logs, "data/0/id").(string), workspaceKey); member(log, "metrics/experiment_id") != id {
		t.Errorf("%v", log)
	}
}
