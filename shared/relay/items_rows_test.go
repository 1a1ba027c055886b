package relay_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

// as returns headers of a request with a key to the provider that all workspaces share.
func as(key string) []string {
	return []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", relaytest.Saved}
}

// TestItemsWithoutPayloadAreOwned requires that items that a provider stores are missing if nobody
// or another workspace made them, with each type and on each path that takes items.
func TestItemsWithoutPayloadAreOwned(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	mine, theirs := g.Key([]string{write}, nil, nil), g.Workspace("theirs")
	g.Script(ok(strings.ReplaceAll(responseBody, "msg_1", "msg_theirs")))
	if got := g.Do("POST", "/v1/responses", `{"model":"gpt-4o","input":"Hi"}`, as(theirs)...); got.Status != 200 {
		t.Fatal(got.Body)
	}
	g.Calls()
	for _, id := range []string{"msg_1", "msg_theirs"} {
		all := []string{`{"id":"` + id + `"}`, `{"type":"item\u005freference","id":"` + id + `"}`, `{"type":"reasoning","id":"` + id + `","summary":[]}`}
		for kind := range strings.FieldsSeq("item_reference message reasoning compaction function_call image_generation_call mcp_call mcp_list_tools file_search_call web_search_call code_interpreter_call") {
			all = append(all, fmt.Sprintf(`{"type":%q,"id":%q}`, kind, id))
		}
		for _, item := range all {
			for path, field := range map[string]string{"/responses": `"model":"m","input"`, "/proxy/responses": `"model":"m","input"`, "/proxy/responses/compact": `"model":"m","input"`, "/responses/input_tokens": `"model":"m","input"`, "/conversations": `"items"`, "/proxy/openai/v1/conversations": `"items"`, "/proxy/openai/deployments/x/responses": `"input"`} {
				x := exchange{path + " " + item, "/v1" + path, `{` + field + `:[{"role":"user","content":"x"},` + item + `]}`, as(mine), nil, 404, "[1] & not found", "", ""}
				x.run(t, g)
			}
		}
	}
	const reference = `{"model":"m","input":[{"role":"user","content":"x"},{"type":"item_reference","id":"msg_1"}]}`
	for _, x := range []exchange{
		{"a credential of the caller's own", "/v1/responses", reference, config(openAI("")), []relaytest.Reply{ok(responseBody)}, 200, "", "item_reference", ""},
		{"by translation nobody stores anything", "/v1/responses", reference, config(claude("")), nil, 400, "input[1]", "", ""},
	} {
		x.run(t, g)
	}
}

// TestForeignIDsOfWholeItemsAreReplaced requires that a provider gets whole items under their ids if
// the workspace received them, and others under ids of no object.
func TestForeignIDsOfWholeItemsAreReplaced(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	mine, theirs := g.Key([]string{write}, nil, nil), g.Workspace("theirs")
	const reasoning = `{"type":"reasoning","id":"rs_1","summary":[]},`
	plain := strings.NewReplacer(`"output":[`, `"output":[`+strings.Replace(reasoning, "rs_1", "rs_plain", 1), "msg_1", "msg_plain").Replace(responseBody)
	done := strings.NewReplacer(`"output":[`, `"output":[`+strings.Replace(reasoning, "rs_1", "rs_streamed", 1), "_1", "_streamed").Replace(responseBody)
	stream := sse(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_streamed","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`, `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"reasoning","id":"rs_streamed","summary":[]}}`, `{"type":"response.completed","sequence_number":2,"response":`+done+`}`)
	body := func(id string) string {
		return `{"type":"message","id":"` + id + `","role":"assistant","status":"completed","content":[{"type":"output_text","text":"y","annotations":[]}]}`
	}
	for _, path := range []string{"/v1/responses", "/v1/proxy/responses"} {
		for more, made := range map[string]string{"": plain, `,"stream":true`: stream} {
			x := exchange{path + more, path, `{"model":"m","input":"x"` + more + `}`, as(mine), []relaytest.Reply{ok(made)}, 200, "", "", ""}
			x.run(t, g)
		}
		items := `{"model":"m","input":[` + body("msg_plain") + `,{"type":"reasoning","id":"rs_streamed","summary":[]},` + body("msg_foreign") + `]}`
		x := exchange{path + " with items", path, items, as(mine), []relaytest.Reply{ok(plain)}, 200, "", `"msg_plain" & "rs_streamed" & !msg_foreign`, ""}
		if _, calls, _ := x.run(t, g); len(calls) == 1 && strings.Count(calls[0].Body, `"id":"msg_`) != 2 {
			t.Errorf("%s: %s", x.name, calls[0].Body)
		}
		x = exchange{path + " of another workspace", path, items, as(theirs), nil, 404, "input[1]", "", ""}
		x.run(t, g)
	}
}

