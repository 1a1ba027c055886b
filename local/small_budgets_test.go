package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestBudgetsBelowADollar spends budgets of a fraction of a dollar on every resource that has
// one: each sends one alert at its threshold and one at its end, with names and US dollars,
// and then rejects requests.
func TestBudgetsBelowADollar(t *testing.T) {
	t.Parallel()
	r := start(t)
	var mu sync.Mutex
	var alerts []map[string]string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		raw, _ := io.ReadAll(req.Body)
		var event struct {
			Type string
			Data map[string]string
		}
		if err := json.Unmarshal(raw, &event); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		event.Data["type of event"] = event.Type
		alerts = append(alerts, event.Data)
	}))
	t.Cleanup(server.Close)
	r.admin("POST", "/webhooks", fmt.Sprintf(`{"name":"Ops","url":%q,"events":["budget.threshold_reached","budget.exhausted"]}`, server.URL))

	spend := func(name string, use func() reply) {
		t.Helper()
		n := 0
		for got := use(); got.status != 412; got = use() {
			if n++; got.status != 200 || n > 500 {
				t.Fatalf("%s: request %d: %d %s", name, n, got.status, got.body)
			}
		}
		if n == 0 {
			t.Errorf("%s: the first request was rejected", name)
		}
		if got := use(); got.status != 412 {
			t.Errorf("%s: afterwards: %d %s", name, got.status, got.body)
		}
	}
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":0.05,"alert_threshold":0.02}`)
	spend("a key of five cents", func() reply {
		return r.call("POST", "/chat/completions", chatBody("@mock-anthropic/claude-sonnet-4-5", "mock: chunks=1000", `,"max_tokens":2000`), "X-Gateway-Api-Key", key)
	})
	keyID, _ := made.Load(key)
	limits := r.admin("GET", "/api-keys/"+keyID.(string), "")["usage_limits"].(map[string]any)
	if limits["status"] != "exhausted" || limits["is_threshold_alerts_sent"] != true || limits["is_exhausted_alerts_sent"] != true || limits["current_usage"].(float64) > 0.05 || limits["current_usage"].(float64) < 0.02 {
		t.Errorf("the key of five cents: %v", limits)
	}
	all := limitedResources(r)
	n := slices.IndexFunc(all, func(l limited) bool { return l.name == "workspace" })
	all = append(slices.Delete(slices.Clone(all), n, n+1), all[n]) // last: all others count on it
	for _, res := range all {
		if res.budgets > 0 {
			budget := `{"type":"cost","credit_limit":0.0002,"alert_threshold":0.00008}`
			if slices.Contains([]string{"integration", "provider", "virtual key"}, res.name) { // of a more expensive model
				budget = `{"type":"cost","credit_limit":0.002,"alert_threshold":0.0008}`
			}
			_, use := res.set([]string{budget}, res.rates[0])
			spend(res.name, use)
		}
	}
	workspace := r.admin("GET", "/workspaces/default?name_format=plain", "")["name"]
	eventually(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		count := map[string]int{}
		for _, a := range alerts {
			kind := a["kind"]
			count[kind+" "+a["event"]]++
			named := a[kind+"_name"]
			if kind != "workspace" && !strings.HasPrefix(named, "limited-") && named != "a key of the tests" || a["id"] == "" || a["workspace_id"] == "" || a["workspace_name"] != workspace {
				t.Errorf("names and ids: %v", a)
			}
			if !strings.Contains(a["summary"], `"`+named+`"`) || strings.Contains(a["summary"], a["id"]) || !strings.HasSuffix(a["summary"], " USD") {
				t.Errorf("the summary: %v", a)
			}
			usage, limit, threshold := number(t, a["usage"]), "0.0002", "0.00008"
			if kind == "integration" || kind == "provider" {
				limit, threshold = "0.002", "0.0008"
			}
			if a["id"] == keyID {
				limit, threshold = "0.05", "0.02"
				if a["event"] == "exhausted" && a["usage"] != fmt.Sprint(limits["current_usage"]) {
					t.Errorf("usage %s, the key says %v", a["usage"], limits["current_usage"])
				}
			}
			if a["unit"] != "USD" || a["limit"] != limit || a["threshold"] != threshold || a["cost_usd"] != a["usage"] || usage < number(t, threshold) || usage > number(t, limit) || !strings.HasPrefix(a["type of event"], "budget."+a["event"]) {
				t.Errorf("figures: %v", a)
			}
		}
		if got, want := fmt.Sprint(count), "map[integration exhausted:1 integration threshold:1 key exhausted:2 key threshold:2 policy exhausted:1 policy threshold:1 provider exhausted:2 provider threshold:2 workspace exhausted:1 workspace threshold:1]"; got != want {
			return fmt.Errorf("alerts %s\nwant %s", got, want)
		}
		return nil
	})
}
