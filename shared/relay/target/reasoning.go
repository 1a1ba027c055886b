package target

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/ownership"
)

// Remember stores the signed reasoning of a response for a client that cannot return it.
func (tg *Target) Remember(signed []chat.Signed) {
	if !tg.Strict() {
		return
	}
	for _, s := range signed {
		if err := tg.Means.Memory.Put(tg.Req.Ctx, tg.Req.Who.Scope, s); err != nil {
			tg.Req.Fail("remember reasoning", err)
		}
	}
}

// Recall returns stored reasoning to the dialect that encodes the next turn.
func (tg *Target) Recall(toolCallID string) []chat.Part {
	parts, err := tg.Means.Memory.Get(tg.Req.Ctx, tg.Req.Who.Scope, toolCallID)
	if err != nil {
		tg.Req.Fail("recall reasoning", err)
	}
	return parts
}

// StoresItems reports whether the gateway stores the items of the response for later references:
// the client has not set store to false, and the provider is reached by translation.
func StoresItems(tg *Target) bool {
	_, ok := tg.Req.Route.Client.(chat.Referring)
	return ok && tg.Req.Route.Operation == provider.ResponsesCreate && tg.To.Dialect != nil && !tg.SameDialect() && ownership.StoresItems(tg.Body.In)
}

// StoreItems stores the items of a response before the client gets it. If it fails, a later
// reference to them gets a fault that requests the items.
func StoreItems(tg *Target, response []byte) {
	id, items := tg.Req.Route.Client.(chat.Referring).Output(response)
	if id == "" {
		return
	}
	if err := tg.Means.Memory.PutOutput(tg.Req.Ctx, tg.Req.Who.Scope, id, items); err != nil {
		tg.Req.Fail("store items", err)
	}
}

// inlineItems replaces references by the items of earlier responses of the workspace that the gateway
// stores, because they were translated. Other references remain.
func inlineItems(tg *Target) (err error) {
	client, ok := tg.Req.Route.Client.(chat.Referring)
	if !ok || tg.Req.Route.Operation != provider.ResponsesCreate {
		return nil
	}
	tg.To.inlined, err = client.Inline(tg.Body.In, tg.SameDialect(), func(id string) ([]byte, error) {
		items, err := tg.Means.Memory.Output(tg.Req.Ctx, tg.Req.Who.Scope, id)
		if err != nil {
			return nil, fault.Unavailable(err)
		}
		return items, nil
	})
	return err
}
