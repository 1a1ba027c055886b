package instrumentation

import (
	"strconv"

	"gateway/shared/pricing"
)

// maxCount is the largest valid count; a larger one is ignored.
const maxCount = 1 << 40

// count is a field that counts something.
func (r *reader) count(f field) (n int64, known bool) {
	switch v := r.values[f].(type) {
	case int64:
		n = v
	case float64:
		n = int64(min(max(v, -1), maxCount+1))
	case string:
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	if n < 0 || n > maxCount {
		return 0, false
	}
	return n, true
}

// counted reports whether any tokens are counted.
func (r *reader) counted() bool {
	for f := input; f <= imageOut; f++ {
		if n, _ := r.count(f); n > 0 {
			return true
		}
	}
	return false
}

// usage splits the counts into the gateway's classes, which do not overlap.
func (r *reader) usage(endpoint string) (u pricing.Usage) {
	in, knowsIn := r.count(input)
	out, knowsOut := r.count(output)
	sum, knowsSum := r.count(total)
	read, knowsRead := r.count(cacheRead)
	written, hour := r.written()
	thought, knowsThought := r.count(reasoning)
	switch {
	case !knowsIn && !knowsOut && knowsSum && endpoint == operations["embeddings"]:
		in, knowsIn = sum, true
	case !knowsIn && !knowsOut && !knowsRead && written == 0 && !knowsThought:
		return u
	}
	cached := read + written
	besideCache, besideReasoning := r.besideCache, r.besideReasoning
	if knowsSum && r.row.total && knowsIn && knowsOut {
		besideCache, besideReasoning = bySum(in, cached, out, thought, sum, besideCache, besideReasoning)
	}
	// A part is never larger than the total.
	besideCache = besideCache || cached > in
	besideReasoning = besideReasoning || thought > out
	if !besideCache {
		in -= cached
	}
	if !besideReasoning {
		out -= thought
	}
	set := func(c pricing.Class, n int64) {
		if n > 0 {
			u.Set(c, n)
		}
	}
	// Kinds of tokens are parts of the rest, as far as there is one.
	part := func(c pricing.Class, f field, rest *int64) {
		n, _ := r.count(f)
		n = min(n, *rest)
		*rest -= n
		set(c, n)
	}
	part(pricing.AudioIn, audioIn, &in)
	part(pricing.ImageIn, imageIn, &in)
	part(pricing.AudioOut, audioOut, &out)
	part(pricing.ImageOut, imageOut, &out)
	u.Set(pricing.Input, in)
	u.Set(pricing.Output, out)
	part(pricing.AudioCacheRead, audioCacheRead, &read)
	set(pricing.CacheRead, read)
	set(pricing.CacheWrite5m, written-hour)
	set(pricing.CacheWrite1h, hour)
	set(pricing.Reasoning, thought)
	return u.Bounded()
}

// written are all tokens that were written to a cache, and those of them for an hour.
func (r *reader) written() (all, hour int64) {
	all, _ = r.count(cacheWrite)
	short, _ := r.count(cacheWrite5m)
	hour, _ = r.count(cacheWrite1h)
	return max(all, short+hour), hour
}

// bySum decides by the total whether parts are beside the counts: if the total is not what
// the sender's rule gives, but what one other rule gives, that one holds.
func bySum(in, cached, out, thought, sum int64, besideCache, besideReasoning bool) (cache, reasoning bool) {
	with := func(cache, reasoning bool) int64 {
		n := in + out
		if cache {
			n += cached
		}
		if reasoning {
			n += thought
		}
		return n
	}
	if with(besideCache, besideReasoning) == sum {
		return besideCache, besideReasoning
	}
	found := 0
	for _, c := range []bool{false, true} {
		for _, t := range []bool{false, true} {
			possible := (c || cached <= in) && (t || thought <= out)
			distinct := (cached > 0 || c == besideCache) && (thought > 0 || t == besideReasoning)
			if possible && distinct && with(c, t) == sum {
				cache, reasoning = c, t
				found++
			}
		}
	}
	if found == 1 {
		return cache, reasoning
	}
	return besideCache, besideReasoning
}
