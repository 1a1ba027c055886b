package resource

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

const widget Kind = "WIDGET"

var (
	scopeA = store.Scope{Org: "o1", Workspace: "w1"}
	scopeB = store.Scope{Org: "o1", Workspace: "w2"}
	scopeO = store.Scope{Org: "o1"}
)

// openStore opens an empty store for one test.
var openStore = func(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func create(t testing.TB, r *Resources, rec Record) Record {
	t.Helper()
	if rec.Kind == "" {
		rec.Kind = widget
	}
	err := r.Change(context.Background(), rec.Scope, func(tx *Tx) error {
		if err := tx.Create(&rec); err != nil {
			return err
		}
		tx.FirstVersion(&rec)
		return nil
	})
	if err != nil {
		t.Fatalf("create %q: %v", rec.Slug, err)
	}
	return rec
}

// edit changes a record by id or slug.
func edit(r *Resources, sc store.Scope, id string, f func(*Tx, *Record) error) error {
	return r.Change(context.Background(), sc, func(tx *Tx) error {
		rec, ok, err := tx.Get(sc, widget, id)
		if err != nil || !ok {
			return fmt.Errorf("get %s: %v %w", id, ok, err)
		}
		return f(tx, &rec)
	})
}

func names(rows []Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

func mustList(t testing.TB, r *Resources, sc store.Scope) []Row {
	t.Helper()
	rows, err := r.List(context.Background(), sc, widget)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

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

func TestListIsNewestFirstAndFollowsChanges(t *testing.T) {
	for _, opts := range [][]Option{nil, {Embedded()}} {
		r := New(openStore(t), opts...)
		for i := range 5 {
			create(t, r, Record{Scope: scopeA, Name: fmt.Sprint(i), Status: "active", Fields: map[string]string{"n": fmt.Sprint(i)}})
		}
		rows := mustList(t, r, scopeA)
		if got := names(rows); got != "4 3 2 1 0" {
			t.Fatalf("list: %s", got)
		}
		if rows[0].Created.IsZero() || rows[0].Fields["n"] != "4" {
			t.Errorf("row lacks its fields: %+v", rows[0])
		}
		if err := edit(r, scopeA, rows[1].ID, func(tx *Tx, rec *Record) error { rec.Name = "three"; return tx.Update(rec) }); err != nil {
			t.Fatal(err)
		}
		if err := edit(r, scopeA, rows[2].ID, func(tx *Tx, rec *Record) error { return tx.Delete(rec) }); err != nil {
			t.Fatal(err)
		}
		if err := edit(r, scopeA, rows[3].ID, func(tx *Tx, rec *Record) error { return tx.Archive(rec) }); err != nil {
			t.Fatal(err)
		}
		if got := names(mustList(t, r, scopeA)); got != "4 three 0" {
			t.Errorf("list after changes: %s", got)
		}
		old, err := r.ListArchived(context.Background(), scopeA, widget)
		if err != nil || names(old) != "1" {
			t.Errorf("archived: %s %v", names(old), err)
		}
	}
}

func TestListOfAnotherWriterIsSeen(t *testing.T) {
	s := openStore(t)
	r1, r2 := New(s), New(s)
	create(t, r1, Record{Scope: scopeA, Name: "a"})
	if got := names(mustList(t, r2, scopeA)); got != "a" {
		t.Fatal(got)
	}
	create(t, r1, Record{Scope: scopeA, Name: "b"})
	if got := names(mustList(t, r2, scopeA)); got != "b a" {
		t.Errorf("a list cached under an older generation was given: %s", got)
	}
}

func TestArchivedRecordKeepsItsSlugUnlessFreed(t *testing.T) {
	r := New(openStore(t))
	kept := create(t, r, Record{Scope: scopeA, Slug: "kept", Name: "Kept", Status: "active"})
	freed := create(t, r, Record{Scope: scopeA, Slug: "same", Name: "Freed", Status: "active"})
	if err := edit(r, scopeA, kept.ID, func(tx *Tx, rec *Record) error { return tx.Archive(rec) }); err != nil {
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

func TestVersionsKeepTheirContentAndGoWithTheirRecord(t *testing.T) {
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

func TestConcurrentUpdatesAreAllApplied(t *testing.T) {
	s := openStore(t)
	r := New(s)
	rec := create(t, r, Record{Scope: scopeA, Name: "n", Fields: map[string]string{"n": ""}})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			err := edit(New(s), scopeA, rec.ID, func(tx *Tx, rec *Record) error {
				rec.Fields["n"] += "x"
				return tx.Update(rec)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, _, _ := r.Get(context.Background(), scopeA, widget, rec.ID)
	if got.Fields["n"] != strings.Repeat("x", 16) || got.Rev != 17 {
		t.Errorf("updates were lost: %q at rev %d", got.Fields["n"], got.Rev)
	}
	if n, _ := r.Generation(context.Background(), "o1"); n != 17 {
		t.Errorf("generation %d after 17 changes", n)
	}
}

func TestQuotaHoldsUnderConcurrentCreates(t *testing.T) {
	s := openStore(t)
	r := New(s, Quota(func(store.Scope, Kind) int64 { return 10 }))
	var wg sync.WaitGroup
	var mu sync.Mutex
	full := 0
	for i := range 24 {
		wg.Go(func() {
			err := r.Change(context.Background(), scopeA, func(tx *Tx) error {
				return tx.Create(&Record{Scope: scopeA, Kind: widget, Name: fmt.Sprint(i)})
			})
			if err != nil && !fault.Is(err, fault.QuotaReached) {
				t.Error(err)
			}
			if err != nil {
				mu.Lock()
				full++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	rows := mustList(t, r, scopeA)
	if len(rows) != 10 || full != 14 {
		t.Fatalf("%d created, %d refused; want 10 and 14", len(rows), full)
	}
	// Archived and deleted records make room.
	if err := edit(r, scopeA, rows[0].ID, func(tx *Tx, rec *Record) error { return tx.Archive(rec) }); err != nil {
		t.Fatal(err)
	}
	if err := edit(r, scopeA, rows[1].ID, func(tx *Tx, rec *Record) error { return tx.Delete(rec) }); err != nil {
		t.Fatal(err)
	}
	create(t, r, Record{Scope: scopeA, Name: "n"})
	create(t, r, Record{Scope: scopeA, Name: "n"})
	err := edit(r, scopeA, rows[0].ID, func(tx *Tx, rec *Record) error { rec.Status = ""; return tx.Update(rec) })
	if !fault.Is(err, fault.QuotaReached) {
		t.Errorf("an archived record came back into a full place: %v", err)
	}
}

func TestUsedRecordIsNotDeletedAndItsUsersAreNamed(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	used := create(t, r, Record{Scope: scopeA, Slug: "u", Name: "Used"})
	user := create(t, r, Record{Scope: scopeO, Kind: "WORKSPACE", Name: "Team"})
	use := func(tx *Tx) error { return tx.Use(used.Ref(), user.Ref()) }
	if err := r.Change(ctx, scopeO, use); err != nil {
		t.Fatal(err)
	}
	remove := func() error {
		return edit(r, scopeA, "u", func(tx *Tx, rec *Record) error {
			if err := tx.RefuseIfUsed(rec.Ref()); err != nil {
				return err
			}
			return tx.Delete(rec)
		})
	}
	if err := remove(); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), `workspace "Team"`) {
		t.Errorf("delete of a used record: %v", err)
	}
	if err := r.Change(ctx, scopeO, func(tx *Tx) error { return tx.Unuse(used.Ref(), user.Ref()) }); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Errorf("delete of a record that is not used any more: %v", err)
	}
	if err := r.Change(ctx, scopeO, use); err == nil {
		t.Error("a record that does not exist can be used")
	}
}

func TestUseThatRacesWithDeleteIsSeenByOneOfThem(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	used := create(t, r, Record{Scope: scopeA, Slug: "u", Name: "Used"})
	raced := false
	err := edit(r, scopeA, "u", func(tx *Tx, rec *Record) error {
		if err := tx.RefuseIfUsed(rec.Ref()); err != nil {
			return err
		}
		if !raced { // between the check and the commit
			raced = true
			if err := r.Change(ctx, scopeA, func(tx *Tx) error { return tx.Use(used.Ref(), Ref{Scope: scopeA, Kind: "KEY", ID: "k"}) }); err != nil {
				t.Fatal(err)
			}
		}
		return tx.Delete(rec)
	})
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a record was deleted under its new user: %v", err)
	}
}

func TestChangeIsAllOrNothingAndSeesItself(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	boom := errors.New("boom")
	err := r.Change(ctx, scopeA, func(tx *Tx) error {
		rec := Record{Scope: scopeA, Kind: widget, Name: "a"}
		if err := tx.Create(&rec); err != nil {
			return err
		}
		got, ok, err := tx.Get(scopeA, widget, rec.ID)
		if err != nil || !ok || got.Name != "a" {
			t.Errorf("a change does not see what it created: %v %v", ok, err)
		}
		got.Name = "b"
		if err := tx.Update(&got); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) || len(mustList(t, r, scopeA)) != 0 {
		t.Errorf("a failed change: %v, left %v", err, mustList(t, r, scopeA))
	}
	err = r.Change(ctx, scopeA, func(tx *Tx) error {
		rec := Record{Scope: scopeA, Kind: widget, Slug: "x", Name: "a"}
		if err := tx.Create(&rec); err != nil {
			return err
		}
		rec.Name = "b"
		return tx.Update(&rec)
	})
	if got := names(mustList(t, r, scopeA)); err != nil || got != "b" {
		t.Errorf("create and update in one change: %s %v", got, err)
	}
	if n, _ := r.Generation(ctx, "o1"); n != 1 {
		t.Errorf("generation %d after one change", n)
	}
	if err := r.Change(ctx, scopeA, func(*Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n, _ := r.Generation(ctx, "o1"); n != 1 {
		t.Error("an empty change moved the generation")
	}
}

func TestChangeOutOfItsBoundsIsRefused(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	err := r.Change(ctx, scopeA, func(tx *Tx) error {
		return tx.Create(&Record{Scope: store.Scope{Org: "o2"}, Kind: widget, Name: "a"})
	})
	if err == nil {
		t.Error("a change reached another organisation")
	}
	err = r.Change(ctx, scopeA, func(tx *Tx) error {
		for range 60 {
			if err := tx.Create(&Record{Scope: scopeA, Kind: widget, Name: "a"}); err != nil {
				return err
			}
		}
		return nil
	})
	if f := fault.From(err); f == nil || f.Status() != 400 {
		t.Errorf("a change of more than 100 rows: %v", err)
	}
	err = r.Change(ctx, scopeA, func(tx *Tx) error {
		return tx.Create(&Record{Scope: scopeA, Kind: widget, Name: "a", Body: make([]byte, 401<<10)})
	})
	if f := fault.From(err); f == nil || f.Status() != 400 {
		t.Errorf("a record over 400 KB: %v", err)
	}
}

func TestDueRowsAreFoundByTheirHourUntilDone(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	base := time.Date(2026, 1, 31, 22, 30, 0, 0, time.UTC)
	err := r.Change(ctx, scopeA, func(tx *Tx) error {
		for _, h := range []int{0, 1, 2, 5} {
			at := base.Add(time.Duration(h) * time.Hour)
			if err := tx.Due("expire", at, Ref{Scope: scopeA, Kind: widget, ID: fmt.Sprint(h)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	due := func() (out []string) {
		err := r.EachDue(ctx, "expire", base, base.Add(3*time.Hour), func(d Due) error {
			out = append(out, d.Of.ID)
			if d.Of.Scope != scopeA || d.Of.Kind != widget {
				t.Errorf("due row names %+v", d.Of)
			}
			if d.Of.ID == "1" {
				return r.Done(ctx, d)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if diff := cmp.Diff([]string{"0", "1", "2"}, due()); diff != "" {
		t.Error(diff)
	}
	err = r.Change(ctx, scopeA, func(tx *Tx) error {
		return tx.Undue("expire", base, Ref{Scope: scopeA, Kind: widget, ID: "0"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2"}, due()); diff != "" {
		t.Error(diff)
	}
}

func TestOutboxMessageIsStoredWithItsChangeAndHandedOn(t *testing.T) {
	s := openStore(t)
	r := New(s)
	var sent []Message
	r.OnOutbox(func(_ context.Context, ms []Message) { sent = append(sent, ms...) })
	err := r.Change(context.Background(), scopeA, func(tx *Tx) error {
		tx.Outbox("audit", []byte("hello"))
		return tx.Create(&Record{Scope: scopeA, Kind: widget, Name: "a"})
	})
	if err != nil || len(sent) != 1 {
		t.Fatalf("%d messages, %v", len(sent), err)
	}
	page, err := s.Table(store.Control).Query(context.Background(), store.Query{Partition: OutboxPartition(sent[0].Shard)})
	if err != nil || len(page.Rows) != 1 {
		t.Fatalf("outbox: %d rows, %v", len(page.Rows), err)
	}
	if diff := cmp.Diff(sent[0], DecodeMessage(sent[0].Shard, page.Rows[0])); diff != "" {
		t.Error(diff)
	}
}
