// Package blob is the interface to large immutable objects: sealed bodies, usage
// segments, exports. blob/files stores them in a directory, blob/s3 in a bucket; both
// pass testkit/blobtest.
package blob

import (
	"context"
	"errors"
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
