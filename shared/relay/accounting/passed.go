package accounting

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/came"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/tail"
	"gateway/shared/relay/units"
)

// passed reads the usage of one answer that is passed through.
type passed struct {
	bill   *Bill
	answer *tail.Meter
}

// LearnRaw takes over what a passed-through answer reported. Elsewhere than on the
// paths that read knows, usage that is not reported is not guessed: the paths
// of pass-through have no common shape.
func LearnRaw(b *Bill, m *tail.Meter, status int) {
	var u pricing.Usage
	unread, a := m.Unpack(), passed{b, m}
	var got chat.Meter
	if status >= 200 && status < 300 {
		got = a.read()
		b.Heard.Hear(got)
		if got.Model != "" && b.Target.To.Model == "" {
			b.Heard.ChargedAs(got.Model)
		}
		b.Heard.Ended(got.Finish)
		var told bool
		if u, told = a.charged(got); !told || u.Known() && u == got.Usage {
			if came, ok := a.cut(); ok {
				u, told = came, true
			}
		}
		if told && u == got.Usage && a.conversation() != nil {
			u = came.Fill(got, func() int64 { return estimateInput(a.bill) }, a.bill.Target.Req.Route.NoOutput)
		}
		if !told {
			u, told = a.unreported(got)
		}
		if !told && a.estimates() {
			made := came.Tokens(int(m.Total))
			if unread {
				made = min(10*made, b.Target.OutBound) // text shrinks to a tenth at most
			}
			u = Estimate(b, made)
		} else if !told && m.Cut && m.Total == 0 && b.Target.Req.Ctx.Err() != nil {
			u = sent(b)
		}
	}
	u.Add(pricing.Requests, 1)
	b.Charge(u)
	noteTurn(b, got)
	if b.Purse.Cost > 0 && b.Target.CostsNothing() {
		b.Spend() // of a run that has ended
	}
}

// read gives the usage of a passed-through answer: as the gateway's own route of the
// same path does, or else in the provider's dialect. Where the answer tells none, it is
// estimated if the path tells its shape.
func (a *passed) read() (got chat.Meter) {
	if interacts(a.bill) {
		got, _ = interaction(a.answer)
		return got
	}
	like := a.bill.Target.Body.Like()
	switch {
	case like == nil && a.bill.Target.Req.Req.Method == http.MethodPost && a.bill.Target.Body.KeptPath().Collection == "videos":
		if video, ok := units.ReadVideo(a.answer.Kept); ok {
			got.Model, got.Usage = video.Model, video.Usage
			a.bill.Heard.OfSize(video.Size)
			return got
		}
	case like == nil:
	case like.Client != nil:
		got = a.answer.Read(like.Client)
	case a.answer.JSON && like.Meter != nil && len(a.answer.Kept) > 0:
		got = like.Meter(a.answer.Kept)
	case a.answer.Stream && like.Meter != nil:
		got = tail.MeterEvents(like.Meter, a.answer.WholeEvents())
	}
	if got.Usage.Known() {
		return got
	}
	native := a.answer.Read(a.dialect())
	switch {
	case native.Usage.Known():
	case (like == nil || like.Client == nil) && a.bill.Target.Wanted.Assumed.Known():
		got.Usage = a.bill.Target.Wanted.Assumed
		return got
	case a.embedsUntold():
		native.Usage.Set(pricing.Input, came.Tokens(max(len(a.bill.Target.Body.In), int(a.bill.Target.Req.Req.ContentLength))))
		native.Usage.Estimated = true
	}
	return native
}

// unreported estimates a conversation whose provider reported no usage. ok is false where
// nothing was produced, or where the response has no known format.
func (a *passed) unreported(got chat.Meter) (u pricing.Usage, ok bool) {
	d, kept := a.conversation(), int64(len(a.answer.Kept))
	if d == nil || kept == 0 || a.bill.Target.Req.Req.Method != http.MethodPost || got.Err != nil {
		return u, false
	}
	switch {
	case a.answer.JSON && kept == a.answer.Total && kept <= came.MaxRead:
		b, whole := came.Conversation(d, &a.bill.Target.To.Traits, a.answer.Kept)
		if !whole || !b.Made || b.Refused {
			return u, false
		}
		return Estimate(a.bill, b.Meter.OutputEstimate()), true
	case a.answer.Stream:
		m := a.answer.Read(upstream.Passer(d))
		if m.Err != nil || !m.Started || m.OutputEstimate() == 0 {
			return u, false
		}
		return Estimate(a.bill, m.OutputEstimate()*max(a.answer.Total/kept, 1)), true // the tail holds the last pieces only
	}
	return u, false
}

