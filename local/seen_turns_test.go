package main

import (
	"testing"
)

// A dry run shows the bound that the request would reserve, or why it would be rejected.
func TestDryRunShowsTheBoundOfHeldContext(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000000}`)
	h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@mock"}
	first := r.id("POST", "/responses", `{"model":"gpt-4o","max_output_tokens":50,"input":"Hello"}`, h...)
	for body, want := range map[string]struct {
		least, most float64
		fails       bool
	}{
		`"model":"@mock/gpt-4o","input":"x"`:                                                      {50, 1000, false},
		`"model":"@mock/gpt-4o","input":"x","previous_response_id":"resp_other"`:                  {128_050, 128_050, false},
		`"model":"@mock/gpt-4o","input":"x","previous_response_id":"` + first + `"`:               {50, 1000, false},
		`"model":"@mock/nobody-knows-this-model","input":"x","previous_response_id":"resp_other"`: {0, 0, true},
	} {
		got := r.call("POST", "/configs/dry-run", `{"path":"/responses","body":{"max_output_tokens":50,`+body+`}}`, h...)
		targets, _ := got.json(t)["targets"].([]any)
		if got.status != 200 || len(targets) == 0 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
			continue
		}
		tokens, _ := member(targets[0], "price_bound/tokens").(float64)
		code, _ := member(targets[0], "error/code").(string)
		if tokens < want.least || tokens > want.most || (code == "unbounded_request") != want.fails {
			t.Errorf("%s: %v", body, targets[0])
		}
	}
}

// A saved prompt that a session names is input of any length.
func TestASavedPromptOfASessionReservesTheWindow(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":20000}`)
	s := r.speak("model=@mock/gpt-realtime", "X-Gateway-Api-Key", key)
	s.addText("words")
	s.send(`{"type":"response.create","response":{"max_output_tokens":100}}`)
	s.next("response.done")
	s.send(`{"type":"session.update","session":{"type":"realtime","prompt":{"id":"pmpt_1"}}}`)
	s.next("session.updated")
	s.send(`{"type":"response.create","event_id":"mine","response":{"max_output_tokens":100}}`)
	for {
		event, err := s.read()
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := event["error"].(map[string]any); ok {
			if e["code"] != "budget_exhausted" || e["event_id"] != "mine" {
				t.Errorf("%v", e)
			}
			return
		}
		if event["type"] == "response.created" {
			t.Fatal("the response was admitted")
		}
	}
}
