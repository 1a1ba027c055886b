package auditlogs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// Resources with the same id in several workspaces are distinguished by the workspace.
func TestOneIDInSeveralWorkspaces(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for _, ws := range []string{h.One, h.Two} {
		sc := store.Scope{Org: admintest.Org, Workspace: ws}
		rec := resource.Record{Scope: sc, Kind: "WORKSPACE_SETTINGS", ID: "settings", Name: ws, Status: "active", Body: []byte(`{}`)}
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
			t.Fatal(err)
		}
	}
	h.Audit()
	for _, ws := range []string{h.One, h.Two} {
		a := h.Do("GET", "/audit-logs/state?type=workspace_settings&id=settings&workspace_id="+ws, admintest.AdminKey, nil).OK()
		if a.Text("workspace_id") != ws || a.Text("name") != ws {
			t.Errorf("%s: %s", ws, a.Body)
		}
	}
}

// A record that is too large to send is reported without its body; a large one that fits is
// reported completely.
func TestLargeResourcesInTheAuditLog(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	noise := make([]byte, 0, 300<<10)
	for i := 0; len(noise) < 290<<10; i++ {
		noise = fmt.Appendf(noise, "%x ", uint64(i)*0x9e3779b97f4a7c15)
	}
	for name, c := range map[string]struct {
		text string
		cut  bool
	}{"even": {strings.Repeat("even ", 50<<10), false}, "noise": {string(noise), true}} {
		rec := resource.Record{Scope: sc, Kind: "THING", ID: resource.NewID(), Name: name, Status: "active", Body: fmt.Appendf(nil, `{"text":%q}`, c.text)}
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h.Audit()
		a := h.Do("GET", "/audit-logs/state?type=thing&id="+rec.ID, admintest.AdminKey, nil).OK()
		if cut := a.At("resource_cut") == true; cut != c.cut || !cut && a.Text("resource", "text") != c.text {
			t.Errorf("%s: cut %t, %d bytes", name, cut, len(a.Body))
		}
		// The audit log cannot report the truncated part, so the record is deleted.
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Delete(&rec) }); err != nil {
			t.Fatal(err)
		}
	}
}
