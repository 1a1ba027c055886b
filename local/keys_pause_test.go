package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A key is paused for both planes at once, says who it is while it works, and shows its last
// use once the request is stored.
func TestKeysArePausedResumedAndShowTheirLastUse(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"busy","workspace_id":%q,"scopes":["completions.write","configs.list"],"rate_limits":[{"type":"requests","unit":"rph","value":9}]}`, r.workspace()))
	id, key := made["id"].(string), made["key"].(string)
	call := func() reply {
		return r.call("POST", "/chat/completions", `{"model":"@mock/gpt-4o","messages":[{"role":"user","content":"hi"}]}`, "X-Gateway-Api-Key", key)
	}
	list := func() reply { return r.call("GET", "/configs", "", "X-Gateway-Api-Key", key) }
	if got := call(); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	self := r.call("GET", "/api-keys/self", "", "X-Gateway-Api-Key", key)
	if out := self.json(t); self.status != http.StatusOK || out["id"] != id || strings.Contains(string(self.body), key) || !strings.Contains(string(self.body), `"used":1,"available":8`) {
		t.Errorf("self: %d %s", self.status, self.body)
	}
	r.admin("PUT", "/api-keys/"+id, `{"status":"paused"}`)
	for plane, send := range map[string]func() reply{"data plane": call, "administration": list} {
		got := send()
		if got.status != http.StatusUnauthorized || !strings.Contains(string(got.body), "paused") {
			t.Errorf("%s: %d %s", plane, got.status, got.body)
		}
	}
	r.admin("PUT", "/api-keys/"+id, `{"status":"active"}`)
	if got, also := call(), list(); got.status != http.StatusOK || also.status != http.StatusOK {
		t.Errorf("resumed: %d %s, %d %s", got.status, got.body, also.status, also.body)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if at, _ := r.admin("GET", "/api-keys/"+id, "")["last_used_at"].(string); at != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the last use is not shown")
		}
	}
}
