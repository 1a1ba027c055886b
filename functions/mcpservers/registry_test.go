package mcpservers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

const registry = "/v0.1/servers"

// catalog returns the names of a page, without their common prefix, and its cursor.
func catalog(t testing.TB, h *admintest.Installation, who, query string) (names []string, next string) {
	t.Helper()
	got := h.Do("GET", registry+query, who, nil).OK()
	for _, e := range got.At("servers").([]any) {
		s := e.(map[string]any)["server"].(map[string]any)
		names = append(names, strings.TrimPrefix(s["name"].(string), namespace))
	}
	if got.At("metadata", "count") != float64(len(names)) {
		t.Errorf("%s", got.Body)
	}
	if got.Object()["metadata"].(map[string]any)["nextCursor"] != nil {
		next = got.Text("metadata", "nextCursor")
	}
	return names, next
}

// serve creates a server in the workspace of a key.
func serve(h *admintest.Installation, who, slug string) admintest.Response {
	return h.Do("POST", "/mcp-servers", who, fmt.Sprintf(`{"name":"Server of %s","slug":%q,"mcp_integration_id":"up"}`, slug, slug)).OK()
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestRegistryMatchesThePublicSchema(t *testing.T) {
	t.Parallel()
	h, up := newInstallation(t), newUpstream(t, false)
	register(h, up.URL, `"auth_type":"none","slug":"up"`)
	made := h.Do("POST", "/mcp-servers", key, fmt.Sprintf(`{"name":%q,"slug":"files","mcp_integration_id":"up","description":%q}`, strings.Repeat("n", 255), strings.Repeat("ü", 101))).OK()
	made = h.Do("GET", "/mcp-servers/"+made.Text("id"), key, nil).OK()
	serve(h, key, "plain")
	var page struct {
		Servers []struct{ Server described }
	}
	got := h.Do("GET", registry, key, nil).OK()
	if err := json.Unmarshal(got.Body, &page); err != nil || len(page.Servers) != 2 {
		t.Fatalf("%v: %s", err, got.Body)
	}
	plain, full := page.Servers[0], page.Servers[1]
	want := described{Schema: schemaOfOne, Name: "ai.gateway." + admintest.OneSlug + "/plain", Title: "Server of plain", Description: "Server of plain", Version: "1.2.3",
		Remotes: []remote{{"streamable-http", "http://example.com/v1/mcp/plain/mcp"}}}
	if fmt.Sprint(plain.Server) != fmt.Sprint(want) || strings.Count(string(got.Body), `"isLatest":true`) != 2 {
		t.Errorf("%+v", plain)
	}
	if full.Server.Title != strings.Repeat("n", 99)+"…" || full.Server.Description != strings.Repeat("ü", 99)+"…" {
		t.Errorf("%+v", full.Server)
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(full.Server.Name) {
		t.Error(full.Server.Name)
	}
	if !strings.Contains(string(got.Body), `"publishedAt":"`+made.Text("created_at")+`"`) {
		t.Errorf("%s\n%s", got.Body, made.Body)
	}
	if alias := h.Do("GET", "/mcp"+registry, key, nil).OK(); string(alias.Body) != string(got.Body) {
		t.Errorf("%s", alias.Body)
	}
}

func TestRegistryTruncatesReportedTexts(t *testing.T) {
	t.Parallel()
	good := `{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark","more":1}`
	got := icons(json.RawMessage(`[` + good + `,1,{"src":"data:image/png;base64,AA"},{"src":"http://example.com/i"},{"src":"https://e/i","sizes":["big"]},{"src":"https://e/i","mimeType":"text/html"},{"src":"https://` + strings.Repeat("e", 255) + `"}]`))
	if len(got) != 1 || got[0].Source != "https://example.com/i.png" || got[0].Theme != "dark" {
		t.Errorf("%+v", got)
	}
	if got := icons(json.RawMessage(`{"src":"x"}`)); got != nil {
		t.Errorf("%+v", got)
	}
	for in, want := range map[string]string{"https://example.com/a": "https://example.com/a", "javascript:alert(1)": "", "//x": "", "": "", "http://": ""} {
		if got := website(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestRegistryPagesNewestFirst(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	for i := range 7 {
		serve(h, key, fmt.Sprintf("s-%d", i))
	}
	h.Do("POST", "/mcp-integrations", chief, `{"name":"Up","slug":"top","url":"https://mcp.example.com/mcp","auth_type":"oauth_auto","transport":"http"}`).OK()
	h.Do("PUT", "/mcp-integrations/top/workspaces", chief, `{"workspaces":[{"id":"`+h.Two+`","enabled":true}]}`).OK()
	h.Do("POST", "/mcp-servers", admintest.WorkspaceB, `{"name":"B","slug":"s-b","mcp_integration_id":"top"}`).OK()
	one := admintest.OneSlug + "/"
	var all []string
	for query, pages := "?limit=3", 0; ; pages++ {
		names, next := catalog(t, h, key, query)
		if all = append(all, names...); next == "" {
			break
		}
		if pages > 3 {
			t.Fatal("no end")
		}
		query = "?limit=3&cursor=" + url.QueryEscape(next)
	}
	same(t, "pages", all, one+"s-6", one+"s-5", one+"s-4", one+"s-3", one+"s-2", one+"s-1", one+"s-0")
	names, next := catalog(t, h, key, "?limit=7")
	if len(names) != 7 || next != "" {
		t.Errorf("%v, next %q", names, next)
	}
	names, next = catalog(t, h, chief, "?limit=2")
	same(t, "all workspaces", names, admintest.TwoSlug+"/s-b", one+"s-6")
	// Changes between pages do not move servers that were not shown yet.
	serve(h, key, "later")
	h.Do("DELETE", "/mcp-servers/s-5", key, nil).OK()
	names, _ = catalog(t, h, chief, "?limit=2&cursor="+next)
	same(t, "the next page", names, one+"s-4", one+"s-3")
	names, _ = catalog(t, h, key, "?search=S-3")
	same(t, "search", names, one+"s-3")
	names, _ = catalog(t, h, key, "?search=server%20OF%20later")
	same(t, "search of a title", names, one+"later")
	names, _ = catalog(t, h, key, "?search=nothing%25")
	same(t, "search of nothing", names)
}

func TestRegistryFiltersByUpdateTime(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	serve(h, key, "old")
	time.Sleep(2 * time.Millisecond) // times are stored in milliseconds
	serve(h, key, "new")
	since := h.Do("GET", registry+"?limit=1", key, nil).OK().Text("servers", "0", "_meta", "io.gateway.ai/registry", "updatedAt")
	names, _ := catalog(t, h, key, "?updated_since="+url.QueryEscape(since))
	same(t, "since", names, admintest.OneSlug+"/new")
	time.Sleep(2 * time.Millisecond)
	h.Do("PUT", "/mcp-servers/old", key, `{"description":"d"}`).OK()
	names, _ = catalog(t, h, key, "?updated_since="+url.QueryEscape(since))
	same(t, "after a change", names, admintest.OneSlug+"/new", admintest.OneSlug+"/old")
	names, _ = catalog(t, h, key, "?updated_since=2199-01-01")
	same(t, "later than all", names)
}

// A server is listed while everything that it depends on is active.
func TestRegistryListsOnlyActiveServers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", chief, `{"name":"Up","slug":"top","url":"https://mcp.example.com/mcp","auth_type":"oauth_auto","transport":"http"}`).OK()
	open := func(on bool) {
		h.Do("PUT", "/mcp-integrations/top/workspaces", chief, fmt.Sprintf(`{"workspaces":[{"id":%q,"enabled":%t}]}`, h.One, on)).OK()
	}
	open(true)
	id := h.Do("POST", "/mcp-servers", key, `{"name":"S","slug":"top-server","mcp_integration_id":"top"}`).OK().Text("id")
	of := h.Do("GET", "/mcp-integrations/top", chief, nil).OK().Text("id")
	status := func(sc store.Scope, kind resource.Kind, id, to string) {
		t.Helper()
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
			rec, ok, err := tx.Get(sc, kind, id)
			if err != nil || !ok {
				return fmt.Errorf("%s: %v, %w", id, ok, err)
			}
			rec.Status = to
			return tx.Update(&rec)
		}); err != nil {
			t.Fatal(err)
		}
	}
	there := func(what string, want bool) {
		t.Helper()
		for who, query := range map[string]string{key: "", chief: "?workspace_id=" + h.One} {
			answer := h.Do("GET", registry+query, who, nil)
			if answer.Status == http.StatusNotFound && !want {
				continue // the workspace itself was deleted
			}
			if got := strings.Contains(string(answer.OK().Body), "top-server"); got != want {
				t.Errorf("%s: %s is shown it: %t", what, who, got)
			}
		}
	}
	there("new", true)
	org := store.Scope{Org: admintest.Org}
	space := store.Scope{Org: admintest.Org, Workspace: h.One}
	for _, off := range []struct {
		what     string
		off, on_ func()
	}{
		{"access", func() { open(false) }, func() { open(true) }},
		{"server", func() { status(space, mcp.KindServer, id, "inactive") }, func() { status(space, mcp.KindServer, id, "active") }},
		{"integration", func() { status(org, mcp.KindIntegration, of, "inactive") }, func() { status(org, mcp.KindIntegration, of, "active") }},
		{"workspace", func() { status(org, tenant.KindWorkspace, h.One, resource.StatusArchived) }, func() { status(org, tenant.KindWorkspace, h.One, "active") }},
	} {
		off.off()
		there(off.what, false)
		off.on_()
		there(off.what+" again", true)
	}
}

func TestRegistryListsTheWorkspaceOfTheKey(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	serve(h, key, "mine")
	for header, value := range map[string]string{"Authorization": "Bearer " + key, "X-Api-Key": key, "Cookie": "x-gateway-api-key=" + key} {
		r := httptest.NewRequest("GET", "/v1"+registry+"?x-gateway-api-key="+key+"&api_key="+key, nil)
		r.Header.Set(header, value)
		h.Send(r).RequireFault(401, "AB05", "")
	}
	h.Do("GET", registry, admintest.ExpiredKey, nil).RequireFault(401, "AB05", "")
	h.Do("GET", registry, admintest.NoScopesKey, nil).RequireFault(403, "AB03", "")
	h.SetCaller("reads", admin.Caller{KeyID: "k", Type: "workspace-service", Scope: store.Scope{Org: admintest.Org, Workspace: h.One}, Scopes: admintest.ScopeList{"mcp_servers.read", "mcp.invoke"}}.As(identity.RankManager))
	h.Do("GET", registry, "reads", nil).RequireFault(403, "AB03", "")
	h.SetCaller("lists", admin.Caller{KeyID: "k", Type: "workspace-service", Scope: store.Scope{Org: admintest.Org, Workspace: h.One}, Scopes: admintest.ScopeList{"mcp_servers.list"}}.As(identity.RankManager))
	for _, who := range []string{"lists", key, chief, admintest.MemberKey} {
		names, _ := catalog(t, h, who, "")
		same(t, who, names, admintest.OneSlug+"/mine")
		for _, ws := range []string{h.One, admintest.OneSlug} {
			names, _ := catalog(t, h, who, "?workspace_id="+ws)
			same(t, who+" of "+ws, names, admintest.OneSlug+"/mine")
		}
	}
	for _, who := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
		names, _ := catalog(t, h, who, "")
		same(t, who, names)
	}
	// Foreign resources are indistinguishable from missing ones.
	for who, foreign := range map[string][]string{admintest.WorkspaceB: {h.One, admintest.OneSlug, h.Three}, admintest.OtherAdmin: {h.One, admintest.OneSlug}} {
		missing := h.Do("GET", registry+"?workspace_id=nobody", who, nil).RequireFault(404, "AB08", "workspace_id").Comparable()
		for _, ws := range foreign {
			if got := h.Do("GET", registry+"?workspace_id="+ws, who, nil).Comparable(); got != missing {
				t.Errorf("%s, %s: %s", who, ws, got)
			}
		}
	}
}

func TestRegistryListsAllWorkspacesOfAUser(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	h.Do("POST", "/mcp-integrations", admintest.WorkspaceB, quiet).OK()
	serve(h, key, "of-one")
	serve(h, admintest.WorkspaceB, "of-two")
	person := func(scopes map[string]admintest.ScopeList) {
		in := func(_ context.Context, ws string) (admin.Caller, error) {
			return admin.Caller{UserID: "u", Type: "session", Scope: store.Scope{Org: admintest.Org, Workspace: ws}, Role: admin.Member, Scopes: scopes[ws], Workspaces: []string{h.One, h.Two}}, nil
		}
		first, _ := in(context.Background(), h.One)
		first.In = in
		h.SetCaller("person", first)
	}
	lists := admintest.ScopeList{"mcp_servers.list"}
	person(map[string]admintest.ScopeList{h.One: lists, h.Two: lists})
	names, _ := catalog(t, h, "person", "")
	same(t, "both", names, admintest.TwoSlug+"/of-two", admintest.OneSlug+"/of-one")
	person(map[string]admintest.ScopeList{h.One: lists})
	names, _ = catalog(t, h, "person", "")
	same(t, "one", names, admintest.OneSlug+"/of-one")
	h.Do("GET", registry+"?workspace_id="+h.Two, "person", nil).RequireFault(404, "AB08", "workspace_id")
}

func TestRegistryRejectsInvalidQueries(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=-1": "limit", "limit=x": "limit", "limit=1.5": "limit", "limit=1&limit=2": "limit", "limit=99999999999999999999": "limit",
		"cursor=": "cursor", "cursor=%20": "cursor", "cursor=x": "cursor", "cursor=" + strings.Repeat("A", 513): "cursor", "cursor=%00": "cursor", "cursor=YWFh": "cursor", "cursor=IGE": "cursor",
		"updated_since=yesterday": "updated_since", "updated_since=9999-01-01": "updated_since", "updated_since=2026-02-30": "updated_since",
		"search=": "search", "search=" + strings.Repeat("a", 256): "search", "search=%ff": "search",
		"workspace_id=" + strings.Repeat("a", 65): "workspace_id", "workspace_id=%ff": "workspace_id",
	} {
		if got := h.Do("GET", registry+"?"+query, key, nil); got.Status != 400 {
			t.Errorf("%s: %d %s", query, got.Status, got.Body)
		} else {
			got.RequireFault(400, "AB01", field)
		}
	}
}
