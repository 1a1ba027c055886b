package admin_test

import (
	"encoding/json"
	"testing"

	"gateway/shared/testkit/admintest"
)

// impactOf is the response of a dry run.
func impactOf(t *testing.T, a admintest.Response) (out struct {
	Blocked  *string
	UsedBy   []map[string]any `json:"used_by"`
	Deletes  []map[string]any
	Complete bool
}) {
	t.Helper()
	raw, err := json.Marshal(a.OK().At("dry_run"))
	if err != nil || json.Unmarshal(raw, &out) != nil {
		t.Fatalf("%s", a.Body)
	}
	return out
}

func TestADryRunDeletesNothingAndReportsTheImpact(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a"}`)
	records := len(h.Audit())
	for range 2 {
		got := impactOf(t, h.Do("DELETE", "/gadgets/"+id+"?dry_run=true", admintest.WorkspaceA, nil))
		if got.Blocked != nil || !got.Complete || len(got.Deletes) != 1 || got.Deletes[0]["id"] != id || got.Deletes[0]["type"] != "gadget" || got.Deletes[0]["name"] != "a" || got.Deletes[0]["workspace_id"] != h.One {
			t.Errorf("%+v", got)
		}
	}
	h.Do("GET", "/gadgets/"+id, admintest.WorkspaceA, nil).OK()
	if got := len(h.Audit()); got != records {
		t.Errorf("%d audit records of dry runs", got-records)
	}
	h.Do("DELETE", "/gadgets/"+id+"?dry_run=true", admintest.WorkspaceB, nil).RequireFault(404, "AB08", "")
	h.Do("DELETE", "/gadgets/"+id+"?dry_run=perhaps", admintest.WorkspaceA, nil).RequireFault(400, "AB01", "dry_run")
	h.Do("DELETE", "/gadgets/"+id+"?dry_run=false", admintest.WorkspaceA, nil).OK()
	h.Do("DELETE", "/gadgets/"+id+"?dry_run=true", admintest.WorkspaceA, nil).RequireFault(404, "AB08", "")
}
