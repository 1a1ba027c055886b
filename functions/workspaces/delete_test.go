package workspaces

import (
	"context"
	"testing"

	"gateway/shared/app/notices"
	"gateway/shared/identity/membership"
	"gateway/shared/ledger"
	"gateway/shared/observe"
	"gateway/shared/prompt"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage/export/exportrow"
)

// Things that work by themselves end with their workspace: webhooks, telemetry, policies,
// exports that are being written, groups that join it. Those of another workspace stay.
func TestNothingOfADeletedWorkspaceGoesOn(t *testing.T) {
	h := newInstallation(t)
	ctx := context.Background()
	org := store.Scope{Org: admintest.Org}
	kinds := []resource.Kind{notices.KindWebhook, observe.KindDestination, ledger.KindUsagePolicy, ledger.KindRatePolicy, prompt.KindCollection, prompt.KindLabel, exportrow.Kind}
	fill := func(ws string) {
		sc := store.Scope{Org: admintest.Org, Workspace: ws}
		err := h.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
			for _, k := range kinds {
				rec := resource.Record{Scope: sc, Kind: k, ID: "x-" + ws, Name: "x", Status: "active", Body: []byte("{}")}
				if err := tx.Create(&rec); err != nil {
					return err
				}
			}
			row := store.Row{Key: exportrow.Run(sc, "x-"+ws), Item: store.Item{"run": []byte("{}"), "version": int64(1)}}
			tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: row}}, nil)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = h.Resources.Change(ctx, org, func(tx *resource.Tx) error {
			of, g, err := membership.NewGroup(tx, org, "group of "+ws, "", "a test")
			if err != nil {
				return err
			}
			return membership.MapByName(tx, of, g, ws, "member", false, "a test")
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	left := func(ws string) (n int) {
		sc := store.Scope{Org: admintest.Org, Workspace: ws}
		for _, k := range append(kinds, membership.KindMapping) {
			in := sc
			if k == membership.KindMapping {
				in = org
			}
			rows, err := h.Resources.List(ctx, in, k)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				if k != membership.KindMapping || rows[i].Fields[membership.FieldWorkspace] == ws {
					n++
				}
			}
		}
		if _, there, err := h.Resources.Store().Table(store.Control).Get(ctx, exportrow.Run(sc, "x-"+ws), true); err != nil || there {
			n++
		}
		return n
	}
	fill(h.One)
	fill(h.Two)
	all := len(kinds) + 2
	if left(h.One) != all || left(h.Two) != all {
		t.Fatal(left(h.One), left(h.Two))
	}
	h.Do("DELETE", "/workspaces/"+h.One, key, `{"name":"One"}`).RequireFault(409, "AB07", "")
	if left(h.One) != all {
		t.Errorf("a refused deletion leaves %d of %d", left(h.One), all)
	}
	h.Do("DELETE", "/workspaces/"+h.One, key, `{"name":"One","force_delete":true}`).OK()
	if rec, ok, err := h.Resources.Get(ctx, org, tenant.KindWorkspace, h.One); err != nil || !ok || !rec.Archived() {
		t.Error("the workspace is not archived", err)
	}
	if left(h.One) != 0 || left(h.Two) != all {
		t.Errorf("%d outlive their workspace, %d of %d of another one's", left(h.One), left(h.Two), all)
	}
}
