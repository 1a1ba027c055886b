package relay_test

import (
	"strings"
	"testing"

	"gateway/shared/relay"
	"gateway/shared/testkit/relaytest"
)

// TestDryRunsShowWhatWouldBeSent requires the targets of a dry run with what each would get, lose and
// cost, the errors that a request would meet, and no credential; nothing is sent.
func TestDryRunsShowWhatWouldBeSent(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, append([]relay.Route{{
		Method: "POST", Path: "/configs/dry-run", Endpoint: "configDryRun", BodyMode: relay.Unified, Scope: "configs.read", OrScopes: []string{write},
		NoModel: true, Free: true, NoOutput: true, Handler: &relay.DryRun{Routes: familyRoutes},
		Check: func(body []byte) error { _, err := relay.ReadDryRun(body); return err },
	}}, familyRoutes...))
	const request = `"path":"/chat/completions","headers":{"x-gateway-metadata":"{\"team\":\"ads\"}"},"body":{"model":"x","messages":[{"role":"user","content":"Hello"}],"logit_bias":{"1":2},"max_tokens":9}`
	two := `"config":{"strategy":{"mode":"fallback","on_status_codes":[429,503]},"retry":{"attempts":2},"targets":[{"provider":"` + relaytest.Saved + `","override_params":{"model":"gpt-4o","temperature":0.5}},` + claude(`,"override_params":{"model":"claude-sonnet-4-5"},"request_timeout":5000`) + `]},`
	hello := `"path":"/chat/completions","body":` + question
	for _, c := range []struct {
		name, body string
		status     int
		has        string
	}{
		{"one target", two + request, 200, `"sent":false & "path":"config.targets[0]" & "provider":"openai" & "slug":"shared" & "model":"gpt-4o" & "method":"POST" & "stream":false & "retries":2 & "assumed_status":200 & "temperature":0.5 & "logit_bias":{"1":2} & "priced":true & "Content-Type":"application/json" & /chat/completions" & !config.targets[1] & !"cents":0,`},
		{"an assumed status", two + `"assume":[503],` + request, 200, `"path":"config.targets[1]" & "provider":"anthropic" & "timeout_ms":5000 & "model":"claude-sonnet-4-5" & "max_tokens":9 & "path":"logit_bias"`},
		{"a missing provider", `"config":` + fallback(`{"provider":"@nobody"}`, openAI("")) + `,` + request, 200, `"reason":"refused" & config.targets[1]`},
		{"a bad body", `"path":"/chat/completions","body":{"model":"gpt-4o"},"config":` + openAI(""), 200, `"status":400 & "field":"messages"`},
		{"a bad config", `"config":{"strategy":{"mode":"magic"}},` + request, 200, `"status":400`},
		{"all errors of a config", `"config":{"strategy":{"mode":"best"},"retry":{"attempts":"x"},"targets":[{"weight":-1}]},` + hello, 200, `"field":"strategy.mode" & "field":"retry.attempts" & "field":"targets[0].weight" & "code":"invalid_config" & "draws":[`},
		{"a stored credential", `"config":{"provider":"` + relaytest.Saved + `"},` + hello, 200, `"Authorization":"*****"`},
		{"another header", `"config":` + claude("") + `,` + hello, 200, `"X-Api-Key":"*****"`},
		{"a signature", `"config":` + aws + `,"override_params":{"model":"amazon.nova-lite-v1:0"}},` + hello, 200, `"Authorization":"*****"`},
		{"a header of the config", `"config":` + openAI(`,"custom_headers":{"x-team":"sk-first"}`) + `,` + hello, 200, `"X-Team":"*****" & "Authorization":"*****"`},
		{"without a key", `"config":{"provider":"openai"},` + hello, 200, `"error":{"status":4`},
		{"profiles are not resolved", `"config":` + aws + `},"path":"/chat/completions","body":` + asks(profile, `,"max_tokens":9`), 200, `"provider":"bedrock" & !"status":4`},
		{"a credential in a header", `"path":"/chat/completions","headers":{"x-gateway-provider":"openai","authorization":"Bearer sk-caller","x-gateway-forward-headers":"x-mine","x-mine":"1"},"body":` + question, 200, "api.openai.com & !sk-caller"},
		{"no path", "", 400, "path"}, {"an unknown field", `"path":"/chat/completions","x":1`, 400, ""},
		{"a path with a query", `"path":"/proxy/echo/x?","body":{"a":1}`, 400, `"path"`}, {"another type", `"path":7`, 400, ""}, {"no status", `"path":"/chat/completions","assume":[99]`, 400, ""},
		{"no header", `"path":"/chat/completions","headers":{"a b":"c"}`, 400, ""}, {"a method", `"path":"/chat/completions","method":"PATCH"`, 400, ""},
		{"a line break", `"path":"/chat/completions","headers":{"a":"b\r\nc: d"}`, 400, ""}, {"a form", `"path":"/files","method":"POST"`, 400, ""},
	} {
		x := exchange{c.name, "/v1/configs/dry-run", "{" + c.body + "}", nil, nil, c.status, c.has, "", ""}
		if got, _, _ := x.run(t, g); strings.Contains(got.Body, "sk-first") || strings.Contains(got.Body, "very-secret") {
			t.Errorf("%s: a credential is in %s", c.name, got.Body)
		}
	}
}
