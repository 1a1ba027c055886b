package assembly_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gateway/shared/testkit/admintest/drive"
)

// A dry run of any deletion writes nothing, lists what is to be deleted, and says whether the
// deletion itself is rejected.
func TestDryRunsOfDeletionsWriteNothing(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	tried := 0
	for _, op := range e.doc.Operations {
		if op.Alias || op.Method != "DELETE" || !slices.ContainsFunc(op.Query, func(p drive.Param) bool { return p.Name == "dry_run" }) {
			continue
		}
		if n := strings.LastIndex(op.Path, "/{"); n >= 0 {
			e.w.InvalidateIn(op.Path[:n])
		}
		path, sent, err := once(e.w, op, places(e.w, op)[0])
		if err != nil {
			t.Errorf("%s %s: %v", op.Method, op.Path, err)
			continue
		}
		var body []byte
		if op.Body != nil {
			if body, err = json.Marshal(sent); err != nil {
				t.Fatal(err)
			}
		}
		dry := path + "?dry_run=true"
		if strings.Contains(path, "?") {
			dry = path + "&dry_run=true"
		}
		done := e.rows.changes()
		got := e.send("DELETE", dry, rootKey, body)
		if e.rows.changes() != done {
			t.Errorf("a dry run of DELETE %s writes", op.Path)
		}
		var out struct {
			Would *struct {
				Blocked *string
				Deletes []any
				Changes []any
				UsedBy  []any `json:"used_by"`
			} `json:"dry_run"`
		}
		if got.Code == 400 && e.send("DELETE", path, rootKey, body).Code == 400 {
			continue // such as the connection of a user, with a key without one
		}
		if err := json.Unmarshal(got.Body.Bytes(), &out); err != nil || got.Code != 200 || out.Would == nil {
			t.Errorf("DELETE %s: %d %.300s", dry, got.Code, got.Body)
			continue
		}
		tried++
		real := e.send("DELETE", path, rootKey, body)
		if (real.Code < 300) != (out.Would.Blocked == nil) {
			t.Errorf("DELETE %s: %d %.200s, after the dry run %.300s", path, real.Code, real.Body, got.Body)
		}
		if real.Code < 300 && len(out.Would.Deletes)+len(out.Would.Changes) == 0 && !strings.HasSuffix(op.Path, "/connections") && !strings.HasSuffix(op.Path, "/tokens") {
			t.Errorf("DELETE %s: the dry run lists nothing: %s", path, got.Body)
		}
		if n := strings.LastIndex(op.Path, "/{"); n >= 0 {
			e.w.InvalidateIn(op.Path[:n])
		}
	}
	if tried < 20 {
		t.Errorf("%d deletions were tried", tried)
	}
}