// ids returns the ids of the output of a response, whole or streamed, and its own.
func ids(t *testing.T, body string) (id string, items []string) {
	t.Helper()
	if at := strings.LastIndex(body, `"response":`); at >= 0 && strings.HasPrefix(body, "event:") {
		body = strings.TrimSuffix(strings.TrimSpace(body[at+len(`"response":`):]), "}")
	}
	var made struct {
		ID     string
		Output []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil {
		t.Fatal(err, body)
	}
	for _, item := range made.Output {
		items = append(items, item.ID)
	}
	return made.ID, items
}

// TestReferencesToTranslatedItems requires that the second step of a tool loop can name the items of
// the first if the gateway stored them, at the same provider and at one of the client's format.
func TestReferencesToTranslatedItems(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	theirs := g.Workspace("theirs")
	const call = `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
	plain := strings.NewReplacer(`"content":"Hello"`, `"content":"Look",`+call, `"stop"`, `"tool_calls"`).Replace(reply)
	stream := sse(piece("Look", ""), `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{`+call+`},"finish_reason":"tool_calls"}]`+shortly+"}", "[DONE]")
	const tools = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]`
	deepseek := `{"provider":"deepseek","api_key":"k"}`
	for _, streams := range []bool{false, true} {
		for _, store := range []bool{true, false} {
			name := fmt.Sprintf("stream %t, store %t", streams, store)
			made := map[bool]string{false: plain, true: stream}[streams]
			x := exchange{name, "/v1/responses", fmt.Sprintf(`{"model":"m","input":"go","stream":%t,"store":%t,%s}`, streams, store, tools), config(deepseek), []relaytest.Reply{ok(made)}, 200, "Look", "", ""}
			got, _, _ := x.run(t, g)
			_, items := ids(t, got.Body)
			if len(items) != 2 {
				t.Fatal(got.Body)
			}
			second := fmt.Sprintf(`{"model":"m","input":[{"role":"user","content":"go"},{"type":"item_reference","id":%q},{"type":"item_reference","id":%q},{"type":"function_call_output","call_id":"c1","output":"x"}],%s}`, items[0], items[1], tools)
			x = exchange{name + ", the second step", "/v1/responses", second, config(deepseek), []relaytest.Reply{ok(reply)}, 200, "", `"Look" & "tool_call_id":"c1" & {\"a\":1}`, ""}
			native := exchange{name + ", natively", "/v1/responses", second, []string{"X-Gateway-Provider", relaytest.Saved}, []relaytest.Reply{ok(responseBody)}, 200, "", `!item_reference & "Look" & "call_id":"c1","name":"f"`, ""}
			if !store {
				x.script, x.status, x.has, x.sent = nil, 400, "set store to false", ""
				native.script, native.status, native.sent = nil, 404, ""
			}
			x.run(t, g)
			native.run(t, g)
			x = exchange{name + ", another workspace", "/v1/responses", second, on(deepseek, "X-Gateway-Api-Key", theirs), nil, 400, "input[1]", "", ""}
			x.run(t, g)
		}
	}
}

