package relay

import (
	"context"
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/guarded"
	"gateway/shared/relay/routes"
)

// headerBeta is the header by which clients ask for features that are not settled yet.
const headerBeta = "X-Gateway-Beta"

// wantsTools tells whether the gateway is to call tools for the model.
func (c *call) wantsTools() bool {
	of := c.Route.ToolRun
	if of == nil || len(c.Req.Header[headerBeta]) == 0 {
		return false
	}
	c.runsTools = of.Wants(c.Req.Header, c.In)
	return c.runsTools
}

// runTools answers with what the model says once the tools that it asks for are called.
func (c *call) runTools() error {
	of := c.Route.ToolRun
	if scope := of.Calls.Scope; !c.Who.Has(scope) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s, which calls of tools need", scope)
	}
	judge, err := judgeTools(c)
	if err != nil {
		return err
	}
	p, out := newPartner(c, c.Route), &governor{&c.sender, new(calling)}
	p.below(&c.Request)
	calls, req := of.Calls, c.Req
	desk := routes.ToolDesk{
		Context: req.Context(), Body: c.In, ID: c.ULID, Now: c.Relay.Now,
		Approvals: &approval.Requests{Table: c.Relay.owners.Table, Now: c.Relay.Now, Scope: c.Who.Scope},
		Ask:       p.Ask,
		Call: func(ctx context.Context, w http.ResponseWriter, slug string, h http.Header, body []byte) bool {
			own := p.header.Clone()
			for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
				delete(own, name) // the model's provider is meant
			}
			for name := range h {
				own[name] = h[name]
			}
			return p.take(ctx, w, calls, slug, own, body, req)
		},
		Judge: judge, Header: out.Header, Send: out.Send, Event: out.Event, Sign: c.signOfLife(),
		StreamError: func(f *fault.Fault, next int64, id string) []byte {
			o := c.options()
			o.NextEvent, o.ID = next, id
			return c.Route.Client.AppendStreamError(nil, f, o)
		},
	}
	c.Purse.Priced = true // its parts are paid for by themselves
	return of.Answer(&desk)
}

// judgeTools returns what judges the results of tools of the run: the output guardrails of the
// config, of all its targets, because the target of a turn is not known yet. Those of the
// workspace and the organization judge each call of a server. It returns nil if there are none.
func judgeTools(c *call) (func(ctx context.Context, tool string, result []byte) ([]byte, *fault.Fault), error) {
	if err := c.Resolve(c.sources); err != nil {
		return nil, err
	}
	if c.Walker == nil {
		return nil, nil
	}
	results, err := guarded.NewToolResults(c.Relay.guards, &c.Request, c.Walker.Leaves(), &c.guards.Notes)
	if err != nil || results == nil {
		return nil, err
	}
	return results.Judge, nil
}
