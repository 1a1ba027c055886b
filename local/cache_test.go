package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/local/mockprovider"
	"gateway/shared/usage"
)

const simpleCache = `{"cache":{"mode":"simple"}}`

const semanticCache = `{"cache":{"mode":"semantic","embedder":{"provider":"@mock","model":"text-embedding-3-small"}}}`

// cached sends a request with a cache and expects a status of the cache. Headers
// come as name, value pairs.
func (r *running) cached(want, path, body string, headers ...string) reply {
	r.t.Helper()
	if !slices.Contains(headers, "X-Gateway-Config") {
		headers = append(headers, "X-Gateway-Config", simpleCache)
	}
	got := r.call("POST", path, body, headers...)
	if status := got.header.Get("X-Gateway-Cache-Status"); got.status != http.StatusOK || status != want {
		r.t.Fatalf("%s %s: %d, cache status %q, want %s: %s", path, body, got.status, status, want, got.body)
	}
	return got
}

// unbilled runs f and fails when the provider billed anything meanwhile.
func (r *running) unbilled(f func()) {
	r.t.Helper()
	before := billed(r)
	f()
	if after := billed(r); after != before {
		r.t.Errorf("the provider's bill grew from %+v to %+v", before, after)
	}
}

// outsideMock is a provider that keeps its address when the gateway restarts, because the
// address is part of the cache's key.
func outsideMock(t *testing.T) string {
	t.Helper()
	m := mockprovider.New(mockprovider.Options{})
	addr, err := m.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return "http://" + strings.TrimPrefix(addr, "http://") + "/v1"
}

// streamed is the text of a stream, which must be whole.
func streamed(t *testing.T, path, body string) string {
	t.Helper()
	var text strings.Builder
	last := ""
	for _, data := range events(body) {
		last = data
		if data == "[DONE]" {
			continue
		}
		v := reply{body: data}.json(t)
		switch path {
		case "/messages":
			if d, ok := v["delta"].(map[string]any); ok {
				s, _ := d["text"].(string)
				text.WriteString(s)
			}
		case "/completions":
			for _, c := range v["choices"].([]any) {
				text.WriteString(c.(map[string]any)["text"].(string))
			}
		default:
			for _, c := range v["choices"].([]any) {
				s, _ := c.(map[string]any)["delta"].(map[string]any)["content"].(string)
				text.WriteString(s)
			}
		}
	}
	if path == "/messages" && !strings.Contains(last, `"message_stop"`) || path != "/messages" && last != "[DONE]" {
		t.Errorf("the stream does not end as it must: %s", body)
	}
	return text.String()
}

// plainText is the text of a whole answer.
func plainText(t *testing.T, path, body string) string {
	t.Helper()
	v := reply{body: body}.json(t)
	switch path {
	case "/messages":
		return v["content"].([]any)[0].(map[string]any)["text"].(string)
	case "/completions":
		return v["choices"].([]any)[0].(map[string]any)["text"].(string)
	}
	return v["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"].(string)
}

// cachedRoutes are conversations in each client dialect, passed through and
// translated. more goes into the body.
var cachedRoutes = []struct{ name, path, body string }{
	{"chat", "/chat/completions", `{"model":"@mock/gpt-4o-mini","messages":[{"role":"user","content":"Hello from the cache"}]%s}`},
	{"chat, translated", "/chat/completions", `{"model":"@mock-anthropic/claude-sonnet-4-5","messages":[{"role":"user","content":"Hello from the cache"}]%s}`},
	{"completions", "/completions", `{"model":"@mock/gpt-3.5-turbo-instruct","prompt":"Once upon a cache"%s}`},
	{"messages", "/messages", `{"model":"@mock-anthropic/claude-sonnet-4-5","max_tokens":50,"messages":[{"role":"user","content":"Hello from the cache"}]%s}`},
	{"messages, translated", "/messages", `{"model":"@mock/gpt-4o-mini","max_tokens":50,"messages":[{"role":"user","content":"Hello from the cache"}]%s}`},
}

