package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/testkit/relaytest"
)

// laterObject is a response that is made in the background, with a text once it is completed.
func laterObject(id, status string) string {
	output, usage := "[]", "null"
	if status == "completed" {
		output = `[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"my hunter2 is safe","annotations":[]}]}]`
		usage = `{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":150}`
	}
	return fmt.Sprintf(`{"id":%q,"object":"response","created_at":1,"status":%q,"background":true,"error":null,"incomplete_details":null,"model":"gpt-4o-mini","output":%s,"usage":%s}`, id, status, output, usage)
}

// laterStream is a read of such a response as a stream.
func laterStream(id string, ends bool) string {
	all := []string{`{"type":"response.created","sequence_number":0,"response":` + laterObject(id, "in_progress") + `}`, `{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"my hunter2 is safe"}`}
	if ends {
		all = append(all, `{"type":"response.completed","sequence_number":2,"response":`+laterObject(id, "completed")+`}`)
	}
	return sse(all...)
}

// TestWhatWasMadeInTheBackgroundIsJudgedWhenItIsRead requires that the first response has nothing to
// judge, that each read of the finished one is judged, plain or streamed, and that it is recorded once.
func TestWhatWasMadeInTheBackgroundIsJudgedWhenItIsRead(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	key := g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: 5_000_000_000})
	const cost = 100*150 + 50*600 // nano-dollars of gpt-4o-mini
	const redacts = `{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}`
	all := []struct {
		name, guardrail, query string
		status                 int
		has                    string
	}{
		{"denied", forbids(`,"deny":true`), "", 446, `"after_request_hooks":[{"verdict":false & !"text":"my`},
		{"softly denied", forbids(`,"deny":true,"soft_deny_200":true`), "", 200, `The guardrail checks defined in the config failed & !"text":"my`},
		{"failed", forbids(``), "", 246, `"after_request_hooks":[{"verdict":false & !hooks_failed`},
		{"passed", `{"contains":{"words":["safe"]},"deny":true}`, "", 200, `"after_request_hooks":[{"verdict":true & !hooks_failed`},
		{"changed", redacts + `}`, "", 200, `my *** is safe & !hunter2`},
		{"denied, held", forbids(`,"deny":true,"stream":"hold"`), "?stream=true", 446, `"after_request_hooks":[{"verdict":false & !"text":"my`},
		{"denied, window", forbids(`,"deny":true,"stream":"window"`), "?stream=true", 446, `"after_request_hooks":[{"verdict":false & !"text":"my`},
		{"failed, held", forbids(`,"stream":"hold"`), "?stream=true", 246, "response.completed & !hooks_failed"},
		{"changed, window", redacts + `,"stream":"window"}`, "?stream=true", 200, `my *** is safe & !hunter2`},
		{"denied, by default", forbids(`,"deny":true`), "?stream=true", 446, `"after_request_hooks":[{"verdict":false & !"text":"my`},
		{"after", forbids(`,"deny":true,"stream":"after"`), "?stream=true", 200, `"after_request_hooks":[{"verdict":false & !hooks_failed`},
		{"none", `{"wordCount":{"maxWords":9},"async":true}`, "?stream=true", 200, `hunter2 & !hook_results`},
	}
	for i, c := range all {
		id := fmt.Sprintf("resp_%02d", i+20)
		h := on(openAI(`,"output_guardrails":[`+c.guardrail+`]`), "X-Gateway-Api-Key", key, "X-Gateway-Strict-Open-Ai-Compliance", "false")
		read := laterObject(id, "completed")
		if c.query != "" {
			read = laterStream(id, true)
		}
		for j, x := range []struct {
			method, path, body, reply, has string
			status, cost                   int
		}{
			{"POST", responsesAt, `{"model":"gpt-4o-mini","input":"Hello","background":true}`, laterObject(id, "queued"), id + " & !hook_results", 200, 0},
			{"GET", responsesAt + "/" + id, "", laterObject(id, "in_progress"), id + " & !hook_results", 200, 0},
			{"GET", responsesAt + "/" + id + c.query, "", read, c.has, c.status, cost},
			{"GET", responsesAt + "/" + id + c.query, "", read, c.has, c.status, 0},
		} {
			g.Script(ok(x.reply))
			got := g.Do(x.method, x.path, x.body, h...)
			if bad := parts(got.Body, x.has); got.Status != x.status || bad != "" {
				t.Errorf("%s, %d: %d, %q in %s", c.name, j, got.Status, bad, got.Body)
			}
			r := g.Record()
			if judged := min(j/2, 1); int(r.Cost) != x.cost || c.name != "none" && len(r.Guards) != judged {
				t.Errorf("%s, %d: cost %d, %+v", c.name, j, r.Cost, r.Guards)
			}
		}
	}
	if state := g.Budget(key); state.Usage != int64(len(all))*cost {
		t.Errorf("the budget has spent %d", state.Usage)
	}
	g.Script(ok(laterStream("resp_x", false)))
	if got := g.Do("GET", responsesAt+"/resp_x?stream=true", "", config(openAI(`,"output_guardrails":[`+forbids(`,"deny":true,"stream":"hold"`)+`]`))...); got.Status != 502 || strings.Contains(got.Body, "safe") {
		t.Errorf("a cut stream: %d %s", got.Status, got.Body)
	}
}

