// Package cache stores responses of providers so that an equal or semantically equivalent
// request does not call the provider again.
//
// The exact cache finds a response by a SHA-256 over everything that determines it:
// tenant, operation, provider, address, the body as it would be sent without its
// streaming fields, and metadata or a namespace. The tenant is also in the key of the
// row, so a response of another workspace cannot be addressed. Responses are customer
// content and are always sealed with the data key of their organization.
//
// The semantic cache is consulted when the exact one has no entry: an Embedder computes a
// vector of the user's text, which is compared with the vectors of earlier requests that
// are equal otherwise. It finds keys of the exact cache.
//
// There is no copy in the process. If another process replaces a response, the next read
// of the store returns it, on DynamoDB perhaps a second late. Rows expire automatically.
// Responses too large for a row are stored below "cache/" in the bucket; Sweep, or a
// lifecycle rule of more than MaxAge, removes those that no row refers to.
package cache

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/blob"
	"gateway/shared/pricing"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Limits of cached responses.
const (
	MaxBody   = 1 << 20   // bytes of a response
	maxInline = 350 << 10 // bytes of a sealed response in a row; larger ones are in the bucket

	MinAge     = time.Minute
	MaxAge     = 25_923_000 * time.Second // what an organization may set; configs ask for less
	DefaultAge = 7 * 24 * time.Hour
)

// Age returns how long a response is cached: the requested time, within the limits; 0
// requests the default.
func Age(requested time.Duration) time.Duration {
	if requested <= 0 {
		return DefaultAge
	}
	return min(max(requested, MinAge), MaxAge)
}

// Options are what a cache works with.
type Options struct {
	Store  store.Store
	Bucket blob.Bucket // if nil, responses too large for a row are not cached
	Sealer seal.Sealer
	// VectorIndex is the vector index of the semantic cache; nil disables it.
	VectorIndex VectorIndex
	Now         func() time.Time // nil means time.Now
}

// Cache stores responses. It is safe for concurrent use.
type Cache struct {
	table   store.Table
	bucket  blob.Bucket
	sealer  seal.Sealer
	vectors VectorIndex
	now     func() time.Time
	counts  counters
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
	return &Cache{table: o.Store.Table(table), bucket: o.Bucket, sealer: o.Sealer, vectors: o.VectorIndex, now: o.Now}
}

// Attributes of a row: exactly one of them is there.
const (
	attrSealed = "sealed" // the sealed entry
	attrBlob   = "blob"   // true: the sealed entry is in the bucket
)

// Get returns a response that has not expired and is younger than Age(age); nil if there is
// none. An unreadable response is an error; the caller treats it as a miss.
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
		// The object first: a row without its object would be an unreadable response,
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

// Sweep removes the responses in the bucket that no row refers to. A response that is
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

// PendingVector is a pending vector of a text. The embedding costs money once it is sent, so a
// late vector is still used: later requests find this request's response by it.
type PendingVector struct {
	counts *counters
	done   chan struct{}
	vector []float32 // both are valid when done is closed
	err    error
	late   sync.Once
}

// ErrLate is given for a vector that did not come in time.
var ErrLate = errors.New("cache: the embedder did not respond in time")

// StartEmbedding starts making a vector. The caller must call Wait before what e refers to ends.
func (c *Cache) StartEmbedding(ctx context.Context, e Embedder, text string) *PendingVector {
	s := &PendingVector{counts: &c.counts, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer func() {
			if p := recover(); p != nil {
				s.err = fmt.Errorf("cache: the embedder panicked: %v", p)
			}
			if s.err != nil {
				s.vector = nil
				c.counts.embedFailed.Add(1)
			}
		}()
		if s.vector, s.err = e.Embed(ctx, text); s.err == nil {
			s.err = CheckVector(s.vector)
		}
	}()
	return s
}

// Vector waits for the vector for a while: ErrLate when it is not there by then.
func (s *PendingVector) Vector(wait time.Duration) ([]float32, error) {
	if !s.Done() {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-s.done:
		case <-t.C:
			s.late.Do(func() { s.counts.embedLate.Add(1) })
			return nil, ErrLate
		}
	}
	return s.vector, s.err
}

// Done reports whether the embedder has answered.
func (s *PendingVector) Done() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Wait waits until the embedder has answered.
func (s *PendingVector) Wait() { <-s.done }

// Entry is a cached response.
type Entry struct {
	Body     []byte // complete JSON response, in the client's format
	Provider string // type of the provider that gave it
	Model    string // as the provider named it
	Finish   string // stop reason in the provider's own word
	Usage    pricing.Usage
	Cost     pricing.NanoDollars // what the response cost, so what a hit saves
	Stored   time.Time           // precise to the second
	Expires  time.Time           // the same
}

// head is the part of an entry that comes before its body.
type head struct {
	Provider  string           `json:"provider,omitempty"`
	Model     string           `json:"model,omitempty"`
	Finish    string           `json:"finish,omitempty"`
	Usage     map[string]int64 `json:"usage,omitempty"`
	Estimated bool             `json:"estimated,omitempty"`
	Cost      int64            `json:"cost,omitempty"`
	Stored    int64            `json:"stored"`
	Expires   int64            `json:"expires"`
}

// entryVersion is the first byte of an entry.
const entryVersion = 1

// errCorrupt is given for bytes that are not an entry.
var errCorrupt = errors.New("cache: a cached response cannot be read")

// append writes the entry: version, length of the head, head, body.
func (e *Entry) append(dst []byte) ([]byte, error) {
	h := head{
		Provider: e.Provider, Model: e.Model, Finish: e.Finish, Estimated: e.Usage.Estimated, Cost: int64(e.Cost),
		Stored: e.Stored.Unix(), Expires: e.Expires.Unix(),
	}
	for c := range pricing.NumClasses {
		if n, ok := e.Usage.Get(c); ok {
			if h.Usage == nil {
				h.Usage = map[string]int64{}
			}
			h.Usage[c.String()] = n
		}
	}
	text, err := json.Marshal(h)
	if err != nil {
		return dst, err
	}
	dst = append(dst, entryVersion)
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	dst = append(dst, text...)
	return append(dst, e.Body...), nil
}

// parseEntry reads what append wrote. The body is part of raw.
func parseEntry(raw []byte) (*Entry, error) {
	if len(raw) < 2 || raw[0] != entryVersion {
		return nil, errCorrupt
	}
	raw = raw[1:]
	n, size := binary.Uvarint(raw)
	if size <= 0 || n > uint64(len(raw)-size) {
		return nil, errCorrupt
	}
	text, body := raw[size:size+int(n)], raw[size+int(n):]
	var h head
	if json.Unmarshal(text, &h) != nil || len(body) == 0 {
		return nil, errCorrupt
	}
	e := &Entry{
		Body: body, Provider: h.Provider, Model: h.Model, Finish: h.Finish, Cost: pricing.NanoDollars(h.Cost),
		Stored: time.Unix(h.Stored, 0), Expires: time.Unix(h.Expires, 0),
	}
	for name, n := range h.Usage {
		if c, ok := pricing.ClassNamed(name); ok {
			e.Usage.Set(c, n)
		}
	}
	e.Usage.Estimated = h.Estimated
	return e, nil
}
