package main

import (
	"fmt"
	"strings"
	"testing"
)

// A limit that makes no sense is rejected wherever it stands, with the name of the field,
// and nothing of it is stored.
func TestLimitsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("POST", "/integrations", `{"name":"Shared","slug":"shared","ai_provider_id":"openai","key":"sk-abcdefgh"}`)
	workspace := r.workspace()
	// Each place takes one usage limit, or one rate limit, as JSON.
	places := []struct {
		name, method, path string
		body               string // %s: the member with the limit
		usage, rate        string // how the member is called and its path in errors
		array              bool
	}{
		{"key", "POST", "/api-keys/workspace/service", `{"name":"bad","workspace_id":"` + workspace + `","scopes":["completions.write"],%s}`, "usage_limits", "rate_limits[0]", false},
		{"provider", "POST", "/providers", `{"name":"bad","workspace_id":"` + workspace + `","integration_id":"shared",%s}`, "usage_limits", "rate_limits[0]", false},
		{"workspace", "POST", "/admin/workspaces", `{"name":"bad",%s}`, "usage_limits[0]", "rate_limits[0]", true},
		{"integration", "PUT", "/integrations/shared/workspaces", `{"workspaces":[{"id":"` + workspace + `","enabled":true,%s}]}`, "workspaces[0].usage_limits[0]", "workspaces[0].rate_limits[0]", true},
		{"integration for all", "PUT", "/integrations/shared/workspaces", `{"global_workspace_access":{"enabled":true,%s}}`, "global_workspace_access.usage_limits[0]", "global_workspace_access.rate_limits[0]", true},
	}
	usage := []struct{ limit, field string }{
		{`{"credit_limit":-1}`, "credit_limit"}, {`{"credit_limit":0}`, "credit_limit"}, {`{"credit_limit":"5"}`, "credit_limit"}, {`{"credit_limit":1e30}`, "credit_limit"}, {`{}`, "credit_limit"},
		{`{"type":"tokens","credit_limit":100.5}`, "credit_limit"}, {`{"type":"tokens","credit_limit":99}`, "credit_limit"}, {`{"type":"rubles","credit_limit":5}`, "type"},
		{`{"credit_limit":5,"alert_threshold":5}`, "alert_threshold"}, {`{"credit_limit":5,"alert_threshold":-1}`, "alert_threshold"}, {`{"credit_limit":5,"alert_threshold":"80%"}`, "alert_threshold"},
		{`{"credit_limit":5,"periodic_reset":"weekly","periodic_reset_days":3}`, "periodic_reset_days"}, {`{"credit_limit":5,"periodic_reset":"daily"}`, "periodic_reset"},
		{`{"credit_limit":5,"periodic_reset_days":0}`, "periodic_reset_days"}, {`{"credit_limit":5,"periodic_reset_days":366}`, "periodic_reset_days"}, {`{"credit_limit":5,"periodic_reset_days":1.5}`, "periodic_reset_days"},
		{`{"credit_limit":5,"periodic_reset":"weekly","next_usage_reset_at":"2020-01-01T00:00:00Z"}`, "next_usage_reset_at"}, {`{"credit_limit":5,"periodic_reset":"weekly","next_usage_reset_at":"soon"}`, "next_usage_reset_at"},
		{`{"credit_limit":5,"on_exceeded":"shrug"}`, "on_exceeded"}, {`{"credit_limit":5,"on_exceeded":"fallback"}`, "fallback_model"}, {`{"credit_limit":5,"fallback_model":"@a/b"}`, "fallback_model"},
		{`{"credit_limit":5,"temporary_raise":{"amount":1,"expires_at":"2020-01-01T00:00:00Z"}}`, "temporary_raise.expires_at"}, {`{"credit_limit":5,"temporary_raise":{"amount":-1,"expires_at":"2099-01-01T00:00:00Z"}}`, "temporary_raise.amount"},
		{`{"credit_limit":5,"current_usage":"1"}`, "current_usage"}, {`{"credit_limit":5,"status":"paused"}`, "status"}, {`{"credit_limit":5,"limit":1}`, "limit"},
	}
	rates := []struct{ limit, field string }{
		{`{"type":"requests","unit":"rpm","value":-1}`, "value"}, {`{"type":"requests","unit":"rpm","value":1.5}`, "value"}, {`{"type":"requests","unit":"rpm","value":9223372036854775808}`, "value"}, {`{"type":"requests","unit":"rpm","value":"10"}`, "value"},
		{`{"type":"requests","unit":"rpy","value":1}`, "unit"}, {`{"type":"requests","unit":"tpm","value":1}`, "unit"}, {`{"type":"cost","unit":"rpm","value":1}`, "type"}, {`{"unit":"rpm","value":1}`, "type"}, {`{"type":"requests","value":1}`, "unit"},
		{`{"type":"requests","unit":"rpm"}`, "value"}, {`{"type":"requests","unit":"rpm","value":1,"burst":2}`, "burst"},
	}
	refused := func(where, method, path, body, field string) {
		t.Helper()
		got := r.call(method, path, body, "X-Gateway-Api-Key", adminKey)
		if got.status != 400 || !strings.Contains(got.body, `"`+field+`"`) {
			t.Errorf("%s: %s: want %s: %d %s", where, body, field, got.status, got.body)
		}
	}
	before := map[string]any{}
	lists := []string{"/api-keys?workspace_id=" + workspace, "/providers?workspace_id=" + workspace, "/admin/workspaces", "/integrations/shared/workspaces"}
	for _, list := range lists {
		before[list] = fmt.Sprint(r.admin("GET", list, ""))
	}
	for _, p := range places {
		for _, c := range usage {
			if strings.HasPrefix(p.name, "integration") && c.limit == `{"credit_limit":5,"alert_threshold":5}` {
				continue // the threshold of an integration's workspace may exceed its limit
			}
			member := c.limit
			if p.array {
				member = "[" + member + "]"
			}
			refused(p.name, p.method, p.path, fmt.Sprintf(p.body, `"usage_limits":`+member), p.usage+"."+c.field)
		}
		for _, c := range rates {
			refused(p.name, p.method, p.path, fmt.Sprintf(p.body, `"rate_limits":[`+c.limit+`]`), p.rate+"."+c.field)
		}
	}
	for _, list := range lists {
		if now := fmt.Sprint(r.admin("GET", list, "")); now != before[list] {
			t.Errorf("%s: something was stored:\n%s\n%s", list, now, before[list])
		}
	}
}

