package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"gateway/shared/cache"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// Admits reports whether the holder of a key may still run batches; maker is the creator of the
// batch. The fault is a 401 or 403. It is returned with closing, the former holder: on its
// behalf work may be ended, but not started.
func (m *Mux) Admits(ctx context.Context, sc store.Scope, key string, maker *batch.Creator) (closing *identity.Principal, left *fault.Fault, err error) {
	const scope = "completions.write"
	auth := m.relay.Auth
	who, err := auth.ByHash(ctx, key)
	switch {
	case err == nil && who.Has(scope):
		return nil, nil, nil
	case err == nil:
		left = fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", scope)
	default:
		if left = fault.From(err); left.Status() != http.StatusUnauthorized {
			return nil, nil, err
		}
	}
	if closing, err = auth.ExpiredPrincipal(ctx, sc, maker.KeyID, scope); err != nil {
		return nil, nil, err
	}
	return closing.As(identity.KeyType(maker.Type), maker.User, maker.Slug), left, nil
}

// Run sends a request through the pipeline on behalf of a principal. Its response was truncated
// if broken is true; a panic truncates it as well, and ends nothing else. The request contains
// no credential of the gateway.
func (m *Mux) Run(w http.ResponseWriter, req *http.Request, behalf *admission.InternalCall) (broken bool) {
	rt, id := m.Match(req.Method, req.URL.EscapedPath())
	if rt == nil {
		routes.NotFound(w)
		return false
	}
	return m.relay.run(w, req, rt, id, behalf)
}

// run sends a request through the pipeline on behalf of a principal: see Mux.Run.
func (r *Relay) run(w http.ResponseWriter, req *http.Request, rt *routes.Route, id string, behalf *admission.InternalCall) (broken bool) {
	defer func() {
		v := recover()
		if broken = v != nil; broken && v != http.ErrAbortHandler {
			// No server recovers it, as for a client's request.
			slog.Error("request panicked", "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		}
	}()
	r.serveFor(w, req, rt, id, behalf)
	return false
}

// embedRoute is the route of embeddings for the cache.
var embedRoute = &routes.Route{
	Method: http.MethodPost, Path: "/embeddings", Endpoint: "embed", BodyMode: routes.Unified, Scope: "completions.write",
	Operation: provider.Embeddings, Check: openai.CheckEmbeddings, Meter: openai.MeterEmbeddings, NoOutput: true,
}

// embedLimit is the total time for an embedding. The request only waits for CacheTimes.Embed.
const embedLimit = 5 * time.Second

// maxEmbedding limits its response, in bytes.
const maxEmbedding = 4 << 20

// embedder serves the cache's embeddings as requests of the same caller: they count against its
// budgets and have separate records, which name their parent. They have no cache and no
// guardrails. It holds copies of the request's values, not the request, which continues
// concurrently.
type embedder struct {
	relay *Relay
	with  *route.CacheEmbedder
	from  lineage
}

// lineage holds the values that a child request gets from its parent.
type lineage struct {
	caller   admission.Caller
	metadata map[string]string
	ask      admission.Headers
}

var _ cache.Embedder = (*embedder)(nil)

// Embedder implements caching.Pipeline.
func (c *call) Embedder(with *route.CacheEmbedder) cache.Embedder {
	ask := admission.Headers{TraceID: c.req.Headers.TraceID, SpanID: admission.NewSpanID(), ParentSpanID: cmp.Or(c.req.Headers.SpanID, c.req.ULID), NoBodies: c.req.Headers.NoBodies}
	return &embedder{relay: c.relay, with: with, from: lineage{c.req.Caller, maps.Clone(c.body.Metadata), ask}}
}

// Flush implements caching.Pipeline.
func (c *call) Flush() { c.reply.flush() }

// Embed implements cache.Embedder.
func (e *embedder) Embed(ctx context.Context, text string) ([]float32, error) {
	body := wire.AppendJSONString([]byte(`{"model":`), e.with.Model)
	body = wire.AppendJSONString(append(body, `,"input":`...), text)
	body = append(body, '}')
	timeout := embedLimit.Milliseconds()
	cfg := &route.Config{Path: "config", Weight: 1, Provider: "@" + e.with.Slug, RequestTimeout: &timeout}
	tree, details := cfg.Compile()
	if len(details) > 0 {
		return nil, fmt.Errorf("relay: embedder: %s: %s", details[0].Field, details[0].Message)
	}
	req := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: routes.BasePath + embedRoute.Path}, Header: http.Header{"Content-Type": jsonType},
		Body: http.NoBody, ContentLength: int64(len(body)),
	}).WithContext(context.WithoutCancel(ctx))
	w := response.Recorder{Max: maxEmbedding}
	e.relay.serveChild(&w, req, &e.from, body, tree)
	if w.Status != http.StatusOK || w.Overflowed {
		return nil, fmt.Errorf("relay: the embedder responded with status %d", w.Status)
	}
	var answer struct {
		Data []struct {
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Data) != 1 {
		return nil, errors.New("relay: the embedder's response is not one vector")
	}
	return answer.Data[0].Embedding, nil
}

