// Package blob is the interface to large immutable objects: sealed bodies, usage
// segments, exports. blob/files stores them in a directory, blob/s3 in a bucket; both
// pass testkit/blobtest.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrNotFound is returned for an object that does not exist.
var ErrNotFound = errors.New("blob: not found")

// Bucket holds objects under slash-separated keys. All methods are safe for
// concurrent use.
type Bucket interface {
	// Put writes an object atomically; readers see the old one or the new one.
	Put(ctx context.Context, key string, body []byte) error
	// Get reads an object of at most max bytes (0 means no limit); a larger one is an
	// error.
	Get(ctx context.Context, key string, max int64) ([]byte, error)
	// Open streams length bytes from offset (length < 0 means to the end).
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error)
	// Delete removes an object; removing an absent one succeeds.
	Delete(ctx context.Context, key string) error
	// List returns at most limit keys with the prefix that sort after the key after, in
	// order.
	List(ctx context.Context, prefix, after string, limit int) ([]string, error)
}

// Span is a stretch of an object.
type Span struct{ Offset, Length int64 }

// Eraser is a Bucket that can erase stretches of an object in place, even while others
// write to it.
type Eraser interface {
	Erase(ctx context.Context, key string, spans []Span) error
}

// Erase overwrites ranges of an object with zeros; the object keeps its size. Ranges
// outside of the object and absent objects need no erasing. A bucket that is not an
// Eraser writes the object again; then two calls must not erase in the same object
// concurrently.
func Erase(ctx context.Context, b Bucket, key string, spans []Span) error {
	if e, ok := b.(Eraser); ok {
		return e.Erase(ctx, key, spans)
	}
	body, err := b.Get(ctx, key, 0)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("blob: erase: %w", err)
	}
	for _, s := range spans {
		if from, to, ok := s.Clamp(int64(len(body))); ok {
			clear(body[from:to])
		}
	}
	if err := b.Put(ctx, key, body); err != nil {
		return fmt.Errorf("blob: erase: %w", err)
	}
	return nil
}

// Clamp returns the part of the range that is in an object of the given size; ok is
// false if there is none.
func (s Span) Clamp(size int64) (from, to int64, ok bool) {
	if s.Offset < 0 || s.Length <= 0 || s.Offset >= size {
		return 0, 0, false
	}
	return s.Offset, min(s.Offset+min(s.Length, size), size), true
}
