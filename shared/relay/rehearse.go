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
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/mask"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
)

// Rehearsal is a request that is to be walked through without sending anything:
// the body of a dry run.
type Rehearsal struct {
	// Config is a config in JSON, or the id or slug of a saved one; absent: what
	// the key and the workspace have as default.
	Config  json.RawMessage   `json:"config"`
	Method  string            `json:"method"` // POST when empty
	Path    string            `json:"path"`   // below the base URL
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	// Assume are the statuses that the targets are taken to answer with, in the
	// order in which they are called; 200 for those beyond it.
	Assume []int `json:"assume"`
}

// maxRehearsed bounds the targets of one answer.
const maxRehearsed = 100

// ReadRehearsal reads and checks the body of a dry run.
func ReadRehearsal(body []byte) (*Rehearsal, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	q := &Rehearsal{Method: http.MethodPost}
	if err := d.Decode(q); err != nil {
		return nil, fault.New(fault.InvalidRequest, "body", "must be an object of config, method, path, headers, body and assume, each of its own type")
	}
	switch {
	case !strings.HasPrefix(q.Path, "/") || strings.ContainsAny(q.Path, " ?#\t\r\n") || len(q.Path) > 2048:
		return nil, fault.Invalid("path", "must be a path below the base URL, such as /chat/completions")
	case !slices.Contains([]string{"POST", "GET", "PUT", "DELETE"}, q.Method):
		return nil, fault.Invalid("method", "must be POST, GET, PUT or DELETE")
	case len(q.Assume) > maxRehearsed:
		return nil, fault.Invalid("assume", "must have at most %d statuses", maxRehearsed)
	case len(q.Headers) > 100:
		return nil, fault.Invalid("headers", "must have at most 100 members")
	}
	for _, status := range q.Assume {
		if status < 200 || status > 599 {
			return nil, fault.Invalid("assume", "must hold statuses from 200 to 599")
		}
	}
	for name, value := range q.Headers {
		if !headerText(name) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fault.Invalid("headers", "must hold names and values of headers")
		}
	}
	return q, nil
}

func headerText(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) })
}

// rehearse answers a dry run.
func (c *call) rehearse() error {
	q, err := ReadRehearsal(c.In)
	if err != nil {
		return err
	}
	rt, id := c.Route.Rehearses(q.Method, q.Path)
	if rt == nil || rt.Shape == routes.Listing || rt.Shape == routes.Multipart {
		return fault.Invalid("path", "must be a route of the data plane that takes JSON, such as /chat/completions")
	}
	req, err := q.imagined(c.Ctx)
	if err != nil {
		return err
	}
	in := rehearsal{newCall()}
	in.begin(c.Relay, unsent{}, req, rt)
	defer in.forget()
	in.PathID, in.Rehearsing = id, true
	in.Caller = c.Caller
	in.KeyInAuth = false
	// The config is tried out: also one that could not come with a request.
	in.Trial = q.brings()
	out := &rehearsed{Object: "dry-run", Endpoint: rt.Endpoint, Targets: []rehearsedTarget{}, Decision: noDecision()}
	if err := in.enter(); err != nil {
		out.Error = told(err)
	} else {
		out.Error = in.walkThrough(q, out)
	}
	if in.Config != (plan.UsedConfig{}) {
		out.Config = &rehearsedConfig{in.Config.ID, in.Config.Slug, in.Config.Version, in.Config.Mode}
	}
	if out.Limits, err = c.limitsOf(c.Who.Subject, c.WS.Subject); err != nil {
		return err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fault.Internal(err)
	}
	c.sendJSON(body, nil)
	return nil
}

// rehearsal is a call that is walked through and sends nothing.
type rehearsal struct{ *call }

// brings tells whether a config comes with the dry run itself.
func (q *Rehearsal) brings() bool {
	config := bytes.TrimSpace(q.Config)
	return len(config) > 0 && string(config) != "null"
}

// imagined makes the request that is walked through: the caller's own, with the
// headers of the dry run.
func (q *Rehearsal) imagined(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, q.Method, "http://gateway"+routes.BasePath+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return nil, fault.Invalid("path", "must be a path below the base URL, such as /chat/completions")
	}
	for name, value := range q.Headers {
		req.Header.Set(name, value)
	}
	if len(q.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	if q.brings() {
		config := bytes.TrimSpace(q.Config)
		text := string(config)
		if config[0] == '"' {
			if json.Unmarshal(config, &text) != nil {
				return nil, fault.Invalid("config", "must be a config, or the id or slug of a saved one")
			}
		}
		req.Header[asked.Config] = []string{text}
	}
	return req, nil
}

