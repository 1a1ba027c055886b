package main

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/pricing"
)

// wired makes the saved provider @id of a provider type whose host is the mock
// below path; fields are further members of its configurations.
func (r *running) wired(id, path, fields string) {
	r.t.Helper()
	host := strings.TrimSuffix(r.mockBase(), "/v1") + path
	if fields != "" {
		fields = "," + fields
	}
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":%q,"key":"mock-key","configurations":{"custom_host":%q%s}}`, id, id, r.workspace(), id, host, fields))
}

// content is the text of a chat's answer.
func content(t *testing.T, body map[string]any) string {
	t.Helper()
	message := body["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)
	s, _ := message["content"].(string)
	return strings.TrimSpace(s)
}

// billed waits for n records and holds their usage against the mock's bill.
func (r *running) billed(t *testing.T, n int) {
	t.Helper()
	bill := r.mock.Bill()
	var in, out int64
	for _, rec := range r.records(n) {
		in += rec.Usage.N(pricing.Input)
		out += rec.Usage.OutputTokens()
	}
	if in != bill.Total.Input || out != bill.Total.Output+bill.Total.Reasoning {
		t.Errorf("recorded %d in, %d out; billed %d and %d", in, out, bill.Total.Input, bill.Total.Output+bill.Total.Reasoning)
	}
}
