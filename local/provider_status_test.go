package main

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// What a provider calls its error does not change the status that retries,
// fallbacks, breakers, records and clients see.
func TestRoutesSeeTheStatusThatTheProviderSent(t *testing.T) {
	t.Parallel()
	r := start(t).instance(new(atomic.Int64)) // its retries do not wait
	type expected struct {
		name                    string
		first, attempts, answer int
	}
	var all []expected
	for _, c := range []struct {
		provider, model, directives string
		status                      int
	}{
		{"@mock-anthropic", "claude-sonnet-4-5", "status=503&type=overloaded_error", 503},
		{"@mock-anthropic", "claude-sonnet-4-5", "status=500&type=overloaded_error", 500},
		{"@mock-anthropic", "claude-sonnet-4-5", "status=503&type=rate_limit_error", 503},
		{"@mock-anthropic", "claude-sonnet-4-5", "status=529", 529},
		{"@mock-anthropic", "claude-sonnet-4-5", "html&status=503", 503},
		{"@mock", "gpt-4o-mini", "status=503&code=insufficient_quota", 503},
		{"@mock", "gpt-4o-mini", "html&status=503", 503},
		{"@mock", "gpt-4o-mini", "html&status=404", 404},
		{"@mock", "gpt-4o-mini", "empty&status=520", 520},
	} {
		for _, path := range []string{"/chat/completions", "/messages"} {
			for _, more := range []string{`,"max_tokens":50`, `,"max_tokens":50,"stream":true`} {
				body := chatBody("m", "Hello", more)
				bad := fmt.Sprintf(`"provider":%q,"override_params":{"model":"%s?%s"}`, c.provider, c.model, c.directives)
				good := fmt.Sprintf(`"provider":%q,"override_params":{"model":%q}`, c.provider, c.model)
				name := fmt.Sprint(path, more, " ", c.provider, " ", c.directives)
				send := func(what, config string, status, attempts int) {
					t.Helper()
					got := r.call("POST", path, body, "X-Gateway-Config", config)
					if got.status != status {
						t.Errorf("%s: %s: %d %s", name, what, got.status, got.body)
					}
					all = append(all, expected{name + ": " + what, c.status, attempts, status})
				}
				list := func(status int, targets string) string {
					return fmt.Sprintf(`{"strategy":{"mode":"fallback","on_status_codes":[%d]},"targets":[%s]}`, status, targets)
				}
				send("retried", fmt.Sprintf(`{"retry":{"attempts":1,"on_status_codes":[%d]},%s}`, c.status, bad), c.status, 2)
				send("falls back", list(c.status, "{"+bad+"},{"+good+"}"), 200, 2)
				send("other statuses do not", list(c.status+1, "{"+bad+"},{"+good+"}"), c.status, 1)
			}
		}
	}
	for i, rec := range r.records(len(all)) {
		if e := all[i]; len(rec.Attempts) != e.attempts || rec.Attempts[0].Status != e.first || rec.ClientStatus != e.answer {
			t.Errorf("%s: %d attempts, the first with %d, client %d", e.name, len(rec.Attempts), rec.Attempts[0].Status, rec.ClientStatus)
		}
	}
}
