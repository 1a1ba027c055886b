package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gateway/shared/blob"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Limits of cached responses.
const (
	MaxBody   = 1 << 20   // bytes of an answer
	maxInline = 350 << 10 // bytes of a sealed answer in a row; larger ones are in the bucket

	MinAge     = time.Minute
	MaxAge     = 25_923_000 * time.Second // what an organization may set; configs ask for less
	DefaultAge = 7 * 24 * time.Hour
)

// Age returns how long a response is cached: the requested time, within the limits; 0
// requests the default.
func Age(asked time.Duration) time.Duration {
	if asked <= 0 {
		return DefaultAge
	}
	return min(max(asked, MinAge), MaxAge)
}

// Options are what a cache works with.
type Options struct {
	Store  store.Store
	Bucket blob.Bucket // if nil, responses too large for a row are not cached
	Sealer seal.Sealer
	// Neighbours is the vector index of the semantic cache; nil disables it.
	Neighbours Neighbours
	Now        func() time.Time // nil means time.Now
}

// Cache stores responses. It is safe for concurrent use.
type Cache struct {
	table      store.Table
	bucket     blob.Bucket
	sealer     seal.Sealer
	neighbours Neighbours
	now        func() time.Time
	counts     counters
}

type counters struct{ unreadable, embedFailed, embedLate atomic.Int64 }

// Counts are the numbers of failures that callers do not notice, since the process began.
type Counts struct {
	Unreadable  int64 // cached responses that could not be read; the request was a miss
	EmbedFailed int64 // texts that could not be made into vectors
	EmbedLate   int64 // vectors that arrived too late
}

// Counts returns the counts so far.
func (c *Cache) Counts() Counts {
	return Counts{c.counts.unreadable.Load(), c.counts.embedFailed.Load(), c.counts.embedLate.Load()}
}

// New returns a cache.
func New(o Options) *Cache {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cache{table: o.Store.Table(table), bucket: o.Bucket, sealer: o.Sealer, neighbours: o.Neighbours, now: o.Now}
}

// Attributes of a row: exactly one of them is there.
const (
	attrSealed = "sealed" // the sealed entry
	attrBlob   = "blob"   // true: the sealed entry is in the bucket
)

// Get returns a response that is younger than Age(age), regardless of its own lifetime;
// nil if there is none. An unreadable response is an error; the caller treats it as a
// miss.
func (c *Cache) Get(ctx context.Context, k Key, age time.Duration) (*Entry, error) {
	item, ok, err := c.table.Get(ctx, k.row(), false)
	if err != nil || !ok {
		return nil, err
	}
	e, err := c.open(ctx, k, item)
	if err != nil {
		c.counts.unreadable.Add(1)
		return nil, fmt.Errorf("cache: answer %s: %w", k.id()[:8], err)
	}
	if now := c.now(); !now.Before(e.Expires) || !now.Before(e.Stored.Add(Age(age))) {
		return nil, nil
	}
	return e, nil
}

func (c *Cache) open(ctx context.Context, k Key, item store.Item) (*Entry, error) {
	sealed := item.Bytes(attrSealed)
	if item.Bool(attrBlob) {
		if c.bucket == nil {
			return nil, errors.New("it is in a bucket that this process does not have")
		}
		var err error
		if sealed, err = c.bucket.Get(ctx, k.blob(), 2*MaxBody); err != nil {
			return nil, err
		}
	}
	plain, err := c.sealer.Open(ctx, k.binding(), sealed)
	if err != nil {
		return nil, err
	}
	return parseEntry(plain)
}

// Put stores a response for Age(age) and replaces an older one. It sets Stored and
// Expires. It ignores empty responses and those above MaxBody.
func (c *Cache) Put(ctx context.Context, k Key, e *Entry, age time.Duration) error {
	if len(e.Body) == 0 || len(e.Body) > MaxBody {
		return nil
	}
	e.Stored = c.now().Truncate(time.Second)
	e.Expires = e.Stored.Add(Age(age))
	plain, err := e.append(make([]byte, 0, len(e.Body)+512))
	if err != nil {
		return err
	}
	sealed, err := c.sealer.Seal(ctx, k.binding(), plain)
	if err != nil {
		return err
	}
	item := store.Item{attrSealed: sealed}
	if len(sealed) > maxInline {
		if c.bucket == nil {
			return nil
		}
		// The object first: a row without its object would be an unreadable answer,
		// an object without its row is swept.
		if err := c.bucket.Put(ctx, k.blob(), sealed); err != nil {
			return fmt.Errorf("cache: %w", err)
		}
		item = store.Item{attrBlob: true}
	}
	return c.table.Put(ctx, store.Row{Key: k.row(), Item: item, Expires: e.Expires})
}

// sweepPage is how many objects are looked at in one step of a sweep.
const sweepPage = 500

// Sweep removes the answers in the bucket that no row refers to. An answer that is
// written at the same moment may be removed before its row exists; it is then unreadable
// and the next request makes it again.
func (c *Cache) Sweep(ctx context.Context) error {
	if c.bucket == nil {
		return nil
	}
	after := ""
	for {
		names, err := c.bucket.List(ctx, blobPrefix, after, sweepPage)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := c.sweep(ctx, name); err != nil {
				return err
			}
		}
		after = names[len(names)-1]
	}
}

func (c *Cache) sweep(ctx context.Context, name string) error {
	k, ok := ofBlob(name)
	if ok {
		item, found, err := c.table.Get(ctx, k.row(), true)
		if err != nil {
			return err
		}
		if found && item.Bool(attrBlob) {
			return nil
		}
	}
	return c.bucket.Delete(ctx, name)
}
