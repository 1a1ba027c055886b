package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestItemsWithoutPayloadAreOwned names items that the provider stores, with each type that
// answers have and on each path that takes items: those of nobody and of another workspace are
// missing, and the provider is not asked.
func TestItemsWithoutPayloadAreOwned(t *testing.T) {
	t.Parallel()
	n := share(t)
	items := func(id string) []string {
		all := []string{`{"id":"` + id + `"}`, `{"type":"item\u005freference","id":"` + id + `"}`, `{"type":"reasoning","id":"` + id + `","summary":[]}`}
		for kind := range strings.FieldsSeq("item_reference message reasoning compaction function_call image_generation_call mcp_call mcp_list_tools file_search_call web_search_call code_interpreter_call") {
			all = append(all, fmt.Sprintf(`{"type":%q,"id":%q}`, kind, id))
		}
		return all
	}
	var theirs struct{ Output []struct{ ID string } }
	made := n.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello"}`, as(n.theirs)...)
	if err := json.Unmarshal([]byte(made.body), &theirs); err != nil || len(theirs.Output) == 0 {
		t.Fatal(made.body, err)
	}
	for _, id := range []string{"msg_1", theirs.Output[0].ID} {
		for _, item := range items(id) {
			for path, body := range map[string]string{
				"/responses":                            `{"model":"gpt-4o-mini","input":[{"role":"user","content":"x"},%s]}`,
				"/proxy/responses":                      `{"model":"gpt-4o-mini","input":[{"role":"user","content":"x"},%s]}`,
				"/proxy/responses/compact":              `{"model":"gpt-4o-mini","input":[{"role":"user","content":"x"},%s]}`,
				"/responses/input_tokens":               `{"model":"gpt-4o-mini","input":[{"role":"user","content":"x"},%s]}`,
				"/conversations":                        `{"items":[{"role":"user","content":"x"},%s]}`,
				"/proxy/openai/v1/conversations":        `{"items":[{"role":"user","content":"x"},%s]}`,
				"/proxy/openai/deployments/x/responses": `{"input":[{"role":"user","content":"x"},%s]}`,
			} {
				before := n.mock.Bill().Total.Requests
				got := n.call("POST", path, fmt.Sprintf(body, item), as(n.mine)...)
				if got.status != 404 || !strings.Contains(got.body, "[1]") || !strings.Contains(got.body, "not found") || n.mock.Bill().Total.Requests != before {
					t.Errorf("%s %s: %d %s", path, item, got.status, got.body)
				}
			}
		}
	}
	// A provider of one workspace takes them; the mock keeps no items.
	reference := `{"model":"@mock/gpt-4o-mini","input":[{"role":"user","content":"x"},{"type":"item_reference","id":"msg_1"}]}`
	if got := n.call("POST", "/responses", reference); strings.Contains(got.body, "items created by this workspace") {
		t.Errorf("%d %s", got.status, got.body)
	}
	// By translation nobody keeps anything.
	got := n.call("POST", "/responses", strings.Replace(reference, "@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5", 1))
	if got.status != 400 || !strings.Contains(got.body, "input[1]") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestForeignIDsOfWholeItemsAreReplaced sends items whole: the provider gets those that the
// workspace was answered with under their ids, whether whole or streamed, and others under
// ids of no object.
func TestForeignIDsOfWholeItemsAreReplaced(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent := ""
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = string(body)
		mu.Unlock()
		id := "plain"
		if strings.Contains(string(body), `"stream":true`) {
			id = "streamed"
		}
		answer := fmt.Sprintf(`{"id":"resp_%s","object":"response","created_at":1,"status":"completed","model":"gpt-4o-mini","output":[{"type":"reasoning","id":"rs_%[1]s","summary":[]},{"type":"message","id":"msg_%[1]s","role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`, id)
		if id == "plain" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_streamed\",\"object\":\"response\",\"created_at\":1,\"status\":\"in_progress\",\"model\":\"gpt-4o-mini\",\"output\":[]}}\n\n")
		_, _ = fmt.Fprintf(w, "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs_streamed\",\"summary\":[]}}\n\n")
		_, _ = fmt.Fprintf(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":%s}\n\n", answer)
	}))
	t.Cleanup(host.Close)
	n := neighbours{running: start(t)}
	n.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Common","slug":"common","ai_provider_id":"openai","key":"k","configurations":{"custom_host":%q}}`, host.URL))
	n.admin("PUT", "/integrations/common/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	for i, key := range []*string{&n.mine, &n.theirs} {
		ws := n.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbor %d"}`, i))
		*key = n.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws["id"]))["key"].(string)
	}
	for _, path := range []string{"/responses", "/proxy/responses"} {
		for _, stream := range []string{"false", "true"} {
			if got := n.call("POST", path, `{"model":"gpt-4o-mini","input":"x","stream":`+stream+`}`, as(n.mine)...); got.status != 200 {
				t.Fatal(got.body)
			}
		}
		body := `{"model":"gpt-4o-mini","input":[{"type":"message","id":"msg_plain","role":"assistant","status":"completed","content":[{"type":"output_text","text":"y","annotations":[]}]},` +
			`{"type":"reasoning","id":"rs_streamed","summary":[]},{"type":"message","id":"msg_foreign","role":"assistant","status":"completed","content":[{"type":"output_text","text":"y","annotations":[]}]}]}`
		got := n.call("POST", path, body, as(n.mine)...)
		mu.Lock()
		if got.status != 200 || !strings.Contains(sent, `"msg_plain"`) || !strings.Contains(sent, `"rs_streamed"`) || strings.Contains(sent, "msg_foreign") || strings.Count(sent, `"id":"msg_`) != 2 {
			t.Errorf("%s: %d %s: sent %s", path, got.status, got.body, sent)
		}
		mu.Unlock()
		if got := n.call("POST", path, body, as(n.theirs)...); got.status != 404 || !strings.Contains(got.body, "input[1]") {
			t.Errorf("%s of another workspace: %d %s", path, got.status, got.body)
		}
	}
}

