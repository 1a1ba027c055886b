package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request that continues a response whose usage the gateway has seen reserves what that
// amounted to; one that continues another reserves the model's window.
func TestTurnsThatWereSeenReserveWhatTheyAmountedTo(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":100000}`)
	h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@mock"}
	send := func(path, model, more string) reply {
		return r.call("POST", path, `{"model":"`+model+`","max_output_tokens":50,"input":"mock: say=words"`+more+`}`, h...)
	}
	idOf := func(got reply) string {
		_, rest, _ := strings.Cut(got.body, `"resp_`)
		id, _, _ := strings.Cut(rest, `"`)
		return "resp_" + id
	}
	for _, path := range []string{"/responses", "/proxy/responses"} {
		for _, stream := range []string{"", `,"stream":true`} {
			name := path + stream
			before := ""
			for turn := range 3 {
				got := send(path, "gpt-4o", stream+before)
				if got.status != 200 {
					t.Fatalf("%s: turn %d: %d %s", name, turn, got.status, got.body)
				}
				before = fmt.Sprintf(`,"previous_response_id":%q`, idOf(got))
			}
			// The items of a response, by reference: a message has at most its bytes.
			last := send(path, "gpt-4o", stream)
			_, rest, _ := strings.Cut(last.body, `"msg_`)
			item, _, _ := strings.Cut(rest, `"`)
			for id, refused := range map[string]bool{"msg_" + item: false, "msg_other": true} {
				got := r.call("POST", path, `{"model":"gpt-4o","max_output_tokens":50,"input":[{"role":"user","content":"mock: say=words"},{"type":"item_reference","id":"`+id+`"}]`+stream+`}`, h...)
				if (got.status == 412) != refused || item == "" {
					t.Errorf("%s: the item %s: %d %s", name, id, got.status, got.body)
				}
			}
			if got := send(path, "gpt-4o-mini", stream+before); got.status != 412 {
				t.Errorf("%s: another model: %d %s", name, got.status, got.body)
			}
			if got := send(path, "gpt-4o", stream+before+`,"prompt":{"id":"pmpt_1"}`); got.status != 412 {
				t.Errorf("%s: with a saved prompt: %d %s", name, got.status, got.body)
			}
			unkept := send(path, "gpt-4o", stream+`,"store":false`)
			if got := send(path, "gpt-4o", stream+fmt.Sprintf(`,"previous_response_id":%q`, idOf(unkept))); got.status != 412 {
				t.Errorf("%s: one that was not kept: %d %s", name, got.status, got.body)
			}
		}
	}
	if limits := limitsOf(r, key); limits["status"] != "active" {
		t.Errorf("%v", limits)
	}
}

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

// Interactions are continued as responses are.
func TestInteractionsThatWereSeenReserveWhatTheyAmountedTo(t *testing.T) {
	t.Parallel()
	n := 0
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"turn_%d","model":"gemini-2.5-flash","status":"completed","usage":{"total_input_tokens":%d,"total_output_tokens":200,"total_tokens":%d}}`, n, 1000*n, 1000*n+200)
	}))
	t.Cleanup(host.Close)
	r := start(t)
	r.save("g", `"ai_provider_id":"google","key":"k","configurations":{"custom_host":"`+host.URL+`"}`)
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":100000}`)
	for _, c := range []struct {
		previous string
		status   int
	}{{"", 200}, {"turn_1", 200}, {"turn_2", 200}, {"turn_9", 412}} {
		body := `{"model":"gemini-2.5-flash","input":"x","generation_config":{"max_output_tokens":300}`
		if c.previous != "" {
			body += `,"previous_interaction_id":"` + c.previous + `"`
		}
		if got := r.call("POST", "/v1beta/interactions", body+"}", "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@g"); got.status != c.status {
			t.Errorf("behind %q: %d %s", c.previous, got.status, got.body)
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
