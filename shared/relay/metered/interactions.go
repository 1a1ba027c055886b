package metered

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
func (me *Meters) interacts() bool {
	return me.KeptPath().Collection == "interactions" && me.To.Target.Provider.Dialect == provider.Gemini
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
		if now, over := gemini.MeterInteraction(data); now.Usage.Known() {
			got, ended = now, over
		}
	})
	return got, ended
}

// usedByInteraction is what an answer of Interactions is charged. Each request that
// makes or continues one is charged what its answer tells. One that the provider works
// on in its own time is charged with the answer that first tells its end, which may be
// a read; reads of one that was charged cost nothing.
func (me *Meters) usedByInteraction(m *tail.Meter) (u pricing.Usage, told bool) {
	got, ended := interaction(m)
	named := got.ID != "" && len(got.ID) <= kept.MaxID
	if me.Req.Method != http.MethodPost || me.KeptPath().ID != "" {
		if ended && named && got.Usage.Known() && me.ClaimBooking(got.ID) {
			u = got.Usage
		}
		return u, true
	}
	if got.Usage.Known() && ended && named {
		me.ClaimBooking(got.ID) // a read tells of it again
	}
	if !got.Usage.Known() && !m.Stream && !m.Cut && named && !ended {
		return u, true // a ticket: its end is charged
	}
	return got.Usage, got.Usage.Known()
}
