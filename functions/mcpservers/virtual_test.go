package mcpservers

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
)

// newServerInstallation has two servers of the first workspace, a-server and b-server, and one of the
// second, c-server.
func newServerInstallation(t *testing.T) *admintest.Installation {
	t.Helper()
	h := newInstallation(t)
	h.Do("POST", "/mcp-integrations", key, quiet).OK()
	h.Do("POST", "/mcp-integrations", admintest.WorkspaceB, quiet).OK()
	serve(h, key, "a-server")
	serve(h, key, "b-server")
	serve(h, admintest.WorkspaceB, "c-server")
	return h
}

const bundled = `{"name":"All","slug":"all","description":"d","members":[{"server":"a-server","prefix":"a_"},{"server":"b-server","tools":["x","y"],"rename":{"y":"z"}}],"search":"always","search_threshold":3}`

func TestVirtualServersListMemberTools(t *testing.T) {
	t.Parallel()
	h := newServerInstallation(t)
	a, b := h.Do("GET", "/mcp-servers/a-server", key, nil).OK().Text("id"), h.Do("GET", "/mcp-servers/b-server", key, nil).OK().Text("id")
	id := h.Do("POST", "/mcp-servers", key, bundled).OK().Text("id")
	got := h.Do("GET", "/mcp-servers/all", key, nil).OK()
	if got.Text("members", "0", "server") != a || got.Text("members", "0", "prefix") != "a_" || got.Text("members", "1", "server") != b || got.Text("members", "1", "rename", "y") != "z" ||
		got.Text("search") != "always" || got.At("search_threshold") != 3.0 || got.Text("mcp_integration_id") != "" || got.Text("url") != "https://gateway.example.com/v1/mcp/all/mcp" {
		t.Errorf("%s", got.Body)
	}
	if plain := h.Do("GET", "/mcp-servers/a-server", key, nil).OK(); strings.Contains(string(plain.Body), `"members"`) || strings.Contains(string(plain.Body), `"search"`) {
		t.Errorf("%s", plain.Body)
	}
	admintest.BadBodies(t, h, "POST", "/mcp-servers", key, bundled)
	admintest.BadBodies(t, h, "PUT", "/mcp-servers/all", key, `{"name":"x"}`)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		body := any(nil)
		if method == "PUT" {
			body = `{"name":"x"}`
		}
		admintest.ForeignIsMissing(t, h, method, "/mcp-servers", id, body)
	}
	names, _ := catalog(t, h, key, "?search=/all")
	same(t, "catalog", names, admintest.OneSlug+"/all")
	for _, below := range []string{"GET capabilities", "GET metadata", "POST test"} {
		method, path, _ := strings.Cut(below, " ")
		h.Do(method, "/mcp-servers/all/"+path, key, nil).RequireFault(400, "AB01", "serverId")
	}
	h.Do("PUT", "/mcp-servers/all/user-access", key, `{"default_user_access":"deny"}`).OK()
}

func TestMembersOfVirtualServersCannotBeDeleted(t *testing.T) {
	t.Parallel()
	h := newServerInstallation(t)
	h.Do("POST", "/mcp-servers", key, bundled).OK()
	refused := h.Do("DELETE", "/mcp-servers/b-server", key, nil)
	if refused.Status != 409 || !strings.Contains(string(refused.Body), "All") {
		t.Errorf("%d %s", refused.Status, refused.Body)
	}
	h.Do("PUT", "/mcp-servers/all", key, `{"members":[{"server":"a-server"}]}`).OK()
	h.Do("DELETE", "/mcp-servers/b-server", key, nil).OK()
	if got := h.Do("GET", "/mcp-servers/all", key, nil).OK(); len(got.At("members").([]any)) != 1 || got.Text("search") != "always" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/mcp-servers/all", key, `{"search":"off","search_threshold":null}`).OK()
	h.Do("DELETE", "/mcp-servers/all", key, nil).OK()
	h.Do("DELETE", "/mcp-servers/a-server", key, nil).OK()
	h.Do("POST", "/mcp-servers", key, `{"name":"x","slug":"all","mcp_integration_id":"up"}`).OK() // the slug is free again
}

func TestInvalidVirtualServersAreRejected(t *testing.T) {
	t.Parallel()
	h := newServerInstallation(t)
	h.Do("POST", "/mcp-servers", key, bundled).OK()
	many := make([]string, 21)
	for i := range many {
		many[i] = fmt.Sprintf(`{"server":"s%d"}`, i)
	}
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "", `{"name":"x"}`, "mcp_integration_id"},
		{"POST", "", `{"name":"x","members":[]}`, "members"},
		{"POST", "", `{"name":"x","members":null}`, "members"},
		{"POST", "", `{"name":"x","members":[{}]}`, "members[0].server"},
		{"POST", "", `{"name":"x","members":[1]}`, "members[0]"},
		{"POST", "", `{"name":"x","members":{"server":"a-server"}}`, "members"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server","prefix":1}]}`, "members[0].prefix"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server","tools":"x"}]}`, "members[0].tools"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server","rename":{"x":1}}]}`, "members[0].rename.x"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server","prefix":"` + strings.Repeat("p", 65) + `"}]}`, "members[0].prefix"},
		{"POST", "", `{"name":"x","members":[` + strings.Join(many, ",") + `]}`, "members"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server"}],"mcp_integration_id":"up"}`, "members"},
		{"POST", "", `{"name":"x","members":[{"server":"all"}]}`, "members[0].server"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server"},{"server":"b-server"}]}`, "members[1].prefix"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server","rename":{"x":"search_tools"}}]}`, "members[0].rename.x"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server"}],"search":"maybe"}`, "search"},
		{"POST", "", `{"name":"x","members":[{"server":"a-server"}],"search_threshold":0}`, "search_threshold"},
		{"POST", "", `{"name":"x","mcp_integration_id":"up","search":"auto"}`, "search"},
		{"PUT", "/a-server", `{"members":[{"server":"b-server"}]}`, "members"},
		{"PUT", "/a-server", `{"search_threshold":2}`, "search_threshold"},
		{"PUT", "/all", `{"members":[]}`, "members"},
		{"PUT", "/all", `{"members":null}`, "members"},
		{"PUT", "/all", `{"members":[{"server":"all"}]}`, "members[0].server"},
	} {
		if got := h.Do(c.method, "/mcp-servers"+c.path, key, c.body); got.Status != 400 {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, got.Status, got.Body)
		} else {
			got.RequireFault(400, "AB01", c.field)
		}
	}
	// Foreign resources are indistinguishable from missing ones.
	one := func(server string) string {
		return strings.ReplaceAll(h.Do("POST", "/mcp-servers", key, fmt.Sprintf(`{"name":"x","members":[{"server":%q}]}`, server)).Comparable(), server, "S")
	}
	other := h.Do("GET", "/mcp-servers/c-server", admintest.WorkspaceB, nil).OK().Text("id")
	for _, foreign := range []string{"c-server", other} {
		if got, missing := one(foreign), one(resource.NewID()); got != missing || !strings.Contains(got, "members[0].server") {
			t.Errorf("%s\n%s", got, missing)
		}
	}
}