// TestReferencesToTranslatedItems plays the default loop of clients that let responses be stored: the
// second step names the items of the first. The provider is reached by translation, so the gateway
// stores them, for the workspace alone.
func TestReferencesToTranslatedItems(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent := ""
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = string(body)
		mu.Unlock()
		const call = `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
		if strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"deepseek-chat","choices":[{"index":0,"delta":{"role":"assistant","content":"Look","reasoning_content":null},"finish_reason":null}]}`+"\n\n"+
				`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"deepseek-chat","choices":[{"index":0,"delta":{`+call+`},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`+"\n\ndata: [DONE]\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/responses") {
			_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"gpt-4o-mini","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","created":1,"model":"deepseek-chat","choices":[{"index":0,"message":{"role":"assistant","content":"Look",`+call+`},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(host.Close)
	n := neighbours{running: start(t)}
	n.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Common","slug":"common","ai_provider_id":"deepseek","key":"k","configurations":{"custom_host":%q}}`, host.URL))
	n.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Native","slug":"native","ai_provider_id":"openai","key":"k","configurations":{"custom_host":%q}}`, host.URL))
	for _, slug := range []string{"common", "native"} {
		n.admin("PUT", "/integrations/"+slug+"/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	}
	for i, key := range []*string{&n.mine, &n.theirs} {
		ws := n.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbor %d"}`, i))
		*key = n.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"],"usage_limits":{"type":"cost","credit_limit":0.001}}`, ws["id"]))["key"].(string)
	}
	const tools = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]`
	for _, stream := range []bool{false, true} {
		for _, store := range []bool{true, false} {
			first := n.call("POST", "/responses", fmt.Sprintf(`{"model":"deepseek-chat","input":"go","stream":%v,"store":%v,%s}`, stream, store, tools), as(n.mine)...)
			if first.status != 200 {
				t.Fatal(first.body)
			}
			answer := first.body
			if stream {
				answer = answer[strings.LastIndex(answer, `"response":`)+len(`"response":`):]
				answer = strings.TrimSuffix(strings.TrimSpace(answer), "}")
			}
			var made struct{ Output []struct{ ID string } }
			if err := json.Unmarshal([]byte(answer), &made); err != nil || len(made.Output) != 2 {
				t.Fatal(err, answer)
			}
			second := fmt.Sprintf(`{"model":"deepseek-chat","input":[{"role":"user","content":"go"},{"type":"item_reference","id":%q},{"type":"item_reference","id":%q},{"type":"function_call_output","call_id":"c1","output":"x"}],%s}`, made.Output[0].ID, made.Output[1].ID, tools)
			mu.Lock()
			sent = ""
			mu.Unlock()
			got := n.call("POST", "/responses", second, as(n.mine)...)
			mu.Lock()
			body := sent
			mu.Unlock()
			if store {
				if got.status != 200 || !strings.Contains(body, `"Look"`) || !strings.Contains(body, `"tool_call_id":"c1"`) || !strings.Contains(body, `{\"a\":1}`) {
					t.Errorf("stream %v: %d %s: sent %s", stream, got.status, got.body, body)
				}
			} else if got.status != 400 || body != "" || !strings.Contains(got.body, "set store to false") {
				t.Errorf("stream %v, not stored: %d %s: sent %s", stream, got.status, got.body, body)
			}
			// The next step may reach a provider of the dialect, which has never seen the items.
			native := append(as(n.mine), "X-Gateway-Provider", "@native")
			got = n.call("POST", "/responses", strings.Replace(second, "deepseek-chat", "gpt-4o-mini", 1), native...)
			mu.Lock()
			body = sent
			mu.Unlock()
			if store && (got.status != 200 || strings.Contains(body, "item_reference") || !strings.Contains(body, `"Look"`) || !strings.Contains(body, `"call_id":"c1","name":"f"`)) || !store && got.status != 404 {
				t.Errorf("stream %v, store %v, natively: %d %s: sent %s", stream, store, got.status, got.body, body)
			}
			if got := n.call("POST", "/responses", second, as(n.theirs)...); got.status != 400 || !strings.Contains(got.body, "input[1]") {
				t.Errorf("another workspace: %d %s", got.status, got.body)
			}
		}
	}
}

