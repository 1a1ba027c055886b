package ledger

import (
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/dynamotest"
)

// onEach runs a test on the model, on SQLite, and on a DynamoDB.
func onEach(t *testing.T, f func(t *testing.T, s store.Store)) {
	t.Run("memory", func(t *testing.T) { f(t, newMemory()) })
	t.Run("sqlite", func(t *testing.T) { f(t, openSQLite(t)) })
	t.Run("dynamo", func(t *testing.T) {
		f(t, dynamotest.Open(t, dynamotest.Start(t), func(o *dynamo.Options) { o.Clock = thatDay }))
	})
}

// crowd is n callers at once, or a fifth where each has a connection to an
// emulator, which a busy machine may starve.
func crowd(s store.Store, n int) int {
	if _, remote := s.(*dynamo.Store); remote {
		return n / 5
	}
	return n
}

// thatDay is the time of the stores: before all that the tests write ends, whatever
// day they run on.
func thatDay() time.Time { return at("2026-11-20") }

func openSQLite(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Clock: thatDay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
