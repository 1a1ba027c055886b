package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/local/mockprovider"
)

// responseBody is a body of /responses with one text of the user.
func responseBody(model, text, more string) string {
	s, _ := json.Marshal(text)
	return fmt.Sprintf(`{"model":%q,"input":%s%s}`, model, s, more)
}

// answeredResponse is what tests read of a response.
type answeredResponse struct {
	ID, Object, Status string
	Output             []json.RawMessage
	IncompleteDetails  *struct{ Reason string } `json:"incomplete_details"`
	Usage              struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Total  int64 `json:"total_tokens"`
	}
}

type outputItem struct {
	Type, ID, Name, Arguments, Input string
	CallID                           string `json:"call_id"`
	Encrypted                        string `json:"encrypted_content"`
	Content                          []struct{ Type, Text string }
}

func (a *answeredResponse) items(t *testing.T) (all []outputItem) {
	t.Helper()
	for _, raw := range a.Output {
		var it outputItem
		if err := json.Unmarshal(raw, &it); err != nil {
			t.Fatal(err)
		}
		all = append(all, it)
	}
	return all
}

func readResponse(t *testing.T, got reply) *answeredResponse {
	t.Helper()
	var a answeredResponse
	if err := json.Unmarshal([]byte(got.body), &a); got.status != 200 || err != nil || a.Object != "response" {
		t.Fatalf("%d %v %s", got.status, err, got.body)
	}
	return &a
}

// hosts are a provider that speaks responses, and two that are reached by
// translation: one of Anthropic's shape and one of chat completions only.
var hosts = []struct{ name, model string }{
	{"native", "@mock/gpt-4o-mini"}, {"Anthropic", "@mock-anthropic/claude-sonnet-4-5"}, {"chat completions", "@chatonly/gpt-4o-mini"},
}

// startHosts runs a gateway with all of hosts.
func startHosts(t *testing.T) *running {
	r := start(t)
	r.admin("POST", "/integrations", `{"name":"chat only","slug":"chatonly","ai_provider_id":"deepinfra","key":"mock-key-of-chat-only","configurations":{"custom_host":"`+r.mockBase()+`"}}`)
	r.admin("PUT", "/integrations/chatonly/workspaces", `{"workspaces":[{"id":"`+r.workspace()+`","enabled":true}]}`)
	return r
}

func TestResponsesOfEveryKindOfProvider(t *testing.T) {
	t.Parallel()
	r := startHosts(t)
	sent := 0
	tools := `,"tools":[{"type":"function","name":"look_up","parameters":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}},{"type":"function","name":"other","parameters":{"type":"object","properties":{}}}]`
	for _, h := range hosts {
		t.Run(h.name, func(t *testing.T) {
			for _, c := range []struct{ name, text, more, want string }{
				{"words", "Hello", `,"instructions":"Be brief.","max_output_tokens":400`, "completed"},
				{"words outside ASCII", "Hello\nmock: split-utf8", ``, "completed"},
				{"a tool", "look_up something", tools, "completed"},
				{"several tools", "do it\nmock: parallel", tools, "completed"},
				{"a tool without arguments", "other\nmock: empty-args", tools, "completed"},
				{"cut short", "Hello\nmock: chunks=40", `,"max_output_tokens":16`, "max_output_tokens"},
				{"cached", "Hello\nmock: cached=3", ``, "completed"},
			} {
				if h.name == "native" && strings.Contains(c.text, "empty-args") {
					continue // what the provider says is passed on
				}
				plain := readResponse(t, r.call("POST", "/responses", responseBody(h.model, c.text, c.more)))
				stream := r.call("POST", "/responses", responseBody(h.model, c.text, c.more+`,"stream":true`))
				sent += 2
				if stream.status != 200 || !strings.HasPrefix(stream.header.Get("Content-Type"), "text/event-stream") {
					t.Fatalf("%s: %d %s", c.name, stream.status, stream.body)
				}
				got, err := mockprovider.ReadResponsesStream([]byte(stream.body))
				if err != nil {
					t.Fatalf("%s: %v\n%s", c.name, err, stream.body)
				}
				status := plain.Status
				if plain.IncompleteDetails != nil {
					status = plain.IncompleteDetails.Reason
				}
				if status != c.want || got.Finish != c.want {
					t.Errorf("%s: %s and %s, want %s", c.name, status, got.Finish, c.want)
				}
				text, calls := "", 0
				for _, it := range plain.items(t) {
					for _, p := range it.Content {
						text += p.Text
					}
					if it.Type == "function_call" {
						if calls < len(got.Calls) && (got.Calls[calls].Name != it.Name || got.Calls[calls].Arguments != it.Arguments) {
							t.Errorf("%s: the stream calls %+v, the answer %+v", c.name, got.Calls[calls], it)
						}
						calls++
					}
				}
				if text != got.Text || calls != len(got.Calls) || text == "" && calls == 0 {
					t.Errorf("%s: %q and %q, %d and %d calls", c.name, text, got.Text, calls, len(got.Calls))
				}
				if u := plain.Usage; u.Total != u.Input+u.Output || u.Total == 0 || got.Prompt != u.Input || got.Completion != u.Output {
					t.Errorf("%s: usage %+v, streamed %d and %d", c.name, u, got.Prompt, got.Completion)
				}
			}
		})
	}
	if got, want := unpriced(booked(r.records(sent))), unpriced(billed(r)); got != want {
		t.Errorf("our books %+v\nthe bill  %+v", got, want)
	}
}

