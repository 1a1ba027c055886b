package relay

import (
	"bytes"
	"errors"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/relay/mask"
	"gateway/shared/relay/pooled"
	"gateway/shared/wire"
)

// unusable answers for a success that is none. What it tells of its usage was
// billed, though, and what came of an answer was made.
func (me *meters) unusable(err error, body []byte) error {
	f := fault.From(err)
	if f.Code == fault.InternalError {
		f = fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", me.To.Target.Provider.ID).WithCause(err)
	}
	f.Source = fault.SourceProvider
	mask.Bytes(body, me.secrets())
	me.keepReceived(body)
	me.chargeWhatCame(body)
	return f
}

// brokenAnswer answers for a body that did not arrive whole. body is what came.
func (me *meters) brokenAnswer(err error, body []byte) error {
	mask.Bytes(body, me.secrets())
	me.keepReceived(body)
	if errors.Is(err, pooled.ErrTooLarge) {
		// It is not read for what it tells: that would take its memory twice.
		me.charge(me.estimate(min(tokensOf(len(body)), me.OutBound)))
		f := fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s is larger than %d bytes", me.To.Target.Provider.ID, int64(maxPlainAnswer))
		f.Source = fault.SourceProvider
		return f
	}
	me.chargeWhatCame(body)
	if f := unreadableAnswer(err); f != nil {
		return f
	}
	f := fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s broke off", me.To.Target.Provider.ID).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}

// chargeWhatCame books an answer that is not whole or that cannot be read: the
// usage that it tells, else an estimate of what came of it. Where nothing of an
// answer came, nothing is charged.
func (me *meters) chargeWhatCame(body []byte) {
	m, in, answered := me.whatCame(body)
	u := m.Usage
	switch {
	case u.Known() && !in:
		me.learn(m)
		return
	case u.Known():
		u = me.madeWhole(u, m) // it broke off within the usage: what is missing is estimated
	case !answered:
		return
	case me.Route.Client == nil && me.Wanted.Assumed.Known():
		u = me.Wanted.Assumed
		u.Estimated = true
	default:
		u = me.estimate(m.OutputEstimate())
	}
	if m.Model != "" {
		me.heard.model = m.Model
	}
	u.Add(pricing.Requests, 1)
	me.charge(u)
}

// maxMended bounds the answers that are read for what came of them, in bytes: they
// stand in memory twice for that.
const maxMended = 4 << 20

// whatCame reads the beginning of an answer. within tells that it broke off within
// its usage, answered that something of an answer is in it.
func (me *meters) whatCame(body []byte) (m chat.Meter, within, answered bool) {
	if len(body) > maxMended {
		m.OutputBytes = int64(len(body))
		return m, false, true
	}
	mended, open := wire.Mend(body)
	if mended == nil {
		return m, false, false
	}
	for _, name := range open {
		within = within || aboutUsage(name)
	}
	begun := open != nil && len(mended) > len("{}")
	d := me.To.Dialect
	if d == nil {
		d = me.Route.Client
	}
	switch {
	case me.To.Carrier != nil:
		_, _, got, err := me.To.Carrier.DecodeResponse(nil, mended, nil, me.Carried())
		if err == nil || got.Usage.Known() {
			m = got
		}
		answered = begun && !saysError(mended)
	case d == nil:
		if me.Route.Meter != nil {
			m = me.Route.Meter(mended)
		}
		answered = begun && !saysError(mended)
	default:
		m = upstream.Passer(d).MeterResponse(mended)
		r, err := d.DecodeResponse(mended, &me.To.Traits)
		if err == nil {
			got := r.Meter()
			if m.OutputBytes = got.OutputBytes; !m.Usage.Known() {
				m.Usage = got.Usage
			}
			answered = len(r.Choices) > 0 && len(r.Choices[0].Parts) > 0
		}
		answered = answered || m.OutputBytes > 0 || begun && m.Err == nil && !saysError(mended)
	}
	return m, within, answered
}

// aboutUsage tells the members under which providers tell usage.
func aboutUsage(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "usage") || strings.Contains(name, "tokens") || strings.Contains(name, "billed")
}

var errorKey = wire.NewKeySet("error")

// saysError tells whether a body has an error at its top.
func saysError(body []byte) bool {
	var w wire.Walk
	if errorKey.Walk(body, &w) != nil {
		return false
	}
	return w.Spans[0].Present(body) && !wire.IsNull(w.Spans[0].Of(body))
}

// enclosed reports whether an answer that is passed on as it came can be a JSON
// object or list: it is not empty, no page and not cut. What stands between the
// brackets is not read.
func enclosed(out []byte) bool {
	out = bytes.Trim(out, " \t\r\n")
	if len(out) < 2 {
		return false
	}
	first, last := out[0], out[len(out)-1]
	return first == '{' && last == '}' || first == '[' && last == ']'
}
