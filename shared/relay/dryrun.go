package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/cache"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/wire/mask"
)

// rehearse serves a dry run.
func rehearse(c *call, of *routes.DryRun) error {
	q, err := ReadDryRun(c.body.In)
	if err != nil {
		return err
	}
	rt, id := of.Find(q.Method, q.Path)
	if rt == nil || rt.BodyMode == routes.Listing || rt.BodyMode == routes.Multipart || rt.Prompt() != nil && rt.Prompt().Render {
		return fault.Invalid("path", "must be a route of the data plane that accepts JSON, such as /chat/completions")
	}
	req, err := q.Imagined(admission.ClientContext(&c.req)) // its checks end with the client
	if err != nil {
		return err
	}
	in := newCall()
	in.begin(c.relay, ErrUnsent{}, req, rt, "", nil)
	defer discard(in)
	in.req.PathID, in.req.DryRun = id, true
	in.req.Caller = c.req.Caller
	in.req.KeyInAuth = false
	// A dry run may test a config that requests must not contain.
	in.plan.DryRun = q.HasInlineConfig()
	out := &DryRunResponse{Object: "dry-run", Endpoint: rt.Endpoint, Targets: []DryRunTarget{}, Decision: NoDecision()}
	if err := enter(in.relay, &in.target); err != nil {
		out.Error = DryRunResult(err)
	} else {
		out.Error = walkThrough(in, q, out)
	}
	if in.plan.Config != (plan.UsedConfig{}) {
		out.Config = &DryRunConfig{ID: in.plan.Config.ID, Slug: in.plan.Config.Slug, Version: in.plan.Config.Version, Mode: in.plan.Config.Mode}
	}
	if out.Limits, err = DryRunLimits(c.req.Ctx, c.bill.Ledger, c.req.Principal.Subject, c.req.WS.Subject); err != nil {
		return err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fault.Internal(err)
	}
	sendJSON(c, body, nil)
	return nil
}

// enter is admission for an authenticated caller, without counting.
func enter(r *Relay, tg *target.Target) error {
	if !tg.Req.Principal.Has(tg.Req.Route.Scope) && !slices.ContainsFunc(tg.Req.Route.OrScopes, tg.Req.Principal.Has) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", tg.Req.Route.Scope)
	}
	if err := tg.Req.Headers.Read(tg.Req.Req.Header); err != nil {
		return err
	}
	if err := tg.Body.Read(); err != nil {
		return err
	}
	err := tg.Plan.Resolve(r.sources)
	tg.ResetDemands()
	return err
}

// walkThrough traverses the targets as a request would, with assumed responses.
func walkThrough(c *call, q *DryRunRequest, out *DryRunResponse) *DryRunError {
	outcome := route.Outcome{}
	called := 0
	for len(out.Targets) < MaxDryRunTargets {
		leaf, f := c.plan.Traversal.Next(outcome)
		if f != nil {
			return DryRunResult(f)
		}
		if leaf == nil {
			break
		}
		t := imagineTarget(c, leaf)
		if h := hedgeOf(c, t.Body); h != nil && t.Error == nil {
			t.Hedge = &DryRunHedge{h.Leaf.Path, float64(h.After.Microseconds()) / 1000}
		}
		if t.Error == nil {
			t.Assumed = http.StatusOK
			if called < len(q.Assume) {
				t.Assumed = q.Assume[called]
			}
			called++
			outcome = route.Outcome{Status: t.Assumed}
		} else {
			c.plan.Traversal.Reject(fault.Code(t.Error.Code), t.Error.Status)
			outcome = route.Outcome{Status: t.Error.Status, Rejected: true}
		}
		out.Targets = append(out.Targets, t)
	}
	out.Decision = DecisionOf(c.plan.Traversal)
	return nil
}

// imagineTarget returns the request that a target would get.
func imagineTarget(c *call, leaf *route.Leaf) DryRunTarget {
	c.target.Loss.Reset()
	t := DryRunTarget{Path: leaf.Path, Losses: []DryRunLoss{}, Limits: []DryRunLimit{}, Guardrails: []string{}, TimeoutMS: leaf.Timeout.Milliseconds()}
	if leaf.Cache != nil {
		age := cache.Age(c.req.Org.Settings.CacheAge(leaf.Cache.MaxAge))
		t.Cache = &DryRunCache{Mode: leaf.Cache.Mode, MaxAge: int64(age / time.Second)}
	}
	if leaf.Retry != nil {
		t.Retries = leaf.Retry.Attempts
	}
	c.guards.ResetTarget()
	err := imagineCall(c, leaf, &t)
	if c.guards.Enabled {
		t.Guardrails = append(t.Guardrails, c.guards.Names...)
		t.Verdicts = c.guards.Results.Append(nil, false)
	}
	if p := c.target.Choice.Target.Provider; p != nil {
		t.Provider, t.Model, t.Credential = p.ID, c.target.Choice.Upstream, c.target.Choice.Names.Credential
		if c.target.Choice.Names.Slug != "" && c.target.Choice.Saved != nil {
			slug := c.target.Choice.Names.Slug
			t.Slug = &slug
		}
	}
	for _, e := range c.target.Loss.Entries {
		t.Losses = append(t.Losses, DryRunLoss{Path: e.Path, Reason: e.Reason})
	}
	if err != nil {
		t.Error = DryRunResult(err)
	}
	return t
}

