package response

import (
	"context"

	"gateway/shared/egress"
)

// Backlog counts the bytes of an incomplete event at the end of a stream.
type Backlog struct{ n, leased int64 }

// maxBacklog is the limit at which event parsers fail.
const maxBacklog = 16 << 20

// Record records that in bytes were read and out bytes were produced from them.
func (b *Backlog) Record(ctx context.Context, l *egress.Lease, in, out int) error {
	if out > 0 {
		if b.n = 0; b.leased > 0 {
			l.Return(b.leased)
			b.leased = 0
		}
		return nil
	}
	b.n = min(b.n+int64(in), maxBacklog)
	if b.n <= egress.Uncounted || b.n <= b.leased {
		return nil
	}
	more := max(b.n-b.leased, b.leased) // events grow by doubling
	if err := l.Reserve(ctx, more); err != nil {
		return err
	}
	b.leased += more
	return nil
}
