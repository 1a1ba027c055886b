package main

import (
	"fmt"
	"strings"
	"testing"
)

// A batch of OpenAI's form holds the bound of its rows and is recorded once its end is seen, by the
// gateway's own route and passed through, with a stored credential and with the caller's own.
func TestBatchesAreBoundedAndBookedOnEveryWay(t *testing.T) {
	t.Parallel()
	r := start(t)
	for name, of := range map[string][]string{
		"stored": {"X-Gateway-Provider", "@mock"},
		"own":    {"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", r.mockBase(), "Authorization", "Bearer mock-own"},
	} {
		for _, base := range []string{"/batches", "/proxy/batches"} {
			key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000}`)
			h := append([]string{"X-Gateway-Api-Key", key}, of...)
			file := r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+strings.ReplaceAll(rowsFor("gpt-4o-mini"), `"max_tokens":50`, `"max_tokens":200`)), append(h, formType...)...)
			body := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file)
			id := r.id("POST", base, body, h...)
			limits := limitsOf(r, key)
			if held, _ := limits["reserved_usage"].(float64); fmt.Sprint(limits["current_usage"]) != "0" || held < 500 || held > 1000 {
				t.Errorf("%s %s: while it runs: %v", name, base, limits)
			}
			if got := r.call("POST", base, body, h...); got.status != 412 || !strings.Contains(got.body, "budget_exhausted") {
				t.Errorf("%s %s: a second batch: %d %s", name, base, got.status, got.body)
			}
			var usage map[string]any
			eventually(t, func() error {
				got := r.call("GET", base+"/"+id, "", h...)
				if got.status != 200 || got.json(t)["status"] != "completed" {
					return fmt.Errorf("%d %s", got.status, got.body)
				}
				usage, _ = got.json(t)["usage"].(map[string]any)
				return nil
			})
			for range 2 { // it is booked once
				r.call("GET", base+"/"+id, "", h...)
			}
			eventually(t, func() error {
				if limits := limitsOf(r, key); fmt.Sprint(limits["current_usage"]) != fmt.Sprint(usage["total_tokens"]) || fmt.Sprint(limits["reserved_usage"]) != "0" {
					return fmt.Errorf("%s %s: afterwards: %v of %v", name, base, limits, usage)
				}
				return nil
			})
		}
	}
}

// A batch of a form whose rows are not read is rejected while a budget is in force, unless the
// organization allows it.
func TestBatchesOfOtherFormsAreRefusedUnderABudget(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	ways := []struct{ provider, path, body string }{
		{"@mock-anthropic", "/proxy/v1/messages/batches", `{"requests":[{"custom_id":"1","params":{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"x"}]}}]}`},
		{"@mock-anthropic", "/v1/messages/%62atches", `{"requests":[]}`},
		{"@mock", "/proxy/batches", `{"endpoint":"/v1/chat/completions","completion_window":"24h"}`},
		{"@mock", "/proxy/batches/batch_1/requests", `{"requests":[]}`},
		{"@mock", "/proxy/batch/jobs", `{"input_files":["file-1"],"model":"m"}`},
		{"@mock", "/proxy/v1beta/models/gemini-2.5-flash:batchGenerateContent", `{"batch":{}}`},
		{"@mock", "/proxy/embed-jobs", `{"model":"embed-v4.0","dataset_id":"x"}`},
	}
	for _, w := range ways {
		got := r.call("POST", w.path, w.body, "X-Gateway-Api-Key", key, "X-Gateway-Provider", w.provider)
		if got.status != 412 || got.header.Get("X-Gateway-Error-Code") != "unbounded_request" || !strings.Contains(got.body, "budget_settings.unbounded") {
			t.Errorf("%s: %d %s", w.path, got.status, got.body)
		}
		if got := r.call("POST", w.path, w.body, "X-Gateway-Provider", w.provider); got.status == 412 {
			t.Errorf("%s without a budget: %s", w.path, got.body)
		}
	}
	r.admin("PUT", "/admin/organisation/settings", `{"budget_settings":{"unbounded":"allow"}}`)
	eventually(t, func() error {
		for _, w := range ways {
			if got := r.call("POST", w.path, w.body, "X-Gateway-Api-Key", key, "X-Gateway-Provider", w.provider); strings.Contains(got.body, "unbounded_request") {
				return fmt.Errorf("%s allowed: %d %s", w.path, got.status, got.body)
			}
		}
		return nil
	})
}
