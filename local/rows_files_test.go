package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// newBatches are requests that create a batch, by the field that names the file of its rows.
var newBatches = []struct{ path, body, field string }{
	{"/proxy/batches", `{"input_file_id":"file-1","endpoint":"/v1/chat/completions","completion_window":"24h"}`, "input_file_id"},
	{"/proxy/batch/jobs", `{"model":"m","input_files":["file-1"],"endpoint":"/v1/chat/completions"}`, "input_files[0]"},
	{"/proxy/v2/batches", `{"model":"m","input_dataset_id":"file-1"}`, "input_dataset_id"},
	{"/proxy/embed-jobs", `{"model":"m","dataset_id":"file-1"}`, "dataset_id"},
	{"/proxy/v1beta/models/m:batchGenerateContent", `{"batch":{"input_config":{"file_name":"files/abc"}}}`, "batch.input_config.file_name"},
	{"/proxy/v1beta/models/m:batchGenerateContent", `{"src":"files/abc"}`, "src"},
}

// TestRowsInFilesAreNotSentUnread checks that rows which the gateway cannot read are rejected while
// a guardrail denies, and while other workspaces use the credential.
func TestRowsInFilesAreNotSentUnread(t *testing.T) {
	t.Parallel()
	host := &everything{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Alone","slug":"alone","provider":"openai","key":"own","workspace_id":"default","customHost":%q}`, server.URL))
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Common","slug":"common","ai_provider_id":"openai","key":"k","configurations":{"custom_host":%q}}`, server.URL))
	r.admin("PUT", "/integrations/common/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	r.admin("POST", "/workspaces", `{"name":"Neighbor"}`)
	const denies = `{"provider":"@alone","input_guardrails":[{"default.regexMatch":{"rule":"FORBIDDENWORD","not":true},"deny":true}]}`
	for _, b := range newBatches {
		before := host.requests.Load()
		if got := r.call("POST", b.path, b.body, "X-Gateway-Config", denies); got.status != 403 || got.header.Get("X-Gateway-Error-Code") != "guardrail_unread" {
			t.Errorf("%s %s while a guardrail denies: %d %s", b.path, b.body, got.status, got.body)
		}
		got := r.call("POST", b.path, b.body, "X-Gateway-Provider", "@common")
		if got.status != 404 { // the file is nobody's
			t.Errorf("%s %s under a shared credential: %d %s", b.path, b.body, got.status, got.body)
		}
		if host.requests.Load() != before {
			t.Errorf("%s %s reached the host", b.path, b.body)
		}
		if got := r.call("POST", b.path, b.body, "X-Gateway-Provider", "@alone"); got.status != 200 {
			t.Errorf("%s %s without a rule: %d %s", b.path, b.body, got.status, got.body)
		}
	}
	inline := `{"requests":[{"custom_id":"a","params":{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}}]}`
	if got := r.call("POST", "/proxy/messages/batches", inline, "X-Gateway-Config", denies); got.status != 200 {
		t.Errorf("rows in the body: %d %s", got.status, got.body)
	}
}

// TestOwnRowsInFilesAreNotSentUnchecked names files of the workspace itself, whose rows may name
// objects of others.
func TestOwnRowsInFilesAreNotSentUnchecked(t *testing.T) {
	t.Parallel()
	n := share(t)
	file := n.own(n.mine)["/files"]
	for _, b := range newBatches[1:4] {
		body := strings.ReplaceAll(b.body, "file-1", file)
		if got := n.call("POST", b.path, body, as(n.mine)...); got.status != 403 || !strings.Contains(got.body, b.field) {
			t.Errorf("%s %s: %d %s", b.path, body, got.status, got.body)
		}
	}
}
