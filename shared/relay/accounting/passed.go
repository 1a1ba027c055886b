package accounting

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/response"
)

// passed reads the usage of one passed-through response.
type passed struct {
	bill     *Bill
	response *response.UsageTail
}

// RecordRawUsage records the usage reported by a passed-through response. On paths that read does not
// support, unreported usage is not estimated, because pass-through paths have no common schema.
func RecordRawUsage(b *Bill, m *response.UsageTail, status int) {
	var u pricing.Usage
	unread, a := m.Unpack(), passed{b, m}
	var got chat.Meter
	if status >= 200 && status < 300 {
		got = a.read()
		b.Reported.Observe(got)
		if got.Model != "" && b.Target.Choice.Model == "" {
			b.Reported.ChargedAs(got.Model)
		}
		b.Reported.Ended(got.Finish)
		var told bool
		if u, told = a.charged(got); !told || u.IsReported() && u == got.Usage {
			if came, ok := a.cut(); ok {
				u, told = came, true
			}
		}
		if told && u == got.Usage && a.conversation() != nil {
			u = response.FillUsage(got, func() int64 { return estimateInput(a.bill) }, a.bill.Target.Req.Route.NoOutput)
		}
		if !told {
			u, told = a.unreported(got)
		}
		if !told && a.estimates() {
			made := response.TokensOfBytes(int(m.Total))
			if unread {
				made = min(10*made, b.Target.MaxOutput) // text shrinks to a tenth at most
			}
			u = Estimate(b, made)
		} else if !told && m.Cut && m.Total == 0 && b.Target.Req.Ctx.Err() != nil {
			u = inputUsage(b)
		}
	}
	u.Add(pricing.Requests, 1)
	b.Charge(u)
	noteTurn(b, got)
	if b.Spending.Cost > 0 && b.Target.CostsNothing() {
		b.Spend() // of a run that has ended
	}
}

// read returns the usage of a passed-through response: by the dialect of the gateway's own route
// with the same path, or else by the provider's. If the response reports none, it is estimated
// if the path determines the schema.
func (a *passed) read() (got chat.Meter) {
	if interacts(a.bill) {
		got, _ = interaction(a.response)
		return got
	}
	like := a.bill.Target.Body.Counterpart()
	switch {
	case like == nil && a.bill.Target.Req.Req.Method == http.MethodPost && a.bill.Target.Body.StoredPath().Collection == "videos":
		if video, ok := body.ReadVideo(a.response.Retained); ok {
			a.bill.Reported.OfSize(video.Size)
			return chat.Meter{Model: video.Model, Usage: video.Usage}
		}
	case like == nil:
	case like.Client != nil:
		got = a.response.Read(like.Client)
	case a.response.JSON && like.Meter != nil && len(a.response.Retained) > 0:
		got = like.Meter(a.response.Retained)
	case a.response.Stream && like.Meter != nil:
		got = response.MeterEvents(like.Meter, a.response.Events())
	}
	if got.Usage.IsReported() {
		return got
	}
	native := a.response.Read(a.dialect())
	switch {
	case native.Usage.IsReported():
	case (like == nil || like.Client == nil) && a.bill.Target.Units.Assumed.IsReported():
		got.Usage = a.bill.Target.Units.Assumed
		return got
	case a.embedsWithoutUsage():
		native.Usage.Set(pricing.Input, response.TokensOfBytes(max(len(a.bill.Target.Body.In), int(a.bill.Target.Req.Req.ContentLength))))
		native.Usage.Estimated = true
	}
	return native
}

