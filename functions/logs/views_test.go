package logs

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/testkit/admintest"
)

func newViewInstallation(t *testing.T) *admintest.Installation {
	return admintest.New(t, admin.Family{Name: "logs", Doc: "Logs.", Routes: views().Routes()})
}

func TestViewsAreSavedInAWorkspace(t *testing.T) {
	h := newViewInstallation(t)
	admintest.CheckFamily(t, h)
	admintest.BadBodies(t, h, "POST", "/views", admintest.WorkspaceA, `{"name":"Errors","page":"logs","query":"status_code=500"}`)
	id := h.Do("POST", "/views", admintest.WorkspaceA, `{"name":"Errors","page":"logs","query":"status_code=500&ai_model=a%20b"}`).OK().Text("id")
	got := h.Do("GET", "/views/"+id, admintest.MemberKey, nil).OK()
	if got.Text("name") != "Errors" || got.Text("page") != "logs" || got.Text("query") != "status_code=500&ai_model=a%20b" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", "/views/"+id, admintest.MemberKey, `{"query":""}`).RequireFault(403, "AB03", "")
	h.Do("DELETE", "/views/"+id, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
	own := h.Do("POST", "/views", admintest.MemberKey, `{"name":"Mine","page":"analytics","query":"group=model"}`).OK().Text("id")
	h.Do("PUT", "/views/"+own, admintest.MemberKey, `{"query":"group=user"}`).OK()
	h.Do("DELETE", "/views/"+own, admintest.MemberKey, nil).OK()
	h.Do("GET", "/views/"+id, admintest.WorkspaceB, nil).RequireFault(404, "AB08", "")
	for field, bad := range map[string]string{
		"page":  `{"name":"a","page":"keys","query":"a=b"}`,
		"query": `{"name":"a","page":"logs","query":"%zz"}`,
		"name":  `{"name":"` + strings.Repeat("a", 101) + `","page":"logs","query":""}`,
	} {
		h.Do("POST", "/views", admintest.WorkspaceA, bad).RequireFault(400, "AB01", field)
	}
	h.Do("POST", "/views", admintest.WorkspaceA, `{"name":"a","page":"logs","query":"`+strings.Repeat("a", 4097)+`"}`).RequireFault(400, "AB01", "query")
}

func TestViewsOfAWorkspaceAreLimited(t *testing.T) {
	h := newViewInstallation(t)
	for i := range maxViews {
		h.Do("POST", "/views", admintest.WorkspaceA, fmt.Sprintf(`{"name":"v%d","page":"logs","query":"a=b"}`, i)).OK()
	}
	if a := h.Do("POST", "/views", admintest.WorkspaceA, `{"name":"more","page":"logs","query":"a=b"}`); a.Status != 409 || !strings.Contains(string(a.Body), "200 saved views") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
