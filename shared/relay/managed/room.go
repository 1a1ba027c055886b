package managed

import (
	"context"
	"io"

	"gateway/shared/chat"
)

// Room is where a workspace's files lie that the gateway manages.
type Room interface {
	chat.JobRoom
	// OpenAt reads a file's bytes from an offset on.
	OpenAt(ctx context.Context, f *chat.HeldFile, offset int64) io.ReadCloser
	// SaveAs keeps a file under an id, which may be that of a try that broke off.
	SaveAs(ctx context.Context, id, name, purpose string, src io.Reader) (*chat.HeldFile, error)
}