func TestCachedResponsesAreReused(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, route := range cachedRoutes {
		plain, stream := fmt.Sprintf(route.body, ""), fmt.Sprintf(route.body, `,"stream":true`)
		for _, first := range []bool{false, true} {
			headers := []string{"X-Gateway-Cache-Namespace", fmt.Sprint(route.name, first)}
			var text string
			if first {
				text = streamed(t, route.path, r.cached("MISS", route.path, stream, headers...).body)
			} else {
				text = plainText(t, route.path, r.cached("MISS", route.path, plain, headers...).body)
			}
			if text == "" {
				t.Fatalf("%s: no text", route.name)
			}
			r.unbilled(func() {
				again := r.cached("HIT", route.path, plain, headers...)
				if got := plainText(t, route.path, again.body); got != text {
					t.Errorf("%s, stream first %v: %q, want %q", route.name, first, got, text)
				}
				again = r.cached("HIT", route.path, stream, headers...)
				if got := streamed(t, route.path, again.body); got != text {
					t.Errorf("%s as a stream, stream first %v: %q, want %q", route.name, first, got, text)
				}
				if kind := again.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
					t.Errorf("%s: %s", route.name, kind)
				}
				if n := again.header.Get("X-Gateway-Retry-Attempt-Count"); n != "0" {
					t.Errorf("%s: %s retries", route.name, n)
				}
			})
		}
	}
}

func TestAReplayReportsUsageOnlyOnRequest(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("@mock/gpt-4o-mini", "How many?", "")
	whole := r.cached("MISS", "/chat/completions", body).json(t)["usage"].(map[string]any)
	got := r.cached("HIT", "/chat/completions", chatBody("@mock/gpt-4o-mini", "How many?", `,"stream":true`)).body
	if strings.Contains(got, `"usage"`) {
		t.Errorf("usage that nobody asked for: %s", got)
	}
	all := events(r.cached("HIT", "/chat/completions", chatBody("@mock/gpt-4o-mini", "How many?", `,"stream":true,"stream_options":{"include_usage":true}`)).body)
	last := reply{body: all[len(all)-2]}.json(t)
	usage, _ := last["usage"].(map[string]any)
	if len(last["choices"].([]any)) != 0 || usage["total_tokens"] != whole["total_tokens"] || usage["prompt_tokens"] != whole["prompt_tokens"] {
		t.Errorf("the last chunk: %v, want the usage %v", last, whole)
	}
	for _, data := range all[:len(all)-2] {
		if !strings.Contains(data, `"usage":null`) {
			t.Errorf("a chunk without usage null: %s", data)
		}
	}
}

