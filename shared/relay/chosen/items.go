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
	return o.Route.Client != nil && o.Route.Operation == provider.ResponsesCreate && o.SameDialect()
}

// hasItems reports whether the bodies of a passed-through path have items of conversations.
func hasItems(o *Wall) bool {
	if o.Route.Client != nil {
		return talksItems(o)
	}
	at := o.KeptPath().Collection
	return at == "responses" || at == "conversations"
}

// mayUseItems refuses a body with a reference to an item that is not the workspace's, and
// notes the ids of the items that are sent whole under an id that is not: they are replaced
// in what the provider is sent.
func mayUseItems(o *Wall, body []byte) error {
	if !o.To.Wall.On || o.Form != nil || o.Unread || len(body) == 0 || !hasItems(o) {
		return nil
	}
	foreign, err := o.Means.Owners.Foreign(o.Ctx, o.Who.Scope, &o.To.Wall, reference.Items(body))
	o.To.Wall.Foreign = foreign
	return err
}

// keepsItems reports whether the items of the answer are noted as the workspace's.
func keepsItems(o *Wall) bool {
	body := o.In
	if o.To.Body != nil {
		body = o.To.Body
	}
	return o.keeps() && o.To.Wall.On && hasItems(o) && kept.KeepsItems(body)
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
	if err := o.Means.Owners.OwnItems(o.Ctx, o.Who.Scope, o.To.Wall.Places, o.To.Saved.Slug, ids); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
