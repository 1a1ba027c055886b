package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// For every kind of traffic the records cost what the provider bills, and a budget for all
// of it has spent the same.
func TestEveryKindOfTrafficIsBookedAsBilled(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1000}`)
	own := []string{"X-Gateway-Api-Key", key}
	slow := httptest.NewServer(&later{reads: map[string]int{}})
	t.Cleanup(slow.Close)
	r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+slow.URL+`/v1"}`)
	tools, _ := mcpServer(t, stateless)
	r.registerMCP("tools", tools.URL, "")

	records, alsoBilled := 0, int64(0) // alsoBilled by providers that keep no bill
	send := func(status int, method, path, body string, headers ...string) reply {
		t.Helper()
		records++
		got := r.call(method, path, body, append(append([]string{}, own...), headers...)...)
		if got.status != status {
			t.Fatalf("%s %s: %d %s", path, body, got.status, got.body)
		}
		return got
	}
	chat := func(status int, message, more string, headers ...string) reply {
		t.Helper()
		return send(status, "POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", message, more), headers...)
	}
	config := func(text string) []string { return []string{"X-Gateway-Config", text} }
	kinds := []struct {
		name string
		run  func()
	}{
		{"plain, streamed and translated", func() {
			for _, c := range traffic {
				send(200, "POST", c.path, c.body)
			}
		}},
		{"cancelled", func() {
			for n, model := range []string{"@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5"} {
				records++
				if err := leave(r, "/chat/completions", chatBody(model, "Tell\nmock: chunks=20 pace=2ms", `,"stream":true`), 2+n, own...); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"retried and fallen back", func() {
			chat(200, "again\nmock: status=503 times=1", "", config(`{"retry":{"attempts":1}}`)...)
			r.order(1, "gpt-4o-mini", "status=500")
			send(200, "POST", "/chat/completions", `{"messages":[{"role":"user","content":"elsewhere"}],"max_tokens":20}`, config(`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock","override_params":{"model":"gpt-4o-mini"}},{"provider":"@mock-anthropic","override_params":{"model":"claude-sonnet-4-5"}}]}`)...)
		}},
		{"cached", func() {
			for _, want := range []string{"MISS", "HIT", "HIT"} {
				if got := chat(200, "the same again", "", config(simpleCache)...); got.header.Get("X-Gateway-Cache-Status") != want {
					t.Errorf("cache status %s, want %s", got.header.Get("X-Gateway-Cache-Status"), want)
				}
			}
		}},
		{"guarded", func() {
			const check = `{"default.contains":{"words":["forbidden"],"operator":"none"},"deny":true}`
			chat(200, "allowed words", "", config(`{"input_guardrails":[`+check+`],"output_guardrails":[`+check+`]}`)...)
			chat(446, "forbidden words", "", config(`{"input_guardrails":[`+check+`]}`)...)
			chat(446, "mock: say=forbidden", "", config(`{"output_guardrails":[`+check+`]}`)...)
		}},
		{"failed", func() {
			chat(429, "mock: status=429", "")
			chat(502, "mock: html", "")
			chat(503, "mock: drop", "")
			send(400, "POST", "/chat/completions", `{"model":"@mock/gpt-4o-mini","messages":5}`)
		}},
		{"passed through", func() {
			for _, more := range []string{"", `,"stream":true,"stream_options":{"include_usage":true}`} {
				send(200, "POST", "/proxy/chat/completions", chatBody("gpt-4o-mini", "as it is", more), "X-Gateway-Provider", "@mock")
			}
		}},
		{"in the background", func() {
			h := []string{"X-Gateway-Provider", "@later"}
			got := send(200, "POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello","background":true}`, h...)
			id := textAt(got.json(t), "id")
			for range readyAfter + 2 {
				send(200, "GET", "/responses/"+id, "", h...)
			}
			alsoBilled += 100*150 + 50*600
		}},
		{"in batches", func() {
			const rows = 12
			b := r.ended(key, r.runBatch(key, r.storeRows(key, chatRows(rows, "@mock/gpt-4o-mini", greeting)), ""))
			if b["status"] != "completed" {
				t.Fatalf("%v", b)
			}
		}},
		{"realtime", func() {
			s := r.speak("model=@mock/gpt-realtime", own...)
			s.turn("one")
			s.turn("two")
			s.leave()
			records += 3 // the session is one
		}},
		{"MCP", func() {
			records++
			if got := r.callTool("tools", "tool1", "hello"); got.status != 200 || !strings.Contains(got.body, "result") {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}},
	}
	for _, k := range kinds {
		t.Log(k.name)
		k.run()
	}
	eventually(t, func() error {
		if open := r.mock.Bill().Open; open != 0 {
			return fmt.Errorf("%d rows of the bill are open", open)
		}
		var ours int64
		all := archived(t, r.g)
		for i := range all {
			ours += int64(all[i].Cost)
			if !all[i].Priced && all[i].Cost != 0 {
				return fmt.Errorf("%s is not priced whole", all[i].Path)
			}
		}
		if want := billed(r).nanoDollars + alsoBilled; len(all) < records || ours != want {
			return fmt.Errorf("%d records of at least %d cost %d, the bills say %d", len(all), records, ours, want)
		}
		return usageIs(r, key, billed(r).nanoDollars+alsoBilled)
	})
}
