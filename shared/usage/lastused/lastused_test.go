package lastused_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage"
	"gateway/shared/usage/lastused"
)

// counting counts the writes to a table.
type counting struct {
	store.Store
	writes *int
}

func (c counting) Table(n store.TableName) store.Table {
	return countedTable{c.Store.Table(n), c.writes}
}

type countedTable struct {
	store.Table
	writes *int
}

func (t countedTable) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	*t.writes++
	return t.Table.Update(ctx, u)
}

func (t countedTable) Put(ctx context.Context, r store.Row, c ...store.Cond) error {
	*t.writes++
	return t.Table.Put(ctx, r, c...)
}

func TestTheLastUseIsTheLatestMinuteAndWrittenOnce(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	writes := 0
	now := time.Now().UTC().Truncate(time.Minute).Add(30 * time.Second)
	use := func(key string, at time.Time) usage.Record {
		return usage.Record{ID: "x", Org: "o", KeyID: key, KeyType: "workspace-service", Start: at}
	}
	r := lastused.NewRecorder(counting{s, &writes})
	batch := []usage.Record{use("a", now), use("a", now.Add(10*time.Second)), use("a", now.Add(-time.Hour)), use("b", now), {Org: "o", KeyID: "token", KeyType: "jwt", Start: now}, {Org: "o", Start: now}}
	r.Record(t.Context(), batch)
	first := writes
	r.Record(t.Context(), batch)
	if writes != first || first > 4 {
		t.Errorf("%d writes, then %d more for the same minute", first, writes-first)
	}
	lastused.NewRecorder(s).Record(t.Context(), []usage.Record{use("a", now.Add(-time.Hour)), use("b", now.Add(5*time.Minute))}) // another worker, late
	got, err := lastused.Times(t.Context(), s, "o", []string{"a", "b", "c", "token"})
	if err != nil || len(got) != 2 || !got["a"].Equal(now.Truncate(time.Minute)) || !got["b"].Equal(now.Truncate(time.Minute).Add(5*time.Minute)) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := lastused.Times(t.Context(), s, "other", []string{"a"}); err != nil || len(got) != 0 {
		t.Errorf("another organization: %v %v", got, err)
	}
}
