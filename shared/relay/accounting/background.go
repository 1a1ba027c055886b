package accounting

import (
	"bytes"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/tail"
	"gateway/shared/wire"
)

// A response in the background is made after the answer to its creation, which is a ticket
// without usage. It is charged once, with the answer that first tells its usage: a read, or
// the end of the stream that it was created with.

var backgroundName = []byte(`"background"`)

// MakesLater tells whether the request has the provider make a response, or an
// interaction, in the background.
func (me *Meters) MakesLater() bool {
	if rt := me.Target.Req.Route; rt.Shape != routes.Raw {
		return rt.Operation == provider.ResponsesCreate && me.Target.SameDialect() && me.asksBackground()
	}
	like := me.Target.Body.Like()
	return (like != nil && like.Operation == provider.ResponsesCreate || me.startsInteraction()) && me.asksBackground()
}

// Tickets tells whether a passed-through answer is such a ticket. It is read whole before
// it is sent, so that whoever knows the id can rely on its being booked, whatever becomes
// of this process.
func (me *Meters) Tickets(resp *http.Response) bool {
	return resp.StatusCode >= 200 && resp.StatusCode <= 299 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (me.MakesLater() || ordersVideo(me))
}

func (me *Meters) asksBackground() bool {
	body := me.Target.Body.In
	if me.Target.To.Body != nil {
		body = me.Target.To.Body // as the config changed it
	}
	return bytes.Contains(body, backgroundName) && inbound.AsksBackground(body)
}

// laterOrAwaited is what the answer to such a creation is charged. If it tells no usage,
// the response is awaited.
func (me *Meters) laterOrAwaited(m chat.Meter) pricing.Usage {
	if !m.Usage.Known() && m.ID != "" && len(m.ID) <= kept.MaxID {
		me.await(m.ID)
	}
	return me.Bill.UsedLater(m)
}

// await has a response or interaction polled until it has ended, and keeps what is reserved
// for it until it is booked.
func (me *Meters) await(id string) {
	me.Bill.HoldUntilBooked(id, HoldResponse)
	me.Target.Bookings().Await(id)
}

// usedByResponse is the usage of a response made in the background, read from the
// provider, that no answer has told before.
func (me *Meters) usedByResponse(answer []byte) (u pricing.Usage) {
	d := me.Target.Means.Dialects[provider.OpenAIResponses]
	if d == nil || !kept.Background(answer) {
		return u
	}
	m := upstream.Passer(d).MeterResponse(answer)
	if u = me.Bill.UsedLater(m); u.Known() {
		NoteTurn(me.Bill, m)
		me.Bill.Heard.AsPriced(m)
	}
	if !m.Usage.Known() && me.Target.Req.Req.Method == http.MethodGet && kept.EndedUnused(answer) && len(m.ID) <= kept.MaxID && m.ID != "" {
		me.Bill.Claim(m.ID) // nothing was used: what is held for it is given back
	}
	return u
}

// usedByStream is usedByResponse of the last event that holds a whole response.
func (me *Meters) usedByStream(events []byte) pricing.Usage {
	var last []byte
	tail.EachEvent(events, func(data []byte) {
		if response := kept.BackgroundIn(data); response != nil {
			last = append(last[:0], response...)
		}
	})
	if wire.KindOf(last) != wire.KindObject {
		return pricing.Usage{}
	}
	return me.usedByResponse(last)
}

// SettleResponse books a response made in the background with the request that
// first reads its end.
func (me *Meters) SettleResponse(answer []byte, stream bool) {
	if op := me.Target.Req.Route.Operation; op != provider.ResponsesGet && op != provider.ResponsesCancel {
		return
	}
	var u pricing.Usage
	if stream {
		u = me.usedByStream(answer)
	} else {
		u = me.usedByResponse(answer)
	}
	if u.Known() {
		me.Bill.Charge(u)
		me.Bill.Spend()
		me.Target.Req.Book()
	}
}

// lastRun is the last run object that the answer tells of; nil when there is none.
func lastRun(m *tail.Meter) []byte {
	if !m.Stream {
		return kept.RunIn(m.Kept)
	}
	var last []byte
	tail.EachEvent(m.WholeEvents(), func(data []byte) {
		if run := kept.RunIn(data); run != nil {
			last = append(last[:0], run...)
		}
	})
	return last
}

// BookRows books what the rows of a batch used, one entry for each model.
func (me *Meters) BookRows(used []chat.Meter) {
	if len(used) == 0 {
		return
	}
	me.Bill.Heard.InMode(batchMode)
	for _, m := range used {
		me.Bill.Heard.AsPriced(m)
		me.Bill.Charge(m.Usage)
	}
	me.Bill.Spend()
}
