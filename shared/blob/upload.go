package blob

import (
	"context"
	"errors"
	"time"
)

// MinPart is the size that every part of an upload but its last must have (S3's).
const MinPart = 5 << 20

// ErrNoUpload is returned for an upload that does not exist: it was never begun, was
// completed or aborted, or is so old that it was swept away. It is also returned for
// parts that differ from those that were put.
var ErrNoUpload = errors.New("blob: no such upload")

// Uploads writes large objects part by part, over several calls and processes. The
// object appears when the upload is completed.
type Uploads interface {
	// Begin starts an upload of an object; name is what a browser saves it as.
	Begin(ctx context.Context, key, name string) (id string, err error)
	// Part puts part n, from 1 to 10,000. A part that is put again replaces the first.
	Part(ctx context.Context, key, id string, n int, body []byte) (tag string, err error)
	// Complete makes the object of the parts 1 to len(tags), in that order.
	Complete(ctx context.Context, key, id string, tags []string) error
	// Abort aborts an upload. It is no error if the upload does not exist.
	Abort(ctx context.Context, key, id string) error
}

// Links makes addresses under which an object can be read for a while without any
// credential.
type Links interface {
	Link(ctx context.Context, key string, valid time.Duration) (string, error)
}
