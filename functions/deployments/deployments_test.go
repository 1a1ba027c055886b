package deployments

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const chief = admintest.AdminKey

func newInstallation(t testing.TB) *admintest.Installation {
	t.Helper()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	via := egress.New(policy, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(via) })
	return admintest.Build(t, func(admin.Deps) []admin.Family {
		return []admin.Family{New(Deps{CheckURL: policy.CheckURL, Transport: via, Most: 3})}
	})
}

const body = `{"name":"Frankfurt","slug":"fra","type":"production","url":"https://gateway.example.com/v1","config":{"a":1},"user_allowlist":["ann"]}`

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	admintest.CheckFamily(t, h)
	made := h.Do("POST", "/deployments", chief, body).OK()
	id, token := made.Text("id"), made.Text("token")
	if len(token) < 40 || made.Text("slug") != "fra" {
		t.Errorf("%s", made.Body)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		var sent any
		if method == "PUT" {
			sent = `{"name":"x"}`
		}
		foreign, missing := h.Do(method, "/deployments/"+id, admintest.OtherAdmin, sent), h.Do(method, "/deployments/nope", admintest.OtherAdmin, sent)
		if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
			t.Errorf("%s: %s\n%s", method, foreign.Comparable(), missing.Comparable())
		}
		for _, who := range []string{admintest.WorkspaceA, admintest.WsAdminKey} {
			h.Do(method, "/deployments/"+id, who, sent).RequireFault(403, "AB03", "")
		}
	}
	admintest.BadBodies(t, h, "POST", "/deployments", chief, `{"name":"B","type":"production"}`)
	admintest.BadBodies(t, h, "PUT", "/deployments/"+id, chief, `{"name":"x"}`)
	for _, e := range h.Audit() {
		if whole, _ := json.Marshal(e); strings.Contains(string(whole), token) {
			t.Errorf("the audit log has the token: %s", whole)
		}
	}
	for _, at := range []string{"/deployments", "/deployments/" + id} {
		if got := h.Do("GET", at, chief, nil).OK(); strings.Contains(string(got.Body), "token") {
			t.Errorf("%s", got.Body)
		}
	}
}

func TestAnswersArePinned(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/deployments", chief, body).OK()
	h.Golden(*update, "answers.txt", admintest.As(chief, "GET", "/deployments", ""), admintest.As(chief, "GET", "/deployments/fra", ""), admintest.As(chief, "GET", "/deployments/fra/workspaces", ""),
		admintest.As(chief, "PUT", "/deployments/fra", `{"allowed_workspaces":["`+admintest.OneSlug+`"],"config":null}`), admintest.As(chief, "GET", "/deployments/fra", ""),
		admintest.As(chief, "PUT", "/deployments/fra/workspaces", `{"workspaces":[{"id":"`+admintest.TwoSlug+`","enabled":true}]}`), admintest.As(chief, "GET", "/deployments/fra/workspaces", ""))
}

func TestDeploymentsAreVerified(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/healthz" || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(status)
	}))
	defer s.Close()
	h.Do("POST", "/deployments", chief, fmt.Sprintf(`{"name":"L","slug":"l","type":"non-production","url":%q}`, s.URL+"/v1/")).OK()
	state := func(want string) {
		t.Helper()
		if got := h.Do("GET", "/deployments/l", chief, nil).OK(); got.Text("status") != want {
			t.Errorf("%s", got.Body)
		}
	}
	state("inactive")
	if got := h.Do("POST", "/deployments/l/verify", chief, nil).OK(); got.At("success") != true || got.Text("status") != "active" || got.At("status_code") != 200.0 {
		t.Errorf("%s", got.Body)
	}
	state("active")
	if n := h.Do("GET", "/deployments?status=active&type=non-production", chief, nil).OK().At("total"); n != 1.0 {
		t.Errorf("%v", n)
	}
	if n := h.Do("GET", "/deployments?type=production", chief, nil).OK().At("total"); n != 0.0 {
		t.Errorf("%v", n)
	}
	status = http.StatusBadGateway
	if got := h.Do("POST", "/deployments/l/verify", chief, nil).OK(); got.At("success") != false || got.At("status_code") != 502.0 {
		t.Errorf("%s", got.Body)
	}
	state("inactive")
	s.Close()
	if got := h.Do("POST", "/deployments/l/verify", chief, nil).OK(); got.At("success") != false || got.At("status_code") != nil {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/deployments/l", chief, `{"url":null}`).OK()
	h.Do("POST", "/deployments/l/verify", chief, nil).RequireFault(400, "AB01", "url")
}

func TestDeploymentsAreCheckedWhenSaved(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/deployments", chief, body).OK()
	for sent, fields := range map[string]string{
		`{"url":"http://169.254.169.254/"}`:                                                  "url",
		`{"allow_all_workspaces":true,"allowed_workspaces":["` + admintest.OneSlug + `"]}`:   "allowed_workspaces",
		`{"allowed_workspaces":[]}`:                                                          "allowed_workspaces",
		`{"allowed_workspaces":["` + admintest.OneSlug + `","` + admintest.ThreeSlug + `"]}`: "allowed_workspaces[1]",
		`{"type":"non-production"}`:                                                          "type",
		`{"config":[],"user_allowlist":[1]}`:                                                 "config user_allowlist[0]",
		`{"config":{"a":"` + strings.Repeat("x", 70<<10) + `"}}`:                             "config",
	} {
		got := h.Do("PUT", "/deployments/fra", chief, sent)
		for _, field := range strings.Fields(fields) {
			got.RequireFault(400, "AB01", field)
		}
	}
	h.Do("POST", "/deployments", chief, body).RequireFault(409, "AB07", "slug")
	for i := range 2 {
		h.Do("POST", "/deployments", chief, fmt.Sprintf(`{"name":"P%d","type":"production"}`, i)).OK()
	}
	if got := h.Do("POST", "/deployments", chief, `{"name":"P","type":"production"}`); got.Status != 402 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	h.Do("POST", "/deployments", chief, `{"name":"P","type":"non-production"}`).OK()
	h.Do("DELETE", "/deployments/fra", chief, nil).OK()
	h.Do("GET", "/deployments/fra", chief, nil).RequireFault(404, "AB08", "")
}
