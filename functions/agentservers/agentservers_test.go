package agentservers

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	key   = admintest.WorkspaceA
	chief = admintest.AdminKey

	older = `{"name":"Agent","url":"http://agent.internal/","protocolVersion":"0.3.0","preferredTransport":"JSONRPC","additionalInterfaces":[{"url":"http://agent.internal/rest","transport":"HTTP+JSON"},{"url":"grpc://x","transport":"GRPC"}],"signatures":[{"protected":"x","signature":"y"}],"skills":[{"id":"one","name":"One","description":"d","tags":["t"]},{"id":"two","name":"Two"},{"name":"nameless"}],"x-kept":{"n":1.50}}`
)

func newInstallation(t testing.TB) *admintest.Installation { return newInstallationAt(t, time.Now) }

// newInstallationAt is newInstallation with a clock for secret managers.
func newInstallationAt(t testing.TB, now func() time.Time) *admintest.Installation {
	t.Helper()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	via := egress.New(policy, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(via) })
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{New(Deps{CheckURL: policy.CheckURL, PublicURL: "https://gateway.example.com/v1/", Opener: &a2a.Opener{Sealer: admintest.Sealer{}, Transport: via, Secrets: &provider.Loaded{Secrets: provider.NewSecrets(admintest.Sealer{}, provider.NewTokens(via, now), via), Loader: resource.NewLoader(d.Resources)}}})}
	})
}

// agent serves a card at one of the two paths to callers with its token.
func agent(t testing.TB, path, card, token string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("X-Agent-Pass") != token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path != path {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(card))
	}))
	t.Cleanup(s.Close)
	return s
}

func register(h *admintest.Installation, who, url, more string) string {
	return h.Do("POST", "/agent-integrations", who, fmt.Sprintf(`{"name":"A","slug":"a","url":%q%s}`, url, more)).OK().Text("id")
}

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	s := agent(t, cardPath, older, "")
	admintest.CheckFamily(t, h)
	of := register(h, key, s.URL, "")
	srv := h.Do("POST", "/agent-servers", key, `{"name":"S","slug":"my-agent","agent_integration_id":"a","description":"d"}`).OK().Text("id")
	for path, id := range map[string]string{"/agent-integrations": of, "/agent-servers": srv} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			var body any
			if method == "PUT" {
				body = `{"name":"x"}`
			}
			admintest.ForeignIsMissing(t, h, method, path, id, body)
		}
		admintest.BadBodies(t, h, "PUT", path+"/"+id, key, `{"name":"x"}`)
		admintest.BadBodies(t, h, "PUT", path+"/"+id+"/skills", key, `{"skills":[{"id":"one","enabled":true}]}`)
		for _, below := range []string{"skills", "test", "user-access", "agent-card", "workspaces"} {
			for _, method := range []string{"GET", "POST", "PUT"} {
				at := path + "/" + id + "/" + below
				if !h.Handler.Matches(method, "/v1"+at) {
					continue
				}
				body := map[string]any{"PUT skills": `{"skills":[{"id":"one","enabled":true}]}`, "PUT user-access": `{"default_user_access":"deny"}`, "PUT workspaces": `{"workspaces":[]}`}[method+" "+below]
				for who, query := range map[string]string{admintest.WorkspaceB: "", admintest.OtherAdmin: "?workspace_id=" + h.Three} {
					foreign, missing := h.Do(method, at+query, who, body), h.Do(method, path+"/"+resource.NewID()+"/"+below+query, who, body)
					if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
						t.Errorf("%s %s as %s: %s\n%s", method, at, who, foreign.Comparable(), missing.Comparable())
					}
				}
			}
		}
	}
	admintest.BadBodies(t, h, "POST", "/agent-integrations", key, `{"name":"B","url":"`+s.URL+`"}`)
	admintest.BadBodies(t, h, "POST", "/agent-servers", key, `{"name":"S","agent_integration_id":"a"}`)
	admintest.BadBodies(t, h, "POST", "/agent-integrations/fetch-agent-card", key, `{"url":"`+s.URL+`"}`)
}

const cardPath, olderPath = "/.well-known/agent-card.json", "/.well-known/agent.json"

func TestAnswersArePinned(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.VaultReference("ref", "https://vault.example.com")
	h.Do("POST", "/agent-integrations?workspace_id="+h.One, chief, `{"name":"A","slug":"a","url":"https://agent.example.com","auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.X-Pass","secret_reference_id":"ref"}],"configurations":{"forward_headers":["x-trace"]}}`).OK()
	h.Do("POST", "/agent-servers", key, `{"name":"S","slug":"my-agent","agent_integration_id":"a","description":"d"}`).OK()
	h.Do("PUT", "/agent-integrations/a/skills", key, `{"skills":[{"id":"later","enabled":false}]}`).OK()
	var calls []admintest.Call
	for _, at := range []string{"/agent-integrations", "/agent-integrations/a", "/agent-integrations/a/workspaces", "/agent-integrations/a/skills", "/agent-servers", "/agent-servers/my-agent", "/agent-servers/my-agent/skills", "/agent-servers/my-agent/user-access"} {
		calls = append(calls, admintest.As(key, "GET", at, ""))
	}
	h.Golden(*update, "answers.txt", calls...)
}

