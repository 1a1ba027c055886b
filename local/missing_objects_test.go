package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestForeignObjectsAreMissingInTheFormOfTheSDK reads objects of other workspaces with paths of
// each provider: the response is what its SDK expects of a missing object, and the provider is
// not asked.
func TestForeignObjectsAreMissingInTheFormOfTheSDK(t *testing.T) {
	t.Parallel()
	host := &everything{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	for id, fields := range map[string]string{"openai": "", "anthropic": "", "google": "", "cohere": "", "bedrock": `,"aws_auth_type":"accessKey","aws_region":"us-east-1","aws_access_key_id":"AKID","aws_secret_access_key":"s"`} {
		key := `"key":"k",`
		if fields != "" {
			key = ""
		}
		r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":"of-%s","ai_provider_id":%q,%s"configurations":{"custom_host":%q%s}}`, id, id, id, key, server.URL, fields))
		r.admin("PUT", "/integrations/of-"+id+"/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	}
	r.admin("POST", "/workspaces", `{"name":"Neighbor"}`)
	for _, c := range []struct{ provider, method, path, body, member, want string }{
		{"openai", "GET", "/proxy/vector_stores/vs_z", "", "error.type", "not_found_error"},
		{"openai", "GET", "/proxy/responses/resp_z", "", "error.type", "not_found_error"},
		{"anthropic", "GET", "/proxy/messages/batches/msgbatch_z", "", "error.type", "not_found_error"},
		{"anthropic", "DELETE", "/proxy/v1/files/file_z", "", "type", "error"},
		{"anthropic", "POST", "/proxy/v1/messages", `{"model":"claude-x","max_tokens":1,"container":"container_z","messages":[]}`, "error.type", "not_found_error"},
		{"anthropic", "POST", "/proxy/v1/messages/batches", `{"requests":[{"custom_id":"1","params":{"model":"claude-x","max_tokens":1,"container":"container_z","messages":[]}}]}`, "error.type", "not_found_error"}, // without a budget
		{"google", "POST", "/proxy/v1beta/models/g:batchGenerateContent", `{"batch":{"input_config":{"requests":{"requests":[{"request":{"cachedContent":"cachedContents/z","contents":[]}}]}}}}`, "error.status", "NOT_FOUND"},
		{"google", "GET", "/proxy/v1beta/cachedContents/z", "", "error.status", "NOT_FOUND"},
		{"google", "POST", "/proxy/v1beta/models/g:generateContent", `{"cachedContent":"cachedContents/z","contents":[]}`, "error.code", "404"},
		{"cohere", "GET", "/proxy/v1/datasets/z", "", "message", `There is no object with the id "z"`},
		{"bedrock", "GET", "/proxy/async-invoke/z", "", "message", `There is no object with the id "z"`},
	} {
		before := host.requests.Load()
		got := r.call(c.method, c.path, c.body, "X-Gateway-Provider", "@of-"+c.provider)
		if got.status != 404 || host.requests.Load() != before {
			t.Errorf("%s %s: %d, asked %v: %s", c.method, c.path, got.status, host.requests.Load() != before, got.body)
			continue
		}
		var body any
		if err := json.Unmarshal([]byte(got.body), &body); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Split(c.member, ".") {
			of, _ := body.(map[string]any)
			body = of[name]
		}
		if fmt.Sprint(body) != c.want {
			t.Errorf("%s %s %s: %s is %v, want %s", c.provider, c.path, got.body, c.member, body, c.want)
		}
		if exception := got.header.Get("X-Amzn-Errortype"); (exception == "ResourceNotFoundException") != (c.provider == "bedrock") {
			t.Errorf("%s: exception %q", c.provider, exception)
		}
	}
	long := `{"model":"g","input":"x","continuation_token":"` + strings.Repeat("t", 300<<10) + `"}`
	if got := r.call("POST", "/proxy/v1beta/interactions", long, "X-Gateway-Provider", "@of-google"); got.status != 400 || !strings.Contains(got.body, "continuation_token") {
		t.Errorf("a long continuation_token: %d %s", got.status, got.body)
	}
}
