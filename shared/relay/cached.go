package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/turn"
	"gateway/shared/route"
	"gateway/shared/wire"
)

// Values of the cache status, in the answer's header and in the books.
const (
	cacheDisabled     = "DISABLED"
	cacheHit          = "HIT"
	cacheMiss         = "MISS"
	cacheSemanticHit  = "SEMANTIC HIT"
	cacheSemanticMiss = "SEMANTIC MISS"
	cacheRefresh      = "REFRESH"
)

const (
	headerCacheNamespace = "X-Gateway-Cache-Namespace"
	headerCacheRefresh   = "X-Gateway-Cache-Force-Refresh"
	maxNamespace         = 256 // bytes
)

// CacheTimes are how long a request waits for its cache. A store that does not answer
// is a miss, an answer that cannot be kept in time is not kept.
type CacheTimes struct {
	LookUp time.Duration // 0: 1 s
	Keep   time.Duration // 0: 2 s
	Embed  time.Duration // for the vector of a text; 0: 150 ms
}

// orStandard is t with the standard times for those that are 0.
func (t CacheTimes) orStandard() CacheTimes {
	return CacheTimes{LookUp: cmp.Or(t.LookUp, time.Second), Keep: cmp.Or(t.Keep, 2*time.Second), Embed: cmp.Or(t.Embed, 150*time.Millisecond)}
}

// cacheable are the request types whose answers may be used again: JSON both
// ways, and nothing is made at the provider that has a life of its own.
var cacheable = map[string]bool{
	"chatComplete": true, "complete": true, "messages": true, "messagesCountTokens": true, "createModelResponse": true,
	"embed": true, "rerank": true, "ocr": true, "moderate": true, "imageGenerate": true,
}

// caching is what the cache of one target does for one request. The zero value
// keeps nothing.
type caching struct {
	rule    *route.Cache
	age     time.Duration // how old an answer may be, and how long one is kept
	key     cache.Key
	refresh bool
	// Of a semantic cache.
	meaning cache.Meaning
	seeking *cache.Seeking // nil: the request is compared exactly only
}

// cachedAnswer is a kept answer that is used again.
type cachedAnswer struct {
	entry *cache.Entry
	whole *chat.Response // decoded, when it is sent as a stream
}

// lookUp looks for a kept answer of the target that the body is for; nil when
// there is none. What goes wrong with the cache is a miss; an error is a refusal
// of the request.
func (ca *answerCache) lookUp(leaf *route.Leaf, body []byte) (*cachedAnswer, error) {
	if leaf.Cache == nil || !ca.mayCache(body) {
		return nil, nil
	}
	q, err := ca.question(body)
	if err != nil {
		return nil, err
	}
	key, err := q.Key()
	if err != nil {
		return nil, nil // not JSON
	}
	ca.caching = &caching{rule: leaf.Cache, age: ca.Org.Settings.CacheAge(leaf.Cache.MaxAge), key: key, refresh: asked.One(ca.Req.Header, headerCacheRefresh) == "true"}
	if ca.caching.refresh {
		ca.reused.status = cacheRefresh
		ca.seek(leaf, q)
		return nil, nil
	}
	ca.reused.status = cacheMiss
	ctx, cancel := context.WithTimeout(ca.Ctx, ca.CacheTimes.LookUp)
	defer cancel()
	e, err := ca.Cache.Get(ctx, key, ca.caching.age)
	if err != nil {
		ca.Fail("cache look-up", err)
	}
	if a := ca.usable(e); a != nil {
		ca.reused.status = cacheHit
		return a, nil
	}
	if !ca.seek(leaf, q) {
		return nil, nil
	}
	ca.reused.status = cacheSemanticMiss
	if a := ca.usable(ca.near(ctx)); a != nil {
		ca.reused.status = cacheSemanticHit
		return a, nil
	}
	return nil, nil
}

// mayCache tells whether the request's answer may come from a cache or go to it.
func (ca *answerCache) mayCache(body []byte) bool {
	if ca.Cache == nil || ca.Route.Shape != routes.Unified || ca.Req.Method != http.MethodPost || !cacheable[ca.Route.Endpoint] || len(body) == 0 {
		return false
	}
	if ca.To.ContentType != "" && ca.To.ContentType != jsonType[0] {
		return false
	}
	if enforced := ca.Org.Settings.EnforceDebug; enforced != nil {
		return *enforced && !ca.Background()
	}
	return !ca.Ask.NoBodies && !ca.Background()
}

// question is what must be equal for an answer to be used again.
func (ca *answerCache) question(body []byte) (*cache.Question, error) {
	namespace, err := asked.Identifier(ca.Req.Header, headerCacheNamespace, maxNamespace)
	if err != nil {
		return nil, err
	}
	url, err := ca.answerURL()
	if err != nil {
		return nil, err
	}
	q := &cache.Question{
		Scope: ca.Who.Scope, Operation: ca.Route.Endpoint, Lenient: !ca.Strict(),
		Provider: ca.To.Target.Provider.ID, Model: ca.To.Model, URL: url, Metadata: ca.Metadata, Namespace: namespace, Guards: ca.guards.Print(), Body: body,
	}
	if ca.Route.Client != nil {
		q.Dialect = ca.Route.Client.Name()
	}
	if ca.To.Saved != nil {
		q.Saved = ca.To.Saved.ID
	}
	return q, nil
}