// TestConversationsContinueAtAnotherProvider continues a translated response by its id: at the same
// provider, at one of another format and at one of the client's own, which gets the conversation
// without the reasoning of the others. Nothing continues what is not stored.
func TestConversationsContinueAtAnotherProvider(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.bedrockItself()
	const model, native = "@mock-anthropic/claude-sonnet-4-5", "@mock/gpt-5-mini"
	respond := func(body string) (id string, got reply) {
		t.Helper()
		got = n.call("POST", "/responses", body)
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(got.body), &made); got.status != 200 || err != nil {
			t.Fatalf("%s: %d %s", body, got.status, got.body)
		}
		return made.ID, got
	}
	sent := func() string {
		t.Helper()
		return string(n.mock.Requests(1)[0].Body)
	}
	first, got := respond(`{"model":"` + model + `","input":"first question","max_output_tokens":4000,"reasoning":{"effort":"low"}}`)
	if !strings.Contains(got.body, `"encrypted_content":"gw1:`) {
		t.Fatal(got.body)
	}
	var made struct {
		Output []struct{ ID, Type string }
	}
	if err := json.Unmarshal([]byte(got.body), &made); err != nil {
		t.Fatal(err)
	}
	var references []string
	for _, item := range made.Output {
		references = append(references, fmt.Sprintf(`{"type":"item_reference","id":%q}`, item.ID))
	}
	states := func(got reply, previous string, stored bool, times int) {
		t.Helper()
		for _, want := range []string{`"previous_response_id":` + previous + `,`, fmt.Sprintf(`"store":%v,`, stored)} {
			if strings.Count(got.body, want) != times {
				t.Errorf("want %d times %s: %s", times, want, got.body)
			}
		}
	}
	states(got, "null", true, 1)
	second, got := respond(`{"model":"` + model + `","previous_response_id":"` + first + `","input":[{"role":"user","content":"second question"}],"max_output_tokens":4000,"reasoning":{"effort":"low"}}`)
	states(got, `"`+first+`"`, true, 1)
	if body := sent(); !strings.Contains(body, "first question") || !strings.Contains(body, `"signature"`) || !strings.Contains(body, "second question") {
		t.Errorf("the same provider: %s", body)
	}
	for model, path := range map[string]string{model: "/messages", native: "/responses", "@native/" + nativeGPT: responsesPath} {
		respond(`{"model":"` + model + `","previous_response_id":"` + second + `","input":"third question"}`)
		body := sent()
		for _, want := range []string{"first question", "second question", "third question"} {
			if strings.Count(body, want) != 1 {
				t.Errorf("%s: %d times %s in %s", model, strings.Count(body, want), want, body)
			}
		}
		if strings.Count(body, "Mock answer") != 2 || strings.Contains(body, "gw1:") || strings.Contains(body, "previous_response_id") || !strings.HasSuffix(n.mock.Requests(1)[0].Path, path) {
			t.Errorf("%s: %s", model, body)
		}
		// The items of a response, by reference, reach the same providers.
		respond(`{"model":"` + model + `","input":[{"role":"user","content":"first question"},` + strings.Join(references, ",") + `,{"role":"user","content":"x"}]}`)
		if body := sent(); strings.Count(body, "Mock answer") != 1 || strings.Contains(body, "gw1:") {
			t.Errorf("%s, by reference: %s", model, body)
		}
	}
	for stored, words := range map[bool]string{true: "", false: `,"store":false`} {
		states(n.call("POST", "/responses", `{"model":"`+model+`","previous_response_id":"`+first+`","input":"x","stream":true`+words+`}`), `"`+first+`"`, stored, 3)
	}
	// A response without new input is stored, and one that the cache replays under a new id.
	repeated, got := respond(`{"model":"` + model + `","previous_response_id":"` + second + `"}`)
	states(got, `"`+second+`"`, true, 1)
	cached := []string{"X-Gateway-Config", `{"provider":"@mock-anthropic","cache":{"mode":"simple"}}`}
	n.call("POST", "/responses", `{"model":"claude-sonnet-4-5","input":"first question"}`, cached...)
	got = n.call("POST", "/responses", `{"model":"claude-sonnet-4-5","input":"first question","stream":true}`, cached...)
	states(got, "null", true, 3)
	_, replayed, _ := strings.Cut(got.body, `"response":{"id":"`)
	replayed, _, _ = strings.Cut(replayed, `"`)
	for _, id := range []string{repeated, replayed} {
		respond(`{"model":"` + model + `","previous_response_id":"` + id + `","input":"last question"}`)
		if body := sent(); strings.Count(body, "first question") != 1 || strings.Count(body, "last question") != 1 {
			t.Errorf("%s: %s", id, body)
		}
	}
	unstored, got := respond(`{"model":"` + model + `","input":"x","store":false}`)
	states(got, "null", false, 1)
	large, got := respond(`{"model":"` + model + `","input":"` + strings.Repeat("x ", 200<<10) + `"}`)
	states(got, "null", false, 1)
	passed, _ := respond(`{"model":"` + native + `","input":"x"}`)
	other := n.admin("POST", "/workspaces", `{"name":"Another"}`)
	key := n.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, other["id"]))["key"].(string)
	for id, headers := range map[string][]string{unstored: nil, large: nil, passed: nil, "resp_nothing": nil, second: as(key)} {
		if headers != nil {
			headers = append(headers, "X-Gateway-Config", fmt.Sprintf(`{"provider":"anthropic","api_key":"mock","custom_host":%q}`, n.g.mock.URL()))
		}
		body := `{"model":"` + model + `","previous_response_id":"` + id + `","input":"y"}`
		if headers != nil {
			body = strings.Replace(body, model, "claude-sonnet-4-5", 1)
		}
		if got := n.call("POST", "/responses", body, headers...); got.status != 400 || !strings.Contains(got.body, "previous_response_id names a response that is not stored") {
			t.Errorf("%s: %d %s", id, got.status, got.body)
		}
	}
}

