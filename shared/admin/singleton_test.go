package admin_test

import (
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// options are settings of which some are on unless they are set.
type options struct {
	Strict  bool   `json:"strict"`
	Loud    bool   `json:"loud,omitempty"`
	Level   string `json:"level,omitempty" enum:"low,high"`
	Most    int64  `json:"most,omitempty" min:"2" max:"9"`
	Locked  bool   `json:"locked,omitempty"` // workspaces set nothing of limits
	Private string `json:"private,omitempty"`
}

func (o *options) Validate() []fault.Detail {
	if o.Loud && o.Level == "low" {
		return []fault.Detail{{Field: "level", Message: "low is not loud"}}
	}
	return nil
}

func optionFamily() admin.Family {
	spaces := &admin.Collection[struct{}]{
		Kind: tenant.KindWorkspace, Object: "workspace", Path: "/workspaces", Scope: "workspaces", Level: admin.Shared, Fields: []admin.Field{admin.NameField(255)},
		Authorize: func(c *admin.Call, _ string, row *resource.Row) bool {
			return c.Caller.OfOrganisation() || c.Caller.Scope.Workspace == row.ID
		},
	}
	s := &admin.Singleton[options]{
		Object: "options", Path: "/options", Kind: "OPTIONS", Scope: "options", Role: admin.Admin, Title: "options of the organisation", Standard: options{Strict: true},
		Sections: []admin.Field{
			{Name: "sounds", Fields: []admin.Field{{Name: "loud", Absent: false}, {Name: "level", Absent: "high"}}},
			{Name: "limits", Fields: []admin.Field{{Name: "strict", Absent: false}, {Name: "maximum", In: "most"}}},
			{Name: "overrides", Fields: []admin.Field{{Name: "locked", Absent: false}}},
		},
		Overrides: &admin.Overrides[options]{Path: "/workspaces/{id}/options", Parent: spaces.AsWorkspace(), Kind: "OPTIONS", Scope: "options", Role: admin.Admin, Title: "options of a workspace",
			Overridable: func(member string) bool { return member != "locked" },
			Allowed:     func(of *options, member string) bool { return member == "loud" || member == "level" || !of.Locked }},
	}
	return admin.Family{Name: "options", Doc: "Options.", Routes: s.Routes()}
}

func TestOptionFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	admintest.CheckFamily(t, admintest.New(t, optionFamily()))
}

func TestNullIsTheStandardAndNotTheZeroOfATypeNorTrue(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, optionFamily())
	get := func() string {
		t.Helper()
		a := h.Do("GET", "/options", admintest.AdminKey, nil).OK()
		var out []string
		for _, path := range []string{"sounds.loud", "sounds.level", "limits.strict", "limits.maximum"} {
			b, _ := a.At(strings.Split(path, ".")...).(bool)
			switch v := a.At(strings.Split(path, ".")...).(type) {
			case nil:
				out = append(out, "null")
			case string:
				out = append(out, v)
			case float64:
				out = append(out, "number")
			default:
				out = append(out, map[bool]string{true: "yes", false: "no"}[b])
			}
		}
		return strings.Join(out, " ")
	}
	const standard = "no high yes null"
	for _, c := range []struct{ body, want string }{
		{`{"sounds":{"loud":true}}`, "yes high yes null"}, {`{"sounds":{"loud":null}}`, standard},
		{`{"limits":{"strict":false,"maximum":5}}`, "no high no number"}, {`{"limits":{"strict":null}}`, "no high yes number"}, {`{"limits":null}`, standard},
		{`{"sounds":{"level":"low"}}`, "no low yes null"}, {`{"sounds":null,"limits":null}`, standard},
	} {
		h.Do("PUT", "/options", admintest.AdminKey, c.body).OK()
		if got := get(); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	for body, field := range map[string]string{
		`{"sounds":{"level":"mid"}}`: "sounds.level", `{"limits":{"maximum":1}}`: "limits.maximum", `{"limits":{"most":5}}`: "limits.most", `{"sounds":{"private":"x"}}`: "sounds.private",
		`{"sounds":{"loud":true,"level":"low"}}`: "sounds.level", `{"sounds":[]}`: "sounds", `{}`: "",
	} {
		h.Do("PUT", "/options", admintest.AdminKey, body).RequireFault(400, "AB01", field)
	}
}

