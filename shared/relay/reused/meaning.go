package reused

import (
	"context"
	"errors"
	"time"

	"gateway/shared/cache"
	"gateway/shared/route"
)

// seek starts to compute the vector of a question, in a semantic cache and if the question has a
// text.
func (ca *Cache) seek(leaf *route.Leaf, q *cache.Question) bool {
	k := ca.at
	with := k.rule.Embedder
	if k.rule.Mode != "semantic" || with == nil || !ca.Store.Semantic() || ca.Target.Req.Route.Client == nil {
		return false
	}
	own := *q
	own.Body = ca.Target.Body.In
	if ca.Target.To.Body != nil {
		own.Body = ca.Target.To.Body
	}
	r, err := ca.Target.Req.Route.Client.DecodeRequest(own.Body)
	if err != nil {
		return false
	}
	var ok bool
	if k.meaning, ok = cache.MeaningOf(&own, r, with.Slug+"/"+with.Model); !ok {
		return false
	}
	k.seeking = ca.Store.Seek(ca.Target.Req.Base, ca.Walk.Embedder(with), k.meaning.Text)
	// It has been paid for and must be recorded before the process may be frozen.
	seeking := k.seeking
	ca.Target.Req.After(func() {
		if !seeking.Done() {
			ca.Walk.Flush()
			seeking.Wait()
		}
	})
	return true
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
	vector, err := k.seeking.Vector(ca.Times.Embed)
	waited = ca.Target.Req.Now().Sub(t)
	if err != nil {
		if !errors.Is(err, cache.ErrLate) {
			ca.Target.Req.Fail("cache embedder", err)
		}
		return nil, waited
	}
	e, err = ca.Store.Near(ctx, k.meaning.Bucket, vector, k.threshold(), k.age)
	if err != nil {
		ca.Target.Req.Fail("cache neighbours", err)
	}
	return e, waited
}

// learnMeaning makes a cached response available to semantic lookups. A refresh replaces all
// responses with the same meaning.
func (ca *Cache) learnMeaning(ctx context.Context, k *looking, e *cache.Entry) error {
	vector, err := k.seeking.Vector(ca.Times.Embed)
	if err != nil {
		if k.refresh && !errors.Is(err, cache.ErrLate) {
			return err
		}
		return nil // the failure was reported before
	}
	if k.refresh {
		if err := ca.Store.Replace(ctx, k.meaning.Bucket, vector, k.threshold(), e, k.age); err != nil {
			return err
		}
	}
	return ca.Store.Learn(ctx, k.meaning.Bucket, vector, k.key, e.Expires)
}
