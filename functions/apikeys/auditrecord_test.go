package apikeys

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/testkit/admintest"
)

func TestAuditRecordsNameTheTypeOfTheKey(t *testing.T) {
	h := newInstallation(t)
	user := addUser(t, h, "ann@example.com", "member", h.One)
	for path, sent := range map[string]string{
		"workspace/service":    body(h, ""),
		"workspace/user":       body(h, fmt.Sprintf(`"user_id":%q`, user)),
		"organisation/service": `{"name":"k","scopes":["configs.list"]}`,
	} {
		id := h.Do("POST", "/api-keys/"+path, admintest.AdminKey, sent).OK().Text("id")
		h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"description":"d"}`).OK()
		h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"scopes":["no.such"]}`).RequireFault(400, "AB01", "scopes[0]")
		h.Do("DELETE", "/api-keys/"+id, admintest.AdminKey, nil).OK()
		want, n := strings.ReplaceAll(path, "/", "_")+"_api_keys", 0
		for _, e := range h.Audit() {
			if e.ResourceID != id {
				continue
			}
			if n++; e.ResourceType != want {
				t.Errorf("%s of %s: resource type %q, want %q", e.Action, path, e.ResourceType, want)
			}
		}
		if n != 4 {
			t.Errorf("%s: %d records, want 4", path, n)
		}
	}
}

func TestAuditRecordOfAManualRotation(t *testing.T) {
	h := newInstallation(t)
	made := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK()
	id, raw := made.Text("id"), made.Text("key")
	rotated := h.Do("POST", "/api-keys/"+id+"/rotate", admintest.AdminKey, nil).OK()
	until, err := time.Parse(time.RFC3339, rotated.Text("key_transition_expires_at"))
	if err != nil {
		t.Fatal(err)
	}
	h.Do("POST", "/api-keys/"+id+"/rotate", admintest.AdminKey, nil).RequireFault(409, "AB07", "")
	var details []map[string]string
	for _, e := range h.Audit() {
		if e.Action == "rotate" {
			details = append(details, e.Details)
		}
		if text := fmt.Sprint(e); strings.Contains(text, raw) || strings.Contains(text, rotated.Text("key")) {
			t.Errorf("a raw key is in the audit log: %s", text)
		}
	}
	if len(details) != 2 {
		t.Fatalf("%d rotations", len(details))
	}
	slices.SortFunc(details, func(a, b map[string]string) int { return len(b) - len(a) })
	want := map[string]string{
		"api_key_id": id, "rotation_mode": "manual", "old_key_masked": raw[:2] + "*******" + raw[len(raw)-2:],
		"transition_expires_at": until.UTC().Format(time.RFC3339),
	}
	if got := details[0]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("details %v, want %v", got, want)
	}
	if len(details[1]) != 0 {
		t.Errorf("a refused rotation has the details %v", details[1])
	}
}

func TestAMissingWorkspaceIsReportedWithTheOtherErrors(t *testing.T) {
	h := newInstallation(t)
	a := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, `{"name":5}`)
	for _, field := range []string{"workspace_id", "name", "scopes"} {
		a.RequireFault(400, "AB01", field)
	}
	// A key of the organization needs none; one that is named is rejected, whatever it is.
	h.Do("POST", "/api-keys/organisation/service", admintest.AdminKey, `{"name":"k","scopes":["configs.list"]}`).OK()
	h.Do("POST", "/api-keys/organisation/service", admintest.AdminKey, `{"name":"k","scopes":["configs.list"],"workspace_id":"no-such"}`).RequireFault(400, "AB01", "workspace_id")
	h.Do("POST", "/api-keys/organisation/service", admintest.WorkspaceA, `{"name":"k","scopes":["configs.list"]}`).RequireFault(403, "AB03", "")
	h.Do("POST", "/api-keys/organisation/user", admintest.AdminKey, body(h, "")).RequireFault(400, "AB01", "type")
}