// serveChild sends a child request through the pipeline, starting after admission: its parent
// has been admitted.
func (r *Relay) serveChild(w http.ResponseWriter, req *http.Request, from *lineage, body []byte, tree *route.Tree) {
	c := r.calls.Get().(*call)
	c.begin(r, w, req, embedRoute, "", nil)
	admission.MakeChild(&c.req, from.caller, from.ask)
	c.body.Inherit(from.metadata)
	limit := time.AfterFunc(2*embedLimit, c.req.Stop)
	err := c.body.ReadFrom(body)
	if err == nil {
		c.target.ResetDemands()
		c.plan.Follow(tree)
		err = relay(c)
	}
	if err != nil {
		reject(c, err)
	}
	finish(c)
	limit.Stop()
	c.reset()
	r.calls.Put(c)
}

// await has a background response polled until it has ended, so that it is charged even if its
// client never reads it. The message is queued before the client gets the response's id.
func (r *Relay) await(b target.ChargeClaims, id string) {
	if r.Runs == nil {
		return
	}
	ctx := b.Target.Req.Base // the provider continues even if the client disconnects
	hash := b.Target.Req.KeyHash()
	org, place := b.At()
	a := &batch.PolledResponse{
		Org: org, Place: place, Path: b.PathOfLooks(id),
		ID: id, Key: hash, Headers: headersOfLooks(b.Target), Created: b.Target.Req.Now().Unix(),
		Creator: batch.Creator{KeyID: b.Target.Req.Principal.KeyID, Type: string(b.Target.Req.Principal.Type), User: b.Target.Req.Principal.UserID, Slug: b.Target.Req.Principal.WorkspaceSlug},
	}
	err := r.Auth.Entrust(ctx, b.Target.Req.Principal, hash, b.Target.Req.Now().Add(batch.MaxPollAge))
	if err == nil {
		message, failed := r.batches.SchedulePoll(ctx, b.Target.Req.Principal.Scope, a)
		if err = failed; err == nil {
			err = r.Runs.Send(ctx, message)
		}
	}
	b.Target.Req.Fail("await a background response", err)
}

// headersOfLooks returns the headers that route a later read to the provider of the background
// response: they name the saved provider, even if a config chose it; with a credential of the
// client's own they are the client's headers.
func headersOfLooks(tg *target.Target) http.Header {
	out := make(http.Header)
	from := tg.Req.HeadersForProvider()
	if tg.Choice.Saved != nil {
		out[admission.Provider] = []string{"@" + tg.Choice.Saved.Slug}
	} else {
		for name, v := range from {
			if leadsOn(name) {
				out[name] = v
			}
		}
		for _, name := range tg.Req.Headers.Forward {
			if v := from[name]; len(v) > 0 {
				out[name] = v
			}
		}
	}
	for _, name := range [...]string{"X-Gateway-Debug", "X-Gateway-Sensitive-Headers"} {
		if v := from[name]; len(v) > 0 {
			out[name] = v
		}
	}
	out.Set(admission.TraceID, tg.Req.Headers.TraceID)
	out.Set(admission.ParentSpanID, cmp.Or(tg.Req.Headers.SpanID, tg.Req.ULID))
	if len(tg.Body.Metadata) > 0 {
		b, _ := json.Marshal(tg.Body.Metadata) // texts
		out.Set(admission.Metadata, string(b))
	}
	return out
}

// leadsOn reports whether a header of a client affects the choice of the provider or of the
// account.
func leadsOn(name string) bool {
	switch name {
	case "X-Gateway-Api-Key", "X-Gateway-Span-Id", "X-Gateway-Request-Timeout", admission.Translation:
		return false
	case "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Openai-Organization", "Openai-Project":
		return true
	}
	return strings.HasPrefix(name, "X-Gateway-")
}

// Charged reports whether an awaited response was charged.
func (m *Mux) Charged(ctx context.Context, sc store.Scope, a *batch.PolledResponse) (bool, error) {
	if a.Org {
		sc = sc.Organisation()
	}
	return m.relay.owners.Claimed(ctx, sc, a.Place, a.ID)
}

// Settler returns the principal for polling an awaited response: the key that created it, even
// if it is no longer valid, because the money is spent.
func (m *Mux) Settler(ctx context.Context, sc store.Scope, a *batch.PolledResponse) (*InternalCall, error) {
	closing, _, err := m.Admits(ctx, sc, a.Key, &a.Creator)
	if err != nil {
		return nil, err
	}
	return &InternalCall{Key: a.Key, Closing: closing, Settling: true}, nil
}
