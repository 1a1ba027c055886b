package relay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/ledger"
	"gateway/shared/testkit/relaytest"
	"gateway/shared/usage"
)

// TestPrefixesStayAsTheyAre requires that a provider of the client's format gets the client's bytes
// but for the model, so that the next turn begins with the same bytes and its cache is read.
func TestPrefixesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	g.Respond(func(c relaytest.Call) relaytest.Reply {
		if strings.HasSuffix(c.URL, "/messages") {
			return ok(claudeReply)
		}
		return ok(reply)
	})
	rapid.Check(t, func(t *rapid.T) {
		path, named, headers := messagesPath, "@x/claude-sonnet-4-5", config(claude(""))
		if rapid.Bool().Draw(t, "chat") {
			path, named, headers = chatPath, relaytest.Saved+"/gpt-4o", nil
		} else {
			named = "claude-sonnet-4-5"
		}
		space := rapid.SampledFrom([]string{"", " ", "\n\t"})
		turn := func(i int) string {
			raw, _ := json.Marshal(rapid.StringN(1, 40, 200).Draw(t, "text") + "x")
			return space.Draw(t, "space") + `{"role":"` + []string{"user", "assistant"}[i%2] + `",` + space.Draw(t, "space") + `"content":` + string(raw) + `}`
		}
		head := `{` + space.Draw(t, "space") + `"max_tokens":9,"messages":[`
		n := 1 + 2*rapid.IntRange(0, 3).Draw(t, "turns")
		for i := range n {
			head += strings.Repeat(",", min(i, 1)) + turn(i)
		}
		tail := `],"model":"` + named + `"}`
		sent := func(body string) string {
			got := g.Do("POST", path, body, headers...)
			calls := g.Calls()
			g.Records()
			if got.Status != 200 || len(calls) != 1 {
				t.Fatalf("%d %s: %s", got.Status, got.Body, body)
			}
			return calls[0].Body
		}
		complete := strings.Replace(head+tail, named, named[strings.IndexByte(named, '/')+1:], 1)
		if got := sent(head + tail); got != complete {
			t.Fatalf("the provider got\n%s, sent was\n%s", got, head+tail)
		}
		if longer := sent(head + "," + turn(n) + "," + turn(n+1) + tail); !strings.HasPrefix(longer, head) {
			t.Fatalf("the next turn begins otherwise:\n%s\n%s", longer, head)
		}
	})
}