// TestNativeResponsesAreForwardedByteForByte: but for the model, a provider of
// the same shape gets the client's bytes and the client gets the provider's.
//
//lane:standard
func TestNativeResponsesAreForwardedByteForByte(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, stream := range []string{"false", "true"} {
		body := "{ \"stream\" : " + stream + ",\r\n\t\"temperature\":1.50e-1,\"model\": \"@mock/gpt-4o-mini\" , \"input\":[{\"role\":\"user\",\"content\":\"\\u00e9\"}],\"store\":false,\"metadata\":{\"a\":\"b\"} }"
		got := r.call("POST", "/responses", body)
		sent := string(r.mock.Requests(1)[0].Body)
		if want := strings.Replace(body, "@mock/gpt-4o-mini", "gpt-4o-mini", 1); sent != want {
			t.Errorf("upstream got %q\nwant %q", sent, want)
		}
		direct, err := http.NewRequest("POST", r.mockBase()+"/responses", strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		direct.Header.Set("Authorization", "Bearer mock-direct")
		direct.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(direct)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, len(got.body))
		n, _ := resp.Body.Read(want)
		for n < len(want) {
			m, err := resp.Body.Read(want[n:])
			if n += m; err != nil {
				break
			}
		}
		resp.Body.Close()
		// Ids tell the two answers apart, and the second.
		if a, b := sameShape(got.body), sameShape(string(want[:n])); got.status != 200 || a != b {
			t.Errorf("the client got\n%s\nthe provider gives\n%s", a, b)
		}
	}
}

// sameShape takes out what differs between two answers to one request.
func sameShape(s string) string {
	for _, mark := range []string{"mock", `"created_at":`} {
		parts := strings.Split(s, mark)
		for i := 1; i < len(parts); i++ {
			end := strings.IndexAny(parts[i], `",`)
			if end > 0 && (mark != "mock" || strings.Contains(parts[i][:end], "x")) {
				parts[i] = parts[i][end:]
			}
		}
		s = strings.Join(parts, mark)
	}
	return s
}

