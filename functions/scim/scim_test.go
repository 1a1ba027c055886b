package scim

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	chief = admintest.AdminKey
	at    = "/scim/workspaces"
)

func mapping(ws, role, group string) string {
	return fmt.Sprintf(`{"workspace_id":%q,"role":%q,%s}`, ws, role, group)
}

func named(name string) string { return fmt.Sprintf(`"scim_group_name":%q`, name) }

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	administration := *h // the protocol has separate callers
	administration.Families = slices.Clone(h.Families)
	of := &administration.Families[0]
	of.Routes = slices.DeleteFunc(slices.Clone(of.Routes), func(r admin.Route) bool { return r.Authenticate != nil })
	admintest.CheckFamily(t, &administration)
	id := h.Do("POST", at, chief, mapping(admintest.OneSlug, "member", named("Devs"))).OK().Text("id")
	foreign, missing := h.Do("DELETE", at+"/"+id, admintest.OtherAdmin, nil), h.Do("DELETE", at+"/"+resource.NewID(), admintest.OtherAdmin, nil)
	if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
		t.Errorf("%s\n%s", foreign.Comparable(), missing.Comparable())
	}
	for _, who := range []string{admintest.WorkspaceA, admintest.WsAdminKey} {
		h.Do("GET", at, who, nil).RequireFault(403, "AB03", "")
		h.Do("DELETE", at+"/"+id, who, nil).RequireFault(403, "AB03", "")
	}
	admintest.BadBodies(t, h, "POST", at, chief, mapping(admintest.OneSlug, "member", named("Others")))
}

func TestAnswersArePinned(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Golden(*update, "answers.txt", admintest.As(chief, "POST", at, mapping(admintest.OneSlug, "Member", named("Devs"))), admintest.As(chief, "GET", at, ""), admintest.As(chief, "GET", "/scim/groups", ""))
}

func TestAGroupGivesOneRole(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	first := h.Do("POST", at, chief, mapping(h.One, "manager", named("Devs"))).OK()
	group := first.Text("scim_group_id")
	byID := fmt.Sprintf(`"scim_group_id":%q`, group)
	h.Do("POST", at, chief, mapping(h.Two, "member", byID)).RequireFault(409, "AB07", "role")
	h.Do("POST", at, chief, mapping(h.One, "manager", named("Devs"))).RequireFault(409, "AB07", "workspace_id")
	second := h.Do("POST", at, chief, mapping(admintest.TwoSlug, "MANAGER", byID)).OK()
	if second.Text("workspace_id") != h.Two || second.Text("role") != "manager" || second.Text("scim_group") != "Devs" {
		t.Errorf("%s", second.Body)
	}
	for query, want := range map[string]float64{"": 2, "?workspace_id=" + h.One: 1, "?workspace_id=" + admintest.TwoSlug: 1, "?workspace_id=nope": 0, "?scim_group_id=" + group: 2, "?role=member": 0, "?page=1&page_size=1": 2} {
		got := h.Do("GET", at+query, chief, nil).OK()
		if got.At("total_count") != want {
			t.Errorf("%s: %s", query, got.Body)
		}
	}
	for _, id := range []string{first.Text("id"), second.Text("id")} {
		if got := h.Do("DELETE", at+"/"+id, chief, nil).OK(); got.At("success") != true {
			t.Errorf("%s", got.Body)
		}
		h.Do("DELETE", at+"/"+id, chief, nil).RequireFault(404, "AB08", "mappingId")
	}
	// Without mappings a group may give another role, also where it was mapped before.
	h.Do("POST", at, chief, mapping(h.One, "admin", byID)).OK()
	if got := h.Do("GET", "/scim/groups?search=dev", chief, nil).OK(); got.At("total") != 1.0 || got.Text("data", "0", "role") != "admin" || got.At("data", "0", "mappings") != 1.0 {
		t.Errorf("%s", got.Body)
	}
}

func TestMappingsAreCheckedWhenMade(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for body, field := range map[string]string{
		mapping(h.One, "owner", named("G")):                                            "role",
		mapping(h.Three, "member", named("G")):                                         "workspace_id",
		mapping("nope", "member", named("G")):                                          "workspace_id",
		mapping(h.One, "member", named("ws-Team-role-admin")):                          "scim_group_name",
		mapping(h.One, "member", named("   ")):                                         "scim_group_name",
		mapping(h.One, "member", `"scim_group_id":null`):                               "scim_group_id",
		mapping(h.One, "member", named("G")+`,"x":1`):                                  "x",
		mapping(h.One, "member", named("G")+`,"scim_group_id":"`+resource.NewID()+`"`): "scim_group_id",
		mapping(h.One, "member", `"scim_group_id":"`+resource.NewID()+`"`):             "scim_group_id",
		`{"role":5}`: "workspace_id",
	} {
		h.Do("POST", at, chief, body).RequireFault(400, "AB01", field)
	}
	if got := h.Do("GET", "/scim/groups", chief, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("a refused call left a group: %s", got.Body)
	}
}

// Of two calls at the same time that give a group different roles one is rejected.
func TestTwoRolesAtTheSameTime(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := map[int]int{}
	for i := range 8 {
		wg.Go(func() {
			ws, role := h.One, "member"
			if i%2 == 1 {
				ws, role = h.Two, "admin"
			}
			got := h.Do("POST", at, chief, mapping(ws, role, named("Devs")))
			mu.Lock()
			done[got.Status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if done[200] != 1 || done[409] != 7 {
		t.Errorf("%v", done)
	}
}
