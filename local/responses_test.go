package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// responseBody is a body of /responses with one text of the user.
func responseBody(model, text, more string) string {
	s, _ := json.Marshal(text)
	return fmt.Sprintf(`{"model":%q,"input":%s%s}`, model, s, more)
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
