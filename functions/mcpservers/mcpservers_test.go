package mcpservers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	admintest.CheckFamily(t, h)
	of := h.Do("POST", "/mcp-integrations", key, quiet).OK().Text("id")
	server := h.Do("POST", "/mcp-servers", key, `{"name":"S","mcp_integration_id":"up"}`).OK().Text("id")
	for path, id := range map[string]string{"/mcp-integrations": of, "/mcp-servers": server} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			var body any
			if method == "PUT" {
				body = `{"name":"x"}`
			}
			admintest.ForeignIsMissing(t, h, method, path, id, body)
		}
		admintest.BadBodies(t, h, "PUT", path+"/"+id, key, `{"name":"x"}`)
		admintest.BadBodies(t, h, "PUT", path+"/"+id+"/capabilities", key, `{"capabilities":[{"name":"a","type":"tool","enabled":true}]}`)
		for _, below := range []string{"capabilities", "metadata", "test", "user-access", "connections", "workspaces"} {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
				at := path + "/" + id + "/" + below
				if !h.Handler.Matches(method, "/v1"+at) {
					continue
				}
				body := map[string]any{"PUT capabilities": `{"capabilities":[{"name":"a","type":"tool","enabled":true}]}`, "PUT user-access": `{"default_user_access":"deny"}`, "PUT workspaces": `{"workspaces":[]}`}[method+" "+below]
				for who, query := range map[string]string{admintest.WorkspaceB: "", admintest.OtherAdmin: "?workspace_id=" + h.Three} {
					foreign := h.Do(method, at+query, who, body)
					missing := h.Do(method, path+"/"+resource.NewID()+"/"+below+query, who, body)
					if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
						t.Errorf("%s %s as %s: %s\n%s", method, at, who, foreign.Comparable(), missing.Comparable())
					}
				}
			}
		}
	}
	admintest.BadBodies(t, h, "POST", "/mcp-integrations", key, quiet)
	admintest.BadBodies(t, h, "POST", "/mcp-servers", key, `{"name":"S","mcp_integration_id":"up"}`)
	admintest.BadBodies(t, h, "PUT", "/mcp-servers/"+server+"/user-access", key, `{"default_user_access":"deny"}`)
}

func TestAnswersArePinned(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	h.Do("POST", "/mcp-servers", key, `{"name":"S","slug":"my-server","mcp_integration_id":"up","description":"d"}`).OK()
	h.Do("PUT", "/mcp-integrations/up/capabilities", key, `{"capabilities":[{"name":"a","type":"tool","enabled":false},{"name":"file:///x","type":"resource","enabled":true}]}`).OK()
	var calls []admintest.Call
	for _, at := range []string{"/mcp-integrations", "/mcp-integrations/up", "/mcp-integrations/up/workspaces", "/mcp-integrations/up/workspaces?version=v2", "/mcp-integrations/up/capabilities", "/mcp-integrations/up/metadata",
		"/mcp-servers", "/mcp-servers/my-server", "/mcp-servers/my-server/capabilities", "/mcp-servers/my-server/metadata", "/mcp-servers/my-server/user-access", "/mcp-servers/my-server/connections"} {
		calls = append(calls, admintest.As(key, "GET", at, ""))
	}
	h.Golden(*update, "answers.txt", calls...)
}

func TestRegistrationInspectsTheServer(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"http", "sse"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			h, up := newInstallation(t), newUpstream(t, transport == "sse")
			id := h.Do("POST", "/mcp-integrations", key, fmt.Sprintf(`{"name":"Up","url":%q,"auth_type":"none","transport":%q}`, up.URL, transport)).OK().Text("id")
			m := h.Do("GET", "/mcp-integrations/"+id+"/metadata", key, nil).OK()
			if m.Text("sync_status") != "success" || m.Text("server_name") != "fixture" || m.Text("server_version") != "1.2.3" || m.Text("last_synced_at") == "" || m.At("capability_flags", "tools") == nil {
				t.Errorf("%s", m.Body)
			}
			all := h.Do("GET", "/mcp-integrations/"+id+"/capabilities", key, nil).OK()
			if all.At("total") != 10.0 || all.At("counts", "tools", "total") != 7.0 || all.At("counts", "tools", "enabled") != 7.0 || all.At("counts", "resource_templates", "total") != 1.0 {
				t.Errorf("%s", all.Body)
			}
			first := all.At("data", "0").(map[string]any)
			if first["name"] != "tool0" || first["type"] != "tool" || first["input_schema"].(map[string]any)["type"] != "object" || first["enabled"] != true {
				t.Errorf("%v", first)
			}
			page := h.Do("GET", "/mcp-integrations/"+id+"/capabilities?type=tool&page=2&page_size=3", key, nil).OK()
			if page.At("total") != 7.0 || page.Text("data", "0", "name") != "tool3" || page.At("has_more") != true {
				t.Errorf("%s", page.Body)
			}
			got := h.Do("POST", "/mcp-integrations/"+id+"/test", key, nil).OK()
			if got.At("success") != true || got.At("status_code") != 200.0 || got.Text("server_name") != "fixture" || got.At("error") != nil {
				t.Errorf("%s", got.Body)
			}
		})
	}
}

