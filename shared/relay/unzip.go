package relay

import (
	"errors"
	"net/http"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/target"
)

// readWhole reads a complete response, inflated if it was compressed without a request for it.
// More than limit bytes is buffer.ErrTooLarge.
func readWhole(q *admission.Request, buf *buffer.Buffer, resp *http.Response, limit int64) error {
	if err := egress.Inflate(resp, 0); err != nil {
		return err
	}
	return buf.ReadAll(q.Ctx, q.Lease, resp.Body, resp.ContentLength, limit)
}

// maxTranslated limits a response that is translated, in bytes: the translation needs a multiple
// of its size in memory.
const maxTranslated = 40 << 20

// roomToDecode reserves the memory that the translation of n bytes needs.
func roomToDecode(tg *target.Target, n int) error {
	switch {
	case n <= egress.Uncounted, tg.To.Carrier == nil && tg.SameDialect():
		return nil
	case n > maxTranslated:
		return fault.Newf(fault.InvalidProviderResponse, "", "The response of %s is larger than the %d bytes that can be translated", tg.To.Target.Provider.ID, maxTranslated)
	}
	return tg.Req.Lease.Take(tg.Req.Ctx, int64(n))
}

// unreadableAnswer returns the fault for a response that the gateway does not accept: an
// excessive compression ratio, an unknown compression, or not enough memory. It is nil if the
// response was truncated.
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
