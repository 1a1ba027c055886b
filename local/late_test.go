package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// A response in the background holds what it may cost until it is booked, so that further ones
// are refused once the budget has no room; what is booked in the end is what was billed.
func TestBackgroundResponsesHoldTheirReservation(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(&later{reads: map[string]int{}})
	t.Cleanup(host.Close)
	r := start(t)
	r.save("later", `"ai_provider_id":"openai","key":"sk-later","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	for _, base := range []string{"/responses", "/proxy/responses"} {
		key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
		h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@later"}
		var ids []string
		for i := range 3 {
			// 60 cents a million output tokens: each is bounded at 0.42 dollars.
			got := r.call("POST", base, `{"model":"gpt-4o-mini","input":"x","background":true,"max_output_tokens":700000}`, h...)
			if want := map[int]int{0: 200, 1: 200, 2: 412}[i]; got.status != want {
				t.Fatalf("%s, request %d: %d %s", base, i, got.status, got.body)
			}
			if id, _ := got.json(t)["id"].(string); got.status == 200 {
				ids = append(ids, id)
			}
		}
		if limits := limitsOf(r, key); fmt.Sprint(limits["current_usage"]) != "0" || !strings.HasPrefix(fmt.Sprint(limits["reserved_usage"]), "0.84") {
			t.Errorf("%s: while they are made: %v", base, limits)
		}
		for _, id := range ids {
			for range readyAfter + 2 {
				r.call("GET", base+"/"+id, "", h...)
			}
		}
		eventually(t, func() error { return usageIs(r, key, 2*(100*150+50*600)) })
		if limits := limitsOf(r, key); fmt.Sprint(limits["reserved_usage"]) != "0" || limits["status"] != "active" {
			t.Errorf("%s: afterwards: %v", base, limits)
		}
	}
}

// limitsOf are the usage limits of a key as a read shows them.
func limitsOf(r *running, key string) map[string]any {
	id, _ := made.Load(key)
	limits, _ := r.admin("GET", "/api-keys/"+id.(string), "")["usage_limits"].(map[string]any)
	return limits
}