func imagineCall(c *call, leaf *route.Leaf, t *DryRunTarget) error {
	if err := target.Choose(&c.target, leaf); err != nil {
		return err
	}
	if err := guardInput(c.relay, &c.target, &c.guards, leaf); err != nil {
		return err
	}
	t.Stream, t.Answered = c.target.Stream, c.target.Choice.Local
	var err error
	if t.Limits, err = DryRunLimits(c.req.Ctx, c.bill.Ledger, c.target.Choice.Subjects...); err != nil {
		return err
	}
	body, err := upstreamBody(c.relay, &c.target, &c.out, &c.log)
	if err != nil {
		return err
	}
	if err := accounting.MeasureInput(&c.bill); err != nil {
		return err
	}
	if c.req.Route.Operation != provider.BatchesCreate { // its bound is that of rows, which are not read here
		bound := c.bill.MaxCost()
		t.PriceBound = &DryRunBound{Cents: float64(bound.Cost) / 1e7, Tokens: bound.Tokens, Priced: bound.Priced}
	}
	if c.target.Choice.Local {
		return nil
	}
	req, err := upstreamRequest(c, body)
	if err != nil {
		return err
	}
	t.Method, t.URL = req.Method, req.URL.Scheme+"://"+req.URL.Host+req.URL.RequestURI()
	if json.Valid(body) {
		t.Body = slices.Clone(body)
	}
	if err := imagineCredential(&c.target, req, body); err != nil {
		return err
	}
	shown := record.AppendHeaders(nil, req.Header, c.mask.CustomNames(slices.Clone(c.req.Headers.Sensitive)))
	mask.Bytes(shown, c.target.Choice.Target.Secrets(nil, true))
	if err := json.Unmarshal(shown, &t.Headers); err != nil {
		return fault.Internal(err)
	}
	return nil
}

// imagineCredential authorizes the request, so that a missing credential is reported. Where
// a token would have to be requested, a placeholder is used.
func imagineCredential(tg *target.Target, req *http.Request, body []byte) error {
	t := &tg.Choice.Target
	switch scheme := t.Provider.Auth.Scheme; {
	case scheme == provider.SigV4Auth || scheme == provider.GoogleOAuth || scheme == provider.OCIAuth,
		scheme == provider.AzureAuth && t.Field("azure_auth_mode") != "" && t.Credential.Key == "":
		req.Header.Set("Authorization", "to be made")
		return nil
	}
	return t.Authorize(tg.Req.Ctx, req, body)
}

// discard ends a call that was never sent, without a record.
func discard(c *call) {
	c.req.RunDeferred()
	c.reset()
}

// DryRunRequest is the body of a dry run: a request that goes through the pipeline without being
// sent.
type DryRunRequest struct {
	// Config is a config in JSON, or the id or slug of a saved one; if absent, the defaults of
	// the key and the workspace.
	Config  json.RawMessage   `json:"config"`
	Method  string            `json:"method"` // POST when empty
	Path    string            `json:"path"`   // below the base URL
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	// Assume are the statuses that the targets are assumed to return, in the order in which they
	// are called; 200 for those beyond it.
	Assume []int `json:"assume"`
}

// MaxDryRunTargets limits the targets of one response.
const MaxDryRunTargets = 100

// ReadDryRun reads and checks the body of a dry run.
func ReadDryRun(body []byte) (*DryRunRequest, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	q := &DryRunRequest{Method: http.MethodPost}
	if err := d.Decode(q); err != nil {
		return nil, fault.New(fault.InvalidRequest, "body", "must be an object of config, method, path, headers, body and assume, each with its documented type")
	}
	switch {
	case !strings.HasPrefix(q.Path, "/") || strings.ContainsAny(q.Path, " ?#\t\r\n") || len(q.Path) > 2048:
		return nil, fault.Invalid("path", "must be a path below the base URL, such as /chat/completions")
	case !slices.Contains([]string{"POST", "GET", "PUT", "DELETE"}, q.Method):
		return nil, fault.Invalid("method", "must be POST, GET, PUT or DELETE")
	case len(q.Assume) > MaxDryRunTargets:
		return nil, fault.Invalid("assume", "must have at most %d statuses", MaxDryRunTargets)
	case len(q.Headers) > 100:
		return nil, fault.Invalid("headers", "must have at most 100 fields")
	}
	for _, status := range q.Assume {
		if status < 200 || status > 599 {
			return nil, fault.Invalid("assume", "must contain statuses from 200 to 599")
		}
	}
	for name, value := range q.Headers {
		if !headerText(name) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fault.Invalid("headers", "must contain names and values of headers")
		}
	}
	return q, nil
}

func headerText(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) })
}

// HasInlineConfig reports whether the dry run contains an inline config.
func (q *DryRunRequest) HasInlineConfig() bool {
	config := bytes.TrimSpace(q.Config)
	return len(config) > 0 && string(config) != "null"
}

// Imagined returns the request of the dry run: the caller's own, with the headers of the dry
// run.
func (q *DryRunRequest) Imagined(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, q.Method, "http://gateway"+routes.BasePath+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return nil, fault.Invalid("path", "must be a path below the base URL, such as /chat/completions")
	}
	for name, value := range q.Headers {
		req.Header.Set(name, value)
	}
	if len(q.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.HasInlineConfig() {
		config := bytes.TrimSpace(q.Config)
		text := string(config)
		if config[0] == '"' {
			if json.Unmarshal(config, &text) != nil {
				return nil, fault.Invalid("config", "must be a config, or the id or slug of a saved one")
			}
		}
		req.Header[admission.Config] = []string{text}
	}
	return req, nil
}

// orEmpty returns an empty list instead of nil.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// ErrUnsent discards the response.
type ErrUnsent struct{}

func (ErrUnsent) Header() http.Header { return http.Header{} }

func (ErrUnsent) Write(p []byte) (int, error) { return io.Discard.Write(p) }

func (ErrUnsent) WriteHeader(int) {}