func TestToolCallsAreReplayed(t *testing.T) {
	t.Parallel()
	r := start(t)
	const tools = `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}],"tool_choice":"required"`
	for _, model := range []string{"@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5"} {
		for _, stream := range []string{"", `,"stream":true`} {
			ns := []string{"X-Gateway-Cache-Namespace", model + stream}
			r.cached("MISS", "/chat/completions", chatBody(model, "mock: tools=1", tools+stream), ns...)
			v := r.cached("HIT", "/chat/completions", chatBody(model, "mock: tools=1", tools), ns...).json(t)
			call := v["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["function"].(map[string]any)
			var name, arguments string
			for _, data := range events(r.cached("HIT", "/chat/completions", chatBody(model, "mock: tools=1", tools+`,"stream":true`), ns...).body) {
				if data == "[DONE]" {
					continue
				}
				delta := reply{body: data}.json(t)["choices"].([]any)[0].(map[string]any)["delta"].(map[string]any)
				calls, _ := delta["tool_calls"].([]any)
				for _, c := range calls {
					f := c.(map[string]any)["function"].(map[string]any)
					if s, ok := f["name"].(string); ok {
						name += s
					}
					s, _ := f["arguments"].(string)
					arguments += s
				}
			}
			if name != "weather" || call["name"] != name || call["arguments"] != arguments || !strings.Contains(arguments, "city") {
				t.Errorf("%s%s: %s %s, whole %v", model, stream, name, arguments, call)
			}
		}
	}
}

func TestARefreshReplacesTheAnswer(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("@mock/gpt-4o-mini", "Say it again", "")
	first := r.cached("MISS", "/chat/completions", body)
	second := r.cached("REFRESH", "/chat/completions", body, "X-Gateway-Cache-Force-Refresh", "true")
	if second.json(t)["id"] == first.json(t)["id"] {
		t.Fatal("a refresh called nobody")
	}
	third := r.cached("HIT", "/chat/completions", body)
	if third.body != second.body {
		t.Errorf("after the refresh: %s, want %s", third.body, second.body)
	}
	r.cached("HIT", "/chat/completions", body, "X-Gateway-Cache-Force-Refresh", "1")
	r.cached("DISABLED", "/chat/completions", body, "X-Gateway-Cache-Force-Refresh", "true", "X-Gateway-Config", `{"retry":{"attempts":1}}`)
}

func TestWhatSeparatesCachedAnswers(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("@mock/gpt-4o-mini", "Apart", "")
	r.cached("MISS", "/chat/completions", body)
	r.cached("HIT", "/chat/completions", body)
	r.cached("HIT", "/chat/completions", body, "X-Gateway-Trace-Id", "t-1")
	for name, headers := range map[string][]string{
		"namespace": {"X-Gateway-Cache-Namespace", "one"},
		"metadata":  {"X-Gateway-Metadata", `{"team":"blue"}`},
		"leniency":  {"X-Gateway-Strict-Open-Ai-Compliance", "false"},
		"override":  {"X-Gateway-Config", `{"cache":{"mode":"simple"},"override_params":{"temperature":0.5}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			r.cached("MISS", "/chat/completions", body, headers...)
			r.cached("HIT", "/chat/completions", body, headers...)
		})
	}
	r.cached("HIT", "/chat/completions", body, "X-Gateway-Cache-Namespace", "one", "X-Gateway-Metadata", `{"team":"red"}`)
	r.cached("MISS", "/chat/completions", body, "X-Gateway-Config", `{"cache":{"mode":"simple"},"override_params":{"temperature":0.6}}`)
	r.cached("MISS", "/chat/completions", chatBody("@mock/gpt-4o", "Apart", ""))
	got := r.call("POST", "/chat/completions", body, "X-Gateway-Config", simpleCache, "X-Gateway-Cache-Namespace", strings.Repeat("n", 257))
	if got.status != 400 || !strings.Contains(got.body, "x-gateway-cache-namespace") {
		t.Errorf("a long namespace: %d %s", got.status, got.body)
	}
}

func TestAnotherWorkspaceNeverHits(t *testing.T) {
	t.Parallel()
	r := start(t)
	ws := r.admin("POST", "/admin/workspaces", `{"name":"Other team"}`)
	id, _ := ws["id"].(string)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"theirs","workspace_id":%q,"scopes":["completions.write"]}`, id))["key"].(string)
	// The request names the provider itself, so that both workspaces ask the same.
	outside := outsideMock(t)
	direct := []string{"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", outside, "Authorization", "Bearer sk-of-the-caller"}
	body := chatBody("gpt-4o-mini", "A secret of ours", "")
	r.cached("MISS", "/chat/completions", body, direct...)
	r.cached("HIT", "/chat/completions", body, direct...)
	r.cached("MISS", "/chat/completions", body, append(direct, "X-Gateway-Api-Key", key)...)
	r.cached("HIT", "/chat/completions", body, append(direct, "X-Gateway-Api-Key", key)...)
}

func TestErrorsAndCutStreamsAreNeverCached(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ path, model, text, more string }{
		{"/chat/completions", "@mock/gpt-4o-mini", "mock: status=500", ""},
		{"/chat/completions", "@mock/gpt-4o-mini", "mock: garbage", ""},
		{"/chat/completions", "@mock/gpt-4o-mini", "mock: html", ""},
		{"/chat/completions", "@mock/gpt-4o-mini", "mock: chunks=9 cut=after:3", `,"stream":true`},
		{"/chat/completions", "@mock/gpt-4o-mini", "mock: chunks=9 no-done cut=after:8", `,"stream":true`},
		{"/chat/completions", "@mock-anthropic/claude-sonnet-4-5", "mock: chunks=9 cut=after:6", `,"stream":true`},
		{"/messages", "@mock-anthropic/claude-sonnet-4-5", "mock: chunks=9 cut=after:6", `,"stream":true,"max_tokens":50`},
		{"/messages", "@mock/gpt-4o-mini", "mock: chunks=9 cut=mid:3", `,"stream":true,"max_tokens":50`},
		{"/chat/completions", "@mock/gpt-4o-mini", "mock: chunks=9 error-event=overloaded after=4", `,"stream":true`},
	} {
		for range 2 {
			got := r.call("POST", c.path, chatBody(c.model, c.text, c.more), "X-Gateway-Config", simpleCache)
			if status := got.header.Get("X-Gateway-Cache-Status"); status != "MISS" {
				t.Errorf("%s %s: %d, cache status %s: %s", c.model, c.text, got.status, status, got.body)
			}
		}
	}
}