// TestStoredItemsAreJudged requires that the items of a stored response are judged when they are read.
func TestStoredItemsAreJudged(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, append([]relay.Route{earlier("GET", "/responses/{id}/input_items", "listResponseInputItems", provider.ResponsesInputItems)}, familyRoutes...))
	const items = `{"object":"list","data":[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"my hunter2 is safe"}]}],"first_id":"msg_1","last_id":"msg_1","has_more":false}`
	for _, c := range []struct {
		guardrail string
		status    int
		has       string
	}{
		{forbids(`,"deny":true`), 446, "hooks_failed & !is safe"}, {forbids(``), 246, "hunter2 & !hooks_failed"}, {`{"regexReplace":{"rule":"/hunter\\d/g","redactText":"***"}}`, 200, "my *** is safe & !hunter2"},
	} {
		g.Script(ok(items))
		got := g.Do("GET", responsesAt+"/resp_items/input_items", "", config(openAI(`,"output_guardrails":[`+c.guardrail+`]`))...)
		if bad := parts(got.Body, c.has); got.Status != c.status || bad != "" {
			t.Errorf("%s: %d, %q in %s", c.guardrail, got.Status, bad, got.Body)
		}
	}
}

// TestChargedAttemptsNeverPassABudget requires that a failed attempt that was billed counts, so that
// the next one is made only if the budget has room for it besides the earlier ones.
func TestChargedAttemptsNeverPassABudget(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	for _, a := range whole {
		if a.path == "/v1/embeddings" {
			continue // what is limited is all but what is used
		}
		body := strings.Replace(a.body, `"max_tokens":50`, `"max_tokens":300`, 1)
		if a.path == responsesAt {
			body += `,"max_output_tokens":300`
		} else if !strings.Contains(body, "max_tokens") {
			body += `,"max_tokens":300`
		}
		made := strings.NewReplacer(`"output_tokens":10`, `"output_tokens":300`, `"completion_tokens":10`, `"completion_tokens":300`, `"input_tokens":100`, `"input_tokens":10`, `"prompt_tokens":100`, `"prompt_tokens":10`, `"total_tokens":110`, `"total_tokens":310`).Replace(a.reply)
		bad := fmt.Sprintf(`"provider":%q,"api_key":"k","override_params":{"model":%q}`, a.provider, a.model)
		leaves := func(n int, more string) string {
			return `{"strategy":{"mode":"fallback"},"targets":[` + strings.TrimSuffix(strings.Repeat(`{`+more+bad+`},`, n), ",") + `]}`
		}
		for name, text := range map[string]string{
			"retries": `{"retry":{"attempts":5,"on_status_codes":[502]},` + bad + `}`, "fallback": leaves(6, ""), "retries in a fallback": leaves(3, `"retry":{"attempts":2,"on_status_codes":[502]},`),
		} {
			key := g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Tokens, CreditLimit: 1100})
			g.Respond(func(relaytest.Call) relaytest.Reply { return relaytest.Reply{Status: 200, Body: made, Cut: true} })
			got := g.Do("POST", a.path, body+"}", on(text, "X-Gateway-Api-Key", key)...)
			calls, state := len(g.Calls()), g.Budget(key)
			if got.Status != 502 && got.Status != 412 || calls != 3 || state.Usage > 1100 || state.Reserved != 0 {
				t.Errorf("%s of %s%s: %d after %d calls, %d used: %s", name, a.provider, a.path, got.Status, calls, state.Usage, got.Body)
			}
			if retries := got.Header.Get("X-Gateway-Retry-Attempt-Count"); name == "retries" && retries != fmt.Sprint(calls-1) {
				t.Errorf("%s of %s%s: %s retries after %d calls", name, a.provider, a.path, retries, calls)
			}
			g.Records()
		}
	}
}

// TestAbsurdUsageIsNotChargedToBudgets requires that a budget is charged what a request can use,
// not what a host claims.
func TestAbsurdUsageIsNotChargedToBudgets(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	claim := strings.NewReplacer(`"prompt_tokens":100`, `"prompt_tokens":9000000000000000000`, `"completion_tokens":10`, `"completion_tokens":9000000000000000000`, `"total_tokens":110`, `"total_tokens":-5`).Replace(reply)
	for _, path := range []string{chatPath, "/v1/proxy/chat/completions"} {
		key := g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Tokens, CreditLimit: 10_000})
		g.Script(ok(claim))
		got := g.Do("POST", path, strings.Replace(question, "{", `{"max_tokens":5,`, 1), on(openAI(""), "X-Gateway-Api-Key", key)...)
		if state := g.Budget(key); got.Status != 200 || state.Usage < 5 || state.Usage > 200 || state.Reserved != 0 {
			t.Errorf("%s: %d %s; %d used, %d reserved", path, got.Status, got.Body, state.Usage, state.Reserved)
		}
		if r := g.Record(); !r.Usage.Limited || !r.Usage.Estimated {
			t.Errorf("%s: limited %t, estimated %t", path, r.Usage.Limited, r.Usage.Estimated)
		}
	}
}

