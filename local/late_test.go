package main

import (
	"fmt"
	"strings"
	"testing"
)

// limitsOf are the usage limits of a key as a read shows them.
func limitsOf(r *running, key string) map[string]any {
	id, _ := made.Load(key)
	limits, _ := r.admin("GET", "/api-keys/"+id.(string), "")["usage_limits"].(map[string]any)
	return limits
}

// A batch at a provider holds the bound of all of its rows until its usage is recorded, for
// providers with OpenAI's format and of another. A batch whose rows cannot be read is rejected
// while a budget is in force, unless the organization allows it.
func TestBatchesHoldTheSumOfTheirRows(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.save("claude", `"ai_provider_id":"anthropic","key":"mock-key","configurations":{"custom_host":"`+r.mockBase()+`"}`)
	for slug, model := range map[string]string{"mock": "gpt-4o-mini", "claude": "claude-sonnet-4-5"} {
		key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000}`)
		h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@" + slug}
		file := r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+strings.ReplaceAll(rowsFor(model), `"max_tokens":50`, `"max_tokens":200`)), append(h, formType...)...)
		body := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file)
		id := r.id("POST", "/batches", body, h...)
		limits := limitsOf(r, key)
		if held, _ := limits["reserved_usage"].(float64); fmt.Sprint(limits["current_usage"]) != "0" || held < 500 || held > 1000 {
			t.Errorf("%s: while it runs: %v", slug, limits)
		}
		if got := r.call("POST", "/batches", body, h...); got.status != 412 || !strings.Contains(got.body, "budget_exhausted") {
			t.Errorf("%s: a second batch: %d %s", slug, got.status, got.body)
		}
		eventually(t, func() error {
			if got := r.call("GET", "/batches/"+id, "", h...); got.status != 200 || got.json(t)["status"] != "completed" {
				return fmt.Errorf("%d %s", got.status, got.body)
			}
			return nil
		})
		eventually(t, func() error {
			limits := limitsOf(r, key)
			if used, _ := limits["current_usage"].(float64); used == 0 || used > 500 || fmt.Sprint(limits["reserved_usage"]) != "0" {
				return fmt.Errorf("%s: afterwards: %v", slug, limits)
			}
			return nil
		})
		r.id("POST", "/batches", body, h...)
	}
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000}`)
	h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@mock"}
	file := r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:{}"), append(h, formType...)...)
	unread := func() string {
		return r.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file), h...).body
	}
	if got := unread(); !strings.Contains(got, "unbounded_request") || !strings.Contains(got, "budget_settings.unbounded") {
		t.Errorf("rows that cannot be read: %s", got)
	}
	r.admin("PUT", "/admin/organisation/settings", `{"budget_settings":{"unbounded":"allow"}}`)
	eventually(t, func() error {
		if got := unread(); strings.Contains(got, "unbounded_request") {
			return fmt.Errorf("allowed: %s", got)
		}
		return nil
	})
}

// An exhausted budget rejects a realtime session before the provider is dialed.
func TestAnExhaustedBudgetRefusesTheUpgrade(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":100}`)
	if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "mock: chunks=1000", ""), "X-Gateway-Api-Key", key); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	eventually(t, func() error {
		if limits := limitsOf(r, key); limits["status"] != "exhausted" {
			return fmt.Errorf("%v", limits)
		}
		return nil
	})
	ws, resp, err := r.dialRealtime("model=@mock/gpt-realtime", "X-Gateway-Api-Key", key)
	if err == nil {
		_ = ws.Close()
	}
	if err == nil || resp == nil || resp.StatusCode != 412 {
		t.Errorf("%v %v", resp, err)
	}
	for _, got := range r.mock.Requests(64) {
		if text := fmt.Sprint(got); strings.Contains(text, "/realtime") {
			t.Errorf("the provider was dialed: %s", text)
		}
	}
}