func TestWhatIsNotCached(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("@mock/gpt-4o-mini", "Not kept", "")
	for range 2 {
		if got := r.call("POST", "/chat/completions", body); got.header.Get("X-Gateway-Cache-Status") != "DISABLED" {
			t.Errorf("without a cache: %v", got.header)
		}
		r.cached("DISABLED", "/chat/completions", body, "X-Gateway-Debug", "false")
	}
	embed := `{"model":"@mock/text-embedding-3-small","input":"kept too"}`
	first := r.cached("MISS", "/embeddings", embed)
	r.unbilled(func() {
		if again := r.cached("HIT", "/embeddings", embed); again.body != first.body {
			t.Error("other vectors")
		}
	})
}

// Answers are also cached for operations that the gateway does itself, and for those that a
// provider does not list but its host is asked for all the same.
func TestAnswersOfOtherOriginsAreCached(t *testing.T) {
	t.Parallel()
	r := start(t)
	for path, body := range map[string]string{
		"/rerank":                `{"model":"@mock/rerank-v1","query":"cat","documents":["dog","a cat"]}`,
		"/messages/count_tokens": `{"model":"@mock/gpt-4o-mini","messages":[{"role":"user","content":"How many?"}]}`,
	} {
		plain := r.call("POST", path, body)
		if plain.status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, plain.status, plain.body)
		}
		first := r.cached("MISS", path, body)
		r.unbilled(func() {
			if again := r.cached("HIT", path, body); again.body != first.body {
				t.Errorf("%s: %s, then %s", path, first.body, again.body)
			}
		})
	}
}

func TestEachTargetHasItsOwnAnswers(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("gpt-4o-mini", "Who answers?", "")
	config := func(first string) []string {
		return []string{"X-Gateway-Config", `{"cache":{"mode":"simple"},"strategy":{"mode":"fallback"},"targets":[` + first +
			`,{"provider":"@mock-anthropic","override_params":{"model":"claude-sonnet-4-5","max_tokens":20}}]}`}
	}
	failing := config(`{"provider":"@mock","override_params":{"model":"gpt-4o-mini?status=500"}}`)
	working := config(`{"provider":"@mock"}`)
	r.cached("MISS", "/chat/completions", body, failing...)
	got := r.cached("HIT", "/chat/completions", body, failing...)
	if got.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[1]" {
		t.Errorf("%v", got.header)
	}
	r.cached("MISS", "/chat/completions", body, working...)
	got = r.cached("HIT", "/chat/completions", body, working...)
	if got.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[0]" {
		t.Errorf("%v", got.header)
	}
}

