package accounting

import (
	"bytes"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/body"
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
func MakesLater(b *Bill) bool {
	if rt := b.Target.Req.Route; rt.Shape != routes.Raw {
		return rt.Operation == provider.ResponsesCreate && b.Target.SameDialect() && asksBackground(b)
	}
	like := b.Target.Body.Like()
	return (like != nil && like.Operation == provider.ResponsesCreate || startsInteraction(b)) && asksBackground(b)
}

// Tickets tells whether a passed-through answer is such a ticket. It is read whole before
// it is sent, so that whoever knows the id can rely on its being booked, whatever becomes
// of this process.
func Tickets(b *Bill, resp *http.Response) bool {
	return resp.StatusCode >= 200 && resp.StatusCode <= 299 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (MakesLater(b) || ordersVideo(b))
}

func asksBackground(b *Bill) bool {
	src := b.Target.Body.In
	if b.Target.To.Body != nil {
		src = b.Target.To.Body // as the config changed it
	}
	return bytes.Contains(src, backgroundName) && body.AsksBackground(src)
}

// laterOrAwaited is what the answer to such a creation is charged. If it tells no usage,
// the response is awaited.
func laterOrAwaited(b *Bill, m chat.Meter) pricing.Usage {
	if !m.Usage.Known() && m.ID != "" && len(m.ID) <= kept.MaxID {
		await(b, m.ID)
	}
	return b.UsedLater(m)
}

// await has a response or interaction polled until it has ended, and keeps what is reserved
// for it until it is booked.
func await(b *Bill, id string) {
	b.HoldUntilBooked(id, HoldResponse)
	b.Target.Bookings().Await(id)
}

// usedByResponse is the usage of a response made in the background, read from the
// provider, that no answer has told before.
func usedByResponse(b *Bill, answer []byte) (u pricing.Usage) {
	d := b.Target.Means.Dialects[provider.OpenAIResponses]
	if d == nil || !kept.Background(answer) {
		return u
	}
	m := upstream.Passer(d).MeterResponse(answer)
	if u = b.UsedLater(m); u.Known() {
		NoteTurn(b, m)
		b.Heard.AsPriced(m)
	}
	if !m.Usage.Known() && b.Target.Req.Req.Method == http.MethodGet && kept.EndedUnused(answer) && len(m.ID) <= kept.MaxID && m.ID != "" {
		b.Claim(m.ID) // nothing was used: what is held for it is given back
	}
	return u
}

// usedByStream is usedByResponse of the last event that holds a whole response.
func usedByStream(b *Bill, events []byte) pricing.Usage {
	var last []byte
	tail.EachEvent(events, func(data []byte) {
		if response := kept.BackgroundIn(data); response != nil {
			last = append(last[:0], response...)
		}
	})
	if wire.KindOf(last) != wire.KindObject {
		return pricing.Usage{}
	}
	return usedByResponse(b, last)
}

// SettleResponse books a response made in the background with the request that
// first reads its end.
func SettleResponse(b *Bill, answer []byte, stream bool) {
	if op := b.Target.Req.Route.Operation; op != provider.ResponsesGet && op != provider.ResponsesCancel {
		return
	}
	var u pricing.Usage
	if stream {
		u = usedByStream(b, answer)
	} else {
		u = usedByResponse(b, answer)
	}
	if u.Known() {
		b.Charge(u)
		b.Spend()
		b.Target.Req.Book()
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
func BookRows(b *Bill, used []chat.Meter) {
	if len(used) == 0 {
		return
	}
	b.Heard.InMode(batchMode)
	for _, m := range used {
		b.Heard.AsPriced(m)
		b.Charge(m.Usage)
	}
	b.Spend()
}