// Policies too reject a condition on something that no request has, groups that repeat or
// name each other, and limits that make no sense.
func TestPoliciesThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	r := start(t)
	const key, model = `"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}]`, `"type":"cost","credit_limit":5`
	for _, c := range []struct{ kind, body, field string }{
		{"usage", `{"conditions":[{"key":"weather","value":"*"}],"group_by":[{"key":"api_key"}],` + model + `}`, "conditions[0].key"},
		{"usage", `{"conditions":[{"key":"group_by","value":"*"}],"group_by":[{"key":"conditions"}],` + model + `}`, "group_by[0].key"},
		{"usage", `{"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"},{"key":"model"},{"key":"api_key"}],` + model + `}`, "group_by[2].key"},
		{"usage", `{"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"group_by"}],` + model + `}`, "group_by[0].key"},
		{"usage", `{` + key + `,"type":"cost","credit_limit":-5}`, "credit_limit"},
		{"usage", `{` + key + `,"type":"requests","credit_limit":1.5}`, "credit_limit"},
		{"usage", `{` + key + `,"type":"tokens","credit_limit":1000.25}`, "credit_limit"},
		{"usage", `{` + key + `,` + model + `,"periodic_reset":"monthly","periodic_reset_days":3}`, "periodic_reset_days"},
		{"usage", `{` + key + `,` + model + `,"periodic_reset":"monthly","next_usage_reset_at":"2020-01-01T00:00:00Z"}`, "next_usage_reset_at"},
		{"rate", `{` + key + `,"type":"requests","unit":"rpy","value":5}`, "unit"},
		{"rate", `{` + key + `,"type":"requests","unit":"rpm","value":-5}`, "value"},
		{"rate", `{` + key + `,"type":"requests","unit":"rpm","value":0}`, "value"},
		{"rate", `{` + key + `,"type":"requests","unit":"rpm","value":2.5}`, "value"},
	} {
		path := "/policies/" + c.kind + "-limits"
		body := strings.Replace(c.body, "{", fmt.Sprintf(`{"name":"bad","workspace_id":%q,`, r.workspace()), 1)
		got := r.call("POST", path, body, "X-Gateway-Api-Key", adminKey)
		if got.status != 400 || !strings.Contains(got.body, `"`+c.field+`"`) {
			t.Errorf("%s: want %s: %d %s", c.body, c.field, got.status, got.body)
		}
		if n := r.admin("GET", path+"?workspace_id="+r.workspace(), "")["total"]; n != 0.0 {
			t.Errorf("%v policies after %s", n, c.body)
		}
	}
}