func TestAHitCostsNothingAndReportsTheSavings(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	body := chatBody("@mock/gpt-4o-mini", "What does it cost?", "")
	r.cached("MISS", "/chat/completions", body, "X-Gateway-Api-Key", key)
	spent := billed(r).nanoDollars
	r.cached("HIT", "/chat/completions", body, "X-Gateway-Api-Key", key)
	all := r.records(2)
	miss, hit := all[0], all[1]
	if miss.CacheStatus != "MISS" || int64(miss.Cost) != spent || miss.CacheSaved != 0 || len(miss.Attempts) != 1 {
		t.Errorf("the miss: %+v", miss)
	}
	if hit.CacheStatus != "HIT" || hit.Cost != 0 || hit.CacheSaved != miss.Cost || len(hit.Attempts) != 0 || hit.Usage.TotalTokens() != 0 || !hit.Priced {
		t.Errorf("the hit: %+v", hit)
	}
	if hit.Model != miss.Model || hit.Provider != "openai" || hit.FinishReason != miss.FinishReason || hit.ClientStatus != 200 {
		t.Errorf("the hit says other than the miss: %+v", hit)
	}
	eventually(t, func() error { return usageIs(r, key, spent) })
}

func TestAnswersOutliveARestart(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), outsideMock(t)
	r := startIn(t, dir)
	body := `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Do you remember the old harbour town?"}]}`
	direct := []string{"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", outside, "Authorization", "Bearer sk-of-the-caller", "X-Gateway-Config", semanticCache}
	r.cached("SEMANTIC MISS", "/chat/completions", body, direct...)
	r.cached("HIT", "/chat/completions", body, direct...)
	r.stop()
	r = startIn(t, dir)
	r.cached("HIT", "/chat/completions", body, direct...)
}

func TestAnswersAreFoundByMeaning(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := []string{"X-Gateway-Config", semanticCache}
	const original, same, other = "Please tell me where the city of Ulm is", "please tell me: where is the city of Ulm", "How long does an egg boil in the mountains"
	model := "@mock/gpt-4o-mini"
	first := r.cached("SEMANTIC MISS", "/chat/completions", chatBody(model, original, ""), config...)
	r.cached("HIT", "/chat/completions", chatBody(model, original, ""), config...)
	before := r.mock.Bill().Models["gpt-4o-mini"]
	found := r.cached("SEMANTIC HIT", "/chat/completions", chatBody(model, same, ""), config...)
	if found.body != first.body {
		t.Errorf("%s, want %s", found.body, first.body)
	}
	text := plainText(t, "/chat/completions", first.body)
	if got := streamed(t, "/chat/completions", r.cached("SEMANTIC HIT", "/chat/completions", chatBody(model, same, `,"stream":true`), config...).body); got != text {
		t.Errorf("as a stream: %q, want %q", got, text)
	}
	if after := r.mock.Bill().Models["gpt-4o-mini"]; after != before {
		t.Errorf("the model was asked: %+v, before %+v", after, before)
	}
	r.cached("SEMANTIC MISS", "/chat/completions", chatBody(model, other, ""), config...)
	r.cached("SEMANTIC MISS", "/chat/completions", chatBody(model, same, `,"temperature":0.5`), config...)
	r.cached("SEMANTIC MISS", "/chat/completions", chatBody(model, same, ""), append(config, "X-Gateway-Metadata", `{"a":"b"}`)...)
	system := `{"model":"` + model + `","messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"` + same + `"}]}`
	r.cached("SEMANTIC HIT", "/chat/completions", system, config...)
	five := `{"role":"user","content":"x"},{"role":"assistant","content":"y"},`
	r.cached("MISS", "/chat/completions", `{"model":"`+model+`","messages":[`+five+five+`{"role":"user","content":"z"}]}`, config...)
	// A refresh replaces the answers to all that means the same.
	renewed := r.cached("REFRESH", "/chat/completions", chatBody(model, "where is the city of Ulm please tell me", ""), append(config, "X-Gateway-Cache-Force-Refresh", "true")...)
	if got := r.cached("HIT", "/chat/completions", chatBody(model, original, ""), config...); got.body != renewed.body {
		t.Errorf("after a refresh of the same: %s, want %s", got.body, renewed.body)
	}
	// Another threshold, another answer.
	strict := []string{"X-Gateway-Config", strings.Replace(semanticCache, `"semantic",`, `"semantic","threshold":0.5,`, 1)}
	r.cached("SEMANTIC HIT", "/chat/completions", chatBody(model, original+" and what one sees there", ""), strict...)
}

