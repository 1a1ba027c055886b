package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestStreamsThatGuardrailsEndAreBookedInFull: a denied response was made all the same, so it
// is read to its end for its usage.
func TestStreamsThatGuardrailsEndAreBookedInFull(t *testing.T) {
	t.Parallel()
	r := start(t)
	long := strings.Repeat("one two three ", 80)
	requests := 0
	for _, kind := range conversations {
		for name, c := range map[string]struct {
			guardrail, text string
			status          int
		}{
			"denied at once":       {forbids(`,"deny":true,"stream":"window"`), "hunter2 " + long, 446},
			"denied on its way":    {forbids(`,"deny":true,"stream":"window"`), long + "hunter2 " + long, 200},
			"denied at its end":    {forbids(`,"deny":true,"stream":"window"`), long + "hunter2", 200},
			"held and denied":      {forbids(`,"deny":true,"stream":"hold"`), long + "hunter2", 446},
			"held, softly denied":  {forbids(`,"deny":true,"stream":"hold","soft_deny_200":true`), long + "hunter2", 200},
			"held and changed":     {`{"regexReplace":{"rule":"/hunter\\d/g","redactText":"*"},"stream":"hold"}`, long + "hunter2", 200},
			"changed in a window":  {`{"regexReplace":{"rule":"/hunter\\d/g","redactText":"*"},"stream":"window"}`, long + "hunter2", 200},
			"judged when it ended": {forbids(`,"deny":true,"stream":"after"`), long + "hunter2", 200},
		} {
			path, body := echoRequest(kind, c.text, `,"stream":true`)
			requests++
			if got := r.call("POST", path, body, "x-gateway-config", `{"output_guardrails":[`+c.guardrail+`]}`); got.status != c.status {
				t.Errorf("%s, %s: %d %.300s", kind, name, got.status, got.body)
			}
		}
		for _, n := range []int{1, 20} {
			path, body := echoRequest(kind, "mock: pace=1ms\n"+long+"hunter2 "+long, `,"stream":true`)
			requests++
			// The client leaves before it is denied.
			if err := leave(r, path, body, n, "x-gateway-config", `{"output_guardrails":[`+forbids(`,"deny":true,"stream":"window"`)+`]}`); err != nil {
				t.Error(err)
			}
		}
	}
	records := r.records(requests)
	if got, want := booked(records), billed(r); got != want {
		t.Errorf("our books %+v\nthe bill  %+v", got, want)
	}
	for _, rec := range records {
		if rec.Usage.Estimated || rec.Cost == 0 {
			t.Errorf("%s: %d, %+v", rec.Path, rec.Cost, rec.Usage)
		}
	}
}

// TestDryRunJudges: the guardrails that would run are named, local ones before the call
// judge and change, and what asks another user is not asked.
func TestDryRunJudges(t *testing.T) {
	t.Parallel()
	r := start(t)
	saved := r.guardrail("no-passwords", `{"id":"default.regexMatch","parameters":{"rule":"hunter2","not":true}}`, `"deny":true`)
	dry := func(config, text string) any {
		t.Helper()
		got := r.dryRun(fmt.Sprintf(`{"config":{%s,"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock"},{"provider":"@mock-anthropic","override_params":{"model":"claude-sonnet-4-5"}}]},"path":"/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}}`, config, text))
		return got["targets"].([]any)[0]
	}
	const webhook = `{"id":"asks","default.webhook":{"webhookURL":"http://127.0.0.1:1/none"},"deny":true}`
	config := `"input_guardrails":["` + saved + `",` + webhook + `,{"id":"masks","regexReplace":{"rule":"/secret/g","redactText":"***"}}],"output_guardrails":[{"id":"behind","notNull":{},"deny":true}]`
	passes := dry(config, "my secret")
	raw, _ := json.Marshal(passes)
	for _, want := range []string{`"guardrails":["` + saved + `","asks","masks","behind"]`, `"content":"my ***"`, `"id":"masks"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
	verdicts := map[string]bool{}
	hooks, _ := member(passes, "hook_results/before_request_hooks").([]any)
	for _, h := range hooks {
		hook := h.(map[string]any)
		verdicts[hook["id"].(string)] = hook["verdict"].(bool)
	}
	if len(verdicts) != 2 || !verdicts[saved] || !verdicts["masks"] {
		t.Errorf("%v", verdicts)
	}
	denied := dry(config, "my hunter2")
	if member(denied, "error/status") != 446.0 || member(denied, "assumed_status") != 0.0 || member(denied, "hook_results/before_request_hooks/0/verdict") != false {
		t.Errorf("%v", denied)
	}
	if n := r.mock.Bill().Total.Requests; n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
