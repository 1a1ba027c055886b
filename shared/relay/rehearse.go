package relay

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"gateway/shared/cache"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/bill"
	"gateway/shared/relay/logged"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/rehearsal"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/wire/mask"
)

// rehearse answers a dry run.
func (c *call) rehearse() error {
	q, err := rehearsal.Read(c.In)
	if err != nil {
		return err
	}
	rt, id := c.Route.Rehearses(q.Method, q.Path)
	if rt == nil || rt.Shape == routes.Listing || rt.Shape == routes.Multipart || rt.Prompt != nil && rt.Prompt.Render {
		return fault.Invalid("path", "must be a route of the data plane that takes JSON, such as /chat/completions")
	}
	req, err := q.Imagined(admitted.ClientContext(&c.Request)) // whose checks end with the client
	if err != nil {
		return err
	}
	in := dryCall{newCall()}
	in.begin(c.Relay, rehearsal.Unsent{}, req, rt)
	defer in.forget()
	in.PathID, in.Rehearsing = id, true
	in.Caller = c.Caller
	in.KeyInAuth = false
	// A dry run may try a config that could not come with a request.
	in.Trial = q.Brings()
	out := &rehearsal.Answer{Object: "dry-run", Endpoint: rt.Endpoint, Targets: []rehearsal.Target{}, Decision: rehearsal.NoDecision()}
	if err := in.enter(); err != nil {
		out.Error = rehearsal.Told(err)
	} else {
		out.Error = in.walkThrough(q, out)
	}
	if in.Config != (plan.UsedConfig{}) {
		out.Config = &rehearsal.Config{ID: in.Config.ID, Slug: in.Config.Slug, Version: in.Config.Version, Mode: in.Config.Mode}
	}
	if out.Limits, err = rehearsal.Limits(c.Ctx, c.Ledger, c.Who.Subject, c.WS.Subject); err != nil {
		return err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fault.Internal(err)
	}
	c.sendJSON(body, nil)
	return nil
}

// dryCall is a call that walks through the stages and sends nothing.
type dryCall struct{ *call }

// enter is admission for a caller who is known already, without counting.
func (re dryCall) enter() error {
	if !re.Who.Has(re.Route.Scope) && !slices.ContainsFunc(re.Route.OrScopes, re.Who.Has) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", re.Route.Scope)
	}
	if err := re.Ask.Read(re.Req.Header); err != nil {
		return err
	}
	if err := re.Read(); err != nil {
		return err
	}
	err := re.Resolve(re.sources)
	re.Demands = re.Own
	return err
}

// walkThrough goes from target to target as a request would, with answers that
// are assumed.
func (re dryCall) walkThrough(q *rehearsal.Request, out *rehearsal.Answer) *rehearsal.Error {
	outcome := route.Outcome{}
	called := 0
	for len(out.Targets) < rehearsal.MaxTargets {
		leaf, f := re.Walker.Next(outcome)
		if f != nil {
			return rehearsal.Told(f)
		}
		if leaf == nil {
			break
		}
		t := re.imagineTarget(leaf)
		if t.Error == nil {
			t.Assumed = http.StatusOK
			if called < len(q.Assume) {
				t.Assumed = q.Assume[called]
			}
			called++
			outcome = route.Outcome{Status: t.Assumed}
		} else {
			re.Walker.Refused(fault.Code(t.Error.Code), t.Error.Status)
			outcome = route.Outcome{Status: t.Error.Status, Refused: true}
		}
		out.Targets = append(out.Targets, t)
	}
	out.Decision = rehearsal.DecisionOf(re.Walker)
	return nil
}

// imagineTarget is what would be sent to a target.
func (re dryCall) imagineTarget(leaf *route.Leaf) rehearsal.Target {
	re.Loss.Reset()
	t := rehearsal.Target{Path: leaf.Path, Losses: []rehearsal.Loss{}, Limits: []rehearsal.Limit{}, Guardrails: []string{}, TimeoutMS: leaf.Timeout.Milliseconds()}
	if leaf.Cache != nil {
		age := cache.Age(re.Org.Settings.CacheAge(leaf.Cache.MaxAge))
		t.Cache = &rehearsal.Cache{Mode: leaf.Cache.Mode, MaxAge: int64(age / time.Second)}
	}
	if leaf.Retry != nil {
		t.Retries = leaf.Retry.Attempts
	}
	re.guards.Fresh()
	err := re.imagineCall(leaf, &t)
	if re.guards.On {
		t.Guardrails = append(t.Guardrails, re.guards.Names...)
		t.Verdicts = re.guards.Results.Append(nil, false)
	}
	if p := re.To.Target.Provider; p != nil {
		t.Provider, t.Model = p.ID, re.To.Upstream
		if re.To.Names.Slug != "" && re.To.Saved != nil {
			slug := re.To.Names.Slug
			t.Slug = &slug
		}
	}
	for _, e := range re.Loss.Entries {
		t.Losses = append(t.Losses, rehearsal.Loss{Path: e.Path, Reason: e.Reason})
	}
	if err != nil {
		t.Error = rehearsal.Told(err)
	}
	return t
}

func (re dryCall) imagineCall(leaf *route.Leaf, t *rehearsal.Target) error {
	if err := re.Choose(leaf); err != nil {
		return err
	}
	if err := re.guardInput(leaf); err != nil {
		return err
	}
	t.Stream, t.Answered = re.Stream, re.To.Local
	var err error
	if t.Limits, err = rehearsal.Limits(re.Ctx, re.Ledger, re.To.Subjects...); err != nil {
		return err
	}
	body, err := re.upstreamBody()
	if err != nil {
		return err
	}
	if err := bill.MeasureInput(&re.Bill); err != nil {
		return err
	}
	if re.Route.Operation != provider.BatchesCreate { // whose bound is that of rows, which are not read here
		bound := re.BoundOf()
		t.PriceBound = &rehearsal.Bound{Cents: float64(bound.Cost) / 1e7, Tokens: bound.Tokens, Priced: bound.Priced}
	}
	if re.To.Local {
		return nil
	}
	req, err := re.upstreamRequest(body)
	if err != nil {
		return err
	}
	t.Method, t.URL = req.Method, req.URL.Scheme+"://"+req.URL.Host+req.URL.RequestURI()
	if json.Valid(body) {
		t.Body = slices.Clone(body)
	}
	if err := re.imagineCredential(req, body); err != nil {
		return err
	}
	shown := logged.AppendHeaders(nil, req.Header, re.stars.CustomNames(slices.Clone(re.Ask.Sensitive)))
	mask.Bytes(shown, re.To.Target.Secrets(nil, true))
	if err := json.Unmarshal(shown, &t.Headers); err != nil {
		return fault.Internal(err)
	}
	return nil
}

// imagineCredential authorizes the request, so that a missing credential is reported. Where
// a token would have to be requested, a placeholder is used.
func (re dryCall) imagineCredential(req *http.Request, body []byte) error {
	t := &re.To.Target
	switch scheme := t.Provider.Auth.Scheme; {
	case scheme == provider.SigV4Auth || scheme == provider.GoogleOAuth || scheme == provider.OCIAuth,
		scheme == provider.AzureAuth && t.Field("azure_auth_mode") != "" && t.Credential.Key == "":
		req.Header.Set("Authorization", "to be made")
		return nil
	}
	return t.Authorize(re.Ctx, req, body)
}

// forget ends a call that was never sent and leaves no books.
func (re dryCall) forget() {
	re.Over()
	re.reset()
}