// TestConversationsContinueAtAnotherProvider requires that a translated response can be continued by
// its id: at the same provider, at one of another format and at one of the client's own, which gets
// the conversation without the reasoning of the others. Nothing continues what is not stored.
func TestConversationsContinueAtAnotherProvider(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	g.Provider("anthropic", "k", provider.Integration{AIProviderID: "anthropic"})
	g.Respond(func(c relaytest.Call) relaytest.Reply {
		switch {
		case strings.Contains(c.URL, "anthropic.com") && strings.Contains(c.Body, `"stream":true`):
			return ok(sse(messageStream(`"input_tokens":100,"output_tokens":1`, `"output_tokens":10`)...))
		case strings.Contains(c.URL, "anthropic.com"):
			return ok(strings.Replace(claudeReply, `"content":[{"type":"text","text":"Hello"}]`, `"content":[{"type":"thinking","thinking":"Hm","signature":"c2ln"},{"type":"text","text":"Mock answer"}]`, 1))
		}
		return ok(strings.Replace(responseBody, "Hello", "Mock answer", 1))
	})
	const saved = "@anthropic/claude-sonnet-4-5"
	const think = `,"max_output_tokens":4000,"reasoning":{"effort":"low"}`
	respond := func(body string, headers ...string) (id, response, sent string) {
		t.Helper()
		got := g.Do("POST", "/v1/responses", body, headers...)
		calls := g.Calls()
		if got.Status != 200 {
			t.Fatalf("%s: %d %s", body, got.Status, got.Body)
		}
		if len(calls) > 0 {
			sent = calls[len(calls)-1].URL + " " + calls[len(calls)-1].Body
		}
		id, _ = ids(t, got.Body)
		return id, got.Body, sent
	}
	states := func(body, previous string, stored bool, times int) {
		t.Helper()
		for _, want := range []string{`"previous_response_id":` + previous + `,`, fmt.Sprintf(`"store":%t,`, stored)} {
			if strings.Count(body, want) != times {
				t.Errorf("want %d times %s: %s", times, want, body)
			}
		}
	}
	first, got, _ := respond(`{"model":"` + saved + `","input":"first question"` + think + `}`)
	states(got, "null", true, 1)
	if !strings.Contains(got, `"encrypted_content":"gw1:`) {
		t.Error(got)
	}
	_, items := ids(t, got)
	references := ""
	for _, id := range items {
		references += fmt.Sprintf(`{"type":"item_reference","id":%q},`, id)
	}
	second, got, sent := respond(`{"model":"` + saved + `","previous_response_id":"` + first + `","input":[{"role":"user","content":"second question"}]` + think + `}`)
	states(got, `"`+first+`"`, true, 1)
	if bad := parts(sent, `first question & "signature" & second question`); bad != "" {
		t.Errorf("the same provider: %q in %s", bad, sent)
	}
	bedrock := config(`{"provider":"bedrock","aws_access_key_id":"A","aws_secret_access_key":"s","aws_region":"eu-west-1"}`)
	for _, c := range []struct {
		model, path string
		headers     []string
	}{{saved, "/messages ", nil}, {relaytest.Saved + "/gpt-5-mini", "api.openai.com/v1/responses ", nil}, {"global.openai.gpt-5.6-terra", "/openai/v1/responses ", bedrock}} {
		_, _, sent := respond(`{"model":"`+c.model+`","previous_response_id":"`+second+`","input":"third question"}`, c.headers...)
		for _, want := range []string{"first question", "second question", "third question"} {
			if strings.Count(sent, want) != 1 {
				t.Errorf("%s: %d times %s in %s", c.model, strings.Count(sent, want), want, sent)
			}
		}
		if strings.Count(sent, "Mock answer") != 2 || parts(sent, c.path+" & !gw1: & !previous_response_id") != "" {
			t.Errorf("%s: %s", c.model, sent)
		}
		_, _, sent = respond(`{"model":"`+c.model+`","input":[{"role":"user","content":"first question"},`+references+`{"role":"user","content":"x"}]}`, c.headers...)
		if strings.Count(sent, "Mock answer") != 1 || strings.Contains(sent, "gw1:") {
			t.Errorf("%s, by reference: %s", c.model, sent)
		}
	}
	for stored, words := range map[bool]string{true: "", false: `,"store":false`} {
		_, got, _ := respond(`{"model":"` + saved + `","previous_response_id":"` + first + `","input":"x","stream":true` + words + `}`)
		states(got, `"`+first+`"`, stored, 3)
	}
	repeated, got, _ := respond(`{"model":"` + saved + `","previous_response_id":"` + second + `"}`)
	states(got, `"`+second+`"`, true, 1)
	cached := config(`{"provider":"@anthropic",` + simpleCache + `}`)
	respond(`{"model":"claude-sonnet-4-5","input":"first question"}`, cached...)
	replayed, got, _ := respond(`{"model":"claude-sonnet-4-5","input":"first question","stream":true}`, cached...)
	states(got, "null", true, 3)
	for _, id := range []string{repeated, replayed} {
		_, _, sent := respond(`{"model":"` + saved + `","previous_response_id":"` + id + `","input":"last question"}`)
		if strings.Count(sent, "first question") != 1 || strings.Count(sent, "last question") != 1 {
			t.Errorf("%s: %s", id, sent)
		}
	}
	unstored, got, _ := respond(`{"model":"` + saved + `","input":"x","store":false}`)
	states(got, "null", false, 1)
	large, got, _ := respond(`{"model":"` + saved + `","input":"` + strings.Repeat("x ", 200<<10) + `"}`)
	states(got, "null", false, 1)
	passed, _, _ := respond(`{"model":"` + relaytest.Saved + `/gpt-5-mini","input":"x"}`)
	theirs := g.Workspace("theirs")
	for id, headers := range map[string][]string{unstored: nil, large: nil, passed: nil, "resp_nothing": nil, second: {"X-Gateway-Api-Key", theirs}} {
		x := exchange{id, "/v1/responses", `{"model":"` + saved + `","previous_response_id":"` + id + `","input":"y"}`, headers, nil, 400, "previous_response_id names a response that is not stored", "", ""}
		x.run(t, g)
	}
}

