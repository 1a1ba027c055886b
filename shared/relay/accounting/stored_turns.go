package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// noteTurn notes what a new response amounts to if later requests may continue it.
func noteTurn(b *Bill, m chat.Meter) {
	if makesTurn(b) && (m.Complete || !b.Target.Stream) {
		NoteTurn(b, m)
	}
}

// makesTurn reports whether the provider stores the response under an id by which the client may
// continue it.
func makesTurn(b *Bill) bool {
	switch like := b.Target.Body.Like(); {
	case b.Target.Req.Route.Shape != routes.Raw:
		return b.Target.Req.Route.Operation == provider.ResponsesCreate && b.Target.SameDialect() && stores(b)
	case like != nil:
		return like.Operation == provider.ResponsesCreate && stores(b)
	}
	return startsInteraction(b) && stores(b)
}

var storeKeys = wire.NewKeySet("store")

// stores reports whether the body lets the provider store its response, as it does by default.
func stores(b *Bill) bool {
	body := b.Target.Body.In
	if b.Target.To.Body != nil {
		body = b.Target.To.Body
	}
	var w wire.Walk
	if storeKeys.Walk(body, &w) != nil {
		return false
	}
	return !w.Spans[0].Present(body) || string(w.Spans[0].Of(body)) != "false"
}
