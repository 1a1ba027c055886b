package batch

import (
	"context"
	"io"

	"gateway/shared/chat"
)

// FileStore stores a workspace's files that the gateway manages.
type FileStore interface {
	chat.JobFiles
	// OpenAt reads a file's bytes from an offset.
	OpenAt(ctx context.Context, f *chat.HeldFile, offset int64) io.ReadCloser
	// SaveAs stores a file under an id, which may be that of an interrupted try.
	SaveAs(ctx context.Context, id, name, purpose string, src io.Reader) (*chat.HeldFile, error)
}