// TestReasoningIsReturnedOnTheNextTurn plays a tool loop with a client that gives
// the items of each answer back as they were.
func TestReasoningIsReturnedOnTheNextTurn(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ name, model, more string }{
		{"Anthropic", "@mock-anthropic/claude-sonnet-4-5", `,"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":4000`},
		{"Anthropic, hidden", "@mock-anthropic/claude-sonnet-4-5", `,"reasoning":{"effort":"low"},"max_output_tokens":4000`},
		{"native", "@mock/gpt-5-mini", `,"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"],"store":false`},
	} {
		for _, strict := range []string{"true", "false"} {
			messages := `{"role":"user","content":"look_up something"}`
			if strings.Contains(c.name, "hidden") {
				messages = `{"role":"user","content":"look_up something\nmock: redacted"}`
			}
			items := []string{messages}
			tools := c.more + `,"tools":[{"type":"function","name":"look_up","parameters":{"type":"object"}}]`
			for turn := range 3 {
				body := fmt.Sprintf(`{"model":%q,"input":[%s]%s}`, c.model, strings.Join(items, ","), tools)
				got := r.call("POST", "/responses", body, "X-Gateway-Strict-Open-Ai-Compliance", strict)
				a := readResponse(t, got)
				signed := false
				for i, it := range a.items(t) {
					items = append(items, string(a.Output[i]))
					signed = signed || it.Encrypted != ""
					if it.Type == "function_call" {
						items = append(items, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"found %d"}`, it.CallID, turn))
					}
				}
				if turn == 0 && !signed {
					t.Errorf("%s: no signed reasoning in %s", c.name, got.body)
				}
				if turn > 0 && strings.Contains(c.name, "Anthropic") && !strings.Contains(string(r.mock.Requests(1)[0].Body), `thinking`) {
					t.Errorf("%s: the reasoning did not go back", c.name)
				}
				items = append(items, `{"role":"user","content":"look_up more"}`)
			}
		}
	}
}

func TestResponsesErrors(t *testing.T) {
	t.Parallel()
	r := startHosts(t)
	for _, h := range hosts {
		for _, c := range []struct {
			name, body string
			status     int
			want       string
		}{
			{"rate limit", responseBody(h.model, "x\nmock: status=429", ""), 429, "rate_limit"},
			{"server error", responseBody(h.model, "x\nmock: status=500", ""), 500, ""},
			{"no such model", responseBody(strings.Replace(h.model, "/", "/does-not-exist-", 1), "x", ""), 404, ""},
			{"bad temperature", responseBody(h.model, "x", `,"temperature":3`), 400, `"param":"temperature"`},
			{"no input", `{"model":"` + h.model + `"}`, 400, `"param":"input"`},
			{"error before the stream", responseBody(h.model, "x\nmock: error-event=server_error after=0", `,"stream":true`), 0, ""},
		} {
			got := r.call("POST", "/responses", c.body)
			if c.status != 0 && got.status != c.status || got.status < 400 || !strings.Contains(got.body, `"error"`) || !strings.Contains(got.body, c.want) {
				t.Errorf("%s, %s: %d %s", h.name, c.name, got.status, got.body)
			}
		}
		for _, fault := range []string{"error-event=server_error after=6", "cut=after:6", "garbage=after:6"} {
			got := r.call("POST", "/responses", responseBody(h.model, "x\nmock: chunks=20 "+fault, `,"stream":true`))
			_, err := mockprovider.ReadResponsesStream([]byte(got.body))
			if got.status != 200 || err == nil || !strings.Contains(got.body, "event: error\n") || strings.Contains(got.body, "event: response.completed") {
				t.Errorf("%s, %s: %d %v\n%s", h.name, fault, got.status, err, got.body)
			}
		}
	}
	failed := r.call("POST", "/responses", responseBody("@mock/gpt-4o-mini", "x\nmock: error-event=failed after=6", `,"stream":true`))
	if !strings.Contains(failed.body, "event: response.failed") || strings.Contains(failed.body, "event: error") {
		t.Errorf("a provider's own failure: %s", failed.body)
	}
	for _, h := range hosts[1:] {
		for _, field := range []string{`"previous_response_id":"resp_1"`, `"conversation":"conv_1"`, `"background":true`, `"prompt":{"id":"p"}`} {
			got := r.call("POST", "/responses", responseBody(h.model, "x", ","+field))
			name, _, _ := strings.Cut(field[1:], `"`)
			if got.status != 400 || !strings.Contains(got.body, `"param":"`+name+`"`) || !strings.Contains(got.body, "unsupported") {
				t.Errorf("%s, %s: %d %s", h.name, name, got.status, got.body)
			}
		}
		lossy := r.call("POST", "/responses", responseBody(h.model, "x", `,"store":true,"truncation":"auto"`), "X-Gateway-Strict-Open-Ai-Compliance", "false")
		if report := lossy.header.Get("X-Gateway-Translation"); lossy.status != 200 || !strings.Contains(report, "store (") || !strings.Contains(report, "truncation (") {
			t.Errorf("%s: %d, the loss report %q", h.name, lossy.status, report)
		}
	}
}

//lane:standard
func TestResponsesClientsThatLeaveAreBilledInFull(t *testing.T) {
	t.Parallel()
	r := startHosts(t)
	for _, h := range hosts {
		if err := leave(r, "/responses", responseBody(h.model, "Tell\nmock: chunks=20 pace=5ms", `,"stream":true`), 4); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := unpriced(booked(r.records(len(hosts)))), unpriced(billed(r)); got != want {
		t.Errorf("our books %+v\nthe bill  %+v", got, want)
	}
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("@mock-anthropic/claude-sonnet-4-5", "How long is this?", "")
	own := r.call("POST", "/messages/count_tokens", body)
	n, ok := own.json(t)["input_tokens"].(float64)
	if own.status != 200 || !ok || n == 0 || strings.Contains(own.body, "estimated") {
		t.Errorf("the provider's count: %d %s", own.status, own.body)
	}
	if sent := r.mock.Requests(1)[0]; !strings.HasSuffix(sent.Path, "/messages/count_tokens") || string(sent.Body) != strings.Replace(body, "@mock-anthropic/", "", 1) {
		t.Errorf("upstream got %s %s", sent.Path, sent.Body)
	}
	seen := len(r.mock.Requests(100))
	guess := r.call("POST", "/messages/count_tokens", chatBody("@mock/gpt-4o-mini", "How long is this?", ""))
	if v := guess.json(t); guess.status != 200 || v["estimated"] != true || v["input_tokens"].(float64) < 4 {
		t.Errorf("the estimate: %d %s", guess.status, guess.body)
	}
	if len(r.mock.Requests(100)) != seen {
		t.Error("a provider was asked that cannot count")
	}
	for _, c := range []struct{ body, param string }{
		{`{"model":"@mock-anthropic/claude-sonnet-4-5"}`, "messages"}, {`{"messages":[{"role":"user","content":"x"}]}`, "model"},
		{chatBody("@mock/m", "x", `,"max_tokens":-1`), "max_tokens"}, {`{"model":"@mock/m","messages":[{"role":"robot","content":"x"}]}`, "messages[0].role"},
	} {
		got := r.call("POST", "/messages/count_tokens", c.body, "X-Gateway-Provider", "@mock")
		if got.status != 400 || !strings.Contains(got.body, `"`+c.param+`"`) {
			t.Errorf("%s: %d %s", c.body, got.status, got.body)
		}
	}
	bad := r.call("POST", "/messages/count_tokens", chatBody("@mock-anthropic/does-not-exist", "x", ""))
	if bad.status != 404 || !strings.Contains(bad.body, `"error"`) {
		t.Errorf("the provider's refusal: %d %s", bad.status, bad.body)
	}
	for _, rec := range r.records(7) {
		if rec.Cost != 0 || rec.Usage.TotalTokens() != 0 || rec.Usage.Estimated {
			t.Errorf("counting was charged: %+v", rec)
		}
	}
}

// unpriced leaves the money out: a host of open models has no price for ours.
func unpriced(s sums) sums {
	s.nanoDollars = 0
	return s
}

// TestACutStreamOfResponsesIsNumberedToItsEnd: the error event continues where the
// provider's events stopped.
func TestACutStreamOfResponsesIsNumberedToItsEnd(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("POST", "/responses", `{"model":"@mock/gpt-4o-mini","input":"mock: cut=after:8\nHello there","stream":true}`)
	next := 0.0
	last := ""
	for _, data := range events(got.body) {
		var e struct {
			Type   string
			Number *float64 `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Number == nil || *e.Number != next {
			t.Fatalf("event %v: %s", next, data)
		}
		next, last = next+1, e.Type
	}
	if last != "response.failed" || next < 5 {
		t.Errorf("%s after %v events: %s", last, next, got.body)
	}
}