// TestContinuedConversationsAreJudgedAndReserved continues a translated response by its id and by
// references to its items: a guardrail of all messages judges the earlier turns, one of the last message
// does not, and the reservation counts them.
func TestContinuedConversationsAreJudgedAndReserved(t *testing.T) {
	t.Parallel()
	r := start(t)
	const model = "@mock-anthropic/claude-sonnet-4-5"
	made := r.call("POST", "/responses", `{"model":"`+model+`","max_output_tokens":50,"input":"the zebra `+strings.Repeat("walks on ", 3000)+`\nmock: say=zebras"}`).json(t)
	item := fmt.Sprint(member(made, "output/0/id"))
	guard := func(scope, words string) []string {
		return []string{"X-Gateway-Config", fmt.Sprintf(`{"input_guardrails":[{"default.contains":{"words":[%q],"operator":"none","scope":%q},"deny":true}]}`, words, scope)}
	}
	little := []string{"X-Gateway-Api-Key", r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000}`)}
	ample := []string{"X-Gateway-Api-Key", r.newKey(`"usage_limits":{"type":"tokens","credit_limit":100000}`)}
	const more = `,"input":[{"role":"user","content":"mock: say=yes"}]`
	continued := fmt.Sprintf(`,"previous_response_id":%q`, made["id"]) + more
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
		{"an answer, by reference", fmt.Sprintf(`,"input":[{"role":"user","content":"x"},{"type":"item_reference","id":%q},{"role":"user","content":"mock: say=yes"}]`, item), guard("all_messages", "zebras"), 446},
		{"a small budget", continued, little, 412},
		{"a small budget, no earlier turn", more, little, 200},
		{"a budget for all turns", continued, ample, 200},
	} {
		got := r.call("POST", "/responses", `{"model":"`+model+`","max_output_tokens":50`+c.fields+`}`, c.headers...)
		if got.status != c.status {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
}

// TestCachedResponsesCanBeContinued requests a translated response from the cache 25 hours after it
// was made, when it is no longer stored: the client gets it under a new id, which continues it.
func TestCachedResponsesCanBeContinued(t *testing.T) {
	t.Parallel()
	r := start(t)
	clock := new(atomic.Int64)
	clock.Store(-int64(25 * time.Hour)) // what is stored then has expired by the clock of the store
	in := r.instance(clock)
	cached := []string{"X-Gateway-Config", `{"provider":"@mock-anthropic","cache":{"mode":"simple"}}`}
	respond := func(body string) (id string, got reply) {
		t.Helper()
		got = in.call("POST", "/responses", body, cached...)
		id, _ = got.json(t)["id"].(string)
		if got.status != 200 || id == "" || !strings.Contains(got.body, `"store":true,`) || !strings.Contains(got.body, `"instructions":"Be brief."`) {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return id, got
	}
	const body = `{"model":"claude-sonnet-4-5","instructions":"Be brief.","input":"first question"}`
	const next = `{"model":"claude-sonnet-4-5","previous_response_id":%q,"input":"second question"}`
	first, made := respond(body)
	clock.Store(0)
	hit, got := respond(body)
	if got.header.Get("X-Gateway-Cache-Status") != "HIT" || hit == first || fmt.Sprint(got.json(t)["usage"]) != fmt.Sprint(made.json(t)["usage"]) || !strings.Contains(got.body, "Mock answer") {
		t.Errorf("%v %s\nfirst %s", got.header, got.body, made.body)
	}
	if got := in.call("POST", "/responses", fmt.Sprintf(next, first), cached...); got.status != 400 {
		t.Errorf("the first response: %d %s", got.status, got.body)
	}
	if got := in.call("POST", "/responses", fmt.Sprintf(next, hit), cached...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if body := string(r.mock.Requests(1)[0].Body); strings.Count(body, "first question") != 1 || strings.Count(body, "Mock answer") != 1 || !strings.Contains(body, "second question") {
		t.Error(body)
	}
}

// TestTranslatedResponsesHaveTheirOwnIDs repeats requests to a provider that gives each response the
// same id: the translated ones have different ids, which are not the provider's.
func TestTranslatedResponsesHaveTheirOwnIDs(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"id":"upstream-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`+"\n\ndata: [DONE]\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"upstream-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(host.Close)
	n := start(t)
	config := []string{"X-Gateway-Config", fmt.Sprintf(`{"provider":"deepseek","api_key":"k","custom_host":%q}`, host.URL)}
	id := regexp.MustCompile(`"id":"([^"]+)"`)
	for _, c := range []struct{ path, body string }{
		{"/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":%v}`},
		{"/responses", `{"model":"m","input":"x","stream":%v}`},
	} {
		seen := map[string]bool{"upstream-1": true}
		for _, stream := range []bool{false, false, true, true} {
			got := n.call("POST", c.path, fmt.Sprintf(c.body, stream), config...)
			made := id.FindStringSubmatch(got.body)
			if got.status != 200 || made == nil || seen[made[1]] || strings.Contains(got.body, "upstream-1") {
				t.Errorf("%s, stream %v: %d %s", c.path, stream, got.status, got.body)
				continue
			}
			seen[made[1]] = true
		}
	}
}
