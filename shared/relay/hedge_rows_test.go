package relay_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/ledger"
	"gateway/shared/testkit/relaytest"
	"gateway/shared/usage"
)

// hedged is a config with a hedge after some milliseconds, with more fields in it.
func hedged(mode string, after int, more string, targets ...string) string {
	return fmt.Sprintf(`{"strategy":{"mode":%q,"hedge":{"enabled":true,"after_ms":%d,"max_extra_cost":1%s}},"targets":[%s]}`, mode, after, more, strings.Join(targets, ","))
}

// race returns the replies of two targets with the credentials a and b, which are called in any order.
func race(a, b relaytest.Reply) []relaytest.Reply {
	a.For, b.For = "a", "b"
	return []relaytest.Reply{a, b}
}

// racing is a target with a credential.
func racing(key, more string) string {
	return `{"provider":"openai","api_key":"` + key + `"` + more + `}`
}

// warmed returns a key with a budget and extra cost for hedges, and what it has spent.
func warmed(t *testing.T, g *relaytest.Gateway) (key string, spent int64) {
	t.Helper()
	key = g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: 100_000_000_000})
	for range 3 {
		g.Script(ok(reply))
		if got := g.Do("POST", chatPath, question, on(hedged("fallback", 600_000, "", openAI(""), openAI("")), "X-Gateway-Api-Key", key)...); got.Status != 200 {
			t.Fatal(got.Status, got.Body)
		}
		r := g.Record()
		spent += int64(r.Cost)
	}
	g.Calls()
	return key, spent
}

// TestASlowTargetIsHedged requires that the first usable response is sent, complete or as a stream,
// and that both attempts are recorded and paid once.
func TestASlowTargetIsHedged(t *testing.T) {
	t.Parallel()
	late := func(r relaytest.Reply, d time.Duration) relaytest.Reply {
		r.Delay = d
		return r
	}
	const soon, later = 500 * time.Millisecond, time.Second
	slow := relaytest.Reply{Hang: true}
	a, b := racing("a", `,"name":"a","weight":1000000`), racing("b", `,"name":"b","weight":0.000001`)
	for _, stream := range []bool{false, true} {
		good, body := ok(reply), strings.Replace(question, "{", `{"user":"u",`, 1)
		if stream {
			good, body = ok(helloStream), strings.Replace(streamed, "{", `{"user":"u",`, 1)
		}
		for _, c := range []struct {
			name, mode string
			script     []relaytest.Reply
			option     string
			status     int
			ends       []string // status and code of the attempts
		}{
			{"the second is faster", "fallback", race(slow, good), "config.targets[1]", 200, []string{"0 superseded", "200 "}},
			{"the second fails", "fallback", race(late(good, soon), failure(500, broken)), "config.targets[0]", 200, []string{"200 ", "500 provider_error"}},
			{"the second is slower", "fallback", race(late(good, soon), slow), "config.targets[0]", 200, []string{"200 ", "0 superseded"}},
			{"the first fails later", "fallback", race(late(failure(503, broken), soon), late(good, later)), "config.targets[1]", 200, []string{"503 overloaded", "200 "}},
			{"both fail", "fallback", race(late(failure(503, broken), soon), failure(500, broken)), "config.targets[0]", 503, []string{"503 overloaded", "500 provider_error"}},
			{"conditions", "conditional", race(slow, good), "config.targets[1]", 200, []string{"0 superseded", "200 "}},
			{"figures", "cost", race(slow, good), "config.targets[1]", 200, []string{"0 superseded", "200 "}},
			{"weights", "loadbalance", race(slow, good), "config.targets[1]", 200, []string{"0 superseded", "200 "}},
		} {
			t.Run(fmt.Sprint(c.name, stream), func(t *testing.T) {
				t.Parallel()
				g := relaytest.New(t, routes)
				key, spent := warmed(t, g)
				text := hedged(c.mode, 20, "", a, b)
				switch c.mode {
				case "conditional":
					text = strings.Replace(text, `"hedge"`, `"conditions":[{"query":{"params.user":{"$eq":"u"}},"then":"a"}],"default":"b","hedge"`, 1)
				case "cost":
					text = hedged(c.mode, 20, "", racing("a", `,"override_params":{"model":"gpt-4o-mini"}`), racing("b", ""))
				}
				x := exchange{c.name, chatPath, body, on(text, "X-Gateway-Api-Key", key), c.script, c.status, "X-Gateway-Last-Used-Option-Index: " + c.option, "", ""}
				got, _, r := x.run(t, g)
				slices.SortFunc(r.Attempts, func(a, b usage.Attempt) int { return strings.Compare(a.WaitReason, b.WaitReason) }) // the clock stands still
				var ends []string
				var sum int64
				for _, at := range r.Attempts {
					ends = append(ends, fmt.Sprint(at.Status, " ", at.ErrorCode))
					sum += int64(at.Cost)
				}
				if !slices.Equal(ends, c.ends) || sum != int64(r.Cost) || r.Attempts[1].WaitReason != usage.WaitHedge || r.Attempts[0].WaitReason != "" || stream && c.status == 200 && !strings.Contains(got.Body, "data: [DONE]") {
					t.Errorf("attempts %q %+v: %s", ends, r.Attempts, got.Body)
				}
				if slices.Contains(ends, "0 superseded") && slices.ContainsFunc(r.Attempts, func(at usage.Attempt) bool { return at.Cost == 0 }) {
					t.Errorf("an attempt that was sent costs nothing: %+v", r.Attempts)
				}
				if state := g.Budget(key); state.Usage != spent+int64(r.Cost) || state.Reserved != 0 {
					t.Errorf("the budget has spent %d and reserved %d; want %d", state.Usage, state.Reserved, spent+int64(r.Cost))
				}
			})
		}
	}
}

