package cache

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"gateway/shared/seal"
	"gateway/shared/store"
)

// Bounds of a flat index.
const (
	maxVectors   = 50_000    // of a bucket
	defaultBytes = 128 << 20 // of all buckets in memory
)

// FlatOptions are what a flat index works with.
type FlatOptions struct {
	Store  store.Store
	Sealer seal.Sealer
	Now    func() time.Time // nil means time.Now
	// Reload is the age at which a bucket is read again, to see what other processes
	// added; 0 means never, for a store with one writer.
	Reload time.Duration
	// MaxVectors limits a bucket, MaxBytes the memory of all; if zero, 50,000 and 128
	// MiB. Vectors that do not fit are read from the store for each query.
	MaxVectors, MaxBytes int
}

// Flat is a VectorIndex that compares with every vector of a bucket. Each vector
// is a sealed row; a bucket is read into memory when it is first used.
type Flat struct {
	o     FlatOptions
	table store.Table

	mu      sync.Mutex
	buckets map[Bucket]*flatBucket
}

var _ VectorIndex = (*Flat)(nil)

// NewFlat returns a flat index.
func NewFlat(o FlatOptions) *Flat {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxVectors == 0 {
		o.MaxVectors = maxVectors
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	return &Flat{o: o, table: o.Store.Table(table), buckets: map[Bucket]*flatBucket{}}
}

// flatBucket is a bucket in memory.
type flatBucket struct {
	ready chan struct{} // closed when it is read, or when that failed
	err   error         // of reading it

	// Under Flat.mu.
	read, used time.Time
	bytes      int

	mu   sync.RWMutex
	all  []flatVector
	byID map[string]int
}

type flatVector struct {
	quantised
	id    string
	until int64 // Unix seconds
}

// Add implements VectorIndex.
func (f *Flat) Add(ctx context.Context, b Bucket, v Vector) error {
	if err := CheckVector(v.Values); err != nil {
		return err
	}
	bucket, err := f.load(ctx, b)
	if err != nil {
		return err
	}
	key := vectorKey(b, v.ID)
	q := quantise(v.Values)
	sealed, err := f.o.Sealer.Seal(ctx, vectorBinding(b, key), bytesOf(q.q))
	if err != nil {
		return err
	}
	if err := f.table.Put(ctx, store.Row{Key: key, Item: store.Item{attrSealed: sealed}, Expires: v.Expires}); err != nil {
		return err
	}
	bucket = f.present(b, bucket)
	lost := bucket.put(flatVector{q, v.ID, v.Expires.Unix()}, f.o.MaxVectors)
	f.grown(b, bucket)
	if lost == "" {
		return nil
	}
	return f.table.Delete(ctx, vectorKey(b, lost))
}

// Nearest implements VectorIndex.
func (f *Flat) Nearest(ctx context.Context, b Bucket, vector []float32, least float64, k int) ([]Match, error) {
	if err := CheckVector(vector); err != nil {
		return nil, err
	}
	bucket, err := f.load(ctx, b)
	if err != nil {
		return nil, err
	}
	return bucket.nearest(quantise(vector), least, k, f.o.Now().Unix()), nil
}

// load returns a bucket and reads it when it is not in memory. A waiting caller leaves
// when its context ends; the reading continues for others.
func (f *Flat) load(ctx context.Context, b Bucket) (*flatBucket, error) {
	f.mu.Lock()
	now := f.o.Now()
	bucket := f.buckets[b]
	if bucket == nil || f.o.Reload > 0 && now.Sub(bucket.read) >= f.o.Reload {
		bucket = &flatBucket{ready: make(chan struct{}), read: now, byID: map[string]int{}}
		f.buckets[b] = bucket
		go f.fill(context.WithoutCancel(ctx), b, bucket)
	}
	bucket.used = now
	f.mu.Unlock()
	select {
	case <-bucket.ready:
		return bucket, bucket.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// present is the bucket that requests now find in memory. Since had was loaded, it may have
// been evicted and read again, perhaps before the row that is being written. A bucket
// that is read later finds that row.
func (f *Flat) present(b Bucket, had *flatBucket) *flatBucket {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bucket := f.buckets[b]; bucket != nil {
		return bucket
	}
	return had
}

// fill reads a bucket's rows. A bucket that cannot be read is evicted, so that the next
// request tries again; a vector that cannot be opened is omitted.
func (f *Flat) fill(ctx context.Context, b Bucket, into *flatBucket) {
	defer close(into.ready)
	q := store.Query{Partition: vectors(b)}
	for {
		page, err := f.table.Query(ctx, q)
		if err != nil {
			into.err = err
			f.evict(b, into)
			return
		}
		for i := range page.Rows {
			row := &page.Rows[i]
			raw, err := f.o.Sealer.Open(ctx, vectorBinding(b, row.Key), row.Item.Bytes(attrSealed))
			if err != nil || len(raw) == 0 || len(raw) > MaxDimensions {
				continue
			}
			v := flatVector{quantised{q: int8sOf(raw)}, row.Key.SK(), row.Expires.Unix()}
			v.norm = norm(v.q)
			into.put(v, f.o.MaxVectors)
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	f.grown(b, into)
}

func (f *Flat) evict(b Bucket, bucket *flatBucket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buckets[b] == bucket {
		delete(f.buckets, b)
	}
}

// grown counts a bucket's memory and evicts those used longest ago when all
// take too much.
func (f *Flat) grown(b Bucket, bucket *flatBucket) {
	size := bucket.size()
	f.mu.Lock()
	defer f.mu.Unlock()
	bucket.bytes = size
	sum := 0
	for _, other := range f.buckets {
		sum += other.bytes
	}
	for sum > f.o.MaxBytes {
		var oldest Bucket
		var found *flatBucket
		for name, other := range f.buckets {
			if name != b && other.bytes > 0 && (found == nil || other.used.Before(found.used)) {
				oldest, found = name, other
			}
		}
		if found == nil {
			return // a single bucket may take what it needs: it is bounded itself
		}
		sum -= found.bytes
		delete(f.buckets, oldest)
	}
}

// put stores a vector and returns the id of the evicted one, if any.
func (b *flatBucket) put(v flatVector, most int) (lost string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, ok := b.byID[v.id]; ok {
		b.all[i] = v
		return ""
	}
	if len(b.all) < most {
		b.byID[v.id] = len(b.all)
		b.all = append(b.all, v)
		return ""
	}
	first := 0
	for i := range b.all {
		if b.all[i].until < b.all[first].until {
			first = i
		}
	}
	lost = b.all[first].id
	delete(b.byID, lost)
	b.all[first], b.byID[v.id] = v, first
	return lost
}

func (b *flatBucket) nearest(to quantised, least float64, k int, now int64) []Match {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var found []Match
	for i := range b.all {
		v := &b.all[i]
		if len(v.q) != len(to.q) || v.until <= now || v.norm == 0 {
			continue
		}
		score := float64(dot(v.q, to.q)) / (v.norm * to.norm)
		if score < least || len(found) == k && score <= found[k-1].Score {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, score, func(m Match, s float64) int {
			if m.Score >= s {
				return -1
			}
			return 1
		})
		found = slices.Insert(found, at, Match{v.id, score})
		found = found[:min(len(found), k)]
	}
	return found
}

func (b *flatBucket) size() int {
	const frame = 160 // what a vector takes beside its bytes, with its place in the map
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.all) == 0 {
		return frame
	}
	return frame + len(b.all)*(len(b.all[0].q)+frame)
}

func vectors(b Bucket) store.Partition { return b.Scope.Partition("VECTORS", b.ID) }

func vectorKey(b Bucket, id string) store.Key { return vectors(b).Key(id) }

func vectorBinding(b Bucket, k store.Key) seal.Binding {
	return seal.Binding{Org: b.Scope.Org, Table: string(table), PK: k.PK(), SK: k.SK()}
}

func bytesOf(q []int8) []byte {
	out := make([]byte, len(q))
	for i, v := range q {
		out[i] = byte(v)
	}
	return out
}

func int8sOf(raw []byte) []int8 {
	out := make([]int8, len(raw))
	for i, v := range raw {
		out[i] = int8(v)
	}
	return out
}

// Vector is one question in a bucket.
type Vector struct {
	ID      string // of the question's answer
	Values  []float32
	Expires time.Time
}

// Match is a question that was found, and the cosine of its angle.
type Match struct {
	ID    string
	Score float64
}

// VectorIndex stores vectors and finds similar ones. Implementations are safe for
// concurrent use, survive a restart, and never return expired vectors.
type VectorIndex interface {
	// Add stores a vector, in place of one with the same id. A full bucket evicts the one
	// that expires first.
	Add(ctx context.Context, b Bucket, v Vector) error
	// Nearest returns at most k matches with a cosine of at least least, the nearest
	// first. Vectors of another length do not match.
	Nearest(ctx context.Context, b Bucket, vector []float32, least float64, k int) ([]Match, error)
}

// MaxDimensions bounds a vector.
const MaxDimensions = 4096

// ErrVector is given for a vector that has no direction or too many dimensions.
var ErrVector = errors.New("cache: not a vector of 1 to 4096 finite numbers that are not all zero")

// CheckVector tests a vector before it is used.
func CheckVector(v []float32) error {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if len(v) == 0 || len(v) > MaxDimensions || sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return ErrVector
	}
	return nil
}

// quantised is a vector with one byte for each dimension. Only its direction counts, not
// its length.
type quantised struct {
	q    []int8
	norm float64 // of q
}

// quantise scales the largest number to 127. The cosine of two quantised vectors
// differs from that of the vectors by less than a hundredth, and for vectors of
// many dimensions by far less.
func quantise(v []float32) quantised {
	var most float64
	for _, f := range v {
		most = max(most, math.Abs(float64(f)))
	}
	out := quantised{q: make([]int8, len(v))}
	if most == 0 {
		return out
	}
	for i, f := range v {
		out.q[i] = int8(math.Round(float64(f) / most * 127))
	}
	out.norm = norm(out.q)
	return out
}

func norm(q []int8) float64 { return math.Sqrt(float64(dot(q, q))) }

// dot is the inner product of two vectors of the same length. 4,096 products of
// two bytes fit 32 bits.
func dot(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += int32(a[i]) * int32(b[i])
		s1 += int32(a[i+1]) * int32(b[i+1])
		s2 += int32(a[i+2]) * int32(b[i+2])
		s3 += int32(a[i+3]) * int32(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += int32(a[i]) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}
