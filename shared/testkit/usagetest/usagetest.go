// Package usagetest helps tests of the archive and of its readers: an embedded store with
// a bucket of files, and record ids. Only tests import it.
package usagetest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/blob/files"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// Open opens a store and a bucket with files in dir, until the test has ended.
func Open(t testing.TB, dir string) (store.Store, *files.Bucket) {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// ID returns a reproducible id of the n-th record with the given start.
func ID(n int, at time.Time) string { return ulid.MustNew(ulid.Timestamp(at), number(n)).String() }

// number is a source of entropy that spells a number.
type number int

func (n number) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(int(n) >> (8 * min(7, len(p)-1-i)))
	}
	return len(p), nil
}
