package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestToolRunsJudgeResults: output guardrails of a config judge the results of tools that the
// gateway calls, by their scope, before the model or the client gets them.
func TestToolRunsJudgeResults(t *testing.T) {
	t.Parallel()
	r, _ := startShapes(t)
	up, _ := mcpServer(t, stateless)
	r.registerMCP("results", up.URL, "")
	const text = "mock: call=tool3 {\"text\":\"hey\"}\nSay hey by tool3."
	check := func(scope, more string) string {
		return fmt.Sprintf(`{"output_guardrails":[{"name":"results","regexMatch":{"rule":"said h[e]y","not":true%s}%s}]}`, scope, more)
	}
	for _, c := range toolRequests {
		for _, stream := range []bool{false, true} {
			for _, g := range []struct{ name, config, has, hasNot string }{
				{"denied", check(`,"scope":"tool_results"`, `,"deny":true`), `Guardrail \"results\", check default.regexMatch`, "said hey"},
				{"denied, any message", check(`,"scope":"all_messages"`, `,"deny":true`), `Guardrail \"results\", check default.regexMatch`, "said hey"},
				{"not denied", check(`,"scope":"tool_results"`, ``), "said hey", "withheld"},
				{"another scope", check(`,"scope":"reasoning"`, `,"deny":true`), "said hey", "withheld"},
				{"redacted", `{"output_guardrails":[{"regexReplace":{"rule":"/said hey/g","redactText":"#gone#","scope":"tool_results"}}]}`, "#gone#", "said hey"},
				{"of a target", `{"targets":[{"output_guardrails":[{"name":"results","regexMatch":{"rule":"said h[e]y","not":true,"scope":"tool_results"},"deny":true}]}]}`, `Guardrail \"results\"`, "said hey"},
			} {
				got := r.call("POST", c.path, c.body("@mock/gpt-4o", text, serverTool("results", ""), fmt.Sprintf(`,"stream":%t`, stream)), "X-Gateway-Beta", toolsHeader, "X-Gateway-Config", g.config)
				if got.status != 200 && got.status != 246 || !strings.Contains(strings.ReplaceAll(got.body, `\\\"`, `\"`), g.has) || strings.Contains(got.body, g.hasNot) {
					t.Errorf("%s, %s, stream %t: %d %s", c.name, g.name, stream, got.status, got.body)
				}
			}
		}
	}
}
