package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestAPromptOfTheProvidersNamesTheModel: a body of responses with a prompt needs no
// model, where the bytes continue; a list of models is not passed by.
func TestAPromptOfTheProvidersNamesTheModel(t *testing.T) {
	t.Parallel()
	r := start(t)
	const body = `{"prompt":{"id":"pmpt_1","variables":{"a":"b"}},"input":"x"}`
	for _, c := range []struct {
		config, body, field string
	}{
		{`{"provider":"openai","api_key":"k"}`, body, ""},
		{`{"provider":"openai","api_key":"k"}`, strings.Replace(body, "}}", `}},"stream":true`, 1), ""},
		{`{"provider":"openai","api_key":"k"}`, `{"input":"x"}`, "model"},
		{`{"provider":"openai","api_key":"k"}`, `{"input":"x","prompt":null}`, "model"},
		{`{"provider":"anthropic","api_key":"k"}`, body, "model"},
		{`{"provider":"groq","api_key":"k"}`, body, ""},
	} {
		got := r.dryRun(fmt.Sprintf(`{"config":%s,"path":"/responses","body":%s}`, c.config, c.body))
		target := got["targets"].([]any)[0]
		if field, _ := member(target, "error/field").(string); field != c.field || c.field == "" && (member(target, "error") != nil || member(target, "body/prompt/id") != "pmpt_1" || member(target, "body/model") != nil) {
			t.Errorf("%s %s: %v", c.config, c.body, target)
		}
	}
	if got := r.call("POST", "/chat/completions", `{"prompt":{"id":"pmpt_1"},"messages":[{"role":"user","content":"x"}]}`, onMock...); got.status != 400 || member(got.json(t), "error/param") != "model" {
		t.Errorf("another route: %d %s", got.status, got.body)
	}
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"few","slug":"few","workspace_id":%q,"ai_provider_id":"openai","key":"mock-key","configurations":{"custom_host":%q}}`, r.workspace(), r.mockBase()))
	r.admin("PUT", "/integrations/few/models", `{"allow_all_models":false,"models":[{"slug":"gpt-4o","enabled":true}]}`)
	if got := r.call("POST", "/responses", body, "X-Gateway-Provider", "@few"); got.status/100 != 4 || !strings.Contains(got.body, "is limited to some models") || len(r.mock.Requests(10)) != 0 {
		t.Errorf("past a list of models: %d %s", got.status, got.body)
	}
}
