package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"gateway/shared/usage"
)

// hedgedConfig has a hedge, with more fields in it.
func hedgedConfig(mode string, after int, more string, targets ...string) string {
	return fmt.Sprintf(`{"strategy":{"mode":%q,"hedge":{"enabled":true,"after_ms":%d,"max_extra_cost":1%s}},"targets":[%s]}`, mode, after, more, strings.Join(targets, ","))
}

// warmed makes requests without a second attempt, so that the key has extra cost left for others.
func (r *running) warmed(key string) int {
	r.t.Helper()
	const n = 3
	config := hedgedConfig("fallback", 600_000, "", measuredTarget("gpt-4o", "delay=1ms"), measuredTarget("gpt-4o", "delay=1ms"))
	for range n {
		if got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "Hello", ""), "X-Gateway-Config", config, "X-Gateway-Api-Key", key); got.status != 200 {
			r.t.Fatal(got.status, got.body)
		}
	}
	return n
}

// The first usable response is sent, complete or as a stream, and both attempts are recorded with
// their cost. The budgets of the key have paid for both, once.
func TestASlowTargetIsHedged(t *testing.T) {
	t.Parallel()
	slow, late, fast, failing := measuredTarget("gpt-4o", "delay=60s stop-on-cancel"), measuredTarget("gpt-4o", "delay=1500ms"), measuredTarget("gpt-4o", "delay=1ms"), measuredTarget("gpt-4o", "status=500")
	lateFailing := measuredTarget("gpt-4o", "delay=1500ms status=503")
	for _, c := range []struct {
		name, mode string
		targets    []string
		option     string // that responds
		status     int
		ends       []string // status and code of the attempts, in order
	}{
		{"the second is faster", "fallback", []string{slow, fast}, "config.targets[1]", 200, []string{"0 superseded", "200 "}},
		{"the second fails", "fallback", []string{late, failing}, "config.targets[0]", 200, []string{"200 ", "500 provider_error"}},
		{"the second is slower", "fallback", []string{late, slow}, "config.targets[0]", 200, []string{"200 ", "0 superseded"}},
		{"the first fails later", "fallback", []string{lateFailing, measuredTarget("gpt-4o", "delay=3s")}, "config.targets[1]", 200, []string{"503 overloaded", "200 "}},
		{"both fail", "fallback", []string{lateFailing, failing}, "config.targets[0]", 503, []string{"503 overloaded", "500 provider_error"}},
		{"conditions", "conditional", []string{strings.Replace(slow, "{", `{"name":"a",`, 1), strings.Replace(fast, "{", `{"name":"b",`, 1)}, "config.targets[1]", 200, []string{"0 superseded", "200 "}},
		{"figures", "cost", []string{strings.Replace(slow, "gpt-4o", "gpt-4o-mini", 1), fast}, "config.targets[1]", 200, []string{"0 superseded", "200 "}},
		{"weights", "loadbalance", []string{strings.Replace(slow, "{", `{"weight":1000000,`, 1), strings.Replace(fast, "{", `{"weight":0.000001,`, 1)}, "config.targets[1]", 200, []string{"0 superseded", "200 "}},
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			t.Run(c.name+stream, func(t *testing.T) {
				t.Parallel()
				r := start(t)
				key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":100}`)
				config := hedgedConfig(c.mode, 40, "", c.targets...)
				if c.mode == "conditional" {
					config = strings.Replace(config, `"hedge"`, `"conditions":[{"query":{"params.user":{"$eq":"u"}},"then":"a"}],"default":"b","hedge"`, 1)
				}
				n := r.warmed(key) + 1
				got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "Hello", `,"user":"u"`+stream), "X-Gateway-Config", config, "X-Gateway-Api-Key", key)
				if option := got.header.Get("X-Gateway-Last-Used-Option-Index"); got.status != c.status || option != c.option || stream != "" && c.status == 200 && !strings.Contains(got.body, "data: [DONE]") {
					t.Errorf("%d from %s: %s", got.status, option, got.body)
				}
				records := r.records(n)
				if len(records) != n {
					t.Errorf("%d records of %d requests", len(records), n)
				}
				var cost int64
				for _, rec := range records {
					cost += int64(rec.Cost)
				}
				last := records[n-1]
				var ends []string
				var sum int64
				for _, a := range last.Attempts {
					ends = append(ends, fmt.Sprint(a.Status, " ", a.ErrorCode))
					sum += int64(a.Cost)
				}
				if !slices.Equal(ends, c.ends) || sum != int64(last.Cost) || last.Attempts[1].WaitReason != usage.WaitHedge || last.Attempts[0].WaitReason != "" {
					t.Errorf("attempts %q %+v", ends, last.Attempts)
				}
				if slices.Contains(ends, "0 superseded") && slices.ContainsFunc(last.Attempts, func(a usage.Attempt) bool { return a.Cost == 0 }) {
					t.Errorf("an attempt that was sent costs nothing: %+v", last.Attempts)
				}
				eventually(t, func() error { return usageIs(r, key, cost) })
				eventually(t, func() error {
					if got := r.call("GET", "/logs/"+last.ID, ""); got.status != 200 {
						return fmt.Errorf("%d %s", got.status, got.body)
					}
					return nil
				})
				steps, _ := json.Marshal(r.get("/logs/"+last.ID+"/explain", workspaceKey)["steps"])
				if !strings.Contains(string(steps), "the second attempt of a hedge") {
					t.Errorf("%s", steps)
				}
			})
		}
	}
}