// TestHedgesAreChargedOnce requires that under faults and at any speed of the targets each request
// has one record, whose attempts add up to its cost, and that the budget has spent the sum.
func TestHedgesAreChargedOnce(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	key, spent := warmed(t, g)
	speeds := []func(relaytest.Reply) relaytest.Reply{}
	for _, change := range []relaytest.Reply{{Delay: time.Millisecond}, {Delay: 20 * time.Millisecond}, {Delay: 60 * time.Millisecond}, {Delay: 20 * time.Millisecond, Status: 503}, {Status: 429}, {Err: fmt.Errorf("it hung up")}, {Cut: true}, {Body: "{"}, {Pace: 5 * time.Millisecond}, {Delay: 250 * time.Millisecond}} {
		speeds = append(speeds, func(r relaytest.Reply) relaytest.Reply {
			r.Delay, r.Cut, r.Pace = change.Delay, change.Cut, change.Pace
			if change.Status != 0 {
				r = relaytest.Reply{Status: change.Status, Body: broken, Delay: change.Delay}
			}
			if change.Err != nil {
				r = relaytest.Reply{Err: change.Err}
			}
			if change.Body != "" {
				r.Body = change.Body
			}
			return r
		})
	}
	g.Respond(func(c relaytest.Call) relaytest.Reply {
		var i int
		_, _ = fmt.Sscanf(c.Header.Get("Authorization"), "Bearer k%d", &i)
		if strings.Contains(c.Body, `"stream":true`) {
			return speeds[i](ok(helloStream))
		}
		return speeds[i](ok(reply))
	})
	n := 0
	var wait sync.WaitGroup
	room := make(chan struct{}, 8)
	for i := range speeds {
		for j := range speeds {
			mode, body := []string{"fallback", "loadbalance", "latency", "least_busy"}[(i+j)%4], []string{question, streamed}[(i*j+i)%2]
			n++
			wait.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				target := func(i int) string { return fmt.Sprintf(`{"provider":"openai","api_key":"k%d"}`, i) }
				g.Do("POST", chatPath, body, on(hedged(mode, 10, "", target(i), target(j)), "X-Gateway-Api-Key", key)...)
			})
		}
	}
	wait.Wait()
	both, superseded, ids := 0, 0, map[string]bool{}
	for _, r := range g.Records() {
		ids[r.ID] = true
		spent += int64(r.Cost)
		var sum int64
		for _, a := range r.Attempts {
			sum += int64(a.Cost)
			if a.WaitReason == usage.WaitHedge {
				both++
			}
			if a.ErrorCode == usage.Superseded {
				superseded++
			}
			if a.Status == 200 && a.ErrorCode == "" && a.Cost != 350_000 && a.Cost != 75_000 {
				t.Errorf("a complete response costs %d", a.Cost)
			}
		}
		if sum != int64(r.Cost) {
			t.Errorf("%+v", r.Attempts)
		}
	}
	if len(ids) != n || both < 20 || superseded < 10 {
		t.Errorf("%d records of %d requests; %d hedged, %d superseded", len(ids), n, both, superseded)
	}
	if state := g.Budget(key); state.Usage != spent || state.Reserved != 0 {
		t.Errorf("the budget has spent %d and reserved %d; want %d", state.Usage, state.Reserved, spent)
	}
}