// enter is admission for a caller who is known already, without counting.
func (re rehearsal) enter() error {
	if !re.Who.Has(re.Route.Scope) && !slices.ContainsFunc(re.Route.OrScopes, re.Who.Has) {
		return fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", re.Route.Scope)
	}
	if err := re.Ask.Read(re.Req.Header); err != nil {
		return err
	}
	if err := re.Read(); err != nil {
		return err
	}
	re.Demands = re.Own
	return re.Resolve(re.sources)
}

// walkThrough goes from target to target as a request would, with answers that
// are assumed.
func (re rehearsal) walkThrough(q *Rehearsal, out *rehearsed) *rehearsedError {
	outcome := route.Outcome{}
	called := 0
	for len(out.Targets) < maxRehearsed {
		leaf, f := re.Walker.Next(outcome)
		if f != nil {
			return told(f)
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
	out.Decision = decisionOf(re.Walker)
	return nil
}

// orEmpty shows no entries as an empty list.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// imagineTarget is what would be sent to a target.
func (re rehearsal) imagineTarget(leaf *route.Leaf) rehearsedTarget {
	re.Loss.Reset()
	t := rehearsedTarget{Path: leaf.Path, Losses: []rehearsedLoss{}, Limits: []rehearsedLimit{}, Guardrails: []string{}, TimeoutMS: leaf.Timeout.Milliseconds()}
	for _, g := range append(slices.Clone(leaf.Input), leaf.Output...) {
		t.Guardrails = append(t.Guardrails, g.Slug)
	}
	if leaf.Cache != nil {
		age := cache.Age(re.Org.Settings.CacheAge(leaf.Cache.MaxAge))
		t.Cache = &rehearsedCache{leaf.Cache.Mode, int64(age / time.Second)}
	}
	if leaf.Retry != nil {
		t.Retries = leaf.Retry.Attempts
	}
	err := re.imagineCall(leaf, &t)
	if p := re.To.Target.Provider; p != nil {
		t.Provider, t.Model = p.ID, re.To.Upstream
		if re.To.Names.Slug != "" && re.To.Saved != nil {
			slug := re.To.Names.Slug
			t.Slug = &slug
		}
	}
	for _, e := range re.Loss.Entries {
		t.Losses = append(t.Losses, rehearsedLoss{e.Path, e.Reason})
	}
	if err != nil {
		t.Error = told(err)
	}
	return t
}

func (re rehearsal) imagineCall(leaf *route.Leaf, t *rehearsedTarget) error {
	if err := re.Choose(leaf); err != nil {
		return err
	}
	if err := re.guardInput(leaf); err != nil {
		return err
	}
	t.Stream, t.Answered = re.Stream, re.To.Local
	var err error
	if t.Limits, err = re.limitsOf(re.To.Subjects...); err != nil {
		return err
	}
	body, err := re.upstreamBody()
	if err != nil {
		return err
	}
	bound := re.boundOf()
	t.PriceBound = &rehearsedBound{Cents: float64(bound.Cost) / 1e7, Tokens: bound.Tokens, Priced: bound.Priced}
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
	shown := appendHeaders(nil, req.Header, re.customNames(slices.Clone(re.Ask.Sensitive)))
	mask.Bytes(shown, re.To.Target.Secrets(nil, true))
	if err := json.Unmarshal(shown, &t.Headers); err != nil {
		return fault.Internal(err)
	}
	return nil
}

// imagineCredential gives the request its credential, so that one that is missing
// is told. Where a token would have to be asked for, something stands in its
// place.
func (re rehearsal) imagineCredential(req *http.Request, body []byte) error {
	t := &re.To.Target
	switch scheme := t.Provider.Auth.Scheme; {
	case scheme == provider.SigV4Auth || scheme == provider.GoogleOAuth || scheme == provider.OCIAuth,
		scheme == provider.AzureAuth && t.Field("azure_auth_mode") != "" && t.Credential.Key == "":
		req.Header.Set("Authorization", "to be made")
		return nil
	}
	return t.Authorize(re.Ctx, req, body)
}

// limitsOf shows limits and where their budgets stand.
func (o *outbound) limitsOf(subjects ...*ledger.Subject) ([]rehearsedLimit, error) {
	out := []rehearsedLimit{}
	for _, s := range subjects {
		if s == nil || len(s.Rates)+len(s.Budgets) == 0 {
			continue
		}
		budgets, err := o.Ledger.State(o.Ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, rehearsedLimit{Kind: s.Kind, Name: s.Label, Rates: orEmpty(s.Rates), Budgets: orEmpty(budgets)})
	}
	return out, nil
}

// forget ends a call that was never sent and leaves no books.
func (re rehearsal) forget() {
	re.Over()
	re.reset()
}

// unsent is the answer that nobody gets.
type unsent struct{}

func (unsent) Header() http.Header         { return http.Header{} }
func (unsent) Write(p []byte) (int, error) { return io.Discard.Write(p) }
func (unsent) WriteHeader(int)             {}
