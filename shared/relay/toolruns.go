package relay

import (
	"context"
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/body"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
)

// headerBeta is the header by which clients request beta features.
const headerBeta = "X-Gateway-Beta"

// wantsTools reports whether the gateway must call tools for the model.
func wantsTools(q *admission.Request, in *body.Body, of *routes.ToolRun) bool {
	return len(q.Req.Header[headerBeta]) > 0 && of.Wants(q.Req.Header, in.In)
}

// runTools responds with the model's response after the tools that it requests were called.
func runTools(c *call, of *routes.ToolRun) error {
	if scope := of.Calls.Scope; !c.req.Who.Has(scope) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s, which tool calls need", scope)
	}
	judge, err := judgeTools(c.relay, &c.req, &c.plan, &c.guards)
	if err != nil {
		return err
	}
	p, out := newPartner(c, c.req.Route), &governor{c, new(calling)}
	p.below(&c.req)
	calls, req := of.Calls, c.req.Req
	desk := routes.ToolDesk{
		Context: req.Context(), Body: c.body.In, ID: c.req.ULID, Now: c.relay.Now,
		Approvals: &approval.Requests{Table: c.relay.owners.Table, Now: c.relay.Now, Scope: c.req.Who.Scope},
		Ask:       p.Ask,
		Call: func(ctx context.Context, w http.ResponseWriter, slug string, h http.Header, body []byte) bool {
			own := p.header.Clone()
			for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
				delete(own, name) // it is for the model's provider
			}
			for name := range h {
				own[name] = h[name]
			}
			return p.take(ctx, w, calls, slug, own, body, req)
		},
		Judge: judge, Header: out.Header, Send: out.Send, Event: out.Event, Sign: signOfLife(&c.req),
		StreamError: func(f *fault.Fault, next int64, id string) []byte {
			o := target.Options(&c.target)
			o.NextEvent, o.ID = next, id
			return c.req.Route.Client.AppendStreamError(nil, f, o)
		},
	}
	c.bill.Purse.Unpriced() // its parts are charged separately
	return of.Answer(&desk)
}

// judgeTools returns the function that judges the results of tools of the run: the output
// guardrails of the config, of all its targets, because the target of a turn is not known yet.
// Those of the workspace and the organization judge each call of a server. It returns nil if
// there are none.
func judgeTools(r *Relay, q *admission.Request, pl *plan.Plan, gs *guardrail.State) (func(ctx context.Context, tool string, result []byte) ([]byte, *fault.Fault), error) {
	if err := pl.Resolve(r.sources); err != nil {
		return nil, err
	}
	if pl.Walker == nil {
		return nil, nil
	}
	results, err := guardrail.NewToolResults(r.guards, q, pl.Walker.Leaves(), &gs.Notes)
	if err != nil || results == nil {
		return nil, err
	}
	return results.Judge, nil
}
