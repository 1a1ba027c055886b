package cache

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/blob/files"
	"gateway/shared/seal"
	seallocal "gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/dynamotest"
)

// clock is a time that tests move.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Now().Unix())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(c.at.Load(), 0) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d / time.Second)) }

// bench is what a cache under test is on.
type bench struct {
	store  store.Store
	bucket blob.Bucket
	sealer seal.Sealer
	clock  *clock
	path   string // of the SQLite file; empty on DynamoDB
}

func (b *bench) cache() *Cache {
	return New(Options{Store: b.store, Bucket: b.bucket, Sealer: b.sealer, Now: b.clock.now, VectorIndex: b.flat(0)})
}

func (b *bench) flat(most int) *Flat {
	return NewFlat(FlatOptions{Store: b.store, Sealer: b.sealer, Now: b.clock.now, MaxVectors: most})
}

// onEach runs a test on SQLite and on a DynamoDB.
func onEach(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Run("sqlite", func(t *testing.T) { f(t, onSQLite(t)) })
	t.Run("dynamo", func(t *testing.T) {
		b := newBench(t)
		b.store = dynamotest.Open(t, dynamotest.Start(t), func(o *dynamo.Options) { o.Clock = b.clock.now })
		f(t, b)
	})
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{clock: newClock()}
	var err error
	if b.bucket, err = files.Open(filepath.Join(t.TempDir(), "blobs")); err != nil {
		t.Fatal(err)
	}
	master, err := seallocal.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	b.sealer = seal.New(master, b.clock.now)
	return b
}

func onSQLite(t testing.TB) *bench {
	t.Helper()
	b := newBench(t)
	b.path = filepath.Join(t.TempDir(), "store.db")
	s, err := sqlite.Open(b.path, sqlite.Options{Clock: b.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b.store = s
	return b
}

var here = store.Scope{Org: "acme", Workspace: "ws-1"}

// question is one that the tests change a member of.
func question() Query {
	return Query{
		Scope: here, Operation: "chatComplete", Dialect: "openai.chat", Provider: "openai", Saved: "p-1", Model: "gpt-4o-mini",
		URL:      "https://api.openai.com/v1/chat/completions",
		Metadata: map[string]string{"team": "blue", "_user": "ann"},
		Body:     []byte(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Where is Ulm?"}],"temperature":0}`),
	}
}

func mustKey(t testing.TB, q Query) Key {
	t.Helper()
	k, err := q.Key()
	if err != nil {
		t.Fatal(err)
	}
	return k
}