// Under faults and at any speed of the targets, each request has one record, its attempts add up to
// its cost, and the budget is charged the sum of the records. Calls that nothing ended early cost
// what the provider bills.
func TestHedgesAreChargedOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":100}`)
	n := r.warmed(key)
	speeds := []string{"delay=1ms", "delay=40ms", "delay=120ms", "delay=40ms status=503", "status=429", "drop", "cut=after:3", "silence=after:0 for=200ms", "garbage", "pace=15ms chunks=9", "delay=5s stop-on-cancel"}
	var wait sync.WaitGroup
	room := make(chan struct{}, 8)
	for i, first := range speeds {
		for j, second := range speeds {
			mode, stream := []string{"fallback", "loadbalance", "latency", "least_busy"}[(i+j)%4], []string{"", `,"stream":true`}[(i*j+i)%2]
			n++
			wait.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				config := hedgedConfig(mode, 40, "", measuredTarget("gpt-4o", first), measuredTarget("gpt-4o", second))
				if _, err := r.try("POST", "/chat/completions", chatBody("gpt-4o", "Hello", stream), "X-Gateway-Config", config, "X-Gateway-Api-Key", key); err != nil && !strings.Contains(err.Error(), "EOF") {
					t.Errorf("%s, %s: %v", first, second, err)
				}
			})
		}
	}
	wait.Wait()
	records := r.records(n)
	var cost, both int64
	superseded := 0
	ids := map[string]bool{}
	for _, rec := range records {
		ids[rec.ID] = true
		cost += int64(rec.Cost)
		var sum int64
		second := false
		for _, a := range rec.Attempts {
			sum += int64(a.Cost)
			second = second || a.WaitReason == usage.WaitHedge
			if a.ErrorCode == usage.Superseded {
				superseded++
			}
		}
		if sum != int64(rec.Cost) {
			t.Errorf("%+v", rec.Attempts)
		}
		if second {
			both++
		}
	}
	if len(records) != n || len(ids) != n || both < 20 || superseded < 10 {
		t.Errorf("%d records and %d ids of %d requests; %d hedged, %d superseded", len(records), len(ids), n, both, superseded)
	}
	eventually(t, func() error { return usageIs(r, key, cost) })
	eventually(t, func() error {
		if open := r.mock.Bill().Open; open != 0 {
			return fmt.Errorf("%d rows of the bill are open", open)
		}
		return nil
	})
	// Of a cancelled call, and of a broken response, the cost is an estimate.
	charged, estimated, unnamed := map[string][]int64{}, map[string]bool{}, 0
	for _, rec := range records {
		for _, a := range rec.Attempts {
			switch {
			case a.ErrorCode == usage.Superseded && a.RequestID == "":
				unnamed++
			case a.ErrorCode == usage.Superseded || a.Usage.Estimated || a.ErrorCode == "invalid_provider_response":
				estimated[a.RequestID] = true
			default:
				charged[a.RequestID] = append(charged[a.RequestID], int64(a.Cost))
			}
		}
	}
	for _, row := range r.mock.Bill().Rows {
		id := "req_" + row.ID
		if row.ClientGone || row.Fault != "" || row.NanoDollars == 0 || estimated[id] {
			continue
		}
		if got := charged[id]; got == nil && unnamed > 0 {
			unnamed-- // it was complete when it was cancelled
		} else if !slices.Equal(got, []int64{row.NanoDollars}) {
			t.Errorf("%s: charged %v, billed %d", row.ID, got, row.NanoDollars)
		}
	}
}

