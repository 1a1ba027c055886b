package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

const (
	scimType   = "application/scim+json"
	scimSchema = "urn:ietf:params:scim:api:messages:2.0:Error"
)

// scimFamily speaks another protocol: its own credential, media type, statuses
// and errors.
func scimFamily() admin.Family {
	text := admin.Schema{"type": "string"}
	user := admin.Closed(map[string]admin.Schema{"id": text, "userName": text})
	return admin.Family{
		Name: "scim", Doc: "Users of an identity provider.", Produces: scimType, Consumes: []string{scimType, "application/json"},
		Authenticate: func(_ context.Context, r *http.Request, _ string) (admin.Caller, error) {
			if r.Header.Get("Authorization") != "Bearer scim-token" {
				return admin.Caller{}, fault.New(fault.Unauthorized, "authorization", "Not the token of the organisation")
			}
			return admin.Caller{KeyID: "scim", Scope: store.Scope{Org: admintest.Org}, Scopes: admintest.ScopeList{"scim.users"}}, nil
		},
		Rejections: &admin.Rejections{ContentType: scimType,
			Schema: admin.Closed(map[string]admin.Schema{"schemas": {"type": "array", "items": text}, "status": text, "detail": text}),
			Body: func(_ *admin.Call, f *fault.Fault) any {
				return map[string]any{"schemas": []string{scimSchema}, "status": strconv.Itoa(f.Status()), "detail": f.Message}
			}},
		Routes: []admin.Route{
			{Method: "POST", Path: "/scim/Users", Name: "scimCreateUser", Doc: "Make a user.", Scopes: []string{"scim.users"}, Level: admin.InOrganisation, Action: "create", Resource: "scim",
				Body: []admin.Field{{Name: "userName", Type: admin.String, Required: true, Min: 1}}, Status: http.StatusCreated, Response: user,
				Do: func(c *admin.Call) (any, error) {
					return admin.Response{Header: http.Header{"Location": {"/v1/scim/Users/1"}}, JSON: map[string]any{"id": "1", "userName": c.Body.Text("userName")}}, nil
				}},
			{Method: "DELETE", Path: "/scim/Users/{id}", Name: "scimDeleteUser", Doc: "Delete a user.", Scopes: []string{"scim.users"}, Level: admin.InOrganisation, Action: "delete", Resource: "scim",
				Status: http.StatusNoContent, Do: func(c *admin.Call) (any, error) {
					if c.Param("id") != "1" {
						return nil, fault.New(fault.NotFound, "id", "No such user")
					}
					return nil, nil
				}},
			{Method: "PATCH", Path: "/scim/Users/{id}", Name: "scimPatchUser", Doc: "Patch a user.", Scopes: []string{"scim.users"}, Level: admin.InOrganisation, Action: "update", Resource: "scim",
				Body: []admin.Field{{Name: "Operations", Type: admin.Array, Required: true, Of: &admin.Field{Type: admin.Object, Open: true}}}, Response: user,
				Do: func(c *admin.Call) (any, error) {
					return map[string]any{"id": c.Param("id"), "userName": strconv.Itoa(len(c.Body.Objects("Operations")))}, nil
				}},
		},
	}
}

// fileFamily returns responses other than JSON: a table, and a redirect.
func fileFamily() admin.Family {
	route := admin.Route{Method: "GET", Scopes: []string{"logs.export"}, Level: admin.InWorkspace}
	table, login := route, admin.Route{Method: "GET", Path: "/login", Name: "login", Doc: "Go to the sign-in.", Public: true, Status: http.StatusFound}
	table.Path, table.Name, table.Doc, table.Produces = "/exports/{id}/download", "downloadExport", "Read an export.", "text/csv"
	table.Do = func(c *admin.Call) (any, error) {
		return admin.Response{Body: []byte("a,b\n1," + c.Param("id") + "\n"), Header: http.Header{"Content-Disposition": {"attachment"}}}, nil
	}
	login.Do = func(*admin.Call) (any, error) {
		return admin.Redirect(http.StatusFound, "https://idp.example.com/x"), nil
	}
	return admin.Family{Name: "files", Doc: "Files.", Routes: []admin.Route{table, login}}
}

func TestARouteMaySpeakAnotherProtocol(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, scimFamily(), fileFamily(), boxFamily())
	scim := func(method, path, token, media, body string) admintest.Response {
		t.Helper()
		r := httptest.NewRequest(method, "/v1"+path, strings.NewReader(body))
		r.Header.Set("Authorization", token)
		r.Header.Set("Content-Type", media)
		return h.Send(r)
	}
	const token = "Bearer scim-token"
	made := scim("POST", "/scim/Users", token, scimType, `{"userName":"ann"}`)
	if made.Status != 201 || made.Header.Get("Content-Type") != scimType || made.Text("userName") != "ann" || made.Header.Get("Location") == "" {
		t.Errorf("%d %v %s", made.Status, made.Header, made.Body)
	}
	if got := scim("DELETE", "/scim/Users/1", token, "", ""); got.Status != 204 || len(got.Body) != 0 || got.Header.Get("Content-Type") != "" {
		t.Errorf("%d %v %q", got.Status, got.Header, got.Body)
	}
	if got := scim("PATCH", "/scim/Users/7", token, "application/json", `{"Operations":[{},{"op":"add"}]}`); got.Status != 200 || got.Text("userName") != "2" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	for _, c := range []struct {
		method, path, token, media, body string
		status                           int
	}{
		{"POST", "/scim/Users", "Bearer other", scimType, `{"userName":"ann"}`, 401}, {"POST", "/scim/Users", token, scimType, `{"userName":5}`, 400},
		{"POST", "/scim/Users", token, "text/plain", `{"userName":"ann"}`, 400}, {"POST", "/scim/Users", token, scimType, `{`, 400},
		{"DELETE", "/scim/Users/2", token, "", "", 404},
	} {
		got := scim(c.method, c.path, c.token, c.media, c.body)
		if got.Status != c.status || got.Header.Get("Content-Type") != scimType || got.Text("status") != strconv.Itoa(c.status) || got.Text("schemas", "0") != scimSchema || got.Text("detail") == "" {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.Status, got.Body)
		}
	}
	h.Do("POST", "/scim/Users", admintest.AdminKey, `{"userName":"ann"}`) // a key is no token of this protocol
	if got := h.Do("POST", "/scim/Users", admintest.AdminKey, `{"userName":"ann"}`); got.Status != 401 {
		t.Errorf("an API key opens the other protocol: %d", got.Status)
	}
	if r := scim("GET", "/boxes", token, "", ""); r.Status != 401 {
		t.Errorf("the token opens the administration: %d", r.Status)
	}

	if got := h.Do("GET", "/exports/7/download", admintest.WorkspaceA, nil); got.Status != 200 || got.Header.Get("Content-Type") != "text/csv" || string(got.Body) != "a,b\n1,7\n" || got.Header.Get("Content-Disposition") == "" {
		t.Errorf("%d %v %s", got.Status, got.Header, got.Body)
	}
	h.Do("GET", "/exports/7/download", "", nil).RequireFault(401, "AB05", "")
	if got := h.Do("GET", "/login", "", nil); got.Status != 302 || got.Header.Get("Location") != "https://idp.example.com/x" || len(got.Body) != 0 {
		t.Errorf("%d %v %q", got.Status, got.Header, got.Body)
	}
}
