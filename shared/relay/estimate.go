package relay

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
)

// Estimates stand in for usage that a provider did not report, or reported only
// in part because its stream was cut. They are marked as such in the books.
const (
	bytesOfAToken  = 4
	tokensOfAFrame = 4 // what a message costs beside its text
)

// used is the usage of an answer: as reported, with an estimate for what is
// missing.
func (me *meters) used(m chat.Meter) pricing.Usage {
	if me.makesLater() {
		return me.UsedLater(m)
	}
	u := m.Usage
	if !u.Known() {
		return me.estimate(m.OutputEstimate())
	}
	if me.Stream && !m.Complete && !me.Route.NoOutput {
		madeUp(&u, m)
	}
	return u
}

// madeUp counts what was made of a stream that was cut before the final count:
// some providers have told a first one only.
func madeUp(u *pricing.Usage, m chat.Meter) {
	if made := m.OutputEstimate(); made > u.OutputTokens() {
		u.Add(pricing.Output, made-u.OutputTokens())
		u.Estimated = true
	}
}

// estimate is usage without any report of the provider.
func (me *meters) estimate(output int64) pricing.Usage {
	var u pricing.Usage
	u.Set(pricing.Input, me.estimateInput())
	if !me.Route.NoOutput {
		u.Set(pricing.Output, output)
	}
	u.Estimated = true
	return u
}

// estimateInput counts the text of a conversation, a token for four bytes and
// four for each message; other bodies count as they are.
func (me *meters) estimateInput() int64 {
	r := me.Decoded
	if r == nil && me.Route.Client != nil {
		r, _ = me.Route.Client.DecodeRequest(me.In) // a body that was answered can be read
	}
	if r == nil {
		return tokensOf(len(me.In))
	}
	return EstimateTokens(r)
}

// EstimateTokens is about how many input tokens a conversation has. Images and
// sound are not counted.
func EstimateTokens(r *chat.Request) int64 {
	var n int64
	for i := range r.Messages {
		n += tokensOfAFrame + tokensOfParts(r.Messages[i].Parts)
	}
	for i := range r.Tools {
		n += tokensOf(len(r.Tools[i].Name) + len(r.Tools[i].Description.Value) + len(r.Tools[i].Schema))
	}
	return n
}

func tokensOfParts(parts []chat.Part) (n int64) {
	for i := range parts {
		p := &parts[i]
		n += tokensOf(len(p.Text))
		if p.Call != nil {
			n += tokensOf(len(p.Call.Name) + len(p.Call.Arguments))
		}
		if p.Media != nil && p.Media.Plain {
			n += tokensOf(len(p.Media.Data))
		}
		if p.Result != nil {
			n += tokensOfParts(p.Result.Parts)
		}
	}
	return n
}

func tokensOf(bytes int) int64 { return int64(bytes+bytesOfAToken-1) / bytesOfAToken }
