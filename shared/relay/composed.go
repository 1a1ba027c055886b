package relay

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"gateway/shared/guard"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/routes"
)

// passedOn are the headers of the caller that its child requests get too.
var passedOn = []string{"X-Gateway-Config", "X-Gateway-Metadata", "X-Gateway-Debug"}

// composed responds with the result that the route composes from other requests.
func composed(c *call, how *routes.Composed) error {
	desk := routes.Composition{
		Context: guard.WithBudget(admission.ClientContext(&c.req), guard.NewBudget()), Scope: c.req.Who.Scope, View: c.req.View, Store: c.relay.Store, Now: c.relay.Now, ID: c.body.ID, Body: c.body.In,
		Guard: func(ctx context.Context, name, endpoint string, request, response []byte) (bool, error) {
			at := guardrail.Lone{View: c.req.View, Scope: c.req.Who.Scope, Endpoint: endpoint, Request: request, Response: response}
			return c.relay.guards.Alone(ctx, name, &at)
		},
	}
	// Values for other goroutines are copied here: the call is pooled.
	relay, of, who, key, trace, from := c.relay, how.Of, c.req.Who, c.req.KeyHash(), c.req.Ask.TraceID, c.req.Req
	desk.Ask = func(ctx context.Context, w http.ResponseWriter, id string, body []byte) (broken bool) {
		req, err := http.NewRequestWithContext(ctx, of.Method, routes.BasePath+of.At(id), bytes.NewReader(body))
		if err != nil {
			return true // an id from a path is valid in one
		}
		for _, name := range passedOn {
			if v := from.Header[name]; v != nil {
				req.Header[name] = v
			}
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Gateway-Trace-Id", trace)
		return relay.run(w, req, of, url.PathEscape(id), &admission.Behalf{Key: key, Caller: who})
	}
	body, err := how.Answer(&desk)
	if err != nil {
		return err
	}
	sendJSON(c, body, nil)
	return nil
}
