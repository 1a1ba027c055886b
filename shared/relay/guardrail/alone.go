package guardrail

import (
	"context"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Lone is what one saved guardrail is shown outside of a request's own walk.
type Lone struct {
	View              *resource.View
	Scope             store.Scope
	Endpoint          string // type of the request
	Request, Response []byte // without a response it judges the request
}

// Alone tells whether a saved guardrail passes. One whose checks are not for what it is
// shown passes.
func (m *Means) Alone(ctx context.Context, name string, of *Lone) (passes bool, err error) {
	h, err := m.kit.Load(ctx, of.View, of.Scope, name, m.sealer)
	if err != nil {
		return false, err
	}
	call := chain.Call{Kind: of.Endpoint, Request: of.Request, Client: m.client, Now: m.now}
	phase := guard.Before
	if of.Response != nil {
		call.Response, call.Status, phase = of.Response, 200, guard.After
	}
	for _, r := range (chain.Hooks{h}).Run(ctx, phase, &call).Results {
		if !r.Verdict {
			return false, nil
		}
	}
	return true, nil
}
