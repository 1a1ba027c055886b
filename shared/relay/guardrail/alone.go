package guardrail

import (
	"context"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Lone is a saved guardrail's input outside of a request.
type Lone struct {
	View              *resource.View
	Scope             store.Scope
	Endpoint          string // type of the request
	Request, Response []byte // without a response it judges the request
}

// Alone reports whether a saved guardrail passes. It passes if none of its checks applies to the
// input.
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
