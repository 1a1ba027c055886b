package assembly_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadsReturnWhatWasWritten writes fields that reads must return unchanged: declarative
// clients compare them as JSON. null means an absent field.
func TestReadsReturnWhatWasWritten(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	for _, c := range []struct{ name, create, update, path, body, want string }{
		{"guardrail", "/guardrails", "", "", `{"name":"G","workspace_id":"first-space","checks":[{"id":"default.wordCount","parameters":{"minWords":1,"maxWords":9}}],"actions":{"onFail":"log","message":"Word count failed"}}`,
			`{"checks":[{"id":"default.wordCount","parameters":{"minWords":1,"maxWords":9}}],"actions":{"onFail":"log","message":"Word count failed"}}`},
		{"guardrail with flags", "/guardrails", `{"actions":{"deny":false,"async":true}}`, "", `{"name":"F","workspace_id":"first-space","checks":[{"id":"default.wordCount","is_enabled":false,"parameters":{"minWords":1}}],"actions":{"deny":true}}`,
			`{"checks":[{"id":"default.wordCount","is_enabled":false,"parameters":{"minWords":1}}],"actions":{"deny":false,"async":true}}`},
		{"key", "/api-keys/organisation/service", "", "/api-keys", `{"name":"K","scopes":["workspaces.read","logs.view","logs.list"],"usage_limits":{"credit_limit":5,"periodic_reset":"monthly"},"rotation_policy":{"rotation_period":"monthly","next_rotation_at":"2030-06-01T00:00:00Z"},"alert_emails":[],"defaults":{}}`,
			`{"scopes":["workspaces.read","logs.view","logs.list"],"usage_limits":{"type":null,"next_usage_reset_at":null,"credit_limit":5},"rotation_policy":{"next_rotation_at":"2030-06-01T00:00:00Z","key_transition_period_ms":null},"alert_emails":[],"defaults":{"metadata":{}},"rate_limits":[]}`},
		{"key with dates", "/api-keys/organisation/service", "", "/api-keys", `{"name":"D","scopes":["logs.list"],"usage_limits":{"type":"cost","credit_limit":5,"periodic_reset":"weekly","next_usage_reset_at":"2030-06-03T00:00:00Z"},"rotation_policy":{"rotation_period":"monthly","key_transition_period_ms":1800000},"defaults":{"metadata":{"a":"b"},"config_id":"pc-any"}}`,
			`{"usage_limits":{"type":"cost","next_usage_reset_at":"2030-06-03T00:00:00Z"},"rotation_policy":{"key_transition_period_ms":1800000},"defaults":{"metadata":{"a":"b"},"config_id":"pc-any"}}`},
		{"invitation", "/admin/users/invites", "", "", `{"email":"w@example.com","role":"admin","workspaces":[{"id":"first-space","role":"admin"}]}`, `{"workspaces":[{"id":"first-space","role":"admin"}]}`},
		{"member without workspaces", "/admin/users/invites", "", "", `{"email":"m@example.com","role":"member"}`, `{"workspaces":[],"role":"member"}`},
	} {
		made := in.must("POST", c.create, rootKey, c.body)
		at := c.path
		if at == "" {
			at = c.create
		}
		at += "/" + made["id"].(string)
		if c.update != "" {
			in.must("PUT", at, rootKey, c.update)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		got := in.must("GET", at, rootKey, "")
		for member, value := range want {
			if diff := cmp.Diff(value, part(value, got[member])); diff != "" {
				t.Errorf("%s: %s (-written +read):\n%s", c.name, member, diff)
			}
		}
	}
}

// part is the part of a value that another one of the same form names; limits and policies
// have computed members beside those that were written.
func part(of, v any) any {
	want, ok := of.(map[string]any)
	got, is := v.(map[string]any)
	if !ok || !is || want["deny"] != nil || want["onFail"] != nil || want["parameters"] != nil {
		list, ok := of.([]any)
		entries, is := v.([]any)
		if !ok || !is || len(list) != len(entries) || len(list) == 0 {
			return v
		}
		out := make([]any, len(list))
		for i := range list {
			out[i] = entries[i]
			if one, ok := list[i].(map[string]any); ok && one["role"] != nil {
				out[i] = part(list[i], entries[i])
			}
		}
		return out
	}
	out := map[string]any{}
	for name := range want {
		out[name] = part(want[name], got[name])
	}
	return out
}

// TestWrappedResponsesHaveTheMembersTwice reads members of configs and virtual keys under
// data and at the top level.
func TestWrappedResponsesHaveTheMembersTwice(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	config := in.must("POST", "/configs", rootKey, `{"name":"C","workspace_id":"first-space","config":{"retry":{"attempts":3}}}`)
	at := "/configs/" + fmt.Sprint(config["slug"])
	key := in.must("POST", "/virtual-keys", rootKey, `{"name":"K","workspace_id":"first-space","provider":"openai","key":"k-secret-value"}`)
	for name, answer := range map[string]map[string]any{
		"POST /configs": config, "GET /configs/{slug}": in.must("GET", at, rootKey, ""), "PUT /configs/{slug}": in.must("PUT", at, rootKey, `{"config":{"retry":{"attempts":2}}}`), "POST /virtual-keys": key,
	} {
		data, _ := answer["data"].(map[string]any)
		if len(data) == 0 || answer["success"] != true {
			t.Errorf("%s: %v", name, answer)
		}
		for member, value := range data {
			if !cmp.Equal(value, answer[member]) {
				t.Errorf("%s: %s is %v at the top level and %v in data", name, member, answer[member], value)
			}
		}
	}
}
