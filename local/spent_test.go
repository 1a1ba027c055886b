package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// A failed attempt that was billed counts as part of what the request uses. The next
// attempt is made only if the budgets have room for it besides the earlier ones: on every
// route, in retries, in fallbacks and in both, whoever has the budget.
func TestChargedAttemptsNeverPassABudget(t *testing.T) {
	t.Parallel()
	home := start(t)
	r := home.instance(new(atomic.Int64)) // its waits take no time
	mock := strings.TrimSuffix(home.mockBase(), "/v1")
	for i, a := range answering {
		if strings.Contains(a.path, "embeddings") {
			continue // what is bounded is all but what is used
		}
		body := strings.Replace(a.body, `"Hello"`, `"mock: chunks=300"`, 1)
		if !strings.Contains(body, "max_tokens") {
			most := "max_tokens"
			if a.path == "/responses" {
				most = "max_output_tokens"
			}
			body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,%q:300}`, most)
		}
		body = strings.Replace(body, `"max_tokens":50`, `"max_tokens":300`, 1)
		bad := func(provider string) string {
			return fmt.Sprintf(`"provider":%q,"override_params":{"model":"%s?wrong-length"}`, provider, a.model)
		}
		leaves := func(n int, provider, more string) string {
			return `"targets":[` + strings.TrimSuffix(strings.Repeat(`{`+more+bad(provider)+`},`, n), ",") + `]`
		}
		for name, config := range map[string]func(provider string) string{
			"retries":  func(p string) string { return `{"retry":{"attempts":5,"on_status_codes":[502]},` + bad(p) + `}` },
			"fallback": func(p string) string { return `{"strategy":{"mode":"fallback"},` + leaves(6, p, "") + `}` },
			"retries in a fallback": func(p string) string {
				return `{"strategy":{"mode":"fallback"},` + leaves(3, p, `"retry":{"attempts":2,"on_status_codes":[502]},`) + `}`
			},
		} {
			for _, of := range []string{"key", "provider"} {
				t.Run(fmt.Sprintf("%s%s %s, budget of the %s", a.provider, a.path, name, of), func(t *testing.T) {
					// One attempt is bounded at a bit over 400 tokens and uses about 310.
					const budget = 1100
					key, provider := home.newKey(`"usage_limits":{"type":"tokens","credit_limit":1100}`), a.provider
					if of == "provider" {
						provider = fmt.Sprintf("@spent-%d-%s", i, strings.ReplaceAll(name, " ", "-"))
						kind, host := "openai", mock+"/v1"
						if a.provider == "@mock-anthropic" {
							kind = "anthropic"
						}
						home.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":%q,"slug":%q,"provider":%q,"key":"mock-own","custom_host":%q,"workspace_id":%q,"usage_limits":{"type":"tokens","credit_limit":1100}}`,
							provider[1:], provider[1:], kind, host, home.workspace()))
						key = home.newKey("")
					}
					before := r.mock.Bill()
					got := r.call("POST", a.path, body, "X-Gateway-Api-Key", key, "X-Gateway-Config", config(provider))
					after := r.mock.Bill()
					used := after.Total.Input + after.Total.Output - before.Total.Input - before.Total.Output
					attempts := after.Total.Requests - before.Total.Requests
					if got.status != 502 && got.status != 412 {
						t.Errorf("%d %s", got.status, got.body)
					}
					if used > budget || attempts != 3 {
						t.Errorf("%d tokens of %d in %d attempts; three have room: %d %s", used, budget, attempts, got.status, got.body)
					}
					if n := got.header.Get("X-Gateway-Retry-Attempt-Count"); name == "retries" && n != "2" {
						t.Errorf("%s retries are told; two were made", n)
					}
				})
			}
		}
	}
}