// TestMarkersForThePromptCache requires the markers that a config adds for the provider's cache, never
// more than it takes.
func TestMarkersForThePromptCache(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	long := strings.Repeat("many words of a system prompt that stays ", 200)
	with := func(more string) []string { return config(claude(`,"prompt_cache":{` + more + `}`)) }
	system := func(turns string) string {
		return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"system":%q,"messages":[%s]}`, long, turns)
	}
	const block, one = `{"type":"text","text":"more","cache_control":{"type":"ephemeral"}}`, `{"role":"user","content":"One"}`
	blocks := func(n int) string {
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + strings.Repeat(block+",", n) + `{"type":"text","text":"end"}]}]}`
	}
	for _, c := range []struct {
		name, path string
		headers    []string
		body       string
		markers    int
	}{
		{"off", messagesPath, config(claude("")), system(one), 0},
		{"first turn", messagesPath, with(""), system(one), 2},
		{"next turn", messagesPath, with(""), system(one + `,{"role":"assistant","content":"A"},{"role":"user","content":"Two"}`), 2},
		{"translated", chatPath, with(`"ttl":"1h"`), fmt.Sprintf(`{"model":"claude-sonnet-4-5","messages":[{"role":"system","content":%q},{"role":"user","content":"Three"}]}`, long), 2},
		{"beside the client's own", messagesPath, with(`"ttl":"1h"`), blocks(3), 4},
		{"at the most", messagesPath, with(""), blocks(4), 4},
	} {
		x := exchange{c.name, c.path, c.body, c.headers, []relaytest.Reply{ok(claudeReply)}, 200, "", "", ""}
		if _, calls, _ := x.run(t, g); strings.Count(calls[0].Body, `"cache_control"`) != c.markers || c.name == "translated" && !strings.Contains(calls[0].Body, `"1h"`) {
			t.Errorf("%s: %s", c.name, calls[0].Body)
		}
	}
	for _, bad := range []string{`"ttl":"2h"`, `"ttl":5`, `"mode":"often"`} {
		x := exchange{bad, messagesPath, claudeAsked, with(bad), nil, 400, "prompt_cache", "", ""}
		x.run(t, g)
	}
}

// TestPromptsThatAreWrittenAndNeverRead requires that the sender, and nobody else, is told when a
// beginning is written to the cache again and again and never read, until it is read.
func TestPromptsThatAreWrittenAndNeverRead(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	mine, other := g.Key([]string{write}, nil, nil), g.Key([]string{write}, nil, nil)
	const written, read, neither = `"cache_creation_input_tokens":2000,"cache_read_input_tokens":0`, `"cache_creation_input_tokens":20,"cache_read_input_tokens":2000`, `"cache_creation_input_tokens":0,"cache_read_input_tokens":0`
	for i, c := range []struct {
		key, session, usage string
		stream              bool
		want                string
	}{
		{mine, "s", written, false, ""}, {mine, "s", written, true, ""}, {mine, "s", written, false, ""}, {mine, "s", written, true, "unread"}, {mine, "s", written, false, "unread"},
		{other, "s", written, false, ""}, {mine, "t", written, false, ""}, {mine, "s", read, true, "-"}, {mine, "s", neither, false, ""},
	} {
		made := strings.Replace(claudeReply, `"input_tokens":100`, `"input_tokens":10,`+c.usage, 1)
		if c.stream {
			made = sse(messageStream(`"input_tokens":10,`+c.usage+`,"output_tokens":1`, `"output_tokens":2`)...)
		}
		x := exchange{fmt.Sprint(i), messagesPath, fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"stream":%t,"messages":[{"role":"user","content":"x"}]}`, c.stream), on(claude(""), "X-Gateway-Api-Key", c.key, "X-Claude-Code-Session-Id", c.session), []relaytest.Reply{ok(made)}, 200, "", "", ""}
		got, _, _ := x.run(t, g)
		if have := got.Header.Get("X-Gateway-Prompt-Cache"); c.want != "-" && have != c.want {
			t.Errorf("request %d: %q", i, have)
		}
	}
}

// TestTurnsThatWereSeenReserveWhatTheyAmountedTo requires that a request that continues a response
// whose usage the gateway has seen reserves that, and one that continues another the model's window.
func TestTurnsThatWereSeenReserveWhatTheyAmountedTo(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	tokens := func(n int64) string {
		return g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Tokens, CreditLimit: n})
	}
	n := 0
	made := func(stream bool, id string) relaytest.Reply {
		body := strings.ReplaceAll(responseBody, "_1", id)
		if stream {
			return ok(sse(`{"type":"response.created","sequence_number":0,"response":{"id":"resp`+id+`","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`, `{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg`+id+`","output_index":0,"content_index":0,"delta":"Hello"}`, `{"type":"response.completed","sequence_number":2,"response":`+body+`}`))
		}
		return ok(body)
	}
	for _, path := range []string{responsesAt, "/v1/proxy/responses"} {
		for _, stream := range []bool{false, true} {
			key := tokens(100_000)
			send := func(name, model, more string, status int) string {
				t.Helper()
				n++
				id := fmt.Sprintf("_t%d", n)
				x := exchange{fmt.Sprintf("%s, stream %t, %s", path, stream, name), path, fmt.Sprintf(`{"model":%q,"max_output_tokens":50,"input":"words","stream":%t%s}`, model, stream, more), on(openAI(""), "X-Gateway-Api-Key", key), nil, status, "", "", ""}
				if strings.Contains(more, `"input"`) {
					x.body = strings.Replace(x.body, `"input":"words",`, "", 1)
				}
				if status == 200 {
					x.script = []relaytest.Reply{made(stream, id)}
				}
				x.run(t, g)
				return id
			}
			previous := func(id string) string { return `,"previous_response_id":"resp` + id + `"` }
			item := func(id string) string {
				return `,"input":[{"role":"user","content":"words"},{"type":"item_reference","id":"` + id + `"}]`
			}
			first := send("the first turn", "gpt-4o", "", 200)
			second := send("the second turn", "gpt-4o", previous(first), 200)
			send("an item", "gpt-4o", item("msg"+second), 200)
			send("an item of nobody", "gpt-4o", item("msg_other"), 412)
			send("another model", "gpt-4o-mini", previous(second), 412)
			send("a saved prompt", "gpt-4o", previous(second)+`,"prompt":{"id":"pmpt_1"}`, 412)
			send("one that was not stored", "gpt-4o", previous(send("not stored", "gpt-4o", `,"store":false`, 200)), 412)
			if state := g.Budget(key); state.Status != "active" {
				t.Errorf("%s: %+v", path, state)
			}
		}
	}
	key := tokens(100_000)
	for i, c := range []struct {
		previous string
		status   int
	}{{"", 200}, {"turn_1", 200}, {"turn_2", 200}, {"turn_9", 412}} {
		body := `{"model":"gemini-2.5-flash","input":"x","generation_config":{"max_output_tokens":300}`
		if c.previous != "" {
			body += `,"previous_interaction_id":"` + c.previous + `"`
		}
		x := exchange{"after " + c.previous, "/v1/v1beta/interactions", body + "}", on(`{"provider":"google","api_key":"k"}`, "X-Gateway-Api-Key", key), nil, c.status, "", "", ""}
		if c.status == 200 {
			x.script = []relaytest.Reply{ok(fmt.Sprintf(`{"id":"turn_%d","model":"gemini-2.5-flash","status":"completed","usage":{"total_input_tokens":%d,"total_output_tokens":200,"total_tokens":%d}}`, i+1, 1000*i, 1000*i+200))}
		}
		x.run(t, g)
	}
}

