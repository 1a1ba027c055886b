// Package storetest defines what a store.Store must do, as tests that every implementation
// passes: Run. It also has Faulty, a store that fails as a busy one does, for tests of code
// that uses a store.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/store"
)

// Deviation is a known difference between an emulator and the real service. Tests that
// depend on it are skipped and report it.
type Deviation string

const (
	// PrefixIgnoresCase: a query by prefix finds "a" for "A".
	PrefixIgnoresCase Deviation = "a prefix is compared without regard to case"
	// RemoveNeedsNoMap: removing a key of an absent map succeeds.
	RemoveNeedsNoMap Deviation = "removing from a map that is not there is accepted"
	// RemoveMakesRow: an update that only removes makes an absent row.
	RemoveMakesRow Deviation = "an update that only removes makes the row"
	// EmptyIsAbsent: an update reports a row without attributes as one that did not exist
	// before.
	EmptyIsAbsent Deviation = "a row without attributes counts as absent before an update"
)

// Run tests the store that open returns. It is opened once; each test writes to separate
// partitions, so that the store may be shared and hold other rows.
func Run(t *testing.T, open func(t *testing.T) store.Store, known ...Deviation) {
	s := open(t)
	for _, g := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"values", testValues},
		{"keys", testKeys},
		{"reads", testReads},
		{"puts", testPuts},
		{"updates", testUpdates},
		{"conditions", testConditions},
		{"deletes", testDeletes},
		{"expiry", testExpiry},
		{"queries", testQueries},
		{"transactions", testTransactions},
		{"contention", testContention},
		{"limits", testLimits},
		{"refusals", testRejections},
		{"contexts", testContexts},
		{"random operations", testRandom},
	} {
		t.Run(g.name, func(t *testing.T) { g.test(t, &suite{t: t, s: s, ctx: t.Context(), known: known}) })
	}
}

// suite is a test with the store and short names for frequent steps.
type suite struct {
	t     *testing.T
	s     store.Store
	ctx   context.Context
	known []Deviation
}

func (s *suite) deviates(d Deviation) bool { return slices.Contains(s.known, d) }

// unless runs a test, except on an emulator that is known to fail it.
func (s *suite) unless(d Deviation, name string, f func(*suite)) {
	s.t.Helper()
	if s.deviates(d) {
		s.t.Logf("NOT TESTED HERE: %s; the emulator deviates: %s", name, d)
		return
	}
	s.run(name, f)
}

func (s *suite) run(name string, f func(*suite)) {
	s.t.Helper()
	s.t.Run(name, func(t *testing.T) { f(&suite{t: t, s: s.s, ctx: t.Context(), known: s.known}) })
}

func (s *suite) table() store.Table { return s.s.Table(store.Control) }

// partition is one that no other test uses.
func partition() store.Partition {
	return store.Scope{Org: "test-" + rand.Text(), Workspace: "w"}.Partition()
}

func newKey() store.Key { return partition().Key("THING", "1") }

func (s *suite) put(key store.Key, item store.Item) {
	s.t.Helper()
	s.ok(s.table().Put(s.ctx, store.Row{Key: key, Item: item}))
}

// get is the row by a consistent read, nil when it is absent.
func (s *suite) get(key store.Key) store.Item {
	s.t.Helper()
	item, ok, err := s.table().Get(s.ctx, key, true)
	s.ok(err)
	if ok != (item != nil) {
		s.t.Fatalf("ok is %v and the item %v", ok, item)
	}
	return item
}

func (s *suite) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *suite) equal(what string, want, got any) {
	s.t.Helper()
	if diff := cmp.Diff(want, got, compareKeys); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (s *suite) is(err, want error) {
	s.t.Helper()
	if !errors.Is(err, want) {
		s.t.Errorf("error is %v, want %v", err, want)
	}
}

// condition checks that err names the action, the key and the present row.
func (s *suite) condition(err error, action int, key store.Key, current store.Item) {
	s.t.Helper()
	c, ok := store.AsCondition(err)
	if !ok {
		s.t.Fatalf("error is %v, want a condition error", err)
	}
	s.equal("failed condition", &store.ConditionError{Action: action, Key: key, Current: current}, c)
}

// compareKeys lets cmp look inside of keys.
var compareKeys = cmp.Comparer(func(a, b store.Key) bool { return a == b })

func sortKeys(p store.Page) []string {
	keys := []string{}
	for _, r := range p.Rows {
		keys = append(keys, r.Key.SK())
	}
	return keys
}

// all reads a query to its end and bounds the pages, so that an endless sequence of pages
// is an error and not a hang.
func (s *suite) all(q store.Query) (rows []store.Row, count int) {
	s.t.Helper()
	for range 1000 {
		p, err := s.table().Query(s.ctx, q)
		s.ok(err)
		rows, count = append(rows, p.Rows...), count+p.Count
		if p.Next == "" {
			return rows, count
		}
		q.After = p.Next
	}
	s.t.Fatal("the query has no end")
	return nil, 0
}

// The same times throughout a run.
var started = time.Now().Truncate(time.Second).UTC()

func later() time.Time   { return started.Add(time.Hour) }
func earlier() time.Time { return started.Add(-time.Hour) }

func numbered(p store.Partition, n int) []store.Row {
	rows := make([]store.Row, n)
	for i := range rows {
		rows[i] = store.Row{Key: p.Key("R", fmt.Sprintf("%04d", i)), Item: store.Item{"n": int64(i)}}
	}
	return rows
}
