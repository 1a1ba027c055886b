package migrate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// checkRecords holds what becomes of the rows of schema against what is expected.
func checkRecords(t *testing.T, rec *Records) {
	t.Helper()
	r, err := LiteLLM("testdata/litellm/guardrails.yaml", environment)
	if err != nil {
		t.Fatal(err)
	}
	r.AddRecords(rec)
	if n := len(r.Document.Workspaces); n != 2 {
		t.Fatalf("%d workspaces", n)
	}
	w := r.Document.Workspaces[1]
	limits, _ := json.Marshal(w.Fields)
	if w.Name != "Acme / Search" || string(limits) != `{"rate_limits":[{"type":"requests","unit":"rpm","value":60},{"type":"tokens","unit":"rpm","value":1000}],"usage_limits":[{"credit_limit":100,"periodic_reset":"monthly"}]}` {
		t.Errorf("%s %s", w.Name, limits)
	}
	if len(w.Sections["configs"]) != 1 {
		t.Error("the workspace of a team lacks the models")
	}
	access, _ := json.Marshal(r.Access)
	want := `{"Invites":[{"Email":"ann@example.com","Role":"admin","Workspaces":[{"Workspace":"team-t1","Role":"manager"}]},{"Email":"bob@example.com","Role":"member","Workspaces":[{"Workspace":"team-t1","Role":"member"}]}],` +
		`"Keys":[{"Source":"88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b","Workspace":"team-t1","Name":"ci","Fields":{"defaults":{"metadata":{"purpose":"ci"}},"description":"imported","expires_at":"2099-01-01T00:00:00Z","rate_limits":[{"type":"requests","unit":"rpm","value":30},{"type":"tokens","unit":"rpm","value":5000}],"scopes":["completions.write","models.list","mcp.invoke","virtual_keys.list"],"usage_limits":{"credit_limit":5,"periodic_reset":"weekly"}}},` +
		`{"Source":"b1dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b","Workspace":"workspace-of-the-import","Name":"imported b1dc28d0f030","Fields":{"description":"imported","rate_limits":[{"type":"requests","unit":"rpm","value":10}],"scopes":["completions.write","models.list","mcp.invoke","virtual_keys.list"],"usage_limits":{"credit_limit":7.5,"periodic_reset":"monthly"}}}]}`
	if string(access) != want {
		t.Errorf("got\n%s\nwant\n%s", access, want)
	}
	var text strings.Builder
	r.Report.Print(&text)
	for _, part := range []string{"not mapped  database.team.Gone", "not mapped  database.user.robot", "not mapped  database.key.expired", "not mapped  database.key.stopped", "what was spent (1.25 US dollars) is not carried over", "the restriction to 1 models is not mapped", "max_parallel_requests is not mapped"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the report does not say %q", part)
		}
	}
}

// The API of the source gives the same records, page by page.
func TestAdministrationOfLiteLLM(t *testing.T) {
	lists := map[string]string{
		"/organization/list": `[{"organization_id":"o1","organization_alias":"Acme"}]`,
		"/team/list":         `[{"team_id":"t1","team_alias":"Search","organization_id":"o1","max_budget":100,"budget_duration":"30d","spend":12.5,"rpm_limit":60,"tpm_limit":1000,"members_with_roles":[{"role":"admin","user_id":"u1"},{"role":"user","user_id":"u2"}]},{"team_id":"t2","team_alias":"Gone","blocked":true}]`,
		"/user/list":         `{"users":[{"user_id":"u1","user_email":"ann@example.com","user_role":"proxy_admin"},{"user_id":"u2","user_email":"bob@example.com","user_role":"internal_user"},{"user_id":"u3","user_alias":"robot"}],"total":3}`,
		"/key/list":          `{"keys":[{"token":"88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b","key_alias":"ci","team_id":"t1","max_budget":5,"budget_duration":"7d","spend":1.25,"rpm_limit":30,"tpm_limit":5000,"max_parallel_requests":4,"models":["gpt-4o"],"metadata":{"purpose":"ci","n":1},"expires":"2099-01-01T00:00:00+00:00"},{"token":"b1dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b","key_name":"sk-...efgh","max_budget":7.5,"budget_duration":"30d","rpm_limit":10},{"token":"c1dc28d0f030","key_alias":"expired","expires":"2020-01-01T00:00:00Z"},{"token":"d1","key_alias":"stopped","blocked":true}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer sk-admin" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(lists[req.URL.Path]))
	}))
	defer server.Close()
	do := func(key string) func(context.Context, string) (*http.Response, error) {
		return func(ctx context.Context, path string) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
			if err != nil {
				return nil, err
			}
			req.Header.Set("Authorization", "Bearer "+key)
			return http.DefaultClient.Do(req)
		}
	}
	rec, err := Administration(context.Background(), do("sk-admin"))
	if err != nil {
		t.Fatal(err)
	}
	checkRecords(t, rec)
	if _, err := Administration(context.Background(), do("sk-other")); err == nil || strings.Contains(err.Error(), "sk-other") {
		t.Error(err)
	}
}
