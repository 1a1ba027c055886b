package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
)

// pipeline serves one request for the handler of its route. It implements routes.Pipeline.
type pipeline struct{ c *call }

// Model implements routes.Pipeline.
func (p pipeline) Model() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	if p.c.plan.BuiltIn {
		return manage(p.c)
	}
	return relay(p.c)
}

// List implements routes.Pipeline.
func (p pipeline) List(of *routes.ModelList) error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return list(p.c, of.List)
}

// Render implements routes.Pipeline.
func (p pipeline) Render() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return rendered(p.c)
}

// Compose implements routes.Pipeline.
func (p pipeline) Compose(of *routes.Composed) error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return composed(p.c, of)
}

// Mint implements routes.Pipeline.
func (p pipeline) Mint() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return mint(p.c)
}

// ServeDryRun implements routes.Pipeline.
func (p pipeline) ServeDryRun(of *routes.DryRun) error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return rehearse(p.c, of)
}

// Call implements routes.Pipeline. There is no plan, and the protocol itself counts its calls.
func (p pipeline) Call(protocol routes.Protocol) error { return governed(p.c, protocol) }

// RunTools implements routes.Pipeline. Each call of the model is a separate request, which is
// planned and counted.
func (p pipeline) RunTools(of *routes.ToolRun) error {
	if wantsTools(&p.c.req, &p.c.body, of) {
		return runTools(p.c, of)
	}
	return p.Model()
}

// OpenSession implements routes.Pipeline.
func (p pipeline) OpenSession() error {
	if err := planned(p.c, true); err != nil {
		return err
	}
	return openSession(p.c)
}

// AwaitOpening implements routes.Pipeline. Only the opened session is counted.
func (p pipeline) AwaitOpening(*routes.Live) error {
	if err := planned(p.c, false); err != nil {
		return err
	}
	return p.c.relay.Sessions.await(p.c)
}

// Converse implements routes.Pipeline. Only the messages are counted.
func (p pipeline) Converse(turns *routes.Dialogue) error {
	if err := planned(p.c, false); err != nil {
		return err
	}
	return p.c.relay.Sessions.converse(p.c, turns)
}

// rendered responds with the body that a saved prompt renders; no provider is called.
func rendered(c *call) error {
	body, err := json.Marshal(map[string]any{"success": true, "data": json.RawMessage(c.body.Prompt.Body)})
	if err != nil {
		return fault.Internal(err)
	}
	sendJSON(c, body, nil)
	return nil
}

// passedOn are the headers of the caller that its child requests get too.
var passedOn = []string{"X-Gateway-Config", "X-Gateway-Metadata", "X-Gateway-Debug"}

// composed responds with the result that the route composes from other requests.
func composed(c *call, how *routes.Composed) error {
	desk := routes.Composition{
		Context: guard.WithBudget(admission.ClientContext(&c.req), guard.NewBudget()), Scope: c.req.Principal.Scope, View: c.req.View, Store: c.relay.Store, Now: c.relay.Now, ID: c.body.ID, Body: c.body.In,
		Guard: func(ctx context.Context, name, endpoint string, request, response []byte) (bool, error) {
			at := guardrail.SavedInput{View: c.req.View, Scope: c.req.Principal.Scope, Endpoint: endpoint, Request: request, Response: response}
			return c.relay.guards.RunSaved(ctx, name, &at)
		},
	}
	// Values for other goroutines are copied here: the call is pooled.
	relay, of, who, key, trace, from := c.relay, how.Inner, c.req.Principal, c.req.KeyHash(), c.req.Headers.TraceID, c.req.Req
	desk.Send = func(ctx context.Context, w http.ResponseWriter, id string, body []byte) (broken bool) {
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
		return relay.run(w, req, of, url.PathEscape(id), &admission.InternalCall{Key: key, Caller: who})
	}
	body, err := how.Serve(&desk)
	if err != nil {
		return err
	}
	sendJSON(c, body, nil)
	return nil
}

// mint responds with a client secret. The objects that the secret refers to must exist now; each
// session is admitted again.
func mint(c *call) error {
	leaf, f := c.plan.Traversal.Next(route.Outcome{})
	if f != nil {
		return f
	}
	fresh(c)
	if err := target.Choose(&c.target, leaf); err != nil {
		return err
	}
	if s := c.target.Choice.Saved; s != nil && c.body.SecretRequest.Transcription != "" {
		if err := s.Allows(c.body.SecretRequest.Transcription); err != nil {
			return err
		}
	}
	s, err := c.body.SecretRequest.Secret()
	if err != nil {
		return err
	}
	s.Key, s.Headers = c.req.KeyHash(), admission.Bind(c.req.HeadersForProvider(), c.req.Headers.Forward)
	s.Until = c.relay.Now().Add(c.body.SecretRequest.TTL).Truncate(time.Second)
	if ends := c.req.Principal.Until; !ends.IsZero() {
		if ends.Before(s.Until) {
			s.Until = ends
		}
		if err := c.relay.Auth.Entrust(c.req.Ctx, c.req.Principal, s.Key, ends); err != nil {
			return err
		}
	}
	raw, err := c.relay.ephemeral.Store(c.req.Ctx, c.req.Principal.Scope, s)
	if err != nil {
		return err
	}
	body, err := c.body.SecretRequest.Response(raw, "sess_"+c.req.ULID, s.Until)
	if err != nil {
		return err
	}
	sendHidden(c, body, bytes.ReplaceAll(body, []byte(raw), []byte("ek_*****")))
	return nil
}
