package resource

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

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
