package main

import (
	"fmt"
	"strings"
	"testing"
)

// A table of tests is run on a version that is not published, through the whole walk;
// what it finds decides whether the version may be.
func TestVersionsAreTestedBeforeTheyArePublished(t *testing.T) {
	t.Parallel()
	r := start(t)
	const messages = `[{"role":"user","content":"mock: say=Hello {{name}}"}]`
	slug := r.prompt(messages, `"require_tests":true,"tests":[
		{"name":"greets","variables":{"name":"Ada"},"assertions":[{"type":"contains","value":"Ada"},{"type":"not_contains","value":"Bob"},{"type":"equals","value":"Hello Ada"},{"type":"regex","value":"^Hello \\w+$"},{"type":"max_latency_ms","value":600000},{"type":"contains","value":"mock:","on":"rendered"}]},
		{"name":"renders","render_only":true,"variables":{"name":"Bob"},"assertions":[{"type":"contains","value":"Bob"}]}]`)
	scope := fmt.Sprintf(`"workspace_id":%q`, r.workspace())
	r.admin("PUT", "/prompts/"+slug, `{`+scope+`,"patch":true,"string":"[{\"role\":\"user\",\"content\":\"mock: say=Bye {{name}}\"}]"}`)
	r.admin("PUT", "/prompts/"+slug, `{`+scope+`,"patch":true,"model":"gpt-4o"}`)
	r.admin("PUT", "/prompts/"+slug, `{`+scope+`,"patch":true,"model":"gpt-4o-mini","string":"[{\"role\":\"user\",\"content\":\"mock: say=Hello {{name}}\"}]"}`)
	publish := func(n int) reply {
		return r.call("PUT", "/prompts/"+slug+"/makeDefault", fmt.Sprintf(`{%s,"version":%d}`, scope, n), "X-Gateway-Api-Key", adminKey)
	}
	run := func(ref, body string) map[string]any {
		t.Helper()
		got := r.call("POST", "/prompts/"+slug+ref+"/test", body)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return got.json(t)
	}
	if got := publish(4); got.status != 409 || !strings.Contains(got.body, "were not run") {
		t.Errorf("%d %s", got.status, got.body)
	}
	bad := run("@2", "{}")
	if bad["passed"] != false || bad["counts"] != true || bad["prompt_version"] != 2.0 || member(bad, "cases/0/passed") != false || member(bad, "cases/0/assertions/2/passed") != false ||
		member(bad, "cases/0/assertions/0/passed") != true || member(bad, "cases/0/answer") != "Bye Ada" || member(bad, "cases/1/passed") != true || member(bad, "cases/1/answer") != nil {
		t.Errorf("%v", bad)
	}
	if got := publish(2); got.status != 409 || !strings.Contains(got.body, "1 of 2 tests failed: greets") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if good := run("@latest", "{}"); good["passed"] != true || good["prompt_version"] != 4.0 {
		t.Errorf("%v", good)
	}
	if got := publish(4); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.rendered(slug, `{"variables":{"name":"x"}}`); member(got, "messages/0/content") != "mock: say=Hello x" {
		t.Errorf("%v", got)
	}
	// Each run has a record of its own, and one for each case that asks the model.
	requests, runs := 0, 0
	for _, rec := range r.records(5) {
		switch {
		case rec.Endpoint == "promptTest" && rec.Cost == 0:
			runs++
		case rec.Endpoint == "chatComplete" && rec.Cost > 0 && rec.PromptSlug == slug && rec.ClientStatus == 200:
			requests++
		}
	}
	if runs != 2 || requests != 2 {
		t.Errorf("%d runs and %d requests are booked", runs, requests)
	}
	// A table of the body is tried, and publishes nothing.
	if tried := run("@3", `{"tests":[{"name":"a","render_only":true,"assertions":[{"type":"contains","value":"Hello"}]}]}`); tried["counts"] != false {
		t.Errorf("%v", tried)
	}
	if got := publish(3); got.status != 409 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAssertionsOfPromptsLookAtAnswers(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/guardrails", fmt.Sprintf(`{"name":"no fish","workspace_id":%q,"checks":[{"id":"default.contains","parameters":{"words":["fish"],"operator":"none"}}],"actions":{"deny":false}}`, r.workspace()))
	guardrail := made["slug"].(string)
	slug := r.prompt(`[{"role":"user","content":"mock: say={{{text}}}"}]`, "")
	one := func(text, assertion string) string {
		return fmt.Sprintf(`{"name":%q,"variables":{"text":%q},"assertions":[%s]}`, text+assertion, text, assertion)
	}
	schema := `{"type":"json_schema","value":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}`
	guard := `{"type":"guardrail","value":"` + guardrail + `"}`
	got := r.call("POST", "/prompts/"+slug+"/test", `{"tests":[`+strings.Join([]string{
		one(`{"n":1}`, schema), one(`{"n":"x"}`, schema), one(`no json`, schema),
		one("a bird", guard), one("a fish", guard), one("x", `{"type":"guardrail","value":"pg-nobody"}`), one("a fish", `{"type":"guardrail","value":"`+guardrail+`","on":"rendered"}`),
		one("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", `{"type":"regex","value":"^(a+)+$"}`),
		`{"name":"fails","variables":{"text":"x"},"assertions":[{"type":"equals","value":"x"}]}`,
	}, ",")+`]}`)
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for i, want := range []bool{true, false, false, true, false, false, false, false, true} {
		if path := fmt.Sprintf("cases/%d/passed", i); member(got.json(t), path) != want {
			t.Errorf("%s is not %v: %v", path, want, member(got.json(t), fmt.Sprintf("cases/%d", i)))
		}
	}
	failing := r.prompt(`[{"role":"user","content":"mock: status=500"}]`, "")
	broken := r.call("POST", "/prompts/"+failing+"/test", `{"tests":[{"name":"a","assertions":[{"type":"not_contains","value":"x"}]}]}`)
	if broken.status != 200 || member(broken.json(t), "passed") != false || member(broken.json(t), "cases/0/status") != 500.0 || member(broken.json(t), "cases/0/problem") == "" {
		t.Errorf("a model that fails passes: %d %s", broken.status, broken.body)
	}
	for body, field := range map[string]string{
		`{"tests":[{"name":"a","assertions":[{"type":"is","value":"x"}]}]}`: "tests[0].assertions[0].type", `{"tests":[]}`: "tests", `{"tests":7}`: "tests", `{"test":[]}`: "test",
		`{}`: "tests", `[]`: "", `{`: "", `{"tests":[{"name":"a","assertions":[]}]}`: "tests[0].assertions", `{"tests":[{"name":"a","variables":[],"assertions":[{"type":"equals","value":"x"}]}]}`: "tests.variables",
		`{"tests":[{"name":"a","assertions":[{"type":"regex","value":"("},{"type":"json_schema","value":7}]}]}`: "tests[0].assertions[0].value",
	} {
		got := r.call("POST", "/prompts/"+slug+"/test", body)
		if param, _ := member(got.json(t), "error/param").(string); got.status != 400 || param != field {
			t.Errorf("%s: %d %q %s", body, got.status, param, got.body)
		}
	}
	for _, ref := range []string{"pp-nobody-000000", slug + "@9"} {
		if got := r.call("POST", "/prompts/"+ref+"/test", `{"tests":[{"name":"a","render_only":true,"assertions":[{"type":"equals","value":"x"}]}]}`); got.status != 404 {
			t.Errorf("%s: %d %s", ref, got.status, got.body)
		}
	}
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"renders","workspace_id":%q,"scopes":["prompts.render"]}`, r.workspace()))["key"].(string)
	if got := r.call("POST", "/prompts/"+slug+"/test", `{}`, "X-Gateway-Api-Key", key); got.status != 403 {
		t.Errorf("without the scope: %d %s", got.status, got.body)
	}
}