// TestOnlyGuardrailsThatDecideWithholdBodies requires that a body is recorded without a guardrail that
// can deny or change it, and once it was judged; and that the record has the request to the last target.
func TestOnlyGuardrailsThatDecideWithholdBodies(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	const denies, redacts = `{"default.contains":{"words":["house"],"operator":"none"},"deny":true}`, `{"gateway.pii":{"redact":true,"categories":["EMAIL_ADDRESS"]}}`
	for name, c := range map[string]struct {
		config, more string
		script       []relaytest.Reply
		status       int
		withheld     bool
	}{
		"none":             {openAI(""), `,"stream":"x"`, nil, 400, false},
		"only reported":    {openAI(`,"input_guardrails":[` + strings.Replace(denies, `,"deny":true`, "", 1) + `]`), `,"stream":"x"`, nil, 400, false},
		"beside":           {openAI(`,"input_guardrails":[{"gateway.pii":{"redact":true},"async":true}]`), `,"stream":"x"`, nil, 400, false},
		"output":           {openAI(`,"output_guardrails":[` + denies + `]`), `,"stream":"x"`, nil, 400, false},
		"one that decides": {openAI(`,"input_guardrails":[` + redacts + `]`), `,"stream":"x"`, nil, 400, true},
		"denied":           {openAI(`,"input_guardrails":[` + denies + `]`), "", nil, 446, false},
		"fallback":         {`{"input_guardrails":[` + redacts + `],` + fallback(`{"provider":"@nobody"}`, openAI(""))[1:], "", []relaytest.Reply{ok(reply)}, 200, false},
		"last target":      {fallback(claude(""), openAI(`,"input_guardrails":[`+redacts+`]`)), "", []relaytest.Reply{failure(503, broken), ok(reply)}, 200, false},
	} {
		x := exchange{name, chatPath, `{"model":"gpt-4o","messages":[{"role":"user","content":"the house of mary.poppins@example.com"}]` + c.more + `}`, config(c.config), c.script, c.status, "", "", ""}
		_, _, r := x.run(t, g)
		b := g.Bodies(&r)
		all := string(b.Request) + string(b.Sent) + string(b.RequestHeaders) + string(b.SentHeaders)
		if strings.Contains(all, "the house") == c.withheld || strings.Contains(all, usage.Withheld[2:10]) != c.withheld {
			t.Errorf("%s: recorded %s", name, all)
		}
		if name == "last target" && (strings.Contains(all, "poppins") || !strings.Contains(all, "{{EMAIL_ADDRESS_1}}")) {
			t.Errorf("%s: recorded %s", name, all)
		}
	}
}
