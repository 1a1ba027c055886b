package response

import (
	"context"

	"gateway/shared/egress"
)

// Backlog is what a stream has brought that nothing could be made of yet: an event
// that has not ended.
type Backlog struct{ n, leased int64 }

// maxBacklog is where the readers of events give up by themselves.
const maxBacklog = 16 << 20

// Came notes that in bytes were read and out bytes were made of them.
func (b *Backlog) Came(ctx context.Context, l *egress.Lease, in, out int) error {
	if out > 0 {
		if b.n = 0; b.leased > 0 {
			l.Give(b.leased)
			b.leased = 0
		}
		return nil
	}
	b.n = min(b.n+int64(in), maxBacklog)
	if b.n <= egress.Uncounted || b.n <= b.leased {
		return nil
	}
	more := max(b.n-b.leased, b.leased) // events grow by doubling
	if err := l.Take(ctx, more); err != nil {
		return err
	}
	b.leased += more
	return nil
}