// TestRequestsWithSideEffectsAreNotHedged requires that requests that do more than have a model
// respond are sent once, unless the hedge allows it, and that extra cost is limited.
func TestRequestsWithSideEffectsAreNotHedged(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	key, _ := warmed(t, g)
	const responses = "/v1/responses"
	for _, c := range []struct {
		name, path, body, more string
		twice                  bool
	}{
		{"a chat", chatPath, question, "", true},
		{"a stored chat", chatPath, asks("gpt-4o", `,"store":true`), "", false},
		{"a stored chat, allowed", chatPath, asks("gpt-4o", `,"store":true`), `,"stored_responses":true`, true},
		{"a stored response", responses, `{"model":"gpt-4o","input":"Hi"}`, "", false},
		{"a response", responses, `{"model":"gpt-4o","input":"Hi","store":false}`, "", true},
		{"a background response", responses, `{"model":"gpt-4o","input":"Hi","background":true}`, `,"stored_responses":true`, false},
		{"tools of a server", responses, `{"model":"gpt-4o","input":"Hi","store":false,"tools":[{"type":"mcp","server_label":"a","server_url":"https://example.com/mcp"}]}`, "", false},
		{"the same, escaped", responses, `{"model":"gpt-4o","input":"Hi","store":false,"tools":[{"type":"\u006dcp","server_label":"a","server_url":"https://example.com/mcp"}]}`, "", false},
		{"tools that the provider runs", responses, `{"model":"gpt-4o","input":"Hi","store":false,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`, "", false},
		{"embeddings", "/v1/embeddings", `{"model":"gpt-4o","input":"Hi"}`, "", true},
	} {
		made := map[string]string{chatPath: reply, responses: responseBody, "/v1/embeddings": `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`}[c.path]
		first := ok(made)
		first.Delay = 30 * time.Millisecond
		script := []relaytest.Reply{first}
		if c.twice {
			script[0].Delay = 500 * time.Millisecond
			script = race(script[0], ok(made))
		}
		x := exchange{c.name, c.path, c.body, on(hedged("fallback", 10, c.more, racing("a", ""), racing("b", "")), "X-Gateway-Api-Key", key), script, 200, "", "", ""}
		if _, _, r := x.run(t, g); c.twice != (len(r.Attempts) == 2 && slices.ContainsFunc(r.Attempts, func(a usage.Attempt) bool { return a.WaitReason == usage.WaitHedge })) {
			t.Errorf("%s: %+v", c.name, r.Attempts)
		}
	}
	// A key without extra cost left sends each request once: at 20 % the first five.
	poor := g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: 100_000_000_000})
	g.Respond(func(relaytest.Call) relaytest.Reply {
		r := ok(reply)
		r.Delay = 30 * time.Millisecond
		return r
	})
	var used, unused float64
	first := -1
	for i := range 12 {
		g.Do("POST", chatPath, question, on(strings.Replace(hedged("fallback", 5, "", openAI(""), openAI("")), `"max_extra_cost":1`, `"max_extra_cost":0.2`, 1), "X-Gateway-Api-Key", poor)...)
		r := g.Record()
		for _, a := range r.Attempts {
			if a.ErrorCode == usage.Superseded {
				unused += float64(a.Cost)
			} else {
				used += float64(a.Cost)
			}
		}
		if len(r.Attempts) == 2 && first < 0 {
			first = i
		}
	}
	if first < 5 || unused > used/5 {
		t.Errorf("the first hedge was at %d; %.0f of %.0f at 20 %%", first, unused, used)
	}
}

// TestHedgesApplyGuardrails requires that the second attempt sends nothing that the guardrails of its
// target deny, and that its response is judged before it wins.
func TestHedgesApplyGuardrails(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	key, _ := warmed(t, g)
	const denies = `"%s":[{"default.contains":{"words":[%q],"operator":"none"},"deny":true}],`
	for _, c := range []struct {
		name, guardrails string
		calls            int
		text             string
	}{
		{"without guardrails", "", 2, "second"},
		{"input", fmt.Sprintf(denies, "input_guardrails", "Hi"), 1, "Hello"},
		{"output", fmt.Sprintf(denies, "output_guardrails", "second"), 2, "Hello"},
	} {
		first := ok(reply)
		first.Delay = 500 * time.Millisecond
		script := race(first, ok(strings.Replace(reply, "Hello", "second", 1)))
		x := exchange{c.name, chatPath, question, on(hedged("fallback", 10, "", racing("a", ""), `{`+c.guardrails+`"provider":"openai","api_key":"b"}`), "X-Gateway-Api-Key", key), script[:c.calls], 200, c.text, "", ""}
		x.run(t, g)
	}
}
