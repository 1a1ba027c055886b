package relay

import (
	"context"
	"errors"
	"net/http"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/relay/pooled"
)

// readWhole reads an answer whole, inflated where it came compressed, though nobody
// asked for it. More than limit bytes is pooled.ErrTooLarge.
func (pl *plains) readWhole(buf *pooled.Buffer, resp *http.Response, limit int64) error {
	if err := egress.Inflate(resp, 0); err != nil {
		return err
	}
	return buf.ReadAll(pl.Ctx, pl.Lease, resp.Body, resp.ContentLength, limit)
}

// maxTranslated bounds an answer that is translated, in bytes: while that lasts it
// stands in memory more than once.
const maxTranslated = 40 << 20

// roomToDecode takes the memory that the translation of n bytes needs.
func (pl *plains) roomToDecode(n int) error {
	switch {
	case n <= egress.Uncounted, pl.To.Carrier == nil && pl.SameDialect():
		return nil
	case n > maxTranslated:
		return fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s is larger than the %d bytes that can be translated", pl.To.Target.Provider.ID, maxTranslated)
	}
	return pl.Lease.Take(pl.Ctx, int64(n))
}

// unreadableAnswer is the fault for an answer that the gateway would not take in:
// out of proportion, compressed in a way it does not know, or too much for its
// memory. Nil: it broke off.
func unreadableAnswer(err error) *fault.Fault {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return nil
	}
	if f.Code == fault.InvalidProviderResponse {
		f.Source = fault.SourceProvider
	}
	return f
}

// backlog is what a stream has brought that nothing could be made of yet: an event
// that has not ended.
type backlog struct{ n, leased int64 }

// maxBacklog is where the readers of events give up by themselves.
const maxBacklog = 16 << 20

// came notes that in bytes were read and out bytes were made of them.
func (b *backlog) came(ctx context.Context, l *egress.Lease, in, out int) error {
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