func TestAWorkspaceOverridesAndReportsTheSourceOfAValue(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, optionFamily())
	at := "/workspaces/" + h.One + "/options"
	want := func(path, value, origin string) {
		t.Helper()
		a := h.Do("GET", at, admintest.WorkspaceA, nil).OK()
		if got, _ := a.At(strings.Split(path, ".")...).(string); got != value || a.Text("origins", path) != origin {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	want("sounds.level", "high", "standard")
	h.Do("PUT", "/options", admintest.AdminKey, `{"sounds":{"level":"low"}}`).OK()
	want("sounds.level", "low", "organisation")
	h.Do("PUT", at, admintest.WsAdminKey, `{"sounds":{"level":"high"},"limits":{"maximum":3,"strict":false}}`).OK()
	want("sounds.level", "high", "workspace")
	if a := h.Do("GET", at, admintest.AdminKey, nil).OK(); a.At("limits", "strict") != false || a.Text("origins", "limits.strict") != "workspace" || a.Text("origins", "sounds.loud") != "standard" {
		t.Errorf("%s", a.Body)
	}
	if a := h.Do("GET", "/workspaces/"+h.Two+"/options", admintest.AdminKey, nil).OK(); a.Text("sounds", "level") != "low" || a.At("limits", "strict") != true {
		t.Errorf("another workspace: %s", a.Body)
	}
	// What the workspace sets and what it has of the organization must go together.
	h.Do("PUT", at, admintest.AdminKey, `{"sounds":{"level":null,"loud":true}}`).RequireFault(400, "AB01", "sounds.level")
	h.Do("PUT", at, admintest.AdminKey, `{"sounds":{"level":null}}`).OK()
	want("sounds.level", "low", "organisation")

	h.Do("PUT", at, admintest.AdminKey, `{"overrides":{"locked":false}}`).RequireFault(400, "AB01", "")
	h.Do("PUT", at, admintest.AdminKey, `{"overrides":{"locked":false},"sounds":{"level":"high"}}`).RequireFault(400, "AB01", "overrides")
	h.Do("PUT", "/options", admintest.AdminKey, `{"overrides":{"locked":true}}`).OK()
	h.Do("PUT", at, admintest.AdminKey, `{"limits":{"maximum":4}}`).RequireFault(400, "AB01", "limits.maximum")
	h.Do("PUT", at, admintest.AdminKey, `{"limits":null}`).RequireFault(400, "AB01", "limits")
	if a := h.Do("GET", at, admintest.AdminKey, nil).OK(); a.At("limits", "strict") != true || a.Text("origins", "limits.strict") != "standard" {
		t.Errorf("a section that was locked: %s", a.Body)
	}
	h.Do("PUT", at, admintest.MemberKey, `{"sounds":{"level":"high"}}`).RequireFault(403, "AB03", "")
	h.Do("PUT", "/options", admintest.WorkspaceA, `{"sounds":{"level":"high"}}`).RequireFault(403, "AB03", "")
	for _, method := range []string{"GET", "PUT"} {
		var body any
		if method == "PUT" {
			body = `{"sounds":{"level":"high"}}`
		}
		foreign, missing := h.Do(method, at, admintest.WorkspaceB, body), h.Do(method, "/workspaces/"+resource.NewID()+"/options", admintest.WorkspaceB, body)
		if foreign.Status != 404 || foreign.Comparable() != missing.Comparable() {
			t.Errorf("%s: %s", method, foreign.Body)
		}
	}
}