func TestRewriteReplacesAddressesAndSecurity(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	s := agent(t, olderPath, older, "") // only at the path of early versions
	register(h, key, s.URL+"/", "")
	h.Do("POST", "/agent-servers", key, `{"name":"S","slug":"my-agent","agent_integration_id":"a"}`).OK()
	if got := h.Do("GET", "/agent-integrations/a", key, nil).OK(); got.Text("sync_status") != "success" || got.Text("agent_card", "name") != "Agent" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/agent-servers/my-agent/skills", key, `{"skills":[{"id":"two","enabled":false}]}`).OK()
	card := h.Do("GET", "/agent-servers/my-agent/agent-card", key, nil).OK()
	const here = "https://gateway.example.com/v1/agent/my-agent"
	both := func(names, version string) string {
		one := func(binding string) string {
			return strings.NewReplacer("%b", binding, "%v", version, "%u", here).Replace(names)
		}
		return one("JSONRPC") + "," + one("HTTP+JSON")
	}
	const newer = `{"protocolBinding":"%b","protocolVersion":"%v","url":"%u"}`
	want := `{"additionalInterfaces":[` + both(`{"transport":"%b","url":"%u"}`, "") + `],"capabilities":{"pushNotifications":false,"streaming":false},"name":"Agent","preferredTransport":"JSONRPC","protocolVersion":"0.3.0","security":[{"gateway":[]}],"securityRequirements":[{"schemes":{"gateway":{"list":[]}}}],"securitySchemes":{"gateway":{"type":"apiKey","in":"header","name":"x-gateway-api-key","apiKeySecurityScheme":{"location":"header","name":"x-gateway-api-key"}}},"skills":[{"id":"one","name":"One","description":"d","tags":["t"]},{"name":"nameless"}],"supportedInterfaces":[` + both(newer, "0.3") + "," + both(newer, "1.0") + `],"supportsAuthenticatedExtendedCard":false,"url":"` + here + `","x-kept":{"n":1.50}}`
	if string(card.Body) != want {
		t.Errorf("%s", card.Body)
	}
	h.Do("PUT", "/agent-integrations/a/skills", key, `{"skills":[{"id":"one","enabled":false},{"id":"later","enabled":false}]}`).OK()
	got := h.Do("GET", "/agent-servers/my-agent/skills", key, nil).OK()
	if got.At("total") != 3.0 || got.At("data", "0", "enabled") != false || got.At("data", "1", "enabled") != false || got.Text("data", "2", "id") != "later" {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("GET", "/agent-integrations/a/skills", key, nil).OK(); got.At("data", "1", "enabled") != true {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/agent-servers/my-agent/skills", key, `{"skills":[{"id":"one","enabled":true},{"id":"one","enabled":true}]}`).RequireFault(400, "AB01", "skills[1].id")
	h.Do("PUT", "/agent-servers/my-agent/skills", admintest.MemberKey, `{"skills":[{"id":"one","enabled":true}]}`).RequireFault(403, "AB03", "")
	if got := h.Do("POST", "/agent-servers/my-agent/test", key, nil).OK(); got.At("success") != true || got.Text("agent_name") != "Agent" {
		t.Errorf("%s", got.Body)
	}
}

func TestFetchReturnsCardsOfUnregisteredAgents(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	s := agent(t, cardPath, older, "pass")
	body := func(url, headers string) string { return fmt.Sprintf(`{"url":%q,"headers":{%s}}`, url, headers) }
	got := h.Do("POST", "/agent-integrations/fetch-agent-card", key, body(s.URL, `"X-Agent-Pass":"pass"`)).OK()
	var a, b any
	if json.Unmarshal(got.Body, &a) != nil || json.Unmarshal([]byte(older), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("POST", "/agent-integrations/fetch-agent-card", key, body(s.URL, "")); got.Status != 502 || !strings.Contains(string(got.Body), "401") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	for _, url := range []string{"http://169.254.169.254", "ftp://x", "http://u:p@example.com"} {
		h.Do("POST", "/agent-integrations/fetch-agent-card", key, body(url, "")).RequireFault(400, "AB01", "url")
	}
	h.Do("POST", "/agent-integrations/fetch-agent-card", key, body(s.URL, `"Host":"x"`)).RequireFault(400, "AB01", "headers.Host")
	h.Do("POST", "/agent-integrations/fetch-agent-card", admintest.MemberKey, body(s.URL, "")).RequireFault(403, "AB03", "")
	for _, card := range []string{"[]", `{"name":"x"}`, `{"url":"x"}`, `{"name":"x","supportedInterfaces":{}}`, `{"name":"x","url":"y","url":"z"}`, "{", `{"name":"x","url":"` + strings.Repeat("a", 1<<20) + `"}`} {
		bad := agent(t, cardPath, card, "")
		if got := h.Do("POST", "/agent-integrations/fetch-agent-card", key, body(bad.URL, "")); got.Status != 502 {
			t.Errorf("%.40s: %d %.200s", card, got.Status, got.Body)
		}
	}
	newer := agent(t, cardPath, `{"name":"x","supportedInterfaces":[{"url":"http://x","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, "")
	h.Do("POST", "/agent-integrations/fetch-agent-card", key, body(newer.URL, "")).OK()
}

func TestRegistrationSucceedsWithoutACard(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	var hits atomic.Int32
	inwards := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer inwards.Close()
	s := httptest.NewServer(http.RedirectHandler(inwards.URL, http.StatusFound))
	defer s.Close()
	register(h, key, s.URL, "")
	h.Do("POST", "/agent-servers", key, `{"name":"S","slug":"srv","agent_integration_id":"a"}`).OK()
	if got := h.Do("GET", "/agent-integrations/a", key, nil).OK(); got.Text("sync_status") != "failed" || !strings.Contains(got.Text("sync_error"), "302") {
		t.Errorf("%s", got.Body)
	}
	h.Do("GET", "/agent-servers/srv/agent-card", key, nil).RequireFault(404, "AB08", "")
	if hits.Load() != 0 {
		t.Error("a redirect is followed")
	}
	large := agent(t, cardPath, `{"name":"x","url":"`+strings.Repeat("a", a2a.MaxStoredCard)+`"}`, "")
	h.Do("PUT", "/agent-integrations/a", key, fmt.Sprintf(`{"url":%q}`, large.URL)).OK()
	if got := h.Do("POST", "/agent-integrations/a/test", key, nil).OK(); got.At("success") != false || !strings.Contains(got.Text("error"), "too large") {
		t.Errorf("%s", got.Body)
	}
}

func TestCredentialsAreNeverShown(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const secret = "very-secret-pass-of-mine"
	s := agent(t, cardPath, older, secret)
	register(h, key, s.URL, `,"auth_type":"headers","configurations":{"headers":{"X-Agent-Pass":"`+secret+`"}}`)
	got := h.Do("GET", "/agent-integrations/a", key, nil).OK()
	if got.Text("sync_status") != "success" || !strings.Contains(got.Text("configurations", "headers", "X-Agent-Pass"), "****") || strings.Contains(string(got.Body), secret) {
		t.Errorf("%s", got.Body)
	}
	for _, e := range h.Audit() {
		if whole, _ := json.Marshal(e); strings.Contains(string(whole), secret) {
			t.Errorf("the audit log has the secret: %s", whole)
		}
	}
	for body, field := range map[string]string{
		`{"configurations":{"headers":{"X-Agent-Pass":"ve****ne"}}}`:                       "configurations.headers.X-Agent-Pass",
		`{"configurations":{"headers":null}}`:                                              "configurations.headers",
		`{"configurations":{"passthrough_headers":{}}}`:                                    "configurations.passthrough_headers",
		`{"secret_mappings":[{"target_field":"key","secret_reference_id":"r"}]}`:           "secret_mappings[0].target_field",
		`{"auth_type":"oauth_auto"}`:                                                       "auth_type",
		`{"url":"http://agent.example.com/#x"}`:                                            "url",
		`{"configurations":{"forward_headers":{"mode":"allowlist","headers":["cookie"]}}}`: "configurations.forward_headers[0]",
	} {
		h.Do("PUT", "/agent-integrations/a", key, body).RequireFault(400, "AB01", field)
	}
}

func TestAgentsOfTheOrganisation(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	s := agent(t, cardPath, older, "")
	of := register(h, chief, s.URL, "")
	srv := `{"name":"S","slug":"same","agent_integration_id":"a"}`
	h.Do("POST", "/agent-servers", key, srv).RequireFault(400, "AB01", "agent_integration_id")
	h.Do("GET", "/agent-integrations/"+of, key, nil).RequireFault(404, "AB08", "")
	h.Do("PUT", "/agent-integrations/"+of+"/workspaces", chief, `{"global_workspace_access":{"enabled":true},"workspaces":[{"id":"`+admintest.TwoSlug+`","enabled":false}]}`).OK()
	h.Do("POST", "/agent-servers", admintest.WorkspaceB, srv).RequireFault(400, "AB01", "agent_integration_id")
	h.Do("POST", "/agent-servers", key, srv).OK()
	if got := h.Do("GET", "/agent-integrations/"+of, chief, nil).OK(); got.At("workspaces_count") != 1.0 || got.At("global_workspace_access", "enabled") != true {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/agent-integrations/"+of+"/workspaces", chief, `{"override_existing_workspace_access":true}`).OK()
	h.Do("POST", "/agent-servers", admintest.WorkspaceB, srv).RequireFault(409, "AB07", "slug")
	h.Do("DELETE", "/agent-integrations/"+of, chief, nil).RequireFault(409, "AB07", "")
	h.Do("DELETE", "/agent-servers/same", key, nil).OK()
	h.Do("POST", "/agent-servers", admintest.WorkspaceB, srv).OK()
}
