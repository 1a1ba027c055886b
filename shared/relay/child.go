package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"gateway/shared/cache"
	"gateway/shared/dialect/openai"
	"gateway/shared/identity"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/tenant"
	"gateway/shared/wire"
)

// embedRoute is the route of embeddings for the cache.
var embedRoute = &routes.Route{
	Method: http.MethodPost, Path: "/embeddings", Endpoint: "embed", Shape: routes.Unified, Scope: "completions.write",
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
	who      *identity.Principal
	view     *resource.View
	ws       *tenant.Effective
	org      *tenant.Organisation
	token    string
	metadata map[string]string
	ask      admission.Headers
}

var _ cache.Embedder = (*embedder)(nil)

// Embedder implements reused.Walk.
func (c *call) Embedder(with *route.CacheEmbedder) cache.Embedder {
	ask := admission.Headers{TraceID: c.req.Ask.TraceID, SpanID: admission.NewSpanID(), ParentSpanID: c.req.Ask.SpanID, NoBodies: c.req.Ask.NoBodies}
	if ask.ParentSpanID == "" {
		ask.ParentSpanID = c.req.ULID
	}
	return &embedder{relay: c.relay, with: with, from: lineage{c.req.Who, c.req.View, c.req.WS, c.req.Org, c.req.Token, maps.Clone(c.body.Metadata), ask}}
}

// Flush implements reused.Walk.
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
	if w.Status != http.StatusOK || w.Over {
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
	c.begin(r, w, req, embedRoute)
	c.req.Child = true
	limit := time.AfterFunc(2*embedLimit, c.req.Stop)
	c.req.Who, c.req.View, c.req.WS, c.req.Org = from.who, from.view, from.ws, from.org
	c.req.Token, c.body.Metadata, c.req.Ask = from.token, from.metadata, from.ask
	c.req.Trace()
	err := c.body.ReadFrom(body)
	if err == nil {
		c.target.Demands = c.body.Own
		c.plan.Follow(tree)
		err = relay(c)
	}
	if err != nil {
		refuse(c, err)
	}
	finish(c)
	limit.Stop()
	c.reset()
	r.calls.Put(c)
}
