package relay

import (
	"errors"
	"gateway/shared/relay/record"

	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/came"
	"gateway/shared/wire/mask"
)

// unusable is the answer to a success that cannot be used. Its usage is booked, because the
// provider bills it, and what it says was made is noted.
func unusable(c *call, err error, body []byte) error {
	f := fault.From(err)
	if f.Code == fault.InternalError {
		f = fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", c.target.To.Target.Provider.ID).WithCause(err)
	}
	f.Source = fault.SourceProvider
	mask.Bytes(body, c.mask.Secrets())
	c.log.Body(record.Received, body)
	c.metered.ChargeWhatCame(body)
	return f
}

// brokenAnswer answers for a body that did not arrive whole. body is what came.
func brokenAnswer(c *call, err error, body []byte) error {
	mask.Bytes(body, c.mask.Secrets())
	c.log.Body(record.Received, body)
	if errors.Is(err, buffer.ErrTooLarge) {
		// It is not read for what it tells: that would take its memory twice.
		c.bill.Charge(c.metered.Estimate(min(came.Tokens(len(body)), c.target.OutBound)))
		f := fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s is larger than %d bytes", c.target.To.Target.Provider.ID, int64(maxPlainAnswer))
		f.Source = fault.SourceProvider
		return f
	}
	c.metered.GivenUp(!c.metered.ChargeWhatCame(body) && gaveUp(c))
	if f := unreadableAnswer(err); f != nil {
		return f
	}
	f := fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s broke off", c.target.To.Target.Provider.ID).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}
