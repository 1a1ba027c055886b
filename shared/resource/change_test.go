package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/fault"
	"gateway/shared/store"
)

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
	// Archived and deleted records free capacity.
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
	if err := r.Change(ctx, scopeO, func(tx *Tx) error { return tx.RemoveUse(used.Ref(), user.Ref()) }); err != nil {
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
			if err := Schedule(tx, "expire", at, Ref{Scope: scopeA, Kind: widget, ID: fmt.Sprint(h)}); err != nil {
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
		return Unschedule(tx, "expire", base, Ref{Scope: scopeA, Kind: widget, ID: "0"})
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
