package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// budgetForms are the forms that a budget has, for a place with one budget. Those that are
// exceeded by the first request let requests through.
func budgetForms() []string {
	ahead, later := time.Now().AddDate(0, 0, 3).Format(time.DateOnly), time.Now().AddDate(0, 2, 0).UTC().Format(time.RFC3339)
	return []string{
		"null",
		`{"type":"cost","credit_limit":0.05}`,
		`{"type":"cost","credit_limit":0.000001,"alert_threshold":0.0000001,"on_exceeded":"audit"}`,
		`{"type":"cost","credit_limit":10.5,"alert_threshold":2.25,"periodic_reset":"monthly"}`,
		`{"type":"tokens","credit_limit":100000,"alert_threshold":1,"periodic_reset":"weekly","next_usage_reset_at":"` + ahead + `"}`,
		`{"type":"tokens","credit_limit":100000,"periodic_reset_days":9}`,
		`{"type":"tokens","credit_limit":100000,"periodic_reset_days":9,"next_usage_reset_at":"` + later + `"}`,
		`{"type":"cost","credit_limit":1,"next_usage_reset_at":"` + ahead + `","temporary_raise":{"amount":0.5,"expires_at":"` + later + `"}}`,
		`{"type":"cost","credit_limit":5,"on_exceeded":"fallback","fallback_model":"@mock/gpt-4o-mini"}`,
	}
}

// limited is a resource with limits.
type limited struct {
	name string
	// set gives the resource these limits, with as many budgets as it may have, and returns
	// where it is read and written, and a request that counts on it.
	set func(budgets []string, rates string) (path string, use func() reply)
	// budgets is how many it may have, rates which rate limits.
	budgets int
	rates   []string
}

// limitedResources are all resources with limits.
func limitedResources(r *running) []limited {
	ws, host, made := r.workspace(), strings.TrimSuffix(r.mockBase(), "/v1"), 0
	next := func() string { made++; return fmt.Sprintf("limited-%d", made) }
	chat := func(model, key string) func() reply {
		return func() reply {
			return r.call("POST", "/chat/completions", chatBody(model, "Hello", `,"max_tokens":5`), "X-Gateway-Api-Key", key)
		}
	}
	key := func(kind, more string) func([]string, string) (string, func() reply) {
		return func(budgets []string, rates string) (string, func() reply) {
			got := r.admin("POST", "/api-keys/"+kind, fmt.Sprintf(`{"name":%q,"scopes":["completions.write"],"alert_emails":["a@example.com"],"defaults":{"metadata":{"a":"b"}},"rotation_policy":{"rotation_period":"weekly"},"usage_limits":%s,"rate_limits":%s%s}`, next(), budgets[0], rates, more))
			return "/api-keys/" + got["id"].(string), chat("@mock/gpt-4o-mini", got["key"].(string))
		}
	}
	list := func(budgets []string) string {
		return "[" + strings.Join(slices.DeleteFunc(slices.Clone(budgets), func(b string) bool { return b == "null" }), ",") + "]"
	}
	policy := func(kind, fields string) (string, func() reply) {
		team := next()
		id := r.policy(kind, fmt.Sprintf(`"name":%q,"conditions":[{"key":"metadata.team","value":%q}],"group_by":[{"key":"metadata._user"},{"key":"api_key"}],%s`, team, team, fields))
		more := "?workspace_id=" + ws
		if kind == "usage-limits" {
			more += "&include_usage=true"
		}
		return "/policies/" + kind + "/" + id + more, func() reply { return r.asWho(team, "ada") }
	}
	many := []string{"null", `[{"type":"requests","unit":"rpm","value":1000},{"type":"tokens","unit":"rpd","value":1000000}]`}
	one := []string{"null", `[{"type":"tokens","unit":"rph","value":100000}]`}
	r.save("shared-limits", fmt.Sprintf(`"ai_provider_id":"anthropic","key":"mock-key","configurations":{"custom_host":%q}`, host))
	return []limited{
		{"key of a workspace", key("workspace/service", `,"workspace_id":"`+ws+`"`), 1, many},
		{"workspace", func(budgets []string, rates string) (string, func() reply) {
			r.admin("PUT", "/admin/workspaces/"+ws, fmt.Sprintf(`{"icon":"🚀","usage_limits":%s,"rate_limits":%s,"reset_usage":true}`, list(budgets), rates))
			return "/admin/workspaces/" + ws, chat("@mock/gpt-4o-mini", workspaceKey)
		}, 2, many},
		{"usage policy", func(budgets []string, _ string) (string, func() reply) {
			return policy("usage-limits", strings.Trim(strings.ReplaceAll(budgets[0], "null", `"type":"requests","credit_limit":3`), "{}")+strings.Repeat("}", strings.Count(budgets[0], "temporary_raise")))
		}, 1, []string{""}},
		{"rate policy", func(_ []string, rates string) (string, func() reply) { return policy("rate-limits", rates) }, 0, []string{`"type":"requests","unit":"rpd","value":2000`, `"type":"tokens","unit":"rpw","value":2000`}},
		{"integration", func(budgets []string, rates string) (string, func() reply) {
			slug := next()
			r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"ai_provider_id":"anthropic","key":"mock-key","configurations":{"custom_host":%q}}`, slug, slug, host))
			limits := fmt.Sprintf(`"enabled":true,"usage_limits":%s,"rate_limits":%s`, list(budgets), rates)
			r.admin("PUT", "/integrations/"+slug+"/workspaces", fmt.Sprintf(`{"global_workspace_access":{%s},"workspaces":[{"id":%q,"default_provider_slug":%q,%s}]}`, limits, ws, slug, limits))
			return "/integrations/" + slug + "/workspaces", chat("@"+slug+"/claude-haiku-4-5", workspaceKey)
		}, 1, one},
		{"provider", func(budgets []string, rates string) (string, func() reply) {
			slug := next()
			r.admin("POST", "/providers", fmt.Sprintf(`{"name":%q,"slug":%q,"integration_id":"shared-limits","workspace_id":%q,"note":"n","expires_at":"2090-01-01T00:00:00Z","usage_limits":%s,"rate_limits":%s}`, slug, slug, ws, budgets[0], rates))
			return "/providers/" + slug + "?workspace_id=" + ws, chat("@"+slug+"/claude-haiku-4-5", workspaceKey)
		}, 1, many},
		{"virtual key", func(budgets []string, rates string) (string, func() reply) {
			slug := next()
			r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":%q,"slug":%q,"provider":"anthropic","key":"mock-key","custom_host":%q,"workspace_id":%q,"usage_limits":%s,"rate_limits":%s}`, slug, slug, host, ws, budgets[0], rates))
			return "/virtual-keys/" + slug + "?workspace_id=" + ws, chat("@"+slug+"/claude-haiku-4-5", workspaceKey)
		}, 1, many},
	}
}

