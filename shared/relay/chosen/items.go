package chosen

import (
	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/kept"
)

// talksItems reports whether the request is one of Responses to a provider that speaks it, by
// whose ids later requests may name the items of the answer.
func talksItems(o *Wall) bool {
	return o.Target.Req.Route.Client != nil && o.Target.Req.Route.Operation == provider.ResponsesCreate && o.Target.SameDialect()
}

// hasItems reports whether the bodies of a passed-through path have items of conversations.
func hasItems(o *Wall) bool {
	if o.Target.Req.Route.Client != nil {
		return talksItems(o)
	}
	at := o.Target.Body.KeptPath().Collection
	return at == "responses" || at == "conversations"
}

// mayUseItems refuses a body with a reference to an item that is not the workspace's, and
// notes the ids of the items that are sent whole under an id that is not: they are replaced
// in what the provider is sent.
func mayUseItems(o *Wall, body []byte) error {
	if !o.Target.To.Wall.On || o.Target.Body.Form != nil || o.Target.Body.Unread || len(body) == 0 || !hasItems(o) {
		return nil
	}
	foreign, err := o.Target.Means.Owners.Foreign(o.Target.Req.Ctx, o.Target.Req.Who.Scope, &o.Target.To.Wall, reference.Items(body))
	o.Target.To.Wall.Foreign = foreign
	return err
}

// keepsItems reports whether the items of the answer are noted as the workspace's.
func keepsItems(o *Wall) bool {
	body := o.Target.Body.In
	if o.Target.To.Body != nil {
		body = o.Target.To.Body
	}
	return o.keeps() && o.Target.To.Wall.On && hasItems(o) && kept.KeepsItems(body)
}

// keepItems notes the items of an answer as the workspace's, before the client can know their
// ids.
func keepItems(o *Wall, answer []byte) error {
	if answer == nil || !keepsItems(o) {
		return nil
	}
	ids := reference.ItemsMade(answer)
	if len(ids) == 0 {
		return nil
	}
	if err := o.Target.Means.Owners.OwnItems(o.Target.Req.Ctx, o.Target.Req.Who.Scope, o.Target.To.Wall.Places, o.Target.To.Saved.Slug, ids); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
