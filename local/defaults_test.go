package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestTheDefaultConfigOfAWorkspace: requests that name no config go by the
// workspace's default, after the default of their key.
func TestTheDefaultConfigOfAWorkspace(t *testing.T) {
	t.Parallel()
	r := start(t)
	save := func(user string, isDefault int) string {
		t.Helper()
		config := fmt.Sprintf(`{"strategy":{"mode":"single"},"targets":[{"provider":"@mock","override_params":{"user":%q}}]}`, user)
		got := r.admin("POST", "/configs", fmt.Sprintf(`{"name":%q,"workspace_id":%q,"isDefault":%d,"config":%s}`, user, r.workspace(), isDefault, config))
		return got["data"].(map[string]any)["slug"].(string)
	}
	var want []string
	send := func(config, option string, headers ...string) {
		t.Helper()
		want = append(want, config)
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), append(headers, "X-Gateway-Provider", "@mock")...)
		if got.status != http.StatusOK || got.header.Get("X-Gateway-Last-Used-Option-Index") != option {
			t.Fatalf("%d %s %s", got.status, got.header.Get("X-Gateway-Last-Used-Option-Index"), got.body)
		}
	}
	other, first := save("other", 0), save("first", 1)
	send(first, "config.targets[0]")
	send(other, "config.targets[0]", "X-Gateway-Config", other)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"],"defaults":{"config_id":%q}}`, r.workspace(), other))["key"].(string)
	send(other, "config.targets[0]", "X-Gateway-Api-Key", key)
	second := save("second", 1)
	send(second, "config.targets[0]")
	r.admin("PUT", "/configs/"+second+"?workspace_id="+r.workspace(), `{"isDefault":0}`)
	send("", "config")
	r.admin("PUT", "/configs/"+first+"?workspace_id="+r.workspace(), `{"isDefault":1}`)
	send(first, "config.targets[0]")
	r.admin("PUT", "/configs/"+first+"?workspace_id="+r.workspace(), `{"status":"archived"}`)
	send("", "config")
	r.admin("PUT", "/configs/"+other+"?workspace_id="+r.workspace(), `{"isDefault":1}`)
	send(other, "config.targets[0]")
	r.admin("PUT", "/api-keys/"+r.keyID("k"), `{"defaults":{"config_id":null}}`)
	r.admin("DELETE", "/configs/"+other+"?workspace_id="+r.workspace(), "")
	send("", "config")
	for i, rec := range r.records(len(want)) {
		if rec.ConfigSlug != want[i] {
			t.Errorf("request %d went by the config %q, want %q", i, rec.ConfigSlug, want[i])
		}
	}
}

// A key whose default config was archived rejects requests that name no other,
// and says that it was not they who named it.
func TestAnArchivedDefaultConfigIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	r := start(t)
	slug := r.saveConfig(`{"provider":"@mock"}`)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"],"defaults":{"config_id":%q}}`, r.workspace(), slug))["key"].(string)
	r.admin("PUT", "/configs/"+slug+"?workspace_id="+r.workspace(), `{"status":"archived"}`)
	body := chatBody("gpt-4o-mini", "Hello", "")
	if got := r.call("POST", "/chat/completions", body, "X-Gateway-Api-Key", key); got.status != 400 || !strings.Contains(got.body, "The default config") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.call("POST", "/chat/completions", body, "X-Gateway-Api-Key", key, "X-Gateway-Config", slug); got.status != 400 || !strings.Contains(got.body, "Invalid config passed") {
		t.Errorf("%d %s", got.status, got.body)
	}
	other := r.saveConfig(`{"provider":"@mock"}`)
	if got := r.call("POST", "/chat/completions", body, "X-Gateway-Api-Key", key, "X-Gateway-Config", other); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
