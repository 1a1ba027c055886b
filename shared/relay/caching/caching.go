// Package caching is the response cache of one request: which requests match, exactly or
// semantically, which responses are stored, and the cache status.
package caching

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// Values of the cache status, in the response's header and in the record.
const (
	Disabled     = "DISABLED"
	hit          = "HIT"
	miss         = "MISS"
	semanticHit  = "SEMANTIC HIT"
	semanticMiss = "SEMANTIC MISS"
	refresh      = "REFRESH"
)

const (
	headerCacheNamespace = "X-Gateway-Cache-Namespace"
	headerCacheRefresh   = "X-Gateway-Cache-Force-Refresh"
	maxNamespace         = 256 // bytes
)

// Times are how long a request waits for its cache. A timeout of the store is a miss; a response
// that cannot be stored in time is not cached.
type Times struct {
	Read  time.Duration // 0: 1 s
	Write time.Duration // 0: 2 s
	Embed time.Duration // for the vector of a text; 0: 150 ms
}

// OrStandard is t with the standard times for those that are 0.
func (t Times) OrStandard() Times {
	return Times{Read: cmp.Or(t.Read, time.Second), Write: cmp.Or(t.Write, 2*time.Second), Embed: cmp.Or(t.Embed, 150*time.Millisecond)}
}

// Cache is the response cache of one request, at the current target.
type Cache struct {
	Target   *target.Target
	Bill     *accounting.Bill
	Guards   *guardrail.State
	Secrets  *target.SecretMask
	Pipeline Pipeline
	Backend  *cache.Cache // nil: nothing is cached
	Times    Times
	Status   string       // for the response's header and the record
	Hit      *cache.Entry // id of the response that is used
	at       *looking     // nil: the target's responses are not cached
	like     similar
}

// Pipeline holds the operations of the pipeline that the cache calls.
type Pipeline interface {
	// Embedder makes vectors on behalf of the request.
	Embedder(with *route.CacheEmbedder) cache.Embedder
	// Flush sends buffered output before the process waits.
	Flush()
}

// Connect sets the values of the earlier stages.
func (ca *Cache) Connect(t *target.Target, b *accounting.Bill, g *guardrail.State, m *target.SecretMask) {
	ca.Target, ca.Bill, ca.Guards, ca.Secrets = t, b, g, m
}

// SetDeps sets the dependencies of a request.
func (ca *Cache) SetDeps(store *cache.Cache, times Times, w Pipeline) {
	ca.Backend, ca.Times, ca.Pipeline = store, times, w
	ca.ResetTarget()
}

// ResetTarget clears the state of the previous target.
func (ca *Cache) ResetTarget() { ca.at, ca.like, ca.Status = nil, similar{}, Disabled }

// Use records that the response is a stored one.
func (ca *Cache) Use(e *cache.Entry) {
	ca.Hit = e
	ca.Bill.Reported.Cached(e.Model, e.Finish)
}

// Stores reports whether the target's responses are cached.
func (ca *Cache) Stores() bool { return ca.at != nil }

// cacheable are the request types with responses that may be cached: request and response are
// JSON, and no object is stored at the provider.
var cacheable = map[string]bool{
	"chatComplete": true, "complete": true, "messages": true, "messagesCountTokens": true, "createModelResponse": true,
	"embed": true, "rerank": true, "ocr": true, "moderate": true, "imageGenerate": true,
}

// looking is the lookup at one target.
type looking struct {
	rule    *route.Cache
	age     time.Duration // maximum age of a response, and lifetime of a new one
	key     cache.Key
	refresh bool
}

// similar is the lookup of a question with the same meaning, in a semantic cache.
type similar struct {
	meaning cache.SemanticQuery
	seeking *cache.PendingVector // nil: only exact matches count
}

// Hit is a cached response that is used again.
type Hit struct {
	Entry   *cache.Entry
	Decoded *chat.Response // decoded, if it is not sent as it is in the cache: as a stream, or under a new id
}

