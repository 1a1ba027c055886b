package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// burst sends n requests at once and counts the responses by status.
func burst(r *running, n int, body, key string) map[int]int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	gate := make(chan struct{}, 64) // bounds the open connections
	for range n {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			got, err := r.try("POST", "/chat/completions", body, "X-Gateway-Api-Key", key)
			if err != nil {
				r.t.Error(err)
				return
			}
			mu.Lock()
			counts[got.status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return counts
}

//lane:standard
func TestTwoHundredCallersOnALimitOfAHundred(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"rate_limits":[{"type":"requests","unit":"rpd","value":100}]`)
	counts := burst(r, 200, chatBody("@mock/gpt-4o-mini", "Hello", ""), key)
	if counts[200] != 100 || counts[429] != 100 {
		t.Errorf("answers by status: %v", counts)
	}
	got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", key)
	if got.status != 429 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "a key of the tests") {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
}

func TestParallelCallsNeverSettleAboveADollar(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	// Each call is bounded at about 3 cents and costs about 1.5 cents: most of
	// 500 must be rejected.
	body := chatBody("@mock-anthropic/claude-sonnet-4-5", "mock: chunks=1000", `,"max_tokens":2000`)
	counts := burst(r, 500, body, key)
	if counts[200] == 0 || counts[412] == 0 || counts[200]+counts[412] != 500 {
		t.Fatalf("answers by status: %v", counts)
	}
	bill := billed(r)
	if bill.nanoDollars > 1_000_000_000 {
		t.Errorf("the provider's bill is %d nano-dollars, above the budget", bill.nanoDollars)
	}
	if bill.nanoDollars < 500_000_000 {
		t.Errorf("only %d nano-dollars were spent: the budget refuses too early", bill.nanoDollars)
	}
	eventually(t, func() error { return usageIs(r, key, bill.nanoDollars) })
}

// usageIs compares the key's usage, in dollars, with an amount.
func usageIs(r *running, key string, nanoDollars int64) error {
	id, ok := made.Load(key)
	if !ok {
		return fmt.Errorf("newKey has not made the key")
	}
	limits, _ := r.admin("GET", "/api-keys/"+id.(string), "")["usage_limits"].(map[string]any)
	if got, want := fmt.Sprint(limits["current_usage"]), float64(nanoDollars)/1e9; got != fmt.Sprint(want) {
		return fmt.Errorf("current_usage %s, the bill is %v", got, want)
	}
	return nil
}

func TestARevokedKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	var stop atomic.Bool
	key := r.newKey("")
	id := r.keyID("a key of the tests")
	var wg sync.WaitGroup
	for range 4 { // keep the key warm while it is revoked
		wg.Go(func() {
			for !stop.Load() {
				if _, err := r.try("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", ""), "X-Gateway-Api-Key", key); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	r.admin("DELETE", "/api-keys/"+id, "")
	if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", ""), "X-Gateway-Api-Key", key); got.status != 401 {
		t.Errorf("after the delete was answered: %d %s", got.status, got.body)
	}
	stop.Store(true)
	wg.Wait()
}

func TestARotatedKeyWorksWithBothSecrets(t *testing.T) {
	t.Parallel()
	r := start(t)
	old := r.newKey("")
	id := r.keyID("a key of the tests")
	rotated := r.admin("POST", "/api-keys/"+id+"/rotate", "")
	for _, key := range []string{old, rotated["key"].(string)} {
		if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", ""), "X-Gateway-Api-Key", key); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	again := r.call("POST", "/api-keys/"+id+"/rotate", "", "X-Gateway-Api-Key", adminKey)
	if again.status != 409 {
		t.Errorf("a second rotation in the transition: %d %s", again.status, again.body)
	}
	short := r.call("POST", "/api-keys/"+id+"/rotate", `{"key_transition_period_ms":1000}`, "X-Gateway-Api-Key", adminKey)
	if short.status != 400 || !strings.Contains(short.body, "key_transition_period_ms") {
		t.Errorf("a transition of a second: %d %s", short.status, short.body)
	}
}

// A rejection says the same about a limit as a read of that limit, while requests are under
// way and after they are settled.
func TestRejectionReportsTheLimit(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"poor","workspace_id":%q,"scopes":["completions.write"],"usage_limits":{"type":"cost","credit_limit":1,"periodic_reset":"monthly"}}`, r.workspace()))
	id, key := made["id"].(string), made["key"].(string)
	if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", `,"max_tokens":5`), "X-Gateway-Api-Key", key); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	compare := func(open bool) {
		t.Helper()
		got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o", "Hello", `,"max_tokens":200000`), "X-Gateway-Api-Key", key)
		if got.status != 412 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		limit := member(got.json(t), "error/limit").(map[string]any)
		read := r.admin("GET", "/api-keys/"+id, "")["usage_limits"].(map[string]any)
		for _, name := range []string{"type", "credit_limit", "current_usage", "reserved_usage", "available"} {
			if limit[name] != read[name] {
				t.Errorf("%s: refused with %v, read as %v", name, limit[name], read[name])
			}
		}
		if limit["subject"] != "key" || limit["id"] != id || limit["name"] != "poor" || read["next_reset_at"] == nil || !strings.HasPrefix(limit["resets_at"].(string), read["next_reset_at"].(string)[:19]) {
			t.Errorf("%v, read as %v", limit, read)
		}
		held := limit["reserved_usage"].(float64)
		if left := 1 - limit["current_usage"].(float64) - held; left-limit["available"].(float64) > 1e-9 || limit["available"].(float64)-left > 1e-9 || open != (held > 0) {
			t.Errorf("the numbers of %v do not add up", limit)
		}
	}
	compare(false)
	done, gate := make(chan reply), make(chan struct{})
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
	}))
	defer host.Close()
	r.save("slow", `"ai_provider_id":"openai","key":"sk-slow","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	go func() {
		got, _ := r.try("POST", "/chat/completions", chatBody("@slow/gpt-4o", "Hello", `,"max_tokens":50000`), "X-Gateway-Api-Key", key)
		done <- got
	}()
	eventually(t, func() error {
		if read := r.admin("GET", "/api-keys/"+id, "")["usage_limits"].(map[string]any); read["reserved_usage"].(float64) == 0 {
			return fmt.Errorf("nothing is held: %v", read)
		}
		return nil
	})
	compare(true)
	close(gate)
	if got := <-done; got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	compare(false)
}

// A budget that sends a request to another model, because too little is left, charges what
// that model costs, and says which it was.
func TestAnExhaustedBudgetSendsToACheaperModel(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"thrifty","workspace_id":%q,"scopes":["completions.write"],"usage_limits":{"type":"cost","credit_limit":1,"on_exceeded":"fallback","fallback_model":"@mock-anthropic/claude-haiku-4-5"}}`, r.workspace()))
	id, key := made["id"].(string), made["key"].(string)
	send := func(tokens int) reply {
		return r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o", "Hello", fmt.Sprintf(`,"max_tokens":%d`, tokens)), "X-Gateway-Api-Key", key)
	}
	r.mock.Reset()
	for _, c := range []struct {
		tokens   int
		provider string
	}{{5, "openai"}, {120_000, "anthropic"}, {5, "openai"}} {
		if got := send(c.tokens); got.status != 200 || got.header.Get("X-Gateway-Provider") != c.provider {
			t.Errorf("%d tokens: %d by %q %s", c.tokens, got.status, got.header.Get("X-Gateway-Provider"), got.body)
		}
	}
	records := r.records(3)
	if got, want := booked(records), billed(r); got != want {
		t.Errorf("our books %+v\nthe bill  %+v", got, want)
	}
	spent := r.admin("GET", "/api-keys/"+id, "")["usage_limits"].(map[string]any)["current_usage"].(float64)
	if want := float64(r.mock.Bill().Total.NanoDollars) / 1e9; spent-want > 1e-12 || want-spent > 1e-12 {
		t.Errorf("the budget says %v, the bill %v", spent, want)
	}
}
