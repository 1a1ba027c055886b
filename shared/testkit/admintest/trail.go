package admintest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"gateway/shared/audit"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// trailTells compares each record that a test leaves with the state rebuilt from the audit log
// alone, with secrets masked.
func (h *House) trailTells() {
	h.t.Helper()
	h.Audit()
	ctx, reader := context.Background(), audit.NewReader(h.Store, time.Now)
	for _, sc := range []store.Scope{{Org: Org}, {Org: Org, Workspace: h.One}, {Org: Org, Workspace: h.Two}, {Org: OtherOrg}, {Org: OtherOrg, Workspace: h.Three}} {
		q := store.Query{Partition: sc.Partition()}
		for {
			page, err := h.Store.Table(store.Control).Query(ctx, q)
			if err != nil {
				h.t.Fatal(err)
			}
			for _, row := range page.Rows {
				kind, id, ok := strings.Cut(row.Key.SK(), "#")
				if ok && row.Item["row"] != nil && row.Item["rev"] != nil && !strings.Contains(id, "#") {
					h.trailTellsOf(ctx, reader, sc, resource.Kind(kind), id)
				}
			}
			if page.Next == "" {
				break
			}
			q.After = page.Next
		}
	}
}

func (h *House) trailTellsOf(ctx context.Context, reader *audit.Reader, sc store.Scope, kind resource.Kind, id string) {
	h.t.Helper()
	rec, ok, err := h.Resources.Get(ctx, sc, kind, id)
	if err != nil || !ok {
		h.t.Fatalf("%s %s cannot be read: %v", kind, id, err)
	}
	got, ok, err := reader.At(ctx, sc.Org, id, time.Now().Add(100*365*24*time.Hour), func(k resource.Kind, ws string) bool { return k == kind && ws == sc.Workspace })
	if err != nil {
		h.t.Fatal(err)
	}
	want := audit.StateOf(&resource.Changed{Record: rec})
	want.At = got.At
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || !ok || string(a) != string(b) {
		h.t.Errorf("the audit trail tells of %s %s\n%s\nand it is\n%s", kind, id, a, b)
	}
}