// answerURL is the address that a plain answer comes from: a stream's may be
// another one. What the gateway answers itself comes from nowhere.
func (ca *answerCache) answerURL() (string, error) {
	switch {
	case ca.To.Local:
		return "", nil
	case ca.Route.Client == nil && ca.Through():
		u, err := ca.OperationURL(ca.asks())
		if err != nil {
			return "", err
		}
		return u.String(), nil
	}
	return ca.To.Target.URL(ca.To.Op, ca.To.Model, false)
}

// usable makes a kept answer ready to be sent; nil when there is none, or when it
// cannot be told as the stream that the client wants.
func (ca *answerCache) usable(e *cache.Entry) *cachedAnswer {
	if e == nil {
		return nil
	}
	a := &cachedAnswer{entry: e}
	if ca.Stream && ca.Route.Client != nil {
		var err error
		if a.whole, err = ca.Route.Client.DecodeResponse(e.Body, &chat.Traits{Provider: e.Provider}); err != nil {
			ca.Fail("cached answer", err)
			return nil
		}
		a.whole.Created = ca.Start.Unix()
		ca.guards.Restore(a.whole)
	}
	return a
}

// sendCached answers with a kept answer: no provider is called and nothing is
// paid.
func (s *sender) sendCached(a *cachedAnswer) error {
	e := a.entry
	s.heard.finish, s.reused.hit = e.Finish, e
	if e.Model != "" {
		s.heard.model = e.Model
	}
	out := e.Body
	h := s.w.Header()
	if a.whole != nil {
		out = s.replayed(a.whole)
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
	} else {
		h["Content-Type"] = jsonType
		out = s.guards.Told(s.guards.Restored(out), false)
		h["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	s.answerHeaders(nil)
	s.sendWhole(s.guards.Status(http.StatusOK), out)
	return nil
}

// replayed is a whole answer as a stream in the client's dialect.
func (ca *answerCache) replayed(r *chat.Response) []byte {
	o := ca.options()
	o.Request = ca.LegacyOnly()
	return ca.streamTold(turn.Replay(r, ca.Route.Client.NewStreamEncoder(o)))
}

// keepAnswer keeps a whole answer in the client's shape before its last byte goes
// out, so that whoever has it finds it. The answer must be a plain success, as it
// is before anything of the gateway's own is added to it.
func (ca *answerCache) keepAnswer(out []byte) {
	k := ca.caching
	if k == nil || !ca.guards.Passed() || !ca.whole(out) || ca.tellsSecret(out) {
		return
	}
	e := &cache.Entry{Body: out, Provider: ca.To.Names.Provider, Model: ca.heardModel(), Finish: ca.heard.finish}
	if last := ca.purse.Last(); last != nil {
		e.Usage, e.Cost = last.Usage, last.Cost
	}
	ctx, cancel := context.WithTimeout(ca.Ctx, ca.CacheTimes.Keep)
	defer cancel()
	err := ca.Cache.Put(ctx, k.key, e, k.age)
	if err == nil && k.seeking != nil && !e.Expires.IsZero() {
		err = ca.learnMeaning(ctx, k, e)
	}
	if err != nil && !errors.Is(err, cache.ErrLate) {
		ca.Fail("keep answer", err)
	}
}

// whole tells whether an answer can be used again: what is passed on as it came
// may be anything.
func (ca *answerCache) whole(out []byte) bool {
	if wire.KindOf(bytes.TrimSpace(out)) != wire.KindObject || !json.Valid(out) {
		return false
	}
	if ca.Route.Client == nil {
		return true
	}
	_, err := ca.Route.Client.DecodeResponse(out, &chat.Traits{Provider: ca.To.Names.Provider})
	return err == nil
}

// gather begins to put a stream together where it is to be kept, or judged at its end.
func (ca *answerCache) gather(a *answer) {
	judged := ca.guards.JudgesEnd()
	if ca.caching == nil && !judged {
		return
	}
	if a.stream.Translated() {
		a.stream.Gather(cache.MaxBody, ca.Decoded != nil && ca.Decoded.HiddenAnswer, judged, nil)
		return
	}
	a.stream.Gather(cache.MaxBody, false, judged, ca.Route.Client.NewStreamDecoder(&ca.To.Traits))
}

// keepStream keeps a stream that has come whole.
func (ca *answerCache) keepStream(a *answer) {
	if ca.caching == nil {
		return
	}
	whole := a.stream.Gathered()
	if whole == nil {
		return
	}
	enc := pooled.New()
	defer enc.Free()
	enc.B = ca.encodeWhole(enc.B, a, whole)
	ca.keepAnswer(enc.B)
}

// encodeWhole writes a stream that was put together as a whole answer.
func (ca *answerCache) encodeWhole(dst []byte, a *answer, whole *chat.Response) []byte {
	o := ca.options()
	if !a.stream.Translated() || ca.SameDialect() {
		o.Request = ca.LegacyOnly()
	}
	return ca.Route.Client.EncodeResponse(dst, whole, o)
}
