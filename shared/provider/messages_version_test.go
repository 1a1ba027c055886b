package provider

import (
	"context"
	"net/http"
	"testing"
)

// TestMessagesNameTheirVersion: a host that serves the Messages API beside others
// is told its version there, and nowhere else.
func TestMessagesNameTheirVersion(t *testing.T) {
	for _, c := range []struct {
		op         Operation
		sent, want string
		fields     map[string]string
	}{
		{Messages, "", "2023-06-01", nil},
		{Messages, "", "2026-10-21", map[string]string{"anthropic_version": "2026-10-21"}},
		{Messages, "2024-01-01", "2024-01-01", nil},
		{Chat, "", "", nil},
	} {
		fields := map[string]string{"azure_foundry_url": "https://example.services.ai.azure.com", "azure_auth_mode": "default"}
		for name, value := range c.fields {
			fields[name] = value
		}
		target := Target{Provider: row(t, "azure-ai"), Credential: Credential{Key: "k", Fields: fields}}
		raw, err := target.URL(c.op, "claude-sonnet-4-5", false)
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: http.MethodPost, Header: http.Header{}}
		if req.URL, err = ExactURL(raw); err != nil {
			t.Fatal(err)
		}
		if c.sent != "" {
			req.Header.Set("Anthropic-Version", c.sent)
		}
		if err := target.Authorize(context.Background(), req, nil); err != nil {
			t.Fatal(err)
		}
		if got := req.Header.Get("Anthropic-Version"); got != c.want {
			t.Errorf("%s: version %q, want %q", raw, got, c.want)
		}
	}
}
