package mcpservers

import (
	"strings"
	"testing"

	"gateway/shared/testkit/admintest"
)

// What a client asks about itself has a defined response for keys with and without a user.
func TestCallersReadAndSetTheirOwnTokens(t *testing.T) {
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	server := h.Do("POST", "/mcp-servers", key, `{"name":"S","mcp_integration_id":"up"}`).OK().Text("id")
	at := "/mcp-servers/" + server
	user := h.Caller(admintest.MemberKey).UserID

	if a := h.Do("GET", at+"/tokens", key, nil).OK(); a.At("user_id") != nil || a.At("connected") != false {
		t.Errorf("a key without a user: %s", a.Body)
	}
	a := h.Do("PUT", at+"/tokens", key, `{"access_token":"t"}`)
	if a.Status != 400 || !strings.Contains(string(a.Body), "belongs to no user") {
		t.Errorf("a key without a user: %d %s", a.Status, a.Body)
	}
	h.Do("DELETE", at+"/tokens", key, nil).OK()

	if a := h.Do("GET", at+"/tokens", admintest.MemberKey, nil).OK(); a.Text("user_id") != user || a.At("connected") != false {
		t.Errorf("before: %s", a.Body)
	}
	const secret = "an-access-token"
	for range 2 {
		if a := h.Do("PUT", at+"/tokens", admintest.MemberKey, `{"access_token":"`+secret+`","token_type":"Bearer","expires_in":3600,"refresh_token":"r","scope":"a b"}`).OK(); a.At("connected") != true || strings.Contains(string(a.Body), secret) {
			t.Errorf("set: %s", a.Body)
		}
	}
	list := h.Do("GET", at+"/connections", key, nil).OK()
	if list.At("total") != float64(1) || !strings.Contains(string(list.Body), user) {
		t.Errorf("connections: %s", list.Body)
	}
	if a := h.Do("GET", at+"/tokens", admintest.ManagerKey, nil).OK(); a.At("connected") != false {
		t.Errorf("another user: %s", a.Body)
	}
	h.Do("DELETE", at+"/tokens", admintest.MemberKey, nil).OK()
	if a := h.Do("GET", at+"/tokens", admintest.MemberKey, nil).OK(); a.At("connected") != false {
		t.Errorf("after: %s", a.Body)
	}
	for _, bad := range []string{`{}`, `{"access_token":""}`, `{"access_token":"t","expires_in":0}`} {
		h.Do("PUT", at+"/tokens", admintest.MemberKey, bad).RequireFault(400, "AB01", "")
	}
}

// TestKeysThatOthersKnowSetNoTokens: a key that does not act for its user on the MCP gateway does
// not choose the user's account either.
func TestKeysThatOthersKnowSetNoTokens(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	at := "/mcp-servers/" + h.Do("POST", "/mcp-servers", key, `{"name":"S","mcp_integration_id":"up"}`).OK().Text("id") + "/tokens"
	shared := h.Caller(admintest.MemberKey)
	shared.Shared = true
	h.SetCaller("known to others", shared)
	h.Do("PUT", at, "known to others", `{"access_token":"t"}`).RequireFault(403, "AB03", "")
	h.Do("PUT", at, admintest.MemberKey, `{"access_token":"t"}`).OK()
	h.Do("DELETE", at, "known to others", nil).RequireFault(403, "AB03", "")
	if a := h.Do("GET", at, admintest.MemberKey, nil).OK(); a.At("connected") != true {
		t.Errorf("after: %s", a.Body)
	}
}

func TestClientInfoNamesTheGatewayAsAClient(t *testing.T) {
	h := newInstallation(t)
	up := newUpstream(t, false)
	register(h, up.URL, `"auth_type":"none"`)
	h.Do("POST", "/mcp-integrations", key, strings.Replace(quiet, `"up"`, `"signed"`, 1)).OK()
	for integration, want := range map[string]bool{"signed": true} {
		server := h.Do("POST", "/mcp-servers", key, `{"name":"S","mcp_integration_id":"`+integration+`"}`).OK().Text("id")
		a := h.Do("GET", "/mcp-servers/"+server+"/client-info", key, nil).OK()
		if a.At("sign_in_required") != want || a.Text("auth_type") != "oauth_auto" || !strings.HasSuffix(a.Text("redirect_uri"), "/oauth/upstream/callback") && a.Text("redirect_uri") == "" {
			t.Errorf("%s: %s", integration, a.Body)
		}
	}
}

// sync is another name of test.
func TestSyncLearnsWhatAServerCanDo(t *testing.T) {
	h := newInstallation(t)
	up := newUpstream(t, false)
	made := register(h, up.URL, `"auth_type":"none"`)
	server := h.Do("POST", "/mcp-servers", key, `{"name":"S","mcp_integration_id":"`+made.Text("slug")+`"}`).OK().Text("id")
	for _, path := range []string{"/mcp-integrations/" + made.Text("id") + "/sync", "/mcp-servers/" + server + "/capabilities/sync", "/mcp-servers/" + server + "/metadata/sync"} {
		if a := h.Do("POST", path, key, nil).OK(); a.At("success") != true {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	if a := h.Do("GET", "/mcp-servers/"+server+"/metadata", key, nil).OK(); a.Text("sync_status") == "pending" {
		t.Errorf("%s", a.Body)
	}
}
