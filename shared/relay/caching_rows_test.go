package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/testkit/relaytest"
)

const (
	simpleCache   = `"cache":{"mode":"simple"}`
	semanticCache = `"cache":{"mode":"semantic","embedder":{"provider":"` + relaytest.Saved + `","model":"text-embedding-3-small"}}`
)

// cached sends a request with a cache and requires its status; the provider is called only for
// statuses other than a hit.
func cached(t *testing.T, g *relaytest.Gateway, want, path, body string, reply relaytest.Reply, headers ...string) relaytest.Response {
	t.Helper()
	g.Script(reply)
	got := g.Do("POST", path, body, headers...)
	if calls, status := len(g.Calls()), got.Header.Get("X-Gateway-Cache-Status"); status != want || (calls == 0) != strings.HasSuffix(want, "HIT") {
		t.Fatalf("%s: %d with cache status %s after %d calls; want %s: %s", body, got.Status, status, calls, want, got.Body)
	}
	return got
}

// text joins the text of a response of chat, completions or Messages, whole or streamed.
func text(body string) string {
	var all strings.Builder
	for _, mark := range []string{`"content":"`, `"text":"`, `"arguments":"`} {
		for _, rest := range strings.Split(body, mark)[1:] {
			part, _, _ := strings.Cut(strings.ReplaceAll(rest, `\"`, "'"), `"`)
			all.WriteString(part)
		}
	}
	return all.String()
}