func TestVectorsOutliveARestart(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), outsideMock(t)
	r := startIn(t, dir)
	direct := []string{"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", outside, "Authorization", "Bearer sk-of-the-caller", "X-Gateway-Config", semanticCache}
	r.cached("SEMANTIC MISS", "/chat/completions", chatBody("gpt-4o-mini", "Do you remember the old harbour town", ""), direct...)
	r.stop()
	r = startIn(t, dir)
	r.cached("SEMANTIC HIT", "/chat/completions", chatBody("gpt-4o-mini", "The old harbour town: do you remember", ""), direct...)
}

func TestEmbeddingsOfTheCacheArePaidByTheCaller(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.cached("SEMANTIC MISS", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Who pays for this", ""), "X-Gateway-Config", semanticCache, "X-Gateway-Trace-Id", "trace-1")
	all := r.records(2)
	slices.SortFunc(all, func(a, b usage.Record) int { return strings.Compare(a.Endpoint, b.Endpoint) })
	parent, child := all[0], all[1]
	if parent.Endpoint != "chatComplete" || child.Endpoint != "embed" || child.ParentSpanID != parent.ID || child.TraceID != "trace-1" || child.KeyID != parent.KeyID {
		t.Errorf("parent %+v\nchild %+v", parent, child)
	}
	if child.Cost == 0 || child.CacheStatus != "DISABLED" || child.ClientStatus != 200 {
		t.Errorf("%+v", child)
	}
	if got, want := booked(all), billed(r); got != want {
		t.Errorf("booked %+v, billed %+v", got, want)
	}
}

func TestAnEmbedderThatFailsIsAMiss(t *testing.T) {
	t.Parallel()
	r := start(t)
	for name, embedder := range map[string]string{
		"is not there": `{"provider":"@nobody","model":"m"}`,
		"refuses":      `{"provider":"@mock","model":"text-embedding-3-small?status=500"}`,
		"says nothing": `{"provider":"@mock","model":"text-embedding-3-small?garbage"}`,
	} {
		config := []string{"X-Gateway-Config", `{"cache":{"mode":"semantic","embedder":` + embedder + `}}`}
		body := chatBody("@mock/gpt-4o-mini", "The embedder "+name, "")
		r.cached("SEMANTIC MISS", "/chat/completions", body, config...)
		r.cached("HIT", "/chat/completions", body, config...)
	}
}

func TestAnEmbedderThatIsLateIsAMissThatIsPaid(t *testing.T) {
	t.Parallel()
	r := startIn(t, t.TempDir(), func(g *gateway) { g.relay.CacheTimes.Embed = 100 * time.Millisecond })
	config := []string{"X-Gateway-Config", semanticCache}
	body := chatBody("@mock/gpt-4o-mini", "The embedder is late", "")
	if err := r.mock.Fault(1, "delay=1s"); err != nil { // of the embedding, which is asked for first
		t.Fatal(err)
	}
	r.cached("SEMANTIC MISS", "/chat/completions", body, config...)
	r.cached("HIT", "/chat/completions", body, config...)
	if all := r.records(3); len(all) != 3 {
		t.Errorf("%d records", len(all))
	}
	if got, want := booked(archived(t, r.g)), billed(r); got != want || want.requests != 2 {
		t.Errorf("booked %+v, billed %+v", got, want)
	}
}

func TestASemanticCacheNeedsAnEmbedderToBeSaved(t *testing.T) {
	t.Parallel()
	r := start(t)
	for body, field := range map[string]string{
		`{"cache":{"mode":"semantic"}}`:                                              "cache.embedder",
		`{"cache":{"mode":"semantic","embedder":{"provider":"openai","model":"m"}}}`: "cache.embedder.provider",
		`{"cache":{"mode":"semantic","embedder":{"provider":"@mock"}}}`:              "cache.embedder.model",
	} {
		got := r.call("POST", "/configs", `{"name":"c","workspace_id":"default","config":`+body+`}`, "X-Gateway-Api-Key", adminKey)
		if got.status != 400 || !strings.Contains(got.body, field) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	saved := r.admin("POST", "/configs", `{"name":"c","workspace_id":"default","config":`+semanticCache+`}`)
	slug := saved["data"].(map[string]any)["slug"].(string)
	body := chatBody("@mock/gpt-4o-mini", "By a saved config", "")
	r.cached("SEMANTIC MISS", "/chat/completions", body, "X-Gateway-Config", slug)
	r.cached("HIT", "/chat/completions", body, "X-Gateway-Config", slug)
}

// What a stream and a whole answer say beside plain text comes back too.
func TestRicherAnswersAreReplayed(t *testing.T) {
	t.Parallel()
	r := start(t)
	lenient := []string{"X-Gateway-Strict-Open-Ai-Compliance", "false"}
	const functions = `,"functions":[{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}],"function_call":{"name":"weather"}`
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		plain      []string // in the whole answer
		streamed   []string // in the stream
	}{
		"two choices": {"/chat/completions", chatBody("@mock/gpt-4o-mini", "Two", `,"n":2`), nil, []string{`"index":1`}, []string{`"index":1`}},
		"legacy function": {"/chat/completions", chatBody("@mock/gpt-4o-mini", "mock: tools=1", functions), nil,
			[]string{`"function_call"`}, []string{`"function_call"`}},
		"thinking": {"/messages", chatBody("@mock-anthropic/claude-sonnet-4-5", "mock: reasoning=30", `,"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024}`), nil,
			[]string{`"thinking"`, `"signature"`}, []string{"thinking_delta", "signature_delta"}},
		"thinking, translated": {"/chat/completions", chatBody("@mock-anthropic/claude-sonnet-4-5", "mock: reasoning=30", `,"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024}`), lenient,
			[]string{`"content_blocks"`, `"thinking"`, `"signature"`}, []string{`"content_blocks"`, `"thinking"`, `"signature"`}},
		"echo":     {"/completions", `{"model":"@mock/gpt-3.5-turbo-instruct","prompt":"Once upon","echo":true}`, nil, []string{"Once upon"}, []string{"Once upon"}},
		"a length": {"/chat/completions", chatBody("@mock/gpt-4o-mini", "mock: finish=length", ""), nil, []string{`"finish_reason":"length"`}, []string{`"finish_reason":"length"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			stream := c.body[:len(c.body)-1] + `,"stream":true}`
			for _, first := range []string{c.body, stream} {
				headers := append([]string{"X-Gateway-Cache-Namespace", fmt.Sprint(name, len(first))}, c.headers...)
				r.cached("MISS", c.path, first, headers...)
				plain := r.cached("HIT", c.path, c.body, headers...).body
				for _, want := range c.plain {
					if !strings.Contains(plain, want) {
						t.Errorf("no %s in %s", want, plain)
					}
				}
				again := r.cached("HIT", c.path, stream, headers...).body
				for _, want := range c.streamed {
					if !strings.Contains(again, want) {
						t.Errorf("no %s in %s", want, again)
					}
				}
				if strings.Count(plain, "Once upon") > 1 || strings.Contains(again, "Once uponOnce upon") {
					t.Errorf("the prompt is told twice: %s\n%s", plain, again)
				}
			}
		})
	}
}
