package integrations

import (
	"slices"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
)

func TestFamilyChecks(t *testing.T) {
	h := newInstallation(t)
	admintest.CheckFamily(t, h)
	slug := create(t, h, key, "")
	for _, c := range []struct {
		method, tail string
		body         any
	}{
		{"GET", "", nil}, {"PUT", "", `{"name":"b"}`}, {"DELETE", "", nil},
	} {
		admintest.ForeignIsMissing(t, h, c.method, "/integrations", slug+c.tail, c.body)
	}
	for _, c := range []struct {
		method, tail string
		body         any
	}{
		{"GET", "/models", nil}, {"PUT", "/models", `{"allow_all_models":false}`}, {"DELETE", "/models?slugs=x", nil},
		{"GET", "/workspaces", nil}, {"PUT", "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true}]}`},
	} {
		for _, as := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
			foreign, missing := h.Do(c.method, "/integrations/"+slug+c.tail, as, c.body), h.Do(c.method, "/integrations/none"+c.tail, as, c.body)
			if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
				t.Errorf("%s %s as %s: %s, missing %s", c.method, c.tail, as, foreign.Comparable(), missing.Comparable())
			}
		}
	}
	admintest.BadBodies(t, h, "POST", "/integrations", chief, `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh"}`)
	admintest.BadBodies(t, h, "PUT", "/integrations/"+slug, key, `{"name":"a"}`)
	admintest.BadBodies(t, h, "PUT", "/integrations/"+slug+"/models", key, `{"allow_all_models":true}`)
	org := create(t, h, chief, "")
	admintest.BadBodies(t, h, "PUT", "/integrations/"+org+"/workspaces", chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true}]}`)
}

func TestScopesAndRolesFollowThePlace(t *testing.T) {
	h := newInstallation(t)
	org, own := create(t, h, chief, `,"slug":"org"`), create(t, h, key, `,"slug":"own"`)
	c := h.Caller(chief)
	for _, action := range []string{"read", "update", "delete"} {
		method := map[string]string{"read": "GET", "update": "PUT", "delete": "DELETE"}[action]
		c.Scopes = admintest.ScopeList{ofWorkspace + "." + action}
		h.SetCaller("only-workspace", c)
		h.Do(method, "/integrations/"+org, "only-workspace", `{"name":"x"}`).RequireFault(403, "AB03", "")
		c.Scopes = admintest.ScopeList{ofOrganisation + "." + action}
		h.SetCaller("only-organisation", c)
		h.Do(method, "/integrations/"+own, "only-organisation", `{"name":"x"}`).RequireFault(403, "AB03", "")
	}
	c.Scopes = admintest.ScopeList{ofWorkspace + ".create"}
	h.SetCaller("only-workspace", c)
	h.Do("POST", "/integrations", "only-workspace", `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh"}`).RequireFault(403, "AB03", "")
	// Workspace keys reach nothing of the organization but its list.
	h.Do("GET", "/integrations/"+org, key, nil).RequireFault(404, "AB08", "")
	// Foreign and missing resources have the same response.
	for _, as := range []string{key, admintest.WorkspaceB, admintest.OtherAdmin} {
		for _, r := range h.Families[0].Routes {
			if !strings.Contains(r.Path, "{slug}") {
				continue
			}
			var body any
			query := ""
			_, below, _ := strings.Cut(r.Path, "{slug}")
			switch r.Method + below {
			case "PUT":
				body = `{"name":"x"}`
			case "PUT/models":
				body = `{"allow_all_models":true}`
			case "PUT/workspaces":
				body = `{"workspaces":[{"id":"` + h.One + `","enabled":true}]}`
			case "DELETE/models":
				query = "?slugs=m"
			}
			at := func(slug string) string { return strings.Replace(r.Path, "{slug}", slug, 1) + query }
			if foreign, missing := h.Do(r.Method, at(org), as, body), h.Do(r.Method, at("none"), as, body); foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
				t.Errorf("%s %s as %s: %s, missing %s", r.Method, r.Path, as, foreign.Comparable(), missing.Comparable())
			}
		}
	}
	// Members read, managers change.
	h.Do("GET", "/integrations/"+own, admintest.MemberKey, nil).OK()
	h.Do("PUT", "/integrations/"+own, admintest.MemberKey, `{"name":"x"}`).RequireFault(403, "AB03", "")
	h.Do("PUT", "/integrations/"+own+"/models", admintest.MemberKey, `{"allow_all_models":false}`).RequireFault(403, "AB03", "")
	h.Do("DELETE", "/integrations/"+own, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
	h.Do("PUT", "/integrations/"+own, admintest.ManagerKey, `{"name":"x"}`).OK()
	user := h.Caller(chief)
	user.UserID, user.Role = resource.NewID(), admin.Manager
	h.SetCaller("org-manager", user)
	h.Do("PUT", "/integrations/"+org, "org-manager", `{"name":"x"}`).RequireFault(403, "AB03", "")
	user.Role = admin.Admin
	h.SetCaller("org-admin", user)
	h.Do("PUT", "/integrations/"+org, "org-admin", `{"name":"x"}`).OK()
}

