package accounting

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/gemini"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/response"
)

// interacts reports whether the response is one of Gemini's Interactions API.
func interacts(b *Bill) bool {
	return b.Target.Body.StoredPath().Collection == "interactions" && b.Target.To.Target.Provider.Dialect == provider.Gemini
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
		case now.Usage.Known():
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
	got, ended := interaction(a.answer)
	named := got.ID != "" && len(got.ID) <= ownership.MaxID
	if !startsInteraction(a.bill) {
		if ended && named && got.Usage.Known() && a.bill.Claim(got.ID) {
			u = got.Usage
			a.bill.Target.Req.Prices()
		} else if ended && named && !got.Usage.Known() {
			a.bill.Claim(got.ID) // nothing was used: its reservation is released
		}
		return u, true
	}
	if !got.Usage.Known() && named && !ended && (MakesLater(a.bill) || !a.answer.Stream && !a.answer.Cut) {
		await(a.bill, got.ID)
		return u, true // only a ticket: the interaction is charged at its end
	}
	if named && !ended && !got.Usage.Known() && !a.estimates() {
		await(a.bill, got.ID) // its stream was truncated; usage is not guessed
		return u, true
	}
	if named && (ended || !got.Usage.Known()) && a.bill.ClaimedByOther(got.ID) {
		return u, true // a read charged it while its stream was in progress, or after it was truncated
	}
	return got.Usage, got.Usage.Known()
}