// LookUp returns a cached response to the body at its target; nil if there is none. A failure of
// the cache counts as a miss; an error is a rejection of the request. waited is the time spent on
// the vector of a text.
func (ca *Cache) LookUp(leaf *route.Leaf, body []byte) (a *Hit, waited time.Duration, err error) {
	if leaf.Cache == nil || !ca.mayCache(body) {
		return nil, 0, nil
	}
	q, err := ca.question(body)
	if err != nil {
		return nil, 0, err
	}
	key, err := q.Key()
	if err != nil {
		return nil, 0, nil // not JSON
	}
	ca.at = &looking{rule: leaf.Cache, age: ca.Target.Req.Org.Settings.CacheAge(leaf.Cache.MaxAge), key: key, refresh: admission.SingleHeader(ca.Target.Req.Req.Header, headerCacheRefresh) == "true"}
	if ca.at.refresh {
		ca.Status = refresh
		ca.like = ca.seek(leaf.Cache, q)
		return nil, 0, nil
	}
	ca.Status = miss
	ctx, cancel := context.WithTimeout(ca.Target.Req.Ctx, ca.Times.Read)
	defer cancel()
	e, err := ca.Backend.Get(ctx, key, ca.at.age)
	if err != nil {
		ca.Target.Req.Fail("cache look-up", err)
	}
	if a = ca.usable(e); a != nil {
		ca.Status = hit
		return a, waited, nil
	}
	if ca.like = ca.seek(leaf.Cache, q); ca.like.seeking == nil {
		return nil, 0, nil
	}
	ca.Status = semanticMiss
	e, waited = ca.near(ctx)
	if a = ca.usable(e); a != nil {
		ca.Status = semanticHit
	}
	return a, waited, nil
}

// mayCache reports whether the request may use the cache. It may not if x-gateway-debug: false, or
// the setting enforce_debug in its place, keeps its bodies out of the log: then the cache does not
// store them either. The setting request_logging is about logs alone.
func (ca *Cache) mayCache(body []byte) bool {
	if ca.Backend == nil || ca.Target.Req.Route.BodyMode != routes.Unified || ca.Target.Req.Req.Method != http.MethodPost || !cacheable[ca.Target.Req.Route.Endpoint] || len(body) == 0 {
		return false
	}
	if ca.Target.Choice.ContentType != "" && ca.Target.Choice.ContentType != "application/json" {
		return false
	}
	if enforced := ca.Target.Req.Org.Settings.EnforceDebug; enforced != nil {
		return *enforced && !ca.Target.Body.Background()
	}
	return !ca.Target.Req.Headers.NoBodies && !ca.Target.Body.Background()
}

// question returns the properties that must be equal for a response to be used again.
func (ca *Cache) question(body []byte) (*cache.Query, error) {
	namespace, err := admission.Identifier(ca.Target.Req.Req.Header, headerCacheNamespace, maxNamespace)
	if err != nil {
		return nil, err
	}
	url, err := ca.responseURL()
	if err != nil {
		return nil, err
	}
	var dialect, saved string
	if ca.Target.Req.Route.Client != nil {
		dialect = ca.Target.Req.Route.Client.Name()
	}
	if ca.Target.Choice.Saved != nil {
		saved = ca.Target.Choice.Saved.ID
	}
	return &cache.Query{
		Scope: ca.Target.Req.Principal.Scope, Operation: ca.Target.Req.Route.Endpoint, Dialect: dialect, Lenient: !ca.Target.StrictOpenAI(),
		Provider: ca.Target.Choice.Target.Provider.ID, Saved: saved, Model: ca.Target.Choice.Model, URL: url,
		Metadata: ca.Target.Body.Metadata, Namespace: namespace, Guards: ca.Guards.Print(), Body: body,
	}, nil
}

// responseURL returns the URL of a buffered response, which may differ from a stream's. A response
// by the gateway itself has none.
func (ca *Cache) responseURL() (string, error) {
	switch {
	case ca.Target.Choice.Local:
		return "", nil
	case ca.Target.Req.Route.Client == nil && ca.Target.UsesRoutePath():
		u, err := ca.Target.OperationURL(target.Part{Op: ca.Target.Choice.Op, ID: ca.Target.Body.ID, Query: ca.Target.Req.Req.URL.RawQuery})
		if err != nil {
			return "", err
		}
		return u.String(), nil
	}
	return ca.Target.Choice.Target.URL(ca.Target.Choice.Op, ca.Target.Choice.Model, false)
}

// usable prepares a cached response for sending; nil if there is none, or if it cannot be
// encoded as the stream that the client requests, or as a response that is stored.
func (ca *Cache) usable(e *cache.Entry) *Hit {
	if e == nil {
		return nil
	}
	if ca.Target.Req.Route.Client == nil || !ca.Target.Stream && !target.StoresItems(ca.Target) {
		return &Hit{Entry: e}
	}
	decoded, err := ca.Target.Req.Route.Client.DecodeResponse(e.Body, &chat.Traits{Provider: e.Provider})
	if err != nil {
		ca.Target.Req.Fail("cached answer", err)
		return nil
	}
	decoded.Created = ca.Target.Req.StartTime.Unix()
	ca.Guards.Masked.Restore(decoded)
	return &Hit{e, decoded}
}

