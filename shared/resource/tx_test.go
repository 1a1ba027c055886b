package resource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/fault"
	"gateway/shared/store"
)

func TestRecordIsFoundByIDAndSlugAsItWasStored(t *testing.T) {
	r := New(openStore(t))
	rec := create(t, r, Record{Scope: scopeA, Slug: "w-one", Name: "One", Status: "active", CreatedBy: "k1", UpdatedBy: "k1",
		Tags: map[string]string{"team": "a"}, Fields: map[string]string{"provider": "x"}, Body: []byte(`{"a":1}`)})
	for _, id := range []string{rec.ID, "w-one"} {
		got, ok, err := r.Get(context.Background(), scopeA, widget, id)
		if err != nil || !ok {
			t.Fatalf("get %s: %v %v", id, ok, err)
		}
		if diff := cmp.Diff(rec, got, cmp.AllowUnexported(Record{})); diff != "" {
			t.Errorf("by %s (-stored +read):\n%s", id, diff)
		}
	}
	if rec.Version != 1 || rec.Rev != 1 || rec.VersionID == "" || rec.Created.IsZero() {
		t.Errorf("create did not fill the record: %+v", rec)
	}
}

func TestRecordsOfOtherScopesAndOddIDsAreNotFound(t *testing.T) {
	r := New(openStore(t))
	rec := create(t, r, Record{Scope: scopeA, Slug: "s", Name: "One"})
	for _, id := range []string{"", "nope", rec.ID + "#v000000001", "\x00", "\xff", strings.Repeat("x", 5000), "s\n"} {
		if _, ok, err := r.Get(context.Background(), scopeA, widget, id); ok || err != nil {
			t.Errorf("get %.20q: %v %v", id, ok, err)
		}
	}
	for _, sc := range []store.Scope{scopeB, scopeO, {Org: "o2", Workspace: "w1"}} {
		for _, id := range []string{rec.ID, "s"} {
			if _, ok, err := r.Get(context.Background(), sc, widget, id); ok || err != nil {
				t.Errorf("get %s in %v: %v %v", id, sc, ok, err)
			}
		}
	}
}

func TestSlugIsUniquePerScopeAndKind(t *testing.T) {
	r := New(openStore(t))
	one := create(t, r, Record{Scope: scopeA, Slug: "same", Name: "One"})
	create(t, r, Record{Scope: scopeB, Slug: "same", Name: "Other workspace"})
	create(t, r, Record{Scope: scopeA, Kind: "GADGET", Slug: "same", Name: "Other kind"})
	two := create(t, r, Record{Scope: scopeA, Slug: "two", Name: "Two"})

	err := r.Change(context.Background(), scopeA, func(tx *Tx) error {
		return tx.Create(&Record{Scope: scopeA, Kind: widget, Slug: "same", Name: "Again"})
	})
	wantSlugConflict(t, err)
	if got := names(mustList(t, r, scopeA)); got != "Two One" {
		t.Errorf("a refused create left rows: %s", got)
	}
	wantSlugConflict(t, edit(r, scopeA, two.ID, func(tx *Tx, rec *Record) error {
		rec.Slug = "same"
		return tx.Update(rec)
	}))
	// A renamed record frees its slug.
	if err := edit(r, scopeA, one.ID, func(tx *Tx, rec *Record) error { rec.Slug = "new"; return tx.Update(rec) }); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := r.Get(context.Background(), scopeA, widget, "same"); ok {
		t.Error("the old slug still names the record")
	}
	create(t, r, Record{Scope: scopeA, Slug: "same", Name: "Three"})
}

func wantSlugConflict(t *testing.T, err error) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Code != fault.Conflict || f.Field != "slug" || !strings.Contains(f.Message, "same") {
		t.Errorf("want a conflict that names the slug, got %v", err)
	}
}

func TestArchivedRecordRetainsItsSlugUnlessFreed(t *testing.T) {
	r := New(openStore(t))
	rec := create(t, r, Record{Scope: scopeA, Slug: "kept", Name: "Kept", Status: "active"})
	freed := create(t, r, Record{Scope: scopeA, Slug: "same", Name: "Freed", Status: "active"})
	if err := edit(r, scopeA, rec.ID, func(tx *Tx, rec *Record) error { return tx.Archive(rec) }); err != nil {
		t.Fatal(err)
	}
	if rec, ok, _ := r.Get(context.Background(), scopeA, widget, "kept"); !ok || !rec.Archived() {
		t.Error("an archived record is not found by its slug")
	}
	if err := edit(r, scopeA, freed.ID, func(tx *Tx, rec *Record) error { return tx.ArchiveAndFreeSlug(rec) }); err != nil {
		t.Fatal(err)
	}
	if rec, ok, _ := r.Get(context.Background(), scopeA, widget, freed.ID); !ok || rec.Slug != "same" {
		t.Error("an archived record lost its row or the memory of its slug")
	}
	revive := func(tx *Tx, rec *Record) error { rec.Status = "active"; return tx.Update(rec) }
	create(t, r, Record{Scope: scopeA, Slug: "same", Name: "Next", Status: "active"})
	wantSlugConflict(t, edit(r, scopeA, freed.ID, revive))
	if err := edit(r, scopeA, "same", func(tx *Tx, rec *Record) error { return tx.Delete(rec) }); err != nil {
		t.Fatal(err)
	}
	if err := edit(r, scopeA, freed.ID, revive); err != nil {
		t.Errorf("a record that comes back and takes its free slug: %v", err)
	}
	if got := names(mustList(t, r, scopeA)); got != "Freed" {
		t.Errorf("list: %s", got)
	}
}

func TestVersionsRetainTheirContentAndAreDeletedWithTheirRecord(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	rec := create(t, r, Record{Scope: scopeA, Slug: "v", Name: "V", Body: []byte("1")})
	for i := 2; i <= 12; i++ {
		err := edit(r, scopeA, "v", func(tx *Tx, rec *Record) error {
			rec.Body = fmt.Append(nil, i)
			tx.NewVersion(rec)
			return tx.Update(rec)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.Versions(ctx, scopeA, widget, rec.ID)
	if err != nil || len(all) != 12 {
		t.Fatalf("%d versions, %v", len(all), err)
	}
	for i, v := range all {
		if want := int64(12 - i); v.Version != want || string(v.Body) != fmt.Sprint(want) {
			t.Errorf("versions[%d] = %d %s", i, v.Version, v.Body)
		}
	}
	now, _, _ := r.Get(ctx, scopeA, widget, "v")
	if now.Version != 12 || now.VersionID != all[0].VersionID || all[0].VersionID == all[1].VersionID {
		t.Errorf("the record does not stand at its last version: %+v", now)
	}
	third, ok, err := r.Version(ctx, scopeA, widget, rec.ID, 3)
	if err != nil || !ok || string(third.Body) != "3" {
		t.Fatalf("version 3: %v %v", ok, err)
	}
	err = r.Change(ctx, scopeA, func(tx *Tx) error {
		third.Fields = map[string]string{"label": "prod"}
		return tx.UpdateVersion(&third)
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, _, _ := r.Version(ctx, scopeA, widget, rec.ID, 3); v.Fields["label"] != "prod" {
		t.Error("a version's fields were not written")
	}
	if err := edit(r, scopeA, "v", func(tx *Tx, rec *Record) error { return tx.Delete(rec) }); err != nil {
		t.Fatal(err)
	}
	if left, _ := r.Versions(ctx, scopeA, widget, rec.ID); len(left) != 0 {
		t.Errorf("%d versions outlived their record", len(left))
	}
}
