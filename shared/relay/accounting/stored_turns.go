package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// noteTurn notes what a new response amounts to if later requests may continue it.
func noteTurn(me *Meters, m chat.Meter) {
	if makesTurn(me) && (m.Complete || !me.Target.Stream) {
		NoteTurn(me.Bill, m)
	}
}

// makesTurn reports whether the provider stores the response under an id by which the client
// may continue it.
func makesTurn(me *Meters) bool {
	switch like := me.Target.Body.Like(); {
	case me.Target.Req.Route.Shape != routes.Raw:
		return me.Target.Req.Route.Operation == provider.ResponsesCreate && me.Target.SameDialect() && stores(me)
	case like != nil:
		return like.Operation == provider.ResponsesCreate && stores(me)
	}
	return me.startsInteraction() && stores(me)
}

var storeKeys = wire.NewKeySet("store")

// stores reports whether the body lets the provider store its response, as it does by default.
func stores(me *Meters) bool {
	body := me.Target.Body.In
	if me.Target.To.Body != nil {
		body = me.Target.To.Body
	}
	var w wire.Walk
	if storeKeys.Walk(body, &w) != nil {
		return false
	}
	return !w.Spans[0].Present(body) || string(w.Spans[0].Of(body)) != "false"
}
