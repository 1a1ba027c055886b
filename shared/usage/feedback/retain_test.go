package feedback

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/dynamotest"
	"gateway/shared/usage"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// nowhere is where no organization is.
var nowhere = Places{Organizations: func(context.Context, string, int) ([]string, error) { return nil, nil }}

// onEach runs a test on SQLite and on a DynamoDB.
func onEach(t *testing.T, f func(t *testing.T, s store.Store)) {
	t.Helper()
	day := func() time.Time { return noon }
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Clock: day})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		f(t, s)
	})
	t.Run("dynamo", func(t *testing.T) {
		t.Parallel()
		f(t, dynamotest.Open(t, dynamotest.Start(t), func(o *dynamo.Options) { o.Clock = day }))
	})
}

// killed is a store that stops writing transactions after a number of them.
type killed struct {
	store.Store
	left int
}

var errKilled = errors.New("the process died here")

func (k *killed) Transact(ctx context.Context, actions ...store.Action) error {
	if k.left--; k.left < 0 {
		return errKilled
	}
	return k.Store.Transact(ctx, actions...)
}

// rows counts the rows in the partition of a workspace.
func rows(t *testing.T, s store.Store, sc store.Scope) (n int) {
	t.Helper()
	q := store.Query{Partition: partition(sc)}
	for {
		page, err := s.Table(store.Usage).Query(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if n += len(page.Rows); page.Next == "" {
			return n
		}
		q.After = page.Next
	}
}

// Feedback of days beyond its workspace's retention is hidden immediately, and is deleted to
// the last row, however often the worker dies. That of another workspace and of later days
// remains.
func TestFeedbackGoesWithTheLogsOfItsDay(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		ctx, now := context.Background(), noon.AddDate(0, 0, -2)
		short, long := store.Scope{Org: "o", Workspace: "short"}, store.Scope{Org: "o", Workspace: "long"}
		retention := func(context.Context, store.Scope) (usage.WorkspaceRetention, error) {
			return usage.WorkspaceRetention{Standard: 30, Of: map[string]int{"short": 2}}, nil
		}
		open := func(s store.Store) *Store { return New(s, func() time.Time { return now }, 0, retention) }
		add := func(sc store.Scope, n int, trace string) {
			var all []Feedback
			for i := range n {
				all = append(all, Feedback{ID: fmt.Sprint(trace, i), Trace: trace, Value: 1, Weight: 1})
			}
			if err := open(s).Add(ctx, sc, all); err != nil {
				t.Fatal(err)
			}
		}
		const old = 3*perWrite + 5
		add(short, old, "old")
		add(long, 2, "other")
		now = noon
		add(short, 4, "new")
		shown := func(sc store.Scope, trace string) (ofTrace, between int) {
			t.Helper()
			list, err := open(s).OfTrace(ctx, sc, trace)
			if err != nil {
				t.Fatal(err)
			}
			err = open(s).Between(ctx, sc, noon.AddDate(0, 0, -9), noon.AddDate(0, 0, 9), func(*Feedback) bool { between++; return true })
			if err != nil {
				t.Fatal(err)
			}
			return len(list), between
		}
		if ofTrace, between := shown(short, "old"); ofTrace == 0 || between != old+4 {
			t.Fatalf("%d, %d are shown before their time is over", ofTrace, between)
		}
		now = noon.Truncate(24*time.Hour).AddDate(0, 0, 1).Add(-time.Millisecond)
		if err := open(s).Retain(ctx, nowhere); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, s, short); n != 3*(old+4) {
			t.Fatalf("%d rows, some were deleted before their time was over", n)
		}
		now = now.Add(time.Millisecond)
		for _, sc := range []store.Scope{short, long} {
			if ofTrace, between := shown(sc, "old"); ofTrace != 0 || between != map[string]int{"short": 4, "long": 2}[sc.Workspace] {
				t.Errorf("%s: %d, %d are shown when the time is over", sc.Workspace, ofTrace, between)
			}
		}
		if ok, err := open(s).Update(ctx, short, "old0", Change{Value: 3}); ok || err != nil {
			t.Errorf("what is not shown was changed: %v", err)
		}
		deaths := 0
		for err := errKilled; err != nil; {
			if err = open(&killed{s, 1}).Retain(ctx, nowhere); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			} else if err != nil {
				deaths++
			}
		}
		if n := rows(t, s, short); n != 3*4 || deaths < 3 {
			t.Errorf("%d rows are left after %d deaths", n, deaths)
		}
		if n := rows(t, s, long); n != 3*2 {
			t.Errorf("%d rows of the other workspace", n)
		}
	})
}

// Feedback stored before notes were written is deleted too: workspaces are scanned, some
// organizations in each call, and again a day later. Without a separate retention, no notes are
// written.
func TestFeedbackWithoutNotesGoes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s store.Store) {
		ctx, now := context.Background(), noon.AddDate(0, 0, -5)
		days := map[string]int{"a": 2, "c": 2}
		r := New(s, func() time.Time { return now }, 0, func(_ context.Context, sc store.Scope) (usage.WorkspaceRetention, error) {
			return usage.WorkspaceRetention{Standard: days[sc.Org]}, nil
		})
		all := []string{"a", "b", "c"}
		at := Places{
			Organizations: func(_ context.Context, after string, most int) (list []string, err error) {
				for _, org := range all {
					if org > after && len(list) < most {
						list = append(list, org)
					}
				}
				return list, nil
			},
			Workspaces: func(context.Context, string) ([]string, error) { return []string{"w1", "w2"}, nil },
		}
		left := func() (list []int) {
			for _, org := range all {
				list = append(list, rows(t, s, store.Scope{Org: org, Workspace: "w1"})+rows(t, s, store.Scope{Org: org, Workspace: "w2"}))
			}
			return list
		}
		check := func(want ...int) {
			t.Helper()
			if got := left(); !slices.Equal(got, want) {
				t.Errorf("rows %v, want %v", got, want)
			}
		}
		for _, org := range all {
			for _, ws := range []string{"w1", "w2"} {
				sc := store.Scope{Org: org, Workspace: ws}
				if err := r.Add(ctx, sc, []Feedback{{ID: "1", Trace: "t", Value: 1, Weight: 1}}); err != nil {
					t.Fatal(err)
				}
				if err := s.Table(store.Usage).Delete(ctx, workspaceRows().Key(org, ws)); err != nil {
					t.Fatal(err)
				}
			}
		}
		now = noon
		retain := func() {
			t.Helper()
			if err := r.Retain(ctx, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.scan(ctx, at, 1); err != nil { // the first organization
			t.Fatal(err)
		}
		if err := r.Retain(ctx, nowhere); err != nil { // the end of this look
			t.Fatal(err)
		}
		check(0, 6, 6)
		retain()
		check(0, 6, 6)
		now = now.Add(lookRest)
		for range 3 {
			if err := r.scan(ctx, at, 1); err != nil {
				t.Fatal(err)
			}
		}
		retain()
		check(0, 6, 0)
		days["b"] = 1
		now = now.Add(lookRest)
		retain()
		check(0, 0, 0)
	})
}