// TestContinuedConversationsAreJudgedAndReserved requires that a guardrail of all messages judges
// the earlier turns of a continued response, that one of the last message does not, and that the
// reservation counts them.
func TestContinuedConversationsAreJudgedAndReserved(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	x := exchange{"the first", "/v1/responses", `{"model":"m","max_output_tokens":50,"input":"the zebra ` + strings.Repeat("walks on ", 3000) + `"}`, config(claude("")), []relaytest.Reply{ok(strings.Replace(claudeReply, "Hello", "zebras", 1))}, 200, "zebras", "", ""}
	got, _, _ := x.run(t, g)
	id, items := ids(t, got.Body)
	guard := func(scope, words string) []string {
		return config(claude(fmt.Sprintf(`,"input_guardrails":[{"default.contains":{"words":[%q],"operator":"none","scope":%q},"deny":true}]`, words, scope)))
	}
	limited := func(tokens int64) []string {
		return on(claude(""), "X-Gateway-Api-Key", g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Tokens, CreditLimit: tokens}))
	}
	const more = `,"input":[{"role":"user","content":"yes"}]`
	continued := fmt.Sprintf(`,"previous_response_id":%q`, id) + more
	for _, c := range []struct {
		name, fields string
		headers      []string
		status       int
	}{
		{"a question", continued, guard("all_messages", "zebra walks"), 446},
		{"an answer", continued, guard("all_messages", "zebras"), 446},
		{"a word of no turn", continued, guard("all_messages", "lion"), 200},
		{"the last message alone", continued, guard("last_message", "zebra walks"), 200},
		{"no earlier turn", more, guard("all_messages", "zebra walks"), 200},
		{"an answer, by reference", fmt.Sprintf(`,"input":[{"role":"user","content":"x"},{"type":"item_reference","id":%q},{"role":"user","content":"yes"}]`, items[0]), guard("all_messages", "zebras"), 446},
		{"a small budget", continued, limited(1000), 412},
		{"a small budget, no earlier turn", more, limited(1000), 200},
		{"a budget for all turns", continued, limited(100000), 200},
	} {
		x := exchange{c.name, "/v1/responses", `{"model":"m","max_output_tokens":50` + c.fields + `}`, c.headers, nil, c.status, "", "", ""}
		if c.status == 200 {
			x.script = []relaytest.Reply{ok(claudeReply)}
		}
		x.run(t, g)
	}
}

