package target

import (
	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/ownership"
)

// talksItems reports whether the request is one of Responses to a provider that supports that
// dialect, so that later requests may name the items of the response by id.
func talksItems(tg *Target) bool {
	return tg.Req.Route.Client != nil && tg.Req.Route.Operation == provider.ResponsesCreate && tg.SameDialect()
}

// hasItems reports whether bodies on a passed-through path have conversation items.
func hasItems(tg *Target) bool {
	if tg.Req.Route.Client != nil {
		return talksItems(tg)
	}
	at := tg.Body.StoredPath().Collection
	return at == "responses" || at == "conversations"
}

// mayUseItems rejects a body with a reference to an item that is not the workspace's, and
// records the ids of complete items with a foreign id: they are replaced in the request to the
// provider.
func mayUseItems(tg *Target, body []byte) error {
	if !tg.To.Wall.On || tg.Body.Form != nil || tg.Body.Unread || len(body) == 0 || !hasItems(tg) {
		return nil
	}
	foreign, err := tg.Means.Owners.Foreign(tg.Req.Ctx, tg.Req.Who.Scope, &tg.To.Wall, reference.Items(body))
	tg.To.Wall.Foreign = foreign
	return err
}

// keepsItems reports whether the items of the response are recorded as the workspace's.
func keepsItems(tg *Target) bool {
	body := tg.Body.In
	if tg.To.Body != nil {
		body = tg.To.Body
	}
	return keeps(tg) && tg.To.Wall.On && hasItems(tg) && ownership.StoresItems(body)
}

// keepItems records the items of a response as the workspace's, before the client has their ids.
func keepItems(tg *Target, answer []byte) error {
	if answer == nil || !keepsItems(tg) {
		return nil
	}
	ids := reference.ItemsMade(answer)
	if len(ids) == 0 {
		return nil
	}
	if err := tg.Means.Owners.OwnItems(tg.Req.Ctx, tg.Req.Who.Scope, tg.To.Wall.Places, tg.To.Saved.Slug, ids); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
