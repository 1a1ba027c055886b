package main

import (
	"fmt"
	"testing"
)

// TestANewWorkspaceGetsWhatIsOpenToAll makes an integration open to every
// workspace, then a workspace, and calls it with a key of that workspace.
func TestANewWorkspaceGetsWhatIsOpenToAll(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Everyone's","slug":"everyones","ai_provider_id":"openai","key":"mock-everyone","configurations":{"custom_host":%q}}`, r.mockBase()))
	r.admin("PUT", "/integrations/everyones/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	made := r.admin("POST", "/workspaces", `{"name":"Newcomers"}`)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, made["id"]))["key"].(string)
	got := r.call("POST", "/chat/completions", chatBody("@everyones/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", key)
	if got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	// The other workspace's own provider is not there.
	if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", key); got.status != 400 {
		t.Errorf("a foreign workspace's provider: %d %s", got.status, got.body)
	}
}
