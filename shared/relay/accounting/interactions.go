package accounting

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/gemini"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/tail"
)

// interacts tells whether the answer is of Gemini's Interactions.
func interacts(b *Bill) bool {
	return b.Target.Body.KeptPath().Collection == "interactions" && b.Target.To.Target.Provider.Dialect == provider.Gemini
}

// startsInteraction tells whether the request makes or continues one.
func startsInteraction(b *Bill) bool {
	return interacts(b) && b.Target.Req.Req.Method == http.MethodPost && b.Target.Body.KeptPath().ID == ""
}

// interaction reads the interaction that an answer tells of, of a stream the last that
// tells its usage.
func interaction(m *tail.Meter) (got chat.Meter, ended bool) {
	if !m.Stream {
		if !m.JSON {
			return got, false
		}
		return gemini.MeterInteraction(m.Kept)
	}
	tail.EachEvent(m.WholeEvents(), func(data []byte) {
		switch now, over := gemini.MeterInteraction(data); {
		case now.Usage.Known():
			got, ended = now, over
		case got.ID == "":
			got.ID = now.ID // of the event that tells of its making
		}
	})
	return got, ended
}

// ofInteraction is what an answer of Interactions is charged. Each request that makes
// or continues an interaction is charged what its answer tells. An interaction in the
// background is charged once, with the answer that first tells its end, which may be a
// read; later reads cost nothing.
func (a *passed) ofInteraction() (u pricing.Usage, told bool) {
	got, ended := interaction(a.answer)
	named := got.ID != "" && len(got.ID) <= kept.MaxID
	if !startsInteraction(a.bill) {
		if ended && named && got.Usage.Known() && a.bill.Claim(got.ID) {
			u = got.Usage
			a.bill.Target.Req.Book()
		} else if ended && named && !got.Usage.Known() {
			a.bill.Claim(got.ID) // nothing was used: what is held for it is given back
		}
		return u, true
	}
	if !got.Usage.Known() && named && !ended && (MakesLater(a.bill) || !a.answer.Stream && !a.answer.Cut) {
		await(a.bill, got.ID)
		return u, true // only a ticket: the interaction is charged at its end
	}
	if named && !ended && !got.Usage.Known() && !a.estimates() {
		await(a.bill, got.ID) // its stream broke off; usage is not guessed
		return u, true
	}
	if named && (ended || !got.Usage.Known()) && a.bill.ClaimedByOther(got.ID) {
		return u, true // a read told of it while its stream was under way, or had broken off
	}
	return got.Usage, got.Usage.Known()
}