// sameButUpdated compares two reads of a resource, without the time of its last change.
func sameButUpdated(was, now string) string {
	var a, b map[string]any
	if err := json.Unmarshal([]byte(was), &a); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal([]byte(now), &b); err != nil {
		return err.Error()
	}
	for _, m := range []map[string]any{a, b} {
		delete(m, "last_updated_at")
		delete(m, "last_used_at") // written by the usage worker, at any time
	}
	return cmp.Diff(a, b)
}

// TestPutOfAReadChangesNothing sends the result of a read back, for every resource with
// limits in every form: the next read is the same, counters and alert flags included, and
// the audit log has one record without changes.
func TestPutOfAReadChangesNothing(t *testing.T) {
	t.Parallel()
	r := start(t)
	put := map[string]string{} // what was put, by the id of the request
	for _, res := range limitedResources(r) {
		forms := budgetForms()
		if res.budgets == 0 {
			forms = forms[:1]
		}
		for i, form := range forms {
			budgets := []string{form}
			if res.budgets == 2 && strings.Contains(form, `"cost"`) {
				budgets = append(budgets, forms[4])
			}
			for n, rates := range res.rates {
				name := fmt.Sprintf("%s %v %s", res.name, budgets, rates)
				path, use := res.set(budgets, rates)
				for range 2 {
					if got := use(); got.status != 200 {
						t.Fatalf("%s: %d %s", name, got.status, got.body)
					}
				}
				if i == 3 && !strings.Contains(path, "/policies/") && !strings.HasPrefix(path, "/integrations/") {
					r.admin("PUT", path, `{"reset_usage":true}`)
					use()
				}
				read := func() string {
					got := r.call("GET", path, "", "X-Gateway-Api-Key", adminKey)
					if got.status != 200 {
						t.Fatalf("%s: %d %s", name, got.status, got.body)
					}
					return got.body
				}
				before := read()
				if i > 0 && !strings.Contains(before, `"current_usage":`) || strings.Count(before, `"current_usage":0,`) > strings.Count(before, `"global_workspace_access"`) {
					t.Errorf("%s: nothing was counted: %s", name, before)
				}
				for range 2 {
					got := r.call("PUT", path, before, "X-Gateway-Api-Key", adminKey)
					if got.status != 200 {
						t.Errorf("%s: PUT: %d %s\n%s", name, got.status, got.body, before)
						break
					}
					put[got.header.Get("X-Gateway-Request-Id")] = name
					if diff := sameButUpdated(before, read()); diff != "" {
						t.Errorf("%s:\n%s", name, diff)
					}
				}
				if n == 0 && i == 4 {
					if got := use(); got.status != 200 {
						t.Errorf("%s: afterwards %d %s", name, got.status, got.body)
					}
				}
			}
		}
	}
	query := url.Values{"start_time": {time.Now().Add(-time.Hour).Format(time.RFC3339)}, "end_time": {time.Now().Add(time.Hour).Format(time.RFC3339)}}
	for id, name := range put {
		query.Set("request_id", id)
		eventually(t, func() error {
			records := r.get("/audit-logs?"+query.Encode(), adminKey)["records"].([]any)
			if len(records) != 1 {
				return fmt.Errorf("%s: %d audit records of request %q", name, len(records), id)
			}
			if changes := member(records[0], "details/changes"); changes != nil {
				t.Errorf("%s: the audit log has the changes %v", name, changes)
			}
			return nil
		})
	}
}
