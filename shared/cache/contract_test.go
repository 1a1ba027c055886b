package cache_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/cache"
	"gateway/shared/seal"
	seallocal "gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/cachetest"
	"gateway/shared/testkit/dynamotest"
)

func TestFlatIsNeighbours(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, clock func() time.Time) store.Store{
		"sqlite": func(t *testing.T, clock func() time.Time) store.Store {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"dynamo": func(t *testing.T, clock func() time.Time) store.Store {
			return dynamotest.Open(t, dynamotest.Start(t), func(o *dynamo.Options) { o.Clock = clock })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var at atomic.Int64
			at.Store(time.Now().Unix())
			clock := func() time.Time { return time.Unix(at.Load(), 0) }
			master, err := seallocal.Open(filepath.Join(t.TempDir(), "master.key"))
			if err != nil {
				t.Fatal(err)
			}
			s, sealer := open(t, clock), seal.New(master, clock)
			cachetest.Run(t, cachetest.Harness{
				Open: func() cache.VectorIndex {
					return cache.NewFlat(cache.FlatOptions{Store: s, Sealer: sealer, Now: clock})
				},
				Now:     clock,
				Advance: func(d time.Duration) { at.Add(int64(d / time.Second)) },
			})
		})
	}
}