// embedsUntold tells whether the answer has vectors from an API that tells no tokens.
func (a *passed) embedsUntold() bool {
	if !a.answer.JSON || a.bill.Target.Req.Req.Method != http.MethodPost || a.bill.Target.To.Target.Provider.Dialect != provider.Gemini {
		return false
	}
	path := a.bill.Target.Body.RawPath()
	return strings.HasSuffix(path, ":embedContent") || strings.HasSuffix(path, ":batchEmbedContents")
}

// dialect reads what is passed through: that in which the provider serves the
// model, or its usual one.
func (a *passed) dialect() chat.Passer {
	if d := a.bill.Target.Means.Dialects[a.bill.Target.To.Target.DialectOf(provider.Chat, a.bill.ModelOf())]; d != nil {
		return upstream.Passer(d)
	}
	return upstream.Passer(a.bill.Target.Means.Dialects[a.bill.Target.To.Target.Provider.Dialect])
}

// charged is the usage for which a passed-through answer is charged. told: nothing must be
// estimated. The provider makes a run of a thread in its own time; the run is charged with the
// first answer that reports its usage, which may be a read.
func (a *passed) charged(got chat.Meter) (u pricing.Usage, told bool) {
	if a.bill.Target.Body.KeptPath().Collection == "threads" {
		return a.ofRun(lastRun(a.answer)), true
	}
	if at := a.bill.Target.Body.KeptPath(); at.Collection == "responses" && at.ID != "" {
		if a.answer.Stream {
			return usedByStream(a.bill, a.answer.WholeEvents()), true
		}
		return usedByResponse(a.bill, a.answer.Kept), true
	}
	if interacts(a.bill) {
		return a.ofInteraction()
	}
	if MakesLater(a.bill) {
		return laterOrAwaited(a.bill, got), true
	}
	if u, told := a.ofVideoJob(got); told {
		return u, true
	}
	if a.bill.Target.CostsNothing() {
		return u, true
	}
	return got.Usage, got.Usage.Known()
}

// ofRun is the usage of a run that no answer has told before.
func (a *passed) ofRun(run []byte) (u pricing.Usage) {
	id := kept.RunID(run)
	if id == "" || a.dialect() == nil {
		return u
	}
	got := a.dialect().MeterResponse(run)
	if !got.Usage.Known() {
		a.bill.HoldUntilBooked(id, HoldResponse) // of a request that starts it or continues it
		return u
	}
	if !a.bill.Claim(id) {
		return u
	}
	a.bill.Heard.AsPriced(got)
	return got.Usage
}

// cut is what a passed-through JSON answer used that broke off before it told so: the
// usage that it did tell, and an estimate from what came. ok is false where nothing came or
// its shape is unknown.
func (a *passed) cut() (u pricing.Usage, ok bool) {
	if !a.answer.Cut || !a.answer.JSON || a.answer.Total > came.MaxRead || int64(len(a.answer.Kept)) != a.answer.Total || a.bill.Target.Req.Req.Method != http.MethodPost {
		return u, false
	}
	d := a.conversation()
	if d == nil {
		return u, false
	}
	b, ok := came.Conversation(d, &a.bill.Target.To.Traits, a.answer.Kept)
	if !ok || b.Refused {
		return u, false
	}
	got := b.Meter
	a.bill.Heard.Hear(got)
	if got.Model != "" && a.bill.Target.To.Model == "" {
		a.bill.Heard.ChargedAs(got.Model)
	}
	switch {
	case got.Usage.Known() && b.Within:
		return madeWhole(a.bill, got.Usage, got), true
	case got.Usage.Known():
		return got.Usage, true
	case !b.Made:
		return u, false
	}
	return Estimate(a.bill, got.OutputEstimate()), true
}

// conversation reads the conversations of what is passed through; nil: none does.
func (a *passed) conversation() chat.Provider {
	if like := a.bill.Target.Body.Like(); like != nil {
		if like.Client == nil {
			return nil
		}
		return like.Client
	}
	if d := a.bill.Target.Means.Dialects[a.bill.Target.To.Target.DialectOf(provider.Chat, a.bill.ModelOf())]; d != nil {
		return d
	}
	return a.bill.Target.Means.Dialects[a.bill.Target.To.Target.Provider.Dialect]
}

// estimates tells whether unreported usage is guessed: it is when a budget is in force,
// which may be settled at an estimate but never at nothing.
func (a *passed) estimates() bool {
	return a.bill.Purse.Holds() && a.bill.Target.OutBound > 0 && a.bill.Target.Body.Model != "" && a.bill.Target.Req.Req.Method == http.MethodPost && a.bill.ReadRows == nil
}