// Store caches a complete response in the client's format before its last byte is sent, so that
// the client's next request finds it. The response must be a success, without any additions by
// the gateway.
func (ca *Cache) Store(out []byte) {
	k := ca.at
	if k == nil || !ca.Guards.Verdict.Passed() || !ca.complete(out) || ca.Secrets.Repeats(out) {
		return
	}
	last := ca.Bill.Spending.Last()
	if last == nil {
		last = new(usage.Attempt)
	}
	e := &cache.Entry{Body: out, Provider: ca.Target.Choice.Names.Provider, Model: ca.Bill.ReportedModel(), Finish: ca.Bill.Reported.Finish, Usage: last.Usage, Cost: last.Cost}
	ctx, cancel := context.WithTimeout(ca.Target.Req.Ctx, ca.Times.Write)
	defer cancel()
	err := ca.Backend.Put(ctx, k.key, e, k.age)
	if err == nil && ca.like.seeking != nil && !e.Expires.IsZero() {
		err = ca.learnMeaning(ctx, k, e)
	}
	if err != nil && !errors.Is(err, cache.ErrLate) {
		ca.Target.Req.Fail("keep answer", err)
	}
}

// complete reports whether a response is complete. A forwarded one may have any content.
func (ca *Cache) complete(out []byte) bool {
	if wire.KindOf(bytes.TrimSpace(out)) != wire.KindObject || !json.Valid(out) {
		return false
	}
	if ca.Target.Req.Route.Client == nil {
		return true
	}
	_, err := ca.Target.Req.Route.Client.DecodeResponse(out, &chat.Traits{Provider: ca.Target.Choice.Names.Provider})
	return err == nil
}

// seek starts to compute the vector of a question, in a semantic cache and if the question has a
// text.
func (ca *Cache) seek(rule *route.Cache, q *cache.Query) (none similar) {
	with := rule.Embedder
	if rule.Mode != "semantic" || with == nil || !ca.Backend.Semantic() || ca.Target.Req.Route.Client == nil {
		return none
	}
	body := ca.Target.Body.In
	if ca.Target.Choice.Body != nil {
		body = ca.Target.Choice.Body
	}
	r, err := ca.Target.Req.Route.Client.DecodeRequest(body)
	if err != nil {
		return none
	}
	meaning, ok := cache.ParseSemantic(q.WithBody(body), r, with.Slug+"/"+with.Model)
	if !ok {
		return none
	}
	seeking := ca.Backend.StartEmbedding(ca.Target.Req.Base, ca.Pipeline.Embedder(with), meaning.Text)
	// It has been paid for and must be recorded before the process may be frozen.
	ca.Target.Req.Defer(func() {
		if !seeking.Done() {
			ca.Pipeline.Flush()
			seeking.Wait()
		}
	})
	return similar{meaning, seeking}
}

// threshold returns the similarity of two texts with the same meaning.
func (k *looking) threshold() float64 {
	if k.rule.Threshold > 0 {
		return k.rule.Threshold
	}
	return cache.DefaultThreshold
}

// near finds the response to a question with the same meaning; nil if there is none.
func (ca *Cache) near(ctx context.Context) (e *cache.Entry, waited time.Duration) {
	k := ca.at
	t := ca.Target.Req.Now()
	vector, err := ca.like.seeking.Vector(ca.Times.Embed)
	waited = ca.Target.Req.Now().Sub(t)
	if err != nil {
		if !errors.Is(err, cache.ErrLate) {
			ca.Target.Req.Fail("cache embedder", err)
		}
		return nil, waited
	}
	e, err = ca.Backend.FindNearest(ctx, ca.like.meaning.Bucket, vector, k.threshold(), k.age)
	if err != nil {
		ca.Target.Req.Fail("cache neighbours", err)
	}
	return e, waited
}

// learnMeaning makes a cached response available to semantic lookups. A refresh replaces all
// responses with the same meaning.
func (ca *Cache) learnMeaning(ctx context.Context, k *looking, e *cache.Entry) error {
	vector, err := ca.like.seeking.Vector(ca.Times.Embed)
	if err != nil {
		if k.refresh && !errors.Is(err, cache.ErrLate) {
			return err
		}
		return nil // the failure was reported before
	}
	if k.refresh {
		if err := ca.Backend.Replace(ctx, ca.like.meaning.Bucket, vector, k.threshold(), e, k.age); err != nil {
			return err
		}
	}
	return ca.Backend.AddVector(ctx, ca.like.meaning.Bucket, vector, k.key, e.Expires)
}
