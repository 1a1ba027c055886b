package relay

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"sync"

	"gateway/shared/egress"
)

// buffer is a pooled byte slice. Buffers that grew large are given to the
// garbage collector instead of the pool, so that one large request does not
// hold memory for ever.
type buffer struct {
	b      []byte
	leased int64 // of a budget, while a body is read
}

const (
	smallBuffer = 8 << 10
	keepBuffer  = 256 << 10
)

// buffers are pools of one size each, every one twice that of the pool before.
// With one pool for all, short uses would hold the memory of long bodies.
var buffers [6]sync.Pool // 8, 16, ... 256 KiB

// pool is the smallest pool whose buffers hold n bytes.
func pool(n int) int { return bits.Len(uint(max(n-1, 0)) / smallBuffer) }

// newBuffer gives a small buffer, which grows when it has to.
func newBuffer() *buffer { return newBufferFor(0) }

// newBufferFor gives a buffer for n bytes, when n is not very large.
func newBufferFor(n int) *buffer {
	i := pool(n)
	if i >= len(buffers) {
		return new(buffer)
	}
	if b, ok := buffers[i].Get().(*buffer); ok {
		return b
	}
	return &buffer{b: make([]byte, 0, smallBuffer<<i)}
}

func (b *buffer) free() {
	if b == nil || cap(b.b) < smallBuffer || cap(b.b) > keepBuffer {
		return
	}
	i := pool(cap(b.b))
	if smallBuffer<<i > cap(b.b) {
		i-- // grown to a size in between
	}
	b.b, b.leased = b.b[:0], 0
	buffers[i].Put(b)
}

// reserve makes room for n more bytes, in memory of the pools: what was outgrown
// goes back to its own.
func (b *buffer) reserve(n int) {
	if cap(b.b)-len(b.b) >= n {
		return
	}
	wider := newBufferFor(max(2*cap(b.b), len(b.b)+n))
	wider.b, b.b = b.b, append(wider.b, b.b...)
	wider.free()
}

var errTooLarge = errors.New("relay: body larger than its bound")

// trusted is how long a body may say that it is and have the memory before it came.
const trusted = 1 << 20

// readAll reads src to its end behind what the buffer holds; more than max bytes
// is errTooLarge. hint is the length announced, or -1. The memory of a large body is
// l's, which has the error where there is none.
func (b *buffer) readAll(ctx context.Context, l *egress.Lease, src io.Reader, hint, max int64) error {
	if hint > max {
		return errTooLarge
	}
	if hint > 0 && int64(cap(b.b)) <= hint {
		// One byte more, so that the read that finds the end needs no growth.
		if err := b.grow(ctx, l, min(hint, trusted)+1); err != nil {
			return err
		}
	}
	for {
		if len(b.b) == cap(b.b) {
			more := min(2*int64(cap(b.b)), max+1)
			if hint >= int64(cap(b.b)) {
				more = hint + 1
			}
			if err := b.grow(ctx, l, more); err != nil {
				return err
			}
		}
		n, err := src.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		if int64(len(b.b)) > max {
			return errTooLarge
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// grow makes room for n bytes in all.
func (b *buffer) grow(ctx context.Context, l *egress.Lease, n int64) error {
	n = max(n, int64(len(b.b))+1)
	if n > egress.Uncounted {
		if err := l.Take(ctx, n-b.leased); err != nil {
			return err
		}
		b.leased = n
	}
	b.b = append(make([]byte, 0, n), b.b...)
	return nil
}

// keep appends p up to a total of max bytes and reports whether all of it fit.
func (b *buffer) keep(p []byte, max int) bool {
	room := max - len(b.b)
	b.reserve(max0(min(room, len(p))))
	if room < len(p) {
		b.b = append(b.b, p[:max0(room)]...)
		return false
	}
	b.b = append(b.b, p...)
	return true
}

func max0(n int) int { return max(n, 0) }
