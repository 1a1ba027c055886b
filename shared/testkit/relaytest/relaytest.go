// Package relaytest runs the request pipeline in the process of a test: a relay over an embedded
// store, with providers that are a script, a clock that the test moves and waits that take no
// time. Only tests import it.
package relaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/app"
	"gateway/shared/app/plane"
	"gateway/shared/blob/files"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/relay/caching"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant"
	"gateway/shared/usage"
)

// Reply is the response of a provider to one call.
type Reply struct {
	Status int         // 0: there is no response, and Err is the reason
	Header http.Header // with a Content-Length, the length of Body is announced
	Body   string
	Cut    bool          // the connection breaks after Body
	Hang   bool          // there is no response before the request is canceled
	Stall  bool          // nothing follows Body before the request is canceled
	Delay  time.Duration // before the response
	Pace   time.Duration // before each event of Body
	For    string        // the credential of the call that it is for; "": any
	Err    error
}

// Call is a request that a provider has received.
type Call struct {
	Method, URL string
	Header      http.Header
	Body        string
}

// Gateway is a data plane with one workspace. Its methods fail the test on any error of their
// own.
type Gateway struct {
	t         testing.TB
	core      *app.Core
	relay     *relay.Relay
	mux       http.Handler
	workspace store.Scope
	saved     []saved // of every workspace
	key       string  // used by Do unless a request has another

	clock atomic.Int64 // nanoseconds since 1970; only the test and waits move it

	mu      sync.Mutex
	replies []Reply
	respond func(Call) Reply // instead of replies
	calls   []Call
	waits   []time.Duration
	records []usage.Record
}

// Saved names the saved provider of every workspace: OpenAI, with one credential for all.
const Saved = "@shared"

// saved is a provider of an integration that all workspaces use.
type saved struct{ slug, integration, provider string }

