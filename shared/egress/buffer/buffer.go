// Package buffer pools memory for the bytes of a request: growing byte slices from pools
// of several sizes. Large ones are counted against a budget and left to the garbage
// collector.
package buffer

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"sync"

	"gateway/shared/egress"
)

// Buffer is a pooled byte slice. B is what it holds. Buffers that grew large are given to
// the garbage collector instead of the pool, so that one large request does not hold
// memory forever.
type Buffer struct {
	B      []byte
	leased int64 // of a budget, while a body is read
}

// The smallest and the largest buffer that a pool holds, in bytes.
const (
	least = 8 << 10
	Most  = 256 << 10
)

// buffers are pools of one size each, every one twice that of the pool before.
// With one pool for all, short uses would hold the memory of long bodies.
var buffers [6]sync.Pool // 8, 16, ... 256 KiB

// pool returns the smallest pool with buffers of at least n bytes.
func pool(n int) int { return bits.Len(uint(max(n-1, 0)) / least) }

// New returns a small buffer, which grows when it has to.
func New() *Buffer { return For(0) }

// For returns a buffer for n bytes, when n is not very large.
func For(n int) *Buffer {
	i := pool(n)
	if i >= len(buffers) {
		return new(Buffer)
	}
	if b, ok := buffers[i].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{B: make([]byte, 0, least<<i)}
}

// Free returns the buffer back; nothing may read it any more. A nil one is nothing.
func (b *Buffer) Free() {
	if b == nil || cap(b.B) < least || cap(b.B) > Most {
		return
	}
	i := pool(cap(b.B))
	if least<<i > cap(b.B) {
		i-- // grown to a size in between
	}
	b.B, b.leased = b.B[:0], 0
	buffers[i].Put(b)
}

// Reserve ensures space for n more bytes; it returns the smaller memory to its pool.
func (b *Buffer) Reserve(n int) {
	if cap(b.B)-len(b.B) >= n {
		return
	}
	wider := For(max(2*cap(b.B), len(b.B)+n))
	wider.B, b.B = b.B, append(wider.B, b.B...)
	wider.Free()
}

var ErrTooLarge = errors.New("pooled: body larger than its bound")

// trusted is the announced size up to which a body gets all its memory before its bytes
// arrive.
const trusted = 1 << 20

// ReadAll appends src to the buffer; more than max bytes is ErrTooLarge. hint is the
// announced length, or -1. It takes the memory of a large body from l and returns an
// error if there is none.
func (b *Buffer) ReadAll(ctx context.Context, l *egress.Lease, src io.Reader, hint, max int64) error {
	if hint > max {
		return ErrTooLarge
	}
	if hint > 0 && int64(cap(b.B)) <= hint {
		// One byte more, so that the read that finds the end needs no growth.
		if err := b.grow(ctx, l, min(hint, trusted)+1); err != nil {
			return err
		}
	}
	for {
		if len(b.B) == cap(b.B) {
			more := min(2*int64(cap(b.B)), max+1)
			if hint >= int64(cap(b.B)) {
				more = hint + 1
			}
			if err := b.grow(ctx, l, more); err != nil {
				return err
			}
		}
		n, err := src.Read(b.B[len(b.B):cap(b.B)])
		b.B = b.B[:len(b.B)+n]
		if int64(len(b.B)) > max {
			return ErrTooLarge
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// grow ensures a capacity of n bytes.
func (b *Buffer) grow(ctx context.Context, l *egress.Lease, n int64) error {
	n = max(n, int64(len(b.B))+1)
	if n > egress.Uncounted {
		if err := l.Reserve(ctx, n-b.leased); err != nil {
			return err
		}
		b.leased = n
	}
	b.B = append(make([]byte, 0, n), b.B...)
	return nil
}

// AppendMax appends p up to a total of max bytes and reports whether all of it fit.
func (b *Buffer) AppendMax(p []byte, max int) bool {
	room := max - len(b.B)
	b.Reserve(max0(min(room, len(p))))
	if room < len(p) {
		b.B = append(b.B, p[:max0(room)]...)
		return false
	}
	b.B = append(b.B, p...)
	return true
}

func max0(n int) int { return max(n, 0) }
