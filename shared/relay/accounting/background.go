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
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// A background response is created after the response to its creation request, which is a ticket
// without usage. It is charged once, with the first response that reports its usage: a read, or
// the end of the stream that it was created with.

var backgroundName = []byte(`"background"`)

// StartsBackground reports whether the request makes the provider create a response, or an
// interaction, in the background.
func StartsBackground(b *Bill) bool {
	if rt := b.Target.Req.Route; rt.BodyMode != routes.Raw {
		return rt.Operation == provider.ResponsesCreate && b.Target.SameDialect() && requestsBackground(b)
	}
	like := b.Target.Body.Counterpart()
	return (like != nil && like.Operation == provider.ResponsesCreate || startsInteraction(b)) && requestsBackground(b)
}

// IsTicket reports whether a passed-through response is such a ticket. A ticket is read completely
// before it is sent, so that a client that has the id can rely on the charge being recorded even
// if this process dies.
func IsTicket(b *Bill, resp *http.Response) bool {
	return resp.StatusCode >= 200 && resp.StatusCode <= 299 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (StartsBackground(b) || ordersVideo(b))
}

func requestsBackground(b *Bill) bool {
	src := b.Target.Body.In
	if b.Target.Choice.Body != nil {
		src = b.Target.Choice.Body // as the config changed it
	}
	return bytes.Contains(src, backgroundName) && body.RequestsBackground(src)
}

// laterOrAwaited returns the charge for the response to such a creation. If it reports no usage,
// the background response is awaited.
func laterOrAwaited(b *Bill, m chat.Meter) pricing.Usage {
	if !m.Usage.IsReported() && m.ID != "" && len(m.ID) <= ownership.MaxID {
		await(b, m.ID)
	}
	return b.BackgroundUsage(m)
}

// await has a response or interaction polled until it has ended, and holds its reservation until
// it is settled.
func await(b *Bill, id string) {
	b.HoldForBackground(id, HoldResponse)
	b.Target.ChargeClaims().Poll(id)
}

// usedByResponse returns the usage of a background response, read from the provider, that no
// earlier response has reported.
func usedByResponse(b *Bill, answer []byte) (u pricing.Usage) {
	d := b.Target.Deps.Dialects[provider.OpenAIResponses]
	if d == nil || !ownership.Background(answer) {
		return u
	}
	m := upstream.Passer(d).MeterResponse(answer)
	if u = b.BackgroundUsage(m); u.IsReported() {
		StoreTurn(b, m)
		b.Reported.AsPriced(m)
	}
	if !m.Usage.IsReported() && b.Target.Req.Req.Method == http.MethodGet && ownership.EndedUnused(answer) && len(m.ID) <= ownership.MaxID && m.ID != "" {
		b.Claim(m.ID) // nothing was used: its reservation is released
	}
	return u
}

// usedByStream is usedByResponse for the last event that holds a complete response.
func usedByStream(b *Bill, events []byte) pricing.Usage {
	var last []byte
	response.EachEvent(events, func(data []byte) {
		if response := ownership.BackgroundIn(data); response != nil {
			last = append(last[:0], response...)
		}
	})
	if wire.KindOf(last) != wire.KindObject {
		return pricing.Usage{}
	}
	return usedByResponse(b, last)
}

// SettleResponse charges a response made in the background to the request that first reads its
// end.
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
	if u.IsReported() {
		b.Charge(u)
		b.Spend()
		b.Target.Req.Prices()
	}
}

// lastRun returns the last run object in the response; nil if there is none.
func lastRun(m *response.UsageTail) []byte {
	if !m.Stream {
		return ownership.RunIn(m.Retained)
	}
	var last []byte
	response.EachEvent(m.Events(), func(data []byte) {
		if run := ownership.RunIn(data); run != nil {
			last = append(last[:0], run...)
		}
	})
	return last
}

// maxID limits the response id in the record.
const maxID = 256
