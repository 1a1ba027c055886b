package batch

import (
	"context"
	"io"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Open implements chat.JobFiles.
func (r HeldFiles) Open(ctx context.Context, f *chat.HeldFile) io.ReadCloser {
	return r.OpenAt(ctx, f, 0)
}

// OpenAt implements Room.
func (r HeldFiles) OpenAt(ctx context.Context, f *chat.HeldFile, offset int64) io.ReadCloser {
	return &reader{ctx: ctx, room: r, file: f, next: int(offset / chunkSize), skip: int(offset % chunkSize), left: f.Bytes - offset}
}

// reader opens one chunk after the other.
type reader struct {
	ctx   context.Context
	room  HeldFiles
	file  *chat.HeldFile
	next  int
	skip  int // bytes of the next chunk before the offset
	chunk []byte
	left  int64
}

// Read implements io.Reader.
func (h *reader) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, io.EOF
	}
	if len(h.chunk) == 0 {
		place := h.room.chunk(h.file, h.next)
		sealed, err := h.room.Bucket.Get(h.ctx, place, 2*chunkSize)
		if err == nil {
			h.chunk, err = h.room.Sealer.Open(h.ctx, h.room.binding(place), sealed)
		}
		if err == nil && len(h.chunk) <= h.skip {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, fault.Unavailable(err)
		}
		h.chunk, h.skip = h.chunk[h.skip:], 0
		h.next++
	}
	n := copy(p, h.chunk)
	h.chunk, h.left = h.chunk[n:], h.left-int64(n)
	return n, nil
}

// Close implements io.Closer.
func (h *reader) Close() error { return nil }