// TestProvidersAreChosenByHeaderModelAndConfig requires each way to name a provider, and that what is
// wrong with a request is named before anything is sent.
func TestProvidersAreChosenByHeaderModelAndConfig(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	g.Provider("hosted", "sk-hosted", provider.Integration{AIProviderID: "openai", Configurations: map[string]any{"custom_host": "https://hosted.example/v1"}})
	shared := strings.TrimPrefix(relaytest.Saved, "@")
	mine := []string{"X-Gateway-Provider", relaytest.Saved}
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, x := range []exchange{
		{"a saved provider in the header", chatPath, question, mine, []relaytest.Reply{ok(reply)}, 200, "X-Gateway-Provider: openai", "Bearer sk-shared", "200"},
		{"a saved provider in the model", chatPath, asks(relaytest.Saved+"/gpt-4o", ""), nil, []relaytest.Reply{ok(reply)}, 200, "", `"model":"gpt-4o"`, "200"},
		{"a virtual key", chatPath, question, []string{"X-Gateway-Virtual-Key", shared}, []relaytest.Reply{ok(reply)}, 200, "", "Bearer sk-shared", "200"},
		{"a single strategy", chatPath, question, config(`{"strategy":{"mode":"single"},"targets":[{"virtual_key":"` + shared + `"}]}`), []relaytest.Reply{ok(reply)}, 200, "", "Bearer sk-shared", "200"},
		{"an own credential and host", chatPath, question, []string{"X-Gateway-Provider", "openai", "Authorization", "Bearer own", "X-Gateway-Custom-Host", "https://own.example/v1", "X-Gateway-Api-Key", g.Key([]string{write}, nil, nil)}, []relaytest.Reply{ok(reply)}, 200, "", "https://own.example/v1/chat/completions & Bearer own", "200"},
		{"a stored credential at its own host", chatPath, question, []string{"X-Gateway-Provider", "@hosted", "X-Gateway-Custom-Host", "https://hosted.example/v1"}, []relaytest.Reply{ok(reply)}, 200, "", "https://hosted.example/v1/chat/completions & Bearer sk-hosted", "200"},
		{"a stored credential at another host", chatPath, question, append(mine, "X-Gateway-Custom-Host", "https://stranger.example"), nil, 400, "blocked_host", "", ""},
		{"a virtual key at another host", chatPath, question, []string{"X-Gateway-Virtual-Key", shared, "X-Gateway-Custom-Host", "https://stranger.example/v1"}, nil, 400, "blocked_host", "", ""},
		{"a config at another host", chatPath, question, config(`{"provider":"` + relaytest.Saved + `","custom_host":"https://stranger.example"}`), nil, 400, "blocked_host", "", ""},
		{"an unknown key", chatPath, question, []string{"X-Gateway-Api-Key", "nobody"}, nil, 401, `"param":"x-gateway-api-key"`, "", ""},
		{"an unknown provider", chatPath, question, []string{"X-Gateway-Provider", "nope"}, nil, 400, `"param":"x-gateway-provider"`, "", ""},
		{"the address of metadata", chatPath, question, []string{"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", "http://169.254.169.254/v1"}, nil, 400, "custom", "", ""},
		{"another content type", chatPath, question, append(mine, "Content-Type", "text/plain"), nil, 400, "content-type", "", ""},
		{"too deep", chatPath, strings.Replace(question, "{", `{"x":`+deep+`,`, 1), mine, nil, 400, "X-Gateway-Trace-Id", "", ""},
		{"a key twice", chatPath, strings.Replace(question, "{", `{"model":"b",`, 1), mine, nil, 400, "model", "", ""},
		{"n out of bounds", chatPath, asks("m", `,"n":129`), mine, nil, 400, `"param":"n"`, "", ""},
		{"no messages", chatPath, `{"model":"m","messages":[]}`, mine, nil, 400, "messages", "", ""},
		{"headers that name themselves", chatPath, question, append(mine, "X-Gateway-Forward-Headers", "x-gateway-forward-headers"), nil, 400, "x-gateway-forward-headers", "", ""},
		{"embeddings without input", "/v1/embeddings", `{"model":"e"}`, mine, nil, 400, `"param":"input"`, "", ""},
		{"embeddings of a provider without them", "/v1/embeddings", `{"model":"e","input":"x"}`, config(claude("")), nil, 400, "x-gateway-provider", "", ""},
		{"messages without a bound", messagesPath, asks("m", ""), mine, nil, 400, "max_tokens", "", ""},
		{"parameters stay with their target", chatPath, asks("claude-sonnet-4-5", `,"max_tokens":99`), config(fallback(claude(`,"override_params":{"max_tokens":7,"temperature":0.1}`), claude(""))), []relaytest.Reply{failure(500, broken), ok(claudeReply)}, 200, "config.targets[1]", `"max_tokens":99 & !temperature`, "500 200"},
	} {
		x.run(t, g)
	}
}