// Requests that do more than have a model respond are sent once, unless the hedge allows it.
func TestRequestsWithSideEffectsAreNotHedged(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":100}`)
	n := r.warmed(key)
	late := `{"provider":"@mock","override_params":{"model":"gpt-4o"}}`
	for _, c := range []struct {
		name, path, body, more string
		twice                  bool
	}{
		{"a chat", "/chat/completions", chatBody("gpt-4o", "mock: delay=400ms", ""), "", true},
		{"a stored chat", "/chat/completions", chatBody("gpt-4o", "mock: delay=400ms", `,"store":true`), "", false},
		{"a stored chat, allowed", "/chat/completions", chatBody("gpt-4o", "mock: delay=400ms", `,"store":true`), `,"stored_responses":true`, true},
		{"a stored response", "/responses", `{"model":"gpt-4o","input":"mock: delay=400ms"}`, "", false},
		{"a response", "/responses", `{"model":"gpt-4o","input":"mock: delay=400ms","store":false}`, "", true},
		{"a background response", "/responses", `{"model":"gpt-4o","input":"mock: delay=400ms","background":true}`, `,"stored_responses":true`, false},
		{"tools of a server", "/responses", `{"model":"gpt-4o","input":"mock: delay=400ms","store":false,"tools":[{"type":"mcp","server_label":"a","server_url":"https://example.com/mcp"}]}`, "", false},
		{"the same, escaped", "/responses", `{"model":"gpt-4o","input":"mock: delay=400ms","store":false,"tools":[{"type":"\u006dcp","server_label":"a","server_url":"https://example.com/mcp"}]}`, "", false},
		{"tools that the provider runs", "/responses", `{"model":"gpt-4o","input":"mock: delay=400ms","store":false,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`, "", false},
		{"embeddings", "/embeddings", `{"model":"gpt-4o","input":"mock: delay=400ms"}`, "", true},
	} {
		got := r.call("POST", c.path, c.body, "X-Gateway-Config", hedgedConfig("fallback", 20, c.more, late, late), "X-Gateway-Api-Key", key)
		n++
		records := r.records(n)
		last := records[len(records)-1]
		if twice := len(last.Attempts) == 2 && last.Attempts[1].WaitReason == usage.WaitHedge; got.status != 200 || twice != c.twice {
			t.Errorf("%s: %d, %+v", c.name, got.status, last.Attempts)
		}
	}
	body, _ := json.Marshal(map[string]any{"config": json.RawMessage(hedgedConfig("fallback", 20, "", late, late)), "path": "/chat/completions", "body": json.RawMessage(chatBody("gpt-4o", "Hello", ""))})
	if dry := r.call("POST", "/configs/dry-run", string(body)); !strings.Contains(dry.body, `"hedge":{"path":"config.targets[1]","after_ms":20}`) {
		t.Errorf("%s", dry.body)
	}
	// A key without extra cost left sends each request once: at 20 % the first five.
	poor := r.newKey(`"usage_limits":{"type":"cost","credit_limit":100}`)
	for range 12 {
		r.call("POST", "/chat/completions", chatBody("gpt-4o", "mock: delay=60ms", ""), "X-Gateway-Config", strings.Replace(hedgedConfig("fallback", 20, "", late, late), `"max_extra_cost":1`, `"max_extra_cost":0.2`, 1), "X-Gateway-Api-Key", poor)
	}
	var used, unused float64
	first := -1
	for i, rec := range r.records(n + 12)[n:] {
		for _, a := range rec.Attempts {
			if a.ErrorCode == usage.Superseded {
				unused += float64(a.Cost)
			} else {
				used += float64(a.Cost)
			}
		}
		if len(rec.Attempts) == 2 && first < 0 {
			first = i
		}
	}
	if first < 5 || unused > used/5 {
		t.Errorf("the first hedge was at %d; %.0f of %.0f at 20 %%", first, unused, used)
	}
}

// TestHedgesApplyGuardrails checks that the second attempt sends nothing that the guardrails of its
// target deny, and that its response is judged before it wins.
func TestHedgesApplyGuardrails(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":100}`)
	n := r.warmed(key)
	provider := new(recordingProvider) // answers at once
	host := httptest.NewServer(provider)
	defer host.Close()
	r.save("heard", `"ai_provider_id":"openai","key":"sk-heard","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	const denies = `"%s":[{"default.regexMatch":{"rule":%q,"not":true},"deny":true}],`
	for _, c := range []struct {
		name, guardrails string
		sent             bool // the second target gets the request
		second           bool // its response is the client's
	}{
		{"without guardrails", "", true, true},
		{"input", fmt.Sprintf(denies, "input_guardrails", "SECRETWORD"), false, false},
		{"output", fmt.Sprintf(denies, "output_guardrails", "127.0.0.1"), true, false},
	} {
		provider.body.Store("")
		config := hedgedConfig("fallback", 20, "", `{"provider":"@mock","override_params":{"model":"gpt-4o"}}`, `{`+c.guardrails+`"provider":"@heard","override_params":{"model":"gpt-4o"}}`)
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "mock: delay=1500ms\nSECRETWORD", ""), "X-Gateway-Config", config, "X-Gateway-Api-Key", key)
		n++
		body, _ := provider.body.Load().(string)
		if sent := strings.Contains(body, "SECRETWORD"); got.status != 200 || sent != c.sent || strings.Contains(got.body, "127.0.0.1") != c.second {
			t.Errorf("%s: %d %s; the second target got %q", c.name, got.status, got.body, body)
		}
		r.records(n)
	}
}
