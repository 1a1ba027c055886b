package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/pricing"
)

// A provider of the same shape gets the client's bytes, except for the model that the
// gateway writes. So two turns of a conversation have the same beginning there, too, and
// the provider's cache keeps it.
//
//lane:exhaustive
func TestPrefixesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	spaces := []string{"", " ", "\n\t"}
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SampledFrom([]string{"claude", "gpt"}).Draw(t, "shape")
		path, named := "/messages", "@claude/claude-sonnet-4-5"
		if shape == "gpt" {
			path, named = "/chat/completions", "@gpt/gpt-4o"
		}
		space := rapid.SampledFrom(spaces)
		turn := func(i int) string {
			role := []string{"user", "assistant"}[i%2]
			raw, _ := json.Marshal(rapid.StringN(1, 40, 200).Draw(t, "text") + "x")
			return space.Draw(t, "space") + `{"role":"` + role + `",` + space.Draw(t, "space") + `"content":` + string(raw) + `}`
		}
		head := `{` + space.Draw(t, "space") + `"max_tokens":9,"messages":[`
		n := 1 + 2*rapid.IntRange(0, 3).Draw(t, "turns")
		for i := range n {
			if i > 0 {
				head += ","
			}
			head += turn(i)
		}
		tail := `],"model":"` + named + `"}`
		sent := func(body string) string {
			host.respond(0, "")
			if shape == "gpt" {
				host.respond(200, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`)
			}
			got, err := r.try("POST", path, body)
			if err != nil || got.status != 200 {
				t.Fatalf("%v %d %s: %s", err, got.status, got.body, body)
			}
			_, _, at := host.got()
			return at
		}
		whole := strings.Replace(head+tail, named, named[strings.IndexByte(named, '/')+1:], 1)
		if got := sent(head + tail); got != whole {
			t.Fatalf("the provider got\n%s, sent was\n%s", got, head+tail)
		}
		longer := sent(head + "," + turn(n) + "," + turn(n+1) + tail)
		if !strings.HasPrefix(longer, head) {
			t.Fatalf("the next turn begins otherwise:\n%s\n%s", longer, head)
		}
	})
}

// A config adds markers for the provider's cache, never more than it takes; the next turn
// reads what the one before has written, and is billed so.
func TestMarkersForThePromptCache(t *testing.T) {
	t.Parallel()
	r := start(t)
	long := strings.Repeat("many words of a system prompt that stays ", 200)
	config := func(more string) string {
		return `{"provider":"@mock-anthropic","prompt_cache":{` + more + `}}`
	}
	const block = `{"type":"text","text":"more","cache_control":{"type":"ephemeral"}}`
	calls := []struct {
		name, path, config, body string
		markers                  int
		classes                  string
	}{
		{"off", "/messages", `{"provider":"@mock-anthropic"}`, fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"system":%q,"messages":[{"role":"user","content":"Zero"}]}`, long), 0, "none"},
		{"first turn", "/messages", config(""), fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"system":%q,"messages":[{"role":"user","content":"One"}]}`, long), 2, "written"},
		{"next turn", "/messages", config(""), fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"system":%q,"messages":[{"role":"user","content":"One"},{"role":"assistant","content":"A"},{"role":"user","content":"Two"}]}`, long), 2, "read"},
		{"translated", "/chat/completions", config(`"ttl":"1h"`), fmt.Sprintf(`{"model":"claude-sonnet-4-5","messages":[{"role":"system","content":%q},{"role":"user","content":"Three"}]}`, "x"+long), 2, "hour"},
		{"beside the client's own", "/messages", config(`"ttl":"1h"`), `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":[` + block + `,` + block + `,` + block + `,{"type":"text","text":"end"}]}]}`, 4, ""},
		{"at the most", "/messages", config(""), `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":[` + block + `,` + block + `,` + block + `,` + block + `,{"type":"text","text":"end"}]}]}`, 4, ""},
	}
	for _, c := range calls {
		got := r.call("POST", c.path, c.body, "X-Gateway-Config", c.config)
		sent := r.mock.Requests(1)[0]
		if got.status != 200 || strings.Count(string(sent.Body), `"cache_control"`) != c.markers {
			t.Errorf("%s: %d %.300s\n%s", c.name, got.status, got.body, sent.Body)
		}
	}
	for i, rec := range r.byTime(len(calls)) {
		u := rec.Usage
		got := map[bool]string{}
		got[true] = "none"
		switch {
		case u.N(pricing.CacheRead) > 0:
			got[true] = "read"
		case u.N(pricing.CacheWrite1h) > 0:
			got[true] = "hour"
		case u.N(pricing.CacheWrite5m) > 0:
			got[true] = "written"
		}
		if c := calls[i]; c.classes != "" && got[true] != c.classes {
			t.Errorf("%s is booked as %s: %+v", c.name, got[true], u)
		}
	}
	for _, bad := range []string{`"ttl":"2h"`, `"ttl":5`, `"mode":"often"`} {
		if got := r.call("POST", "/messages", calls[0].body, "X-Gateway-Config", config(bad)); got.status != 400 || !strings.Contains(got.body, "prompt_cache") {
			t.Errorf("%s: %d %s", bad, got.status, got.body)
		}
	}
}

// If a beginning is written to the cache again and again and never read, the sender is
// told, and nobody else, until it is read.
func TestPromptsThatAreWrittenAndNeverRead(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	other := r.newKey("")
	send := func(key, session, usage string, stream bool) string {
		t.Helper()
		host.respond(200, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,`+usage+`,"output_tokens":2}}`)
		if stream {
			host.respond(200, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,"+usage+",\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "Content-Type", "text/event-stream")
		}
		got := r.call("POST", "/messages", fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"stream":%t,"messages":[{"role":"user","content":"x"}]}`, stream),
			"X-Gateway-Provider", "@claude", "X-Gateway-Api-Key", key, "X-Claude-Code-Session-Id", session)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return got.header.Get("X-Gateway-Prompt-Cache")
	}
	const written, read, neither = `"cache_creation_input_tokens":2000,"cache_read_input_tokens":0`, `"cache_creation_input_tokens":20,"cache_read_input_tokens":2000`, `"cache_creation_input_tokens":0,"cache_read_input_tokens":0`
	for i, want := range []string{"", "", "", "unread", "unread"} {
		if got := send(workspaceKey, "s", written, i%2 == 1); got != want {
			t.Errorf("request %d: %q", i, got)
		}
	}
	for what, got := range map[string]string{"another key": send(other, "s", written, false), "another session": send(workspaceKey, "t", written, false)} {
		if got != "" {
			t.Errorf("%s is told %q", what, got)
		}
	}
	send(workspaceKey, "s", read, true)
	if got := send(workspaceKey, "s", neither, false); got != "" {
		t.Errorf("once it was read: %q", got)
	}
}
