package main

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever a request names that nobody in its workspace made is missing, in each dialect,
// and the provider is not called.
func TestForeignReferencesReturnNotFound(t *testing.T) {
	t.Parallel()
	n := share(t)
	response := n.id("POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello"}`, as(n.theirs)...)
	for _, c := range []struct {
		path, body string
		headers    []string
	}{
		{path: "/responses", body: `{"model":"gpt-4o-mini","input":"x","prompt":{"id":"pmpt_1"}}`},
		{path: "/responses", body: `{"model":"gpt-4o-mini","input":"x","tools":[{"type":"code_interpreter","container":"box"}]}`},
		{path: "/responses", body: `{"model":"gpt-4o-mini","input":"x","x":{"Previous_Response_Id":"` + response + `"}}`},
		{path: "/responses", body: `{"model":"gpt-4o-mini","input":"x"}`, headers: []string{"X-Gateway-Config", `{"provider":"@common","override_params":{"previous_response_id":"` + response + `"}}`}},
		{path: "/responses", body: `{"model":"gpt-4o-mini","input":[{"role":"user","content":[{"type":"input_image","image_url":"gs://bucket/object"}]}]}`},
		{path: "/proxy/messages", body: `{"model":"m","max_tokens":1,"messages":[],"thread":{"type":"continue","previous_message_id":"msg_1"}}`},
		{path: "/proxy/messages", body: `{"model":"m","max_tokens":1,"messages":[],"diagnostics":{"previous_message_id":"msg_1"}}`},
		{path: "/proxy/v1beta/models/m:generateContent", body: `{"contents":[],"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/a"]}}]}`},
		{path: "/proxy/v1beta/models/m:generateContent", body: `{"contents":[],"tools":[{"file_search":{"file_search_store_names":["fileSearchStores/a"]}}]}`},
		{path: "/proxy/v1beta/interactions", body: `{"model":"m","input":{"type":"document","uri":"files/abc"}}`},
		{path: "/proxy/v1beta/interactions", body: `{"model":"m","input":"x","continuation_token":"t"}`},
		{path: "/proxy/v1beta/fileSearchStores/a:importFile", body: `{"fileName":"files/abc"}`},
		{path: "/proxy/v1/embed-jobs", body: `{"model":"m","dataset_id":"d"}`},
		{path: "/proxy/v1/chat", body: `{"model":"m","message":"x","connectors":[{"id":"c"}]}`},
		{path: "/proxy/model/m/converse", body: `{"messages":[{"role":"user","content":[{"document":{"source":{"s3Location":{"uri":"s3://bucket/key"}}}}]}]}`},
		{path: "/proxy/async-invoke/arn:aws:bedrock:us-east-1:1:async-invoke%2Fx/cancel", body: `{}`},
		{path: "/proxy/v1/batch/jobs", body: `{"input_files":["f"],"model":"m"}`},
	} {
		before := n.mock.Bill().Total.Requests
		got := n.call("POST", c.path, c.body, append(as(n.mine), c.headers...)...)
		if got.status != 404 {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
		if after := n.mock.Bill().Total.Requests; after != before {
			t.Errorf("%s %s: %d requests reached the provider", c.path, c.body, after-before)
		}
	}
}

// Every model that a body names is held against the models that the settings allow.
func TestAllowedModelsApplyToEveryModelOfABody(t *testing.T) {
	t.Parallel()
	n := share(t)
	file := n.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+batchRows), as(n.mine, formType...)...)
	n.admin("PUT", "/admin/organisation/settings", `{"model_settings":{"allowed_models":["gpt-4o-mini"]}}`)
	if got := n.call("POST", "/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}]}`, as(n.mine)...); got.status != 200 {
		t.Fatal(got.status, got.body)
	}
	for _, c := range []struct{ path, body, config string }{
		{path: "/chat/completions", body: `{"model":"gpt-4o-mini","models":["gpt-4o"],"messages":[{"role":"user","content":"x"}]}`},
		{path: "/chat/completions", body: `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}]}`, config: `{"provider":"@common","override_params":{"models":["gpt-4o"]}}`},
		{path: "/responses", body: `{"model":"gpt-4o-mini","input":"x","tools":[{"type":"image_generation","model":"gpt-4o"}]}`},
		{path: "/batches", body: fmt.Sprintf(`{"model":"gpt-4o-mini","input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file)},
		{path: "/proxy/batches", body: fmt.Sprintf(`{"model":"gpt-4o-mini","input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file)},
		{path: "/proxy/messages/batches", body: `{"requests":[{"custom_id":"a","params":{"model":"gpt-4o","max_tokens":1,"messages":[]}}]}`},
		{path: "/proxy/evals/e/runs", body: `{"data_source":{"type":"completions","model":"gpt-4o"}}`},
		{path: "/proxy/async-invoke", body: `{"modelId":"gpt-4o","modelInput":{}}`},
		{path: "/proxy/v1beta/models/gpt-4o-mini:batchEmbedContents", body: `{"requests":[{"model":"models/gpt-4o"}]}`},
		{path: "/proxy/echo", body: `{"agent":{"model":{"id":"gpt-4o"}}}`},
		{path: "/proxy/echo", body: `{"fallback_model":"gpt-4o"}`},
	} {
		before := n.mock.Bill().Total.Requests
		headers := as(n.mine)
		if c.config != "" {
			headers = append(headers, "X-Gateway-Config", c.config)
		}
		got := n.call("POST", c.path, c.body, headers...)
		if got.status < 400 || got.status > 403 || !strings.Contains(got.body, "settings allow some models only") && !strings.Contains(got.body, "settings do not allow the model") {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
		if after := n.mock.Bill().Total.Requests; after != before {
			t.Errorf("%s %s: %d requests reached the provider", c.path, c.body, after-before)
		}
	}
}