// TestResponsesAreReplayed requires that a response that was requested whole or streamed is
// replayed in both forms to the same request, in the format of its client.
func TestResponsesAreReplayed(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	chatStream := sse(piece("Hel", ""), piece("lo", ""), lastChunk+shortly+"}", ended)
	claudeStream := sse(messageStream(`"input_tokens":100,"output_tokens":1`, `"output_tokens":10`)...)
	const call = `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":1}"}}]`
	callReply := strings.NewReplacer(`"content":"Hello"`, `"content":null,`+call, `"stop"`, `"tool_calls"`).Replace(reply)
	callStream := sse(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant",`+call+`},"finish_reason":null}]}`, strings.Replace(lastChunk, `"stop"`, `"tool_calls"`, 1)+shortly+"}", ended)
	claudeCall := strings.NewReplacer(`{"type":"text","text":"Hello"}`, `{"type":"tool_use","id":"c1","name":"weather","input":{"city":1}}`, "end_turn", "tool_use").Replace(claudeReply)
	claudeCalls := sse(message(`"input_tokens":100,"output_tokens":1`), `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"weather","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\":1}"}}`, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":10}}`, `{"type":"message_stop"}`)
	claudeThinks := strings.Replace(claudeReply, `"content":[`, `"content":[{"type":"thinking","thinking":"Hm","signature":"c2ln"},`, 1)
	claudeThought := sse(message(`"input_tokens":100,"output_tokens":1`), `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello"}}`, `{"type":"content_block_stop","index":1}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":10}}`, `{"type":"message_stop"}`)
	completion := func(text string) string {
		return `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"` + text + `","finish_reason":"stop","logprobs":null}]`
	}
	completions := completion("Hello") + `,"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	completionStream := sse(completion("Hello")+"}", "[DONE]")
	twice := strings.Replace(reply, `"choices":[`, `"choices":[{"index":1,"message":{"role":"assistant","content":"Bye"},"finish_reason":"stop"},`, 1)
	twiceStream := sse(piece("Hello", ""), strings.Replace(piece("Bye", ""), `"index":0`, `"index":1`, 1), lastChunk+"}", strings.Replace(lastChunk, `"index":0`, `"index":1`, 1)+shortly+"}", ended)
	const tools, functions = `,"tools":[{"type":"function","function":{"name":"weather"}}]`, `,"functions":[{"name":"weather","parameters":{"type":"object","properties":{}}}],"function_call":{"name":"weather"}`
	const thinks = `,"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024}`
	length := strings.NewReplacer(`"stop"`, `"length"`)
	for _, c := range []struct {
		name, path, body, provider string // body without its closing brace
		plain, stream              string // what the provider responds
		whole, streamed            string // parts of what the client reads
	}{
		{"chat", chatPath, asks("m", ""), "openai", reply, chatStream, "Hello", "!\"usage\":{ & [DONE]"},
		{"translated chat", chatPath, asks("m", `,"max_tokens":9`), "anthropic", claudeReply, claudeStream, `"finish_reason":"stop"`, "[DONE]"},
		{"completions", "/v1/completions", `{"model":"m","prompt":"Once"}`, "openai", completions, completionStream, "Hello", "Hello & [DONE]"},
		{"Messages", messagesPath, claudeAsked, "anthropic", claudeReply, claudeStream, `"end_turn"`, "event: message_stop"},
		{"translated Messages", messagesPath, claudeAsked, "openai", reply, chatStream, `"end_turn"`, "event: message_stop"},
		{"a call", chatPath, asks("m", tools), "openai", callReply, callStream, `"name":"weather" & {\"city\":1}`, `"name":"weather" & city`},
		{"a translated call", chatPath, asks("m", `,"max_tokens":9`+tools), "anthropic", claudeCall, claudeCalls, `"name":"weather" & {\"city\":1}`, `"name":"weather" & city`},
		{"a legacy function", chatPath, asks("m", functions), "anthropic", claudeCall, claudeCalls, `"function_call"`, `"function_call"`},
		{"two choices", chatPath, asks("m", `,"n":2`), "openai", twice, twiceStream, `"index":1 & Bye`, `"index":1 & Bye`},
		{"thinking", messagesPath, asks("m", thinks), "anthropic", claudeThinks, claudeThought, `"thinking":"Hm" & "signature":"c2ln"`, "thinking_delta & signature_delta"},
		{"translated thinking", chatPath, asks("m", thinks), "anthropic", claudeThinks, claudeThought, `"content_blocks" & Hm & c2ln`, `"content_blocks" & Hm & c2ln`},
		{"a length", chatPath, asks("m", ""), "openai", length.Replace(reply), length.Replace(chatStream), `"finish_reason":"length"`, `"finish_reason":"length"`},
	} {
		stream := c.body[:len(c.body)-1] + `,"stream":true}`
		for i, first := range []string{c.body, stream} {
			headers := on(`{"provider":"`+c.provider+`","api_key":"k",`+simpleCache+`}`, "X-Gateway-Cache-Namespace", fmt.Sprint(strings.ReplaceAll(c.name, " ", "-"), i), "X-Gateway-Strict-Open-Ai-Compliance", fmt.Sprint(!strings.Contains(c.body, "thinking")))
			made := cached(t, g, "MISS", c.path, first, ok([]string{c.plain, c.stream}[i]), headers...)
			plain := cached(t, g, "HIT", c.path, c.body, relaytest.Reply{}, headers...)
			again := cached(t, g, "HIT", c.path, stream, relaytest.Reply{}, headers...)
			if bad := parts(plain.Body, c.whole); bad != "" {
				t.Errorf("%s, %d: %q in %s", c.name, i, bad, plain.Body)
			}
			if bad := parts(again.Body, c.streamed); bad != "" || !strings.HasPrefix(again.Header.Get("Content-Type"), "text/event-stream") || again.Header.Get("X-Gateway-Retry-Attempt-Count") != "0" {
				t.Errorf("%s, %d: %q in %v %s", c.name, i, bad, again.Header, again.Body)
			}
			if want := text(made.Body); want == "" || c.name != "translated thinking" && (text(plain.Body) != want || text(again.Body) != want) {
				t.Errorf("%s, %d: %q, then %q and %q", c.name, i, want, text(plain.Body), text(again.Body))
			}
			for _, r := range g.Records()[1:] {
				if r.Cost != 0 || r.Usage.TotalTokens() != 0 || len(r.Attempts) != 0 || !r.Priced || r.ClientStatus != 200 || r.FinishReason == "" {
					t.Errorf("%s, %d: a hit is recorded with cost %d, %+v, %d attempts, %q", c.name, i, r.Cost, r.Usage, len(r.Attempts), r.FinishReason)
				}
			}
		}
	}
}

// TestHitsAndMisses requires which requests share a response, what a refresh does, and what a hit
// costs and saves.
func TestHitsAndMisses(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	with := func(more string, headers ...string) []string { return on(openAI(","+simpleCache+more), headers...) }
	budgeted := g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: 1_000_000_000})
	theirs := g.Workspace("theirs")
	usage := asks("gpt-4o", `,"stream":true,"stream_options":{"include_usage":true}`)
	next := 0
	for _, c := range []struct {
		name, want, body string
		headers          []string
	}{
		{"the first", "MISS", question, with("", "X-Gateway-Api-Key", budgeted)},
		{"the same", "HIT", question, with("", "X-Gateway-Api-Key", budgeted)},
		{"another trace", "HIT", question, with("", "X-Gateway-Trace-Id", "t-1")},
		{"a namespace", "MISS", question, with("", "X-Gateway-Cache-Namespace", "one")},
		{"the namespace", "HIT", question, with("", "X-Gateway-Cache-Namespace", "one")},
		{"metadata in the namespace", "HIT", question, with("", "X-Gateway-Cache-Namespace", "one", "X-Gateway-Metadata", `{"team":"red"}`)},
		{"metadata", "MISS", question, with("", "X-Gateway-Metadata", `{"team":"blue"}`)},
		{"the metadata", "HIT", question, with("", "X-Gateway-Metadata", `{"team":"blue"}`)},
		{"leniency", "MISS", question, with("", "X-Gateway-Strict-Open-Ai-Compliance", "false")},
		{"the leniency", "HIT", question, with("", "X-Gateway-Strict-Open-Ai-Compliance", "false")},
		{"an override", "MISS", question, with(`,"override_params":{"temperature":0.5}`)},
		{"the override", "HIT", question, with(`,"override_params":{"temperature":0.5}`)},
		{"another override", "MISS", question, with(`,"override_params":{"temperature":0.6}`)},
		{"another model", "MISS", asks("gpt-4o-mini", ""), with("")},
		{"another workspace", "MISS", question, with("", "X-Gateway-Api-Key", theirs)},
		{"the other workspace", "HIT", question, with("", "X-Gateway-Api-Key", theirs)},
		{"a refresh", "REFRESH", question, with("", "X-Gateway-Cache-Force-Refresh", "true")},
		{"after the refresh", "HIT", question, with("")},
		{"no refresh", "HIT", question, with("", "X-Gateway-Cache-Force-Refresh", "1")},
		{"a refresh without a cache", "DISABLED", question, on(openAI(""), "X-Gateway-Cache-Force-Refresh", "true")},
		{"without a cache", "DISABLED", question, config(openAI(""))},
		{"without bodies", "DISABLED", question, with("", "X-Gateway-Debug", "false")},
		{"usage on request", "HIT", usage, with("")},
	} {
		next++
		got := cached(t, g, c.want, chatPath, c.body, ok(strings.Replace(reply, "Hello", fmt.Sprint("Hello ", next), 1)), c.headers...)
		r := g.Record()
		if hit := c.want == "HIT"; hit != (r.CacheSaved == 350_000 || r.CacheSaved > 0) || hit == (r.Cost > 0) || r.CacheStatus != c.want {
			t.Errorf("%s: cost %d, saved %d, status %s", c.name, r.Cost, r.CacheSaved, r.CacheStatus)
		}
		switch c.name {
		case "after the refresh":
			if !strings.Contains(got.Body, fmt.Sprint("Hello ", next-1)) {
				t.Errorf("the refreshed response is %s", got.Body)
			}
		case "usage on request":
			if strings.Count(got.Body, `"usage":null`) < 2 || !strings.Contains(got.Body, `"choices":[],"usage":{"prompt_tokens":100,`) {
				t.Errorf("the usage is %s", got.Body)
			}
		}
	}
	x := exchange{"a long namespace", chatPath, question, with("", "X-Gateway-Cache-Namespace", strings.Repeat("n", 257)), nil, 400, "x-gateway-cache-namespace", "", ""}
	x.run(t, g)
	if got := g.Budget(budgeted); got.Usage != 350_000 || got.Reserved != 0 {
		t.Errorf("the budget has spent %d and reserved %d", got.Usage, got.Reserved)
	}
}

// TestWhatIsNeverCached requires that errors and cut streams are not stored, and that operations
// and each target have responses of their own.
func TestWhatIsNeverCached(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	cut := func(data ...string) relaytest.Reply {
		return relaytest.Reply{Status: 200, Body: sse(data...), Cut: true}
	}
	begun := messageStream(`"input_tokens":100,"output_tokens":1`, `"output_tokens":10`)[:4]
	chatError := `{"error":{"message":"busy","type":"server_error"}}`
	for i, c := range []struct {
		path, provider, more string
		reply                relaytest.Reply
	}{
		{chatPath, "openai", "", failure(500, broken)},
		{chatPath, "openai", "", ok(`{"id":`)},
		{chatPath, "openai", "", ok("<html>")},
		{chatPath, "openai", `,"stream":true`, cut(piece("Hello", ""))},
		{chatPath, "openai", `,"stream":true`, ok(sse(piece("Hello", "")))},
		{chatPath, "openai", `,"stream":true`, ok(sse(piece("Hello", ""), chatError))},
		{chatPath, "anthropic", `,"stream":true`, cut(begun...)},
		{messagesPath, "anthropic", `,"stream":true`, cut(begun...)},
		{messagesPath, "openai", `,"stream":true`, cut(piece("Hello", ""))},
	} {
		for range 2 {
			cached(t, g, "MISS", c.path, asks("m", fmt.Sprintf(`,"max_tokens":%d`, i+1)+c.more), c.reply, config(`{"provider":"`+c.provider+`","api_key":"k",`+simpleCache+`}`)...)
		}
	}
	with := config(openAI("," + simpleCache))
	const vectors = `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`
	cached(t, g, "MISS", "/v1/embeddings", `{"model":"m","input":"x"}`, ok(vectors), with...)
	if again := cached(t, g, "HIT", "/v1/embeddings", `{"model":"m","input":"x"}`, relaytest.Reply{}, with...); again.Body != vectors {
		t.Error(again.Body)
	}
	for _, status := range []string{"MISS", "HIT"} { // estimated by the gateway
		g.Script()
		if got := g.Do("POST", "/v1/messages/count_tokens", question, with...); got.Header.Get("X-Gateway-Cache-Status") != status || !strings.Contains(got.Body, `"input_tokens":7`) {
			t.Errorf("%v %s; want %s", got.Header, got.Body, status)
		}
	}
	two := config(`{` + simpleCache + `,"strategy":{"mode":"fallback"},"targets":[` + openAI("") + `,` + claude(`,"override_params":{"model":"claude-sonnet-4-5"}`) + `]}`)
	for i, c := range []struct {
		script []relaytest.Reply
		status string
		index  string
	}{
		{[]relaytest.Reply{failure(500, broken), ok(claudeReply)}, "MISS", "config.targets[1]"}, {[]relaytest.Reply{failure(500, broken)}, "HIT", "config.targets[1]"},
		{[]relaytest.Reply{ok(reply)}, "MISS", "config.targets[0]"}, {nil, "HIT", "config.targets[0]"},
	} {
		g.Script(c.script...)
		got := g.Do("POST", chatPath, question, two...)
		if got.Status != 200 || got.Header.Get("X-Gateway-Last-Used-Option-Index") != c.index || got.Header.Get("X-Gateway-Cache-Status") != c.status || len(g.Calls()) != len(c.script) {
			t.Errorf("%d: %d %v %s", i, got.Status, got.Header, got.Body)
		}
	}
}

// TestResponsesAreFoundByMeaning requires which questions share a response, whose embeddings the
// caller pays in a record of their own, and that an embedder that fails is a miss.
func TestResponsesAreFoundByMeaning(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	with := func(more string, headers ...string) []string {
		return on(`{"provider":"`+relaytest.Saved+`",`+strings.Replace(semanticCache, `"semantic"`, `"semantic"`+more, 1)+`}`, headers...)
	}
	vectors := map[string]string{"where is Ulm": "[1,0,0]", "Ulm is where": "[0.999,0.01,0]", "eggs": "[0,1,0]", "Ulm and more": "[0.8,0.6,0]"}
	ask := func(text, more string) string {
		return `{"model":"gpt-4o","messages":[{"role":"user","content":"` + text + `"}]` + more + `}`
	}
	n := 0
	g.Respond(func(c relaytest.Call) relaytest.Reply {
		if !strings.HasSuffix(c.URL, "/embeddings") {
			n++
			return ok(strings.Replace(reply, "Hello", fmt.Sprint("Hello ", n), 1))
		}
		for text, v := range vectors {
			if strings.Contains(c.Body, text) {
				return ok(`{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":` + v + `}],"usage":{"prompt_tokens":8,"total_tokens":8}}`)
			}
		}
		return failure(500, broken)
	})
	const five = `{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"x"},{"role":"assistant","content":"y"},`
	for _, c := range []struct {
		name, body string
		headers    []string
		want, text string
	}{
		{"the first", ask("where is Ulm", ""), with("", "X-Gateway-Trace-Id", "trace-1"), "SEMANTIC MISS", "Hello 1"},
		{"the same words", ask("where is Ulm", ""), with(""), "HIT", "Hello 1"},
		{"the same meaning", ask("Ulm is where", ""), with(""), "SEMANTIC HIT", "Hello 1"},
		{"as a stream", ask("Ulm is where", `,"stream":true`), with(""), "SEMANTIC HIT", "Hello 1"},
		{"another meaning", ask("eggs", ""), with(""), "SEMANTIC MISS", "Hello 2"},
		{"another temperature", ask("Ulm is where", `,"temperature":0.5`), with(""), "SEMANTIC MISS", "Hello 3"},
		{"other metadata", ask("Ulm is where", ""), with("", "X-Gateway-Metadata", `{"a":"b"}`), "SEMANTIC MISS", "Hello 4"},
		{"a system prompt", strings.Replace(ask("Ulm is where", ""), `[`, `[{"role":"system","content":"Be brief"},`, 1), with(""), "SEMANTIC HIT", "Hello 1"},
		{"many turns", strings.Replace(ask("z", ""), `[`, `[`+five, 1), with(""), "MISS", "Hello 5"},
		{"a refresh", ask("Ulm is where", ""), with("", "X-Gateway-Cache-Force-Refresh", "true"), "REFRESH", "Hello 6"},
		{"the refreshed", ask("where is Ulm", ""), with(""), "HIT", "Hello 6"},
		{"a distant meaning", ask("Ulm and more", ""), with(`,"threshold":0.5`), "SEMANTIC HIT", "Hello 6"},
		{"an embedder that fails", ask("unknown", ""), with(""), "SEMANTIC MISS", "Hello 7"},
		{"the words of it", ask("unknown", ""), with(""), "HIT", "Hello 7"},
		{"no embedder", ask("Who is nobody", ""), on(`{"provider":"` + relaytest.Saved + `",` + strings.Replace(semanticCache, relaytest.Saved, "@nobody", 1) + `}`), "SEMANTIC MISS", ""},
	} {
		got := g.Do("POST", chatPath, c.body, c.headers...)
		if status := got.Header.Get("X-Gateway-Cache-Status"); got.Status != 200 || status != c.want || !strings.Contains(got.Body, c.text) {
			t.Errorf("%s: %d with status %s; want %s with %s: %s", c.name, got.Status, status, c.want, c.text, got.Body)
		}
		records := g.Records()
		parent := records[len(records)-1]
		for _, r := range records {
			if r.Endpoint != "embed" {
				parent = r
			}
		}
		for _, r := range records {
			if r.Endpoint == "embed" && r.Usage.InputTokens() > 0 && (r.Cost == 0 || r.ParentSpanID != parent.ID || r.TraceID != parent.TraceID || r.KeyID != parent.KeyID || r.CacheStatus != "DISABLED") {
				t.Errorf("%s: embedding %+v of %+v", c.name, r, parent)
			}
		}
	}
}
