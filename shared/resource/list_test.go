package resource

import (
	"context"
	"fmt"
	"testing"
)

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