func TestListShowsWhatTheCallerReaches(t *testing.T) {
	h := newInstallation(t)
	create(t, h, chief, `,"slug":"org-1","tags":{"team":"a","env":"p"}`)
	create(t, h, chief, `,"slug":"org-2"`)
	create(t, h, key, `,"slug":"own-1","tags":{"team":"a"}`)
	create(t, h, admintest.WorkspaceB, `,"slug":"own-2"`)
	create(t, h, admintest.OtherAdmin, `,"slug":"foreign"`)
	h.Do("PUT", "/integrations/org-1/workspaces", chief, `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true}]}`).OK()
	for _, c := range []struct{ as, query, want string }{
		{chief, "", "org-1 org-2 own-1 own-2"},
		{chief, "?type=organisation", "org-1 org-2"},
		{chief, "?type=organisation&page_size=1&current_page=1", "org-1"},
		{chief, "?type=workspace", "own-1 own-2"},
		{chief, "?workspace_id=" + admintest.TwoSlug, "own-2"},
		{chief, "?workspace_id=" + h.One, "org-1 own-1"},
		{chief, `?tags={"team":"a"}`, "org-1 own-1"},
		{chief, `?tags={"team":"a","env":"p"}`, "org-1"},
		{key, "", "org-1 own-1"},
		{key, "?type=organisation", "org-1"},
		{admintest.MemberKey, "?type=workspace", "own-1"},
		{admintest.WorkspaceB, "", "own-2"},
		{admintest.OtherAdmin, "", "foreign"},
	} {
		a := h.Do("GET", "/integrations"+c.query, c.as, nil).OK()
		var slugs []string
		for _, e := range a.At("data").([]any) {
			o := e.(map[string]any)
			slugs = append(slugs, o["slug"].(string))
			if _, shown := o["configurations"]; shown {
				t.Errorf("a list shows configurations: %s", a.Body)
			}
		}
		slices.Sort(slugs) // resources created in one millisecond have no order
		if got := strings.Join(slugs, " "); got != c.want || a.Text("object") != "list" {
			t.Errorf("%s as %s: %s, want %s", c.query, c.as, got, c.want)
		}
	}
	if got := h.Do("GET", "/integrations?page_size=1", chief, nil).OK().At("total"); got != 4.0 {
		t.Errorf("total %v", got)
	}
	for _, query := range []string{"type=x", "tags=x", `tags={"a":1}`, "page_size=0", "page_size=1001", "current_page=-1", "page_size=1&page_size=2"} {
		h.Do("GET", "/integrations?"+query, chief, nil).RequireFault(400, "AB01", "")
	}
	c := h.Caller(key)
	c.Scopes = admintest.ScopeList{ofOrganisation + ".list"}
	h.SetCaller("lister", c)
	if got := h.Do("GET", "/integrations", "lister", nil).OK(); got.At("total") != 1.0 || got.Text("data", "0", "slug") != "org-1" {
		t.Errorf("with one scope: %s", got.Body)
	}
	h.Do("GET", "/integrations?type=workspace", "lister", nil).RequireFault(403, "AB03", "")
}