// Disabled capabilities stay disabled, whatever the server lists.
func TestSynchronizationRetainsDisabledCapabilities(t *testing.T) {
	t.Parallel()
	h, up := newInstallation(t), newUpstream(t, false)
	at := "/mcp-integrations/" + register(h, up.URL, `"auth_type":"none"`).Text("slug")
	h.Do("PUT", at+"/capabilities", key, `{"capabilities":[{"name":"tool1","type":"tool","enabled":false},{"name":"tool2","type":"tool","enabled":false},{"name":"later","type":"tool","enabled":false},{"name":"files","type":"resource","enabled":false}]}`).OK()
	up.server.RemoveTools("tool1", "tool3")
	up.tool("later")
	up.tool("new")
	h.Do("POST", at+"/test", key, nil).OK()
	state := map[string]any{}
	for _, e := range h.Do("GET", at+"/capabilities", key, nil).OK().At("data").([]any) {
		e := e.(map[string]any)
		state[e["name"].(string)] = e["enabled"]
	}
	want := map[string]any{"tool0": true, "tool1": false, "tool2": false, "tool4": true, "tool5": true, "tool6": true, "later": false, "new": true, "greet": true, "readme": true, "files": false}
	if fmt.Sprint(state) != fmt.Sprint(want) {
		t.Errorf("%v\n%v", state, want)
	}
	// Nothing is written if nothing has changed.
	before, err := h.Resources.Generation(context.Background(), admintest.Org)
	if err != nil {
		t.Fatal(err)
	}
	h.Do("POST", at+"/test", key, nil).OK()
	if after, err := h.Resources.Generation(context.Background(), admintest.Org); err != nil || after > before+2 {
		t.Errorf("%d changes, %v", after-before, err)
	}
}

func TestRegistrationSucceedsWithAnUnreachableServer(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	inner := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))
	defer inner.Close()
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":`))
	}))
	defer garbage.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, why := range map[string]string{gone.URL: "reached", inner.URL: "redirect", garbage.URL: "not JSON"} {
		at := "/mcp-integrations/" + register(h, url, `"auth_type":"none"`).Text("id")
		m := h.Do("GET", at+"/metadata", key, nil).OK()
		if m.Text("sync_status") != "failed" || !strings.Contains(m.Text("sync_error"), why) {
			t.Errorf("%s: %s", url, m.Body)
		}
		got := h.Do("POST", at+"/test", key, nil).OK()
		if got.At("success") != false || !strings.Contains(got.Text("error"), why) {
			t.Errorf("%s: %s", url, got.Body)
		}
	}
	h.Do("POST", "/mcp-integrations", key, `{"name":"x","url":"http://169.254.169.254/mcp","auth_type":"none","transport":"http"}`).RequireFault(400, "AB01", "url")
	h.Do("POST", "/mcp-integrations", key, `{"name":"x","url":"file:///etc/passwd","auth_type":"none","transport":"http"}`).RequireFault(400, "AB01", "url")
}