// TestCachedResponsesCanBeContinued requires that a cached translated response, which is no longer
// stored, is replayed under a new id that continues it.
func TestCachedResponsesCanBeContinued(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	cached := config(claude("," + strings.Replace(simpleCache, `"simple"`, `"simple","max_age":604800`, 1)))
	const body = `{"model":"m","instructions":"Be brief.","input":"first question"}`
	respond := func(body, status string, script ...relaytest.Reply) (string, relaytest.Response, string) {
		t.Helper()
		x := exchange{body, "/v1/responses", body, cached, script, 200, "X-Gateway-Cache-Status: " + status + ` & "store":true, & "instructions":"Be brief."`, "", ""}
		if strings.Contains(body, "previous") {
			x.has = "Hello"
		}
		got, calls, _ := x.run(t, g)
		id, _ := ids(t, got.Body)
		sent := ""
		if len(calls) > 0 {
			sent = calls[0].Body
		}
		return id, got, sent
	}
	first, made, _ := respond(body, "MISS", ok(claudeReply))
	g.Forward(25 * time.Hour)
	hit, got, _ := respond(body, "HIT")
	usage := regexp.MustCompile(`"usage":\{.*?\}\}`)
	if hit == first || usage.FindString(got.Body) != usage.FindString(made.Body) || !strings.Contains(got.Body, "Hello") {
		t.Errorf("%s\nfirst %s", got.Body, made.Body)
	}
	_, _, sent := respond(`{"model":"m","previous_response_id":"`+hit+`","input":"second question"}`, "MISS", ok(claudeReply))
	if strings.Count(sent, "first question") != 1 || strings.Count(sent, "Hello") != 1 || !strings.Contains(sent, "second question") {
		t.Error(sent)
	}
}

// TestTranslatedResponsesHaveTheirOwnIDs requires different ids for the translated responses of a
// provider that gives each the same.
func TestTranslatedResponsesHaveTheirOwnIDs(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	id := regexp.MustCompile(`"id":"([^"]+)"`)
	for _, c := range []struct{ path, body string }{{messagesPath, anthropicAsks}, {"/v1/responses", `{"model":"m","input":"x"`}} {
		seen := map[string]bool{"chatcmpl-1": true, "c": true}
		for _, stream := range []bool{false, false, true, true} {
			x := exchange{fmt.Sprint(c.path, stream), c.path, c.body + fmt.Sprintf(`,"stream":%t}`, stream), config(`{"provider":"deepseek","api_key":"k"}`), []relaytest.Reply{ok(map[bool]string{false: reply, true: helloStream}[stream])}, 200, "!chatcmpl-1", "", ""}
			got, _, _ := x.run(t, g)
			if made := id.FindStringSubmatch(got.Body); made == nil || seen[made[1]] {
				t.Errorf("%s: %s", x.name, got.Body)
			} else {
				seen[made[1]] = true
			}
		}
	}
}
