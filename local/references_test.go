package main

import (
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