func TestCredentialsOpenServersAndAreNeverShown(t *testing.T) {
	t.Parallel()
	h, up := newInstallation(t), newUpstream(t, false)
	const secret, other = "Bearer very-secret-token-of-mine", "another-secret-9876"
	up.token = secret
	made := register(h, up.URL, fmt.Sprintf(`"auth_type":"headers","configurations":{"headers":{"Authorization":%q,"X-Plain":%q},"forward_headers":["x-trace"],"jwt_validation":{"introspectEndpoint":"https://idp.example.com/i","introspectClientSecret":%q}}`, secret, other, other))
	at := "/mcp-integrations/" + made.Text("slug")
	if m := h.Do("GET", at+"/metadata", key, nil).OK(); m.Text("sync_status") != "success" {
		t.Fatalf("%s", m.Body)
	}
	hidden := func() {
		t.Helper()
		for _, path := range []string{at, "/mcp-integrations"} {
			if got := h.Do("GET", path, key, nil).OK(); strings.Contains(string(got.Body), "very-secret") || strings.Contains(string(got.Body), other) {
				t.Errorf("%s", got.Body)
			}
		}
		for _, e := range h.Audit() {
			if whole, _ := json.Marshal(e); strings.Contains(string(whole), "very-secret") || strings.Contains(string(whole), other) {
				t.Errorf("the audit log has a secret: %s", whole)
			}
		}
	}
	hidden()
	shown := h.Do("GET", at, key, nil).OK()
	mask := shown.Text("configurations", "headers", "Authorization")
	if !strings.Contains(mask, "****") || shown.At("configurations", "forward_headers") == nil {
		t.Errorf("%s", shown.Body)
	}
	h.Do("PUT", at, key, fmt.Sprintf(`{"configurations":{"headers":{"Authorization":%q}}}`, mask)).RequireFault(400, "AB01", "configurations.headers.Authorization")
	// An update without them leaves them unchanged; one with them replaces them.
	h.Do("PUT", at, key, `{"description":"d","configurations":{"forward_headers":null}}`).OK()
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != true {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", at, key, `{"configurations":{"headers":{"Authorization":"Bearer no-more-the-right-one"}}}`).OK()
	got := h.Do("POST", at+"/test", key, nil).OK()
	if got.At("success") != false || got.At("status_code") != 401.0 {
		t.Errorf("%s", got.Body)
	}
	if m := h.Do("GET", at+"/capabilities", key, nil).OK(); m.At("total") != 10.0 {
		t.Errorf("what was known is gone: %s", m.Body)
	}
	h.Do("PUT", at, key, `{"configurations":null}`).OK() // no header is sent
	h.Do("PUT", at, key, `{"configurations":null,"auth_type":"none"}`).OK()
	if got := h.Do("GET", at, key, nil).OK().At("configurations"); fmt.Sprint(got) != "map[]" {
		t.Errorf("%v", got)
	}
	hidden()
}

func TestClientCredentialsFetchAToken(t *testing.T) {
	t.Parallel()
	h, up := newInstallation(t), newUpstream(t, false)
	up.token = "Bearer token-from-the-issuer"
	tokenRequests := make(chan string, 8)
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		tokenRequests <- fmt.Sprint(user, " ", pass, " ", r.PostFormValue("grant_type"), " ", r.PostFormValue("scope"), " ", r.PostFormValue("resource") == up.URL)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"token-from-the-issuer","token_type":"Bearer","expires_in":3600}`))
	}))
	defer issuer.Close()
	body := `"auth_type":"oauth_client_credentials","configurations":{"oauth_metadata":{"token_endpoint":%q,"client_id":"me","client_secret":%q,"scope":"a b"}}`
	at := "/mcp-integrations/" + register(h, up.URL, fmt.Sprintf(body, issuer.URL, "shh-not-told")).Text("slug")
	if m := h.Do("GET", at+"/metadata", key, nil).OK(); m.Text("sync_status") != "success" {
		t.Errorf("%s", m.Body)
	}
	if got := <-tokenRequests; got != "me shh-not-told client_credentials a b true" {
		t.Errorf("%s", got)
	}
	h.Do("POST", "/mcp-integrations", key, `{"name":"x","url":"https://mcp.example.com","transport":"http","auth_type":"oauth_client_credentials","configurations":{"oauth_metadata":{"client_id":"me"}}}`).RequireFault(400, "AB01", "configurations.oauth_metadata")
}

func TestConfigurationsAreCheckedWhenSaved(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	for body, fields := range map[string]string{
		`{"configurations":{"headers":{"Host":"x","Mcp-Session-Id":"x","a b":"x","X-Ok":"a\nb"}}}`:                                                                          "configurations.headers.Host configurations.headers.Mcp-Session-Id configurations.headers.X-Ok",
		`{"configurations":{"forward_headers":["Cookie","x-gateway-api-key"]}}`:                                                                                             "configurations.forward_headers[0] configurations.forward_headers[1]",
		`{"configurations":{"forward_headers":{"mode":"some","headers":[{"from":"a","to":"b"}]}}}`:                                                                          "configurations.forward_headers.mode",
		`{"configurations":{"forward_headers":5}}`:                                                                                                                          "configurations.forward_headers",
		`{"configurations":{"oauth_metadata":{"oauth_metadata":{"client_id":"x"}}}}`:                                                                                        "configurations.oauth_metadata.oauth_metadata",
		`{"configurations":{"oauth_metadata":{"token_endpoint":"http://169.254.169.254/","authorization_params":{"state":"x"}}}}`:                                           "configurations.oauth_metadata.token_endpoint configurations.oauth_metadata.authorization_params.state",
		`{"configurations":{"jwt_validation":{"jwksUri":"https://a.example.com","introspectEndpoint":"https://a.example.com","maxTokenAge":"x"}}}`:                          "configurations.jwt_validation configurations.jwt_validation.maxTokenAge",
		`{"configurations":{"jwt_validation":{"jwksUri":"https://a.example.com","claimValues":{"a":{"values":["("],"matchType":"regex"}}}}}`:                                "configurations.jwt_validation.claimValues.a.values",
		`{"configurations":{"user_identity_forwarding":{"method":"none"}}}`:                                                                                                 "configurations.user_identity_forwarding.method",
		`{"configurations":{"user_identity_forwarding":{"method":"bearer","header_name":"Mcp-Name"}}}`:                                                                      "configurations.user_identity_forwarding.header_name",
		`{"configurations":{"user_identity_forwarding":{"method":"jwt_header","jwt_expiry_seconds":86401}}}`:                                                                "configurations.user_identity_forwarding.jwt_expiry_seconds",
		`{"configurations":{"jwt_validation":{"jwks":{"keys":[]}}}}`:                                                                                                        "configurations.jwt_validation.jwks",
		`{"configurations":{"jwt_validation":{"jwks":{"keys":[{"kty":"oct","k":"AAAA"}]}}}}`:                                                                                "configurations.jwt_validation.jwks",
		`{"configurations":{"jwt_validation":{"jwksUri":"https://a.example.com","headerKey":"x-gateway-api-key"}}}`:                                                         "configurations.jwt_validation.headerKey",
		`{"configurations":{"nonsense":1}}`:                                                                                                                                 "configurations.nonsense",
		`{"secret_mappings":[{"target_field":"key","secret_reference_id":"a"}]}`:                                                                                            "secret_mappings[0].target_field",
		`{"secret_mappings":[{"target_field":"configurations.headers.A","secret_reference_id":"a"},{"target_field":"configurations.headers.A","secret_reference_id":"b"}]}`: "secret_mappings[1].target_field",
		`{"auth_type":"basic","transport":"stdio","url":""}`:                                                                                                                "auth_type transport url",
	} {
		got := h.Do("PUT", "/mcp-integrations/up", key, body)
		for _, field := range strings.Fields(fields) {
			got.RequireFault(400, "AB01", field)
		}
	}
	h.VaultReference("ref", "https://vault.example.com")
	h.Do("PUT", "/mcp-integrations/up?workspace_id="+h.One, chief, `{"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.Authorization","secret_reference_id":"ref"}]}`).OK()
	h.Do("PUT", "/mcp-integrations/up", key, `{"configurations":{"tool_authorization":{"x":1},"jwt_validation":{"jwksUri":"https://idp.example.com/keys","claimValues":{"a":{"values":"one"}}}}}`).OK()
	if got := h.Do("GET", "/mcp-integrations/up", key, nil).OK(); got.At("configurations", "tool_authorization") != nil {
		t.Errorf("%s", got.Body)
	}
}

func TestServersNeedAnIntegrationThatIsOpenToTheirWorkspace(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	of := h.Do("POST", "/mcp-integrations", chief, quiet).OK().Text("id")
	server := fmt.Sprintf(`{"name":"S","slug":"same","mcp_integration_id":%q}`, of)
	h.Do("POST", "/mcp-servers", key, server).RequireFault(400, "AB01", "mcp_integration_id")
	h.Do("PUT", "/mcp-integrations/"+of+"/workspaces", key, `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true}]}`).RequireFault(404, "AB08", "")
	h.Do("PUT", "/mcp-integrations/"+of+"/workspaces", chief, `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true},{"id":"nope","enabled":true},{"id":"`+h.One+`","enabled":true}]}`).
		RequireFault(400, "AB01", "workspaces[1].id").RequireFault(400, "AB01", "workspaces[2].id")
	h.Do("PUT", "/mcp-integrations/"+of+"/workspaces", chief, `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true}]}`).OK()
	id := h.Do("POST", "/mcp-servers", key, server).OK().Text("id")
	h.Do("POST", "/mcp-servers", admintest.WorkspaceB, server).RequireFault(400, "AB01", "mcp_integration_id")
	if n := h.Do("GET", "/mcp-integrations", admintest.WorkspaceB, nil).OK().At("total"); n != 0.0 {
		t.Errorf("a workspace without access lists %v", n)
	}
	h.Do("PUT", "/mcp-integrations/"+of+"/workspaces", chief, `{"global_workspace_access":{"enabled":true}}`).OK()
	// A slug is unique in the organization, and free again when its server is deleted.
	h.Do("POST", "/mcp-servers", admintest.WorkspaceB, server).RequireFault(409, "AB07", "slug")
	if got := h.Do("GET", "/mcp-servers/same", key, nil).OK(); got.Text("url") != "https://gateway.example.com/v1/mcp/same/mcp" || got.Text("workspace_slug") != admintest.OneSlug || got.Text("mcp_integration_slug") != "up" {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("DELETE", "/mcp-integrations/"+of, chief, nil).RequireFault(409, "AB07", ""); !strings.Contains(got.Failure().Message, `"S"`) {
		t.Errorf("%s", got.Body)
	}
	h.Do("DELETE", "/mcp-servers/"+id, key, nil).OK()
	h.Do("POST", "/mcp-servers", admintest.WorkspaceB, server).OK()
	h.Do("DELETE", "/mcp-servers/same?workspace_id="+h.Two, chief, nil).OK()
	h.Do("DELETE", "/mcp-integrations/"+of, chief, nil).OK()
	for _, bad := range []string{`{"name":"S","slug":"ab","mcp_integration_id":"x"}`, `{"name":"S","slug":"` + strings.Repeat("a", 51) + `","mcp_integration_id":"x"}`, `{"name":"S","slug":"a/b","mcp_integration_id":"x"}`} {
		h.Do("POST", "/mcp-servers", key, bad).RequireFault(400, "AB01", "slug")
	}
	if n := h.Do("GET", "/mcp-servers", chief, nil).OK().At("total"); n != 0.0 {
		t.Errorf("the list of all workspaces has %v", n)
	}
}

func TestIntegrationInUseCannotBeDeleted(t *testing.T) {
	t.Parallel()
	h, up := newInstallation(t), newUpstream(t, false)
	at := "/mcp-integrations/" + register(h, up.URL, `"auth_type":"none","slug":"up"`).Text("id")
	h.Do("POST", "/mcp-servers", key, `{"name":"S","slug":"srv","mcp_integration_id":"up"}`).OK()
	h.Do("DELETE", at, key, nil).RequireFault(409, "AB07", "")
	if n := h.Do("GET", at+"/capabilities", key, nil).OK().At("total"); n != 10.0 {
		t.Errorf("%v", n)
	}
	h.Do("PUT", "/mcp-servers/srv/capabilities", key, `{"capabilities":[{"name":"tool1","type":"tool","enabled":false}]}`).OK()
	h.Do("PUT", at+"/capabilities", key, `{"capabilities":[{"name":"tool2","type":"tool","enabled":false}]}`).OK()
	got := h.Do("GET", "/mcp-servers/srv/capabilities", key, nil).OK()
	if got.At("counts", "tools", "enabled") != 5.0 || got.At("data", "1", "enabled") != false || got.At("data", "1", "integration_enabled") != true || got.At("data", "2", "integration_enabled") != false || got.At("data", "0", "created_at") != nil {
		t.Errorf("%s", got.Body)
	}
	asUser := h.Do("GET", "/mcp-servers/srv/capabilities", admintest.ManagerKey, nil).OK()
	if asUser.At("data", "2", "enabled") != false || asUser.At("data", "2", "integration_enabled") != nil || asUser.At("data", "0", "enabled") != true {
		t.Errorf("%s", asUser.Body)
	}
	h.Do("DELETE", "/mcp-servers/srv", key, nil).OK()
	h.Do("DELETE", at, key, nil).OK()
	left, err := h.Resources.List(context.Background(), store.Scope{Org: admintest.Org, Workspace: h.One}, mcp.KindCapability.Of(strings.TrimPrefix(at, "/mcp-integrations/")))
	if err != nil || len(left) != 0 {
		t.Errorf("%d capabilities are left, %v", len(left), err)
	}
}

func TestUserAccess(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	h.Do("POST", "/mcp-servers", key, `{"name":"S","slug":"srv","mcp_integration_id":"up"}`).OK()
	ann, bob := member(t, h, "ann@example.com", "member"), member(t, h, "bob@example.com", "member")
	const at = "/mcp-servers/srv/user-access"
	state := func() string {
		got := h.Do("GET", at, key, nil).OK()
		out := got.Text("default_user_access")
		for _, id := range []string{ann, bob} {
			for _, e := range got.At("data").([]any) {
				if e := e.(map[string]any); e["user_id"] == id {
					out += fmt.Sprint(" ", e["enabled"], e["has_override"], e["connection_status"])
				}
			}
		}
		return out
	}
	if got := state(); got != "allow true falsenot_connected true falsenot_connected" {
		t.Error(got)
	}
	h.Do("PUT", at, key, fmt.Sprintf(`{"user_access":[{"user_id":%q,"enabled":true},{"user_id":%q,"enabled":true}],"default_user_access":"deny"}`, ann, resource.NewID())).RequireFault(400, "AB01", "user_access[1].user_id")
	h.Do("PUT", at, key, fmt.Sprintf(`{"user_access":[{"user_id":%q,"enabled":true}],"default_user_access":"deny"}`, ann)).OK()
	if got := state(); got != "deny true truenot_connected false falsenot_connected" {
		t.Error(got)
	}
	h.Do("PUT", at, key, `{"default_user_access":"allow"}`).OK()
	h.Do("PUT", at, key, fmt.Sprintf(`{"user_access":[{"user_id":%q,"enabled":false}]}`, bob)).OK()
	if got := state(); got != "allow true truenot_connected false truenot_connected" {
		t.Error(got)
	}
	h.Do("PUT", at, key, `{"default_user_access":"maybe"}`).RequireFault(400, "AB01", "default_user_access")
	h.Do("PUT", at, key, `{}`).RequireFault(400, "AB01", "")
	h.Do("PUT", at, admintest.MemberKey, `{"default_user_access":"deny"}`).RequireFault(403, "AB03", "")
	for user, want := range map[string]bool{ann: true, bob: false, resource.NewID(): false, "nobody": false} {
		if got := h.Do("GET", at+"/check?user_id="+user, key, nil).OK(); got.At("has_access") != want || want != (got.At("reason") == nil) {
			t.Errorf("access of %s: %s", user, got.Body)
		}
	}
	if got := h.Do("GET", at+"?search=BOB", key, nil).OK(); got.At("total") != 1.0 || got.Text("data", "0", "user_id") != bob || got.At("has_more") != false {
		t.Errorf("%s", got.Body)
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	id := h.Do("POST", "/mcp-servers", key, `{"name":"S","slug":"srv","mcp_integration_id":"up"}`).OK().Text("id")
	one := store.Scope{Org: admintest.Org, Workspace: h.One}
	own := h.Caller(admintest.MemberKey).UserID
	other := member(t, h, "ann@example.com", "member")
	for _, user := range []string{own, other} {
		err := h.Resources.Change(context.Background(), one.Organisation(), func(tx *resource.Tx) error {
			return tx.Create(&resource.Record{Scope: one, Kind: mcp.KindConnection.Of(id), ID: user, Status: "active", Body: []byte("{}")})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	const at = "/mcp-servers/srv/connections"
	total := func(who string, want float64) {
		t.Helper()
		if got := h.Do("GET", at, who, nil).OK(); got.At("total") != want {
			t.Errorf("%s: %s", who, got.Body)
		}
	}
	total(key, 2)
	total(admintest.ManagerKey, 2)
	total(admintest.MemberKey, 1)
	service := h.Caller(admintest.WorkspaceA)
	h.SetCaller("service of a member", service.As(identity.RankMember))
	h.Do("GET", at, "service of a member", nil).RequireFault(403, "AB03", "")
	h.Do("GET", at+"?user_id="+other, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
	h.Do("DELETE", at+"?user_id="+other, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
	h.Do("DELETE", at, key, nil).RequireFault(400, "AB01", "user_id")
	h.Do("DELETE", at, admintest.MemberKey, nil).OK()
	total(key, 1)
	h.Do("DELETE", at+"?user_id="+other, key, nil).OK()
	h.Do("DELETE", at+"?user_id="+other, key, nil).OK()
	total(key, 0)
}