// unreported estimates a conversation without reported usage. ok is false if nothing was
// produced, or if the response has no known format.
func (a *passed) unreported(got chat.Meter) (u pricing.Usage, ok bool) {
	d, kept := a.conversation(), int64(len(a.response.Retained))
	if d == nil || kept == 0 || a.bill.Target.Req.Req.Method != http.MethodPost || got.Err != nil {
		return u, false
	}
	switch {
	case a.response.JSON && kept == a.response.Total && kept <= response.MaxPartial:
		b, whole := response.PartialConversation(d, &a.bill.Target.Choice.Traits, a.response.Retained)
		if !whole || !b.HasContent || b.HasError {
			return u, false
		}
		return Estimate(a.bill, b.Meter.OutputEstimate()), true
	case a.response.Stream:
		m := a.response.Read(upstream.Passer(d))
		if m.Err != nil || !m.Started || m.OutputEstimate() == 0 {
			return u, false
		}
		return Estimate(a.bill, m.OutputEstimate()*max(a.response.Total/kept, 1)), true // the tail holds the last pieces only
	}
	return u, false
}

// embedsWithoutUsage reports whether the response holds vectors from an API that reports no tokens.
func (a *passed) embedsWithoutUsage() bool {
	if !a.response.JSON || a.bill.Target.Req.Req.Method != http.MethodPost || a.bill.Target.Choice.Target.Provider.Dialect != provider.Gemini {
		return false
	}
	path := a.bill.Target.Body.RawPath()
	return strings.HasSuffix(path, ":embedContent") || strings.HasSuffix(path, ":batchEmbedContents")
}

// dialect returns the dialect of a passed-through request: the one in which the provider serves
// the model, or its usual one.
func (a *passed) dialect() chat.Passer {
	if d := a.bill.Target.Deps.Dialects[a.bill.Target.Choice.Target.DialectOf(provider.Chat, a.bill.ModelOf())]; d != nil {
		return upstream.Passer(d)
	}
	return upstream.Passer(a.bill.Target.Deps.Dialects[a.bill.Target.Choice.Target.Provider.Dialect])
}

// charged returns the usage that a passed-through response is charged; the second result reports
// that nothing must be estimated. The provider runs a thread in the background; the run is
// charged with the first response that reports its usage, which may be a read.
func (a *passed) charged(got chat.Meter) (u pricing.Usage, told bool) {
	if a.bill.Target.Body.StoredPath().Collection == "threads" {
		return a.ofRun(lastRun(a.response)), true
	}
	if at := a.bill.Target.Body.StoredPath(); at.Collection == "responses" && at.ID != "" {
		if a.response.Stream {
			return usedByStream(a.bill, a.response.Events()), true
		}
		return usedByResponse(a.bill, a.response.Retained), true
	}
	if interacts(a.bill) {
		return a.ofInteraction()
	}
	if StartsBackground(a.bill) {
		return laterOrAwaited(a.bill, got), true
	}
	if u, told := a.ofVideoJob(got); told {
		return u, true
	}
	if a.bill.Target.CostsNothing() {
		return u, true
	}
	return got.Usage, got.Usage.IsReported()
}

// ofRun returns the usage of a run that no earlier response has reported.
func (a *passed) ofRun(run []byte) (u pricing.Usage) {
	id := ownership.RunID(run)
	if id == "" || a.dialect() == nil {
		return u
	}
	got := a.dialect().MeterResponse(run)
	if !got.Usage.IsReported() {
		a.bill.HoldForBackground(id, HoldResponse) // of a request that starts it or continues it
		return u
	}
	if !a.bill.Claim(id) {
		return u
	}
	a.bill.Reported.AsPriced(got)
	return got.Usage
}

// cut returns the usage of a passed-through JSON response that was truncated: the reported part,
// and an estimate from the bytes received. ok is false if nothing was received or the schema is
// unknown.
func (a *passed) cut() (u pricing.Usage, ok bool) {
	if !a.response.Cut || !a.response.JSON || a.response.Total > response.MaxPartial || int64(len(a.response.Retained)) != a.response.Total || a.bill.Target.Req.Req.Method != http.MethodPost {
		return u, false
	}
	d := a.conversation()
	if d == nil {
		return u, false
	}
	b, ok := response.PartialConversation(d, &a.bill.Target.Choice.Traits, a.response.Retained)
	if !ok || b.HasError {
		return u, false
	}
	got := b.Meter
	a.bill.Reported.Observe(got)
	if got.Model != "" && a.bill.Target.Choice.Model == "" {
		a.bill.Reported.ChargedAs(got.Model)
	}
	switch {
	case got.Usage.IsReported() && b.InUsage:
		return completeUsage(a.bill, got.Usage, got), true
	case got.Usage.IsReported():
		return got.Usage, true
	case !b.HasContent:
		return u, false
	}
	return Estimate(a.bill, got.OutputEstimate()), true
}

