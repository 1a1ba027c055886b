package relay

import (
	"errors"

	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/target"
	"gateway/shared/wire/mask"
)

// unusable returns the error for a success that cannot be used. Its usage is charged, because
// the provider bills it, and created objects are recorded.
func unusable(tg *target.Target, bill *accounting.Bill, log *record.Log, mk *target.SecretMask, err error, body []byte) error {
	f := fault.From(err)
	if f.Code == fault.InternalError {
		f = fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", tg.To.Target.Provider.ID).WithCause(err)
	}
	f.Source = fault.SourceProvider
	mask.Bytes(body, mk.Secrets())
	log.Body(record.Received, body)
	accounting.ChargeWhatCame(bill, body)
	return f
}

// brokenAnswer returns the error for a body that did not arrive completely. body is the part
// received.
func brokenAnswer(c *call, err error, body []byte) error {
	mask.Bytes(body, c.mask.Secrets())
	c.log.Body(record.Received, body)
	if errors.Is(err, buffer.ErrTooLarge) {
		// It is not parsed: that would need its size in memory again.
		c.bill.Charge(accounting.Estimate(&c.bill, min(response.TokensOfBytes(len(body)), c.target.OutBound)))
		f := fault.Newf(fault.InvalidProviderResponse, "", "The response of %s is larger than %d bytes", c.target.To.Target.Provider.ID, int64(maxPlainAnswer))
		f.Source = fault.SourceProvider
		return f
	}
	accounting.GivenUp(&c.bill, !accounting.ChargeWhatCame(&c.bill, body) && gaveUp(&c.req, &c.out))
	if f := unreadableAnswer(err); f != nil {
		return f
	}
	f := fault.Newf(fault.InvalidProviderResponse, "", "The response of %s was truncated", c.target.To.Target.Provider.ID).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}