// New returns a gateway with routes, whose organization allows inline configuration.
func New(t testing.TB, routes []relay.Route) *Gateway {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(filepath.Join(dir, "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := files.Open(filepath.Join(dir, "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := local.Open(filepath.Join(dir, "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{t: t}
	g.clock.Store(time.Now().Truncate(time.Minute).UnixNano())
	g.core = app.New(app.Backends{Store: s, Embedded: true, Bucket: bucket, Sealer: seal.New(keys, g.now)}, app.Settings{Now: g.now})
	g.core.Transport, g.core.TrustedTransport = g, g
	made, err := g.core.Bootstrap(t.Context(), app.First{AllowInline: true})
	if err != nil {
		t.Fatal(err)
	}
	g.key = made.WorkspaceKey
	ws, ok, err := g.core.Resources.Get(t.Context(), store.Scope{Org: "default"}, tenant.KindWorkspace, "default")
	if err != nil || !ok {
		t.Fatal("no workspace: ", err)
	}
	g.workspace = store.Scope{Org: "default", Workspace: ws.ID}
	g.Provider(strings.TrimPrefix(Saved, "@"), "sk-shared", provider.Integration{AIProviderID: "openai"})
	g.relay = plane.New(g.core, g, plane.Options{Translators: plane.Translators(), Jobs: plane.Jobs()})
	g.relay.Sleep = g.sleep
	g.relay.CacheTimes = caching.Times{Read: time.Minute, Write: time.Minute, Embed: time.Minute} // what is stored is found, however busy the machine is
	g.mux = relay.NewMux(g.relay, routes)
	t.Cleanup(func() {
		g.relay.Close()
		if err := errors.Join(s.Close(), bucket.Close()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g *Gateway) now() time.Time { return time.Unix(0, g.clock.Load()).UTC() }

// Forward moves the clock.
func (g *Gateway) Forward(d time.Duration) { g.clock.Add(int64(d)) }

func (g *Gateway) sleep(_ <-chan struct{}, d time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = append(g.waits, d)
	g.Forward(d)
	return true
}

// Emit implements usage.Sink.
func (g *Gateway) Emit(_ context.Context, r *usage.Record) error {
	raw := r.AppendEvent(nil)
	kept, err := usage.DecodeEvent(raw)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.records = append(g.records, kept)
	return nil
}

// Script sets the replies of providers to the following calls, in their order.
func (g *Gateway) Script(replies ...Reply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies, g.respond = replies, nil
}

// Respond has providers reply to the following calls with the results of f, in any number.
// f must be safe for concurrent use.
func (g *Gateway) Respond(f func(Call) Reply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.respond = f
}

// RoundTrip implements http.RoundTripper.
func (g *Gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	r, err := g.next(req, string(body))
	if err != nil {
		return nil, err
	}
	if r.Hang {
		return nil, hang(req.Context())
	}
	if err := pause(req.Context(), r.Delay); err != nil {
		return nil, err
	}
	if r.Status == 0 {
		return nil, r.Err
	}
	return r.response(req), nil
}

// hang waits until a request is canceled.
func hang(ctx context.Context) error {
	if err := pause(ctx, time.Minute); err != nil {
		return err
	}
	return errors.New("the request was not canceled")
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// next records a call and returns its reply.
func (g *Gateway) next(req *http.Request, body string) (Reply, error) {
	host := req.URL.Host
	if host == "" {
		host = req.Host
	}
	call := Call{req.Method, req.URL.Scheme + "://" + host + req.URL.RequestURI(), req.Header.Clone(), body}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, call)
	if g.respond != nil {
		return g.respond(call), nil
	}
	for i, r := range g.replies {
		if r.For == "" || strings.HasSuffix(req.Header.Get("Authorization"), " "+r.For) {
			g.replies = append(g.replies[:i:i], g.replies[i+1:]...)
			return r, nil
		}
	}
	return Reply{}, errors.New("the script has no further reply")
}

func (r *Reply) response(req *http.Request) *http.Response {
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
		if strings.HasPrefix(r.Body, "data:") || strings.HasPrefix(r.Body, "event:") {
			h.Set("Content-Type", "text/event-stream")
		}
	}
	length := int64(-1)
	if h.Get("Content-Length") != "" {
		length = int64(len(r.Body))
	}
	var from io.Reader = strings.NewReader(r.Body)
	if r.Pace > 0 {
		from = &paced{req.Context(), r.Pace, strings.SplitAfter(r.Body, "\n\n")}
	}
	if r.Cut {
		from = io.MultiReader(from, broken{})
	}
	if r.Stall {
		from = io.MultiReader(from, stalled{req.Context()})
	}
	return &http.Response{
		Status: http.StatusText(r.Status), StatusCode: r.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(from), ContentLength: length, Request: req,
	}
}

// broken is a connection that has broken.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// stalled is a connection on which nothing follows.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) { return 0, hang(s.ctx) }

// paced is a stream whose events arrive one by one.
type paced struct {
	ctx   context.Context
	pause time.Duration
	rest  []string
}

func (p *paced) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	if err := pause(p.ctx, p.pause); err != nil {
		return 0, err
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; p.rest[0] == "" {
		p.rest = p.rest[1:]
	}
	return n, nil
}

// Response is what a client has received.
type Response struct {
	Status  int
	Header  http.Header
	Body    string
	Aborted bool // the connection was aborted in the middle of the response
}

// Do sends a request, with headers as name and value in turn. Unless Authorization or
// X-Gateway-Api-Key is among them, it has the workspace's key.
func (g *Gateway) Do(method, path, body string, headers ...string) (out Response) {
	g.t.Helper()
	req := httptest.NewRequestWithContext(g.t.Context(), method, path, bytes.NewReader([]byte(body)))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if req.Header.Get("Authorization") == "" && req.Header.Get("X-Gateway-Api-Key") == "" {
		req.Header.Set("X-Gateway-Api-Key", g.key)
	}
	w := httptest.NewRecorder()
	defer func() {
		switch r := recover(); r {
		case nil:
		case http.ErrAbortHandler:
			out.Aborted = true
		default:
			panic(r)
		}
		out.Status, out.Header, out.Body = w.Code, w.Header(), w.Body.String()
	}()
	g.mux.ServeHTTP(w, req)
	return out
}

// Calls returns what the providers have received since the last call of Calls.
func (g *Gateway) Calls() []Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.calls
	g.calls = nil
	return out
}

// Waits returns the waits before retries since the last call of Waits.
func (g *Gateway) Waits() []time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.waits
	g.waits = nil
	return out
}

// Records returns the records since the last call of Records or Record.
func (g *Gateway) Records() []usage.Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.records
	g.records = nil
	return out
}

// Record returns the only record since the last call of Records or Record.
func (g *Gateway) Record() usage.Record {
	g.t.Helper()
	all := g.Records()
	if len(all) != 1 {
		g.t.Fatalf("%d records; want one", len(all))
	}
	return all[0]
}

// Bodies returns the logged bodies of a record; zero if it has none.
func (g *Gateway) Bodies(r *usage.Record) usage.Bodies {
	g.t.Helper()
	if len(r.Bodies) == 0 {
		return usage.Bodies{}
	}
	plain, err := g.core.Sealer.Open(g.t.Context(), r.BodiesBinding(), r.Bodies)
	if err != nil {
		g.t.Fatal(err)
	}
	out, err := usage.DecodeBodies(plain)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// Workspace creates another workspace and returns a key of it.
func (g *Gateway) Workspace(slug string) (key string) {
	g.t.Helper()
	rec := resource.Record{Scope: store.Scope{Org: g.workspace.Org}, Kind: tenant.KindWorkspace, ID: resource.NewID(), Slug: slug, Name: slug, Status: tenant.StatusActive, Body: []byte(`{"defaults":{}}`)}
	g.change(func(tx *resource.Tx) error { return tx.Create(&rec) })
	in := store.Scope{Org: g.workspace.Org, Workspace: rec.ID}
	g.save(in, g.saved)
	return g.keyIn(in, slug, []string{"completions.write"}, nil, nil)
}

// Provider saves a provider for the first workspace and those that are created later, with one
// credential for all of them. All of its models are enabled unless in lists some.
func (g *Gateway) Provider(slug, secret string, in provider.Integration) {
	g.t.Helper()
	in.Global, in.AllowAllModels = provider.GlobalAccess{Enabled: true}, in.Models == nil
	form, err := json.Marshal(in)
	if err != nil {
		g.t.Fatal(err)
	}
	rec := resource.Record{Scope: store.Scope{Org: g.workspace.Org}, Kind: provider.KindIntegration, ID: resource.NewID(), Slug: slug, Name: slug, Status: provider.StatusActive, Body: form}
	if err := rec.SetSecret(g.t.Context(), g.core.Sealer, provider.SecretKey, []byte(secret)); err != nil {
		g.t.Fatal(err)
	}
	g.change(func(tx *resource.Tx) error { return tx.Create(&rec) })
	g.saved = append(g.saved, saved{slug, rec.ID, in.AIProviderID})
	g.save(g.workspace, g.saved[len(g.saved)-1:])
}

// save saves providers in a workspace.
func (g *Gateway) save(in store.Scope, all []saved) {
	g.t.Helper()
	for _, s := range all {
		form, err := json.Marshal(provider.Instance{IntegrationID: s.integration, IntegrationSlug: s.slug, IntegrationOrg: true, AIProviderID: s.provider})
		if err != nil {
			g.t.Fatal(err)
		}
		rec := resource.Record{Scope: in, Kind: provider.KindProvider, Slug: s.slug, Name: s.slug, Status: provider.StatusActive, Body: form}
		g.change(func(tx *resource.Tx) error { return tx.Create(&rec) })
	}
}

// Key creates a key of the workspace with scopes and limits, and returns it.
func (g *Gateway) Key(scopes []string, rates []ledger.RateLimit, budget *ledger.UsageLimit) string {
	g.t.Helper()
	return g.keyIn(g.workspace, "default", scopes, rates, budget)
}

func (g *Gateway) keyIn(sc store.Scope, slug string, scopes []string, rates []ledger.RateLimit, budget *ledger.UsageLimit) string {
	g.t.Helper()
	raw, secret := identity.NewSecret()
	k := identity.Key{Type: identity.WorkspaceService, CreationMode: "auto", Rank: identity.RankWorkspaceAdmin, Scopes: scopes, RateLimits: rates, UsageLimits: budget, Secret: secret}
	body, err := json.Marshal(&k)
	if err != nil {
		g.t.Fatal(err)
	}
	g.change(func(tx *resource.Tx) error {
		rec := resource.Record{Scope: sc, Kind: identity.KindKey, Name: "key", Status: identity.StatusActive, Body: body, Fields: map[string]string{"type": string(k.Type)}}
		if err := tx.Create(&rec); err != nil {
			return err
		}
		return identity.Stage(tx, &rec, &k, slug)
	})
	return raw
}

// Budget returns the state of the only budget of a key.
func (g *Gateway) Budget(key string) ledger.BudgetState {
	g.t.Helper()
	p, err := g.core.Auth.Authenticate(g.t.Context(), key, identity.AuthenticationAttempt{})
	if err != nil {
		g.t.Fatal(err)
	}
	all, err := g.core.Ledger.State(g.t.Context(), p.Subject)
	if err != nil || len(all) != 1 {
		g.t.Fatalf("%d budgets: %v", len(all), err)
	}
	return all[0]
}

func (g *Gateway) change(fn func(tx *resource.Tx) error) {
	g.t.Helper()
	if err := g.core.Resources.Change(g.t.Context(), store.Scope{Org: g.workspace.Org}, fn); err != nil {
		g.t.Fatal(err)
	}
}
