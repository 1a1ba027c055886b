package provider

import (
	"net/http"
	"slices"
	"testing"
)

// TestOrdinaryHeaderValuesAreNoCredentials: the value of a configured header is redacted if
// the header is named like a credential, if a secret manager fills it, or if it is not made
// of words and small numbers.
func TestOrdinaryHeaderValuesAreNoCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		secret      []string
		want        bool
	}{
		{"X-Environment", "production", nil, false},
		{"X-Region", "eu-central-1", nil, false},
		{"X-Team", "Platform Engineering", nil, false},
		{"X-Format", "application/json; charset=utf-8", nil, false},
		{"X-Origin", "https://example.com/team", nil, false},
		{"X-Date", "2026-11-28", nil, false},
		{"X-Model", "gpt-4o-mini", nil, false},
		{"Accept", "text/event-stream", nil, false},
		{"X-Acme", "hunter2hunter2", nil, true},
		{"X-Acme", "9f8a7d6c5b4a3921", nil, true},
		{"X-Acme", "sk-proj-aB3dE6gH9jK2", nil, true},
		{"X-Acme", "correcthorsebatterystaple", nil, true},
		{"X-Acme", "QWxhZGRpbjpvcGVu", nil, true},
		{"X-Acme", "123456789012", nil, true},
		{"X-Acme", "p@ss!word#", nil, true},
		{"X-Acme", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", nil, true},
		{"X-Acme", "Bearer production", nil, true},
		{"Authorization", "production", nil, true},
		{"X-Api-Key", "production", nil, true},
		{"X-Acme-Token", "opensesame", nil, true},
		{"X-Acme", "opensesame", []string{"X-Acme"}, true},
		{"X-Acme", "opensesame", []string{AnyHeader}, true},
		{"X-Acme", "opensesame", []string{"X-Other"}, false},
		{"X-Api-Key", "short", nil, false},
	} {
		got := slices.Contains(HeaderSecrets(nil, http.Header{c.name: {c.value}}, nil, c.secret), c.value)
		if got != c.want {
			t.Errorf("%s: %s: redacted is %t", c.name, c.value, got)
		}
	}
	for field, want := range map[string]string{"configurations.headers.x-acme": "X-Acme", "configurations.custom_headers": AnyHeader, "configurations.passthrough_header": AnyHeader} {
		if got := MappedHeaders([]SecretMapping{{TargetField: field}}); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v", field, got)
		}
	}
}