// conversation returns the dialect of conversations that are passed through; nil if there is
// none.
func (a *passed) conversation() chat.Provider {
	if like := a.bill.Target.Body.Counterpart(); like != nil {
		if like.Client == nil {
			return nil
		}
		return like.Client
	}
	if d := a.bill.Target.Deps.Dialects[a.bill.Target.Choice.Target.DialectOf(provider.Chat, a.bill.ModelOf())]; d != nil {
		return d
	}
	return a.bill.Target.Deps.Dialects[a.bill.Target.Choice.Target.Provider.Dialect]
}

// estimates reports whether unreported usage is estimated: it is while a budget is in force,
// because a budget may be settled at an estimate but never at zero.
func (a *passed) estimates() bool {
	return a.bill.Spending.HasReservation() && a.bill.Target.MaxOutput > 0 && a.bill.Target.Body.Model != "" && a.bill.Target.Req.Req.Method == http.MethodPost && a.bill.ReadRows == nil
}

// interacts reports whether the response is one of Gemini's Interactions API.
func interacts(b *Bill) bool {
	return b.Target.Body.StoredPath().Collection == "interactions" && b.Target.Choice.Target.Provider.Dialect == provider.Gemini
}

// startsInteraction reports whether the request creates or continues an interaction.
func startsInteraction(b *Bill) bool {
	return interacts(b) && b.Target.Req.Req.Method == http.MethodPost && b.Target.Body.StoredPath().ID == ""
}

// interaction reads the interaction in a response; in a stream, the last one that reports usage.
func interaction(m *response.UsageTail) (got chat.Meter, ended bool) {
	if !m.Stream {
		if !m.JSON {
			return got, false
		}
		return gemini.MeterInteraction(m.Retained)
	}
	response.EachEvent(m.Events(), func(data []byte) {
		switch now, over := gemini.MeterInteraction(data); {
		case now.Usage.IsReported():
			got, ended = now, over
		case got.ID == "":
			got.ID = now.ID // of the creation event
		}
	})
	return got, ended
}

// ofInteraction returns the charge for a response of the Interactions API. Each request that
// creates or continues an interaction is charged the usage in its response. A background
// interaction is charged once, with the first response that shows its end, which may be a read;
// later reads cost nothing.
func (a *passed) ofInteraction() (u pricing.Usage, told bool) {
	got, ended := interaction(a.response)
	named := got.ID != "" && len(got.ID) <= ownership.MaxID
	if !startsInteraction(a.bill) {
		if ended && named && got.Usage.IsReported() && a.bill.Claim(got.ID) {
			u = got.Usage
			a.bill.Target.Req.Prices()
		} else if ended && named && !got.Usage.IsReported() {
			a.bill.Claim(got.ID) // nothing was used: its reservation is released
		}
		return u, true
	}
	if !got.Usage.IsReported() && named && !ended && (StartsBackground(a.bill) || !a.response.Stream && !a.response.Cut) {
		await(a.bill, got.ID)
		return u, true // only a ticket: the interaction is charged at its end
	}
	if named && !ended && !got.Usage.IsReported() && !a.estimates() {
		await(a.bill, got.ID) // its stream was truncated; usage is not guessed
		return u, true
	}
	if named && (ended || !got.Usage.IsReported()) && a.bill.ClaimedByOther(got.ID) {
		return u, true // a read charged it while its stream was in progress, or after it was truncated
	}
	return got.Usage, got.Usage.IsReported()
}
