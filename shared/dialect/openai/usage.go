package openai

import (
	"strconv"

	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// reported is a usage object as the host wrote it. A count of -1 was not given; hosts also
// write -1 for "not known". The zero value is not useful: start from unreported.
type reported struct {
	n       [numCounts]int64
	context string // how much of the web was searched
}

// counted is one count of a usage object, by what it means and where it is written.
type counted uint8

const (
	prompt      counted = iota // includes cached tokens, unless the total proves otherwise
	completion                 // includes reasoning, unless the total proves otherwise
	total                      // the host's own sum
	cached                     // of the prompt, in its details
	cachedApart                // the same, beside the prompt: Moonshot, DeepSeek, gateways
	written                    // of the prompt, in its details
	writtenApart
	written30m // of the output
	written12h
	audioIn
	imageIn
	audioCached // of cached tokens and of audioIn
	imageCached
	reasoning
	reasoningApart // at the top level: Perplexity, SGLang
	citations      // tokens read from the web, beside the prompt and the total: Perplexity
	audioOut
	imageOut
	searches
	numCounts
)

var unreported = func() (r reported) {
	for i := range r.n {
		r.n[i] = -1
	}
	return r
}()

// readUsage reads the usage object at d into disjoint classes. total is the provider's own
// total if it is not their sum, otherwise 0. context is set to how much of the web was
// searched, if that is reported; it may be nil.
func readUsage(d *wire.Decoder, u *pricing.Usage, context *string) (total int64) {
	if d.Null() {
		return 0
	}
	r := unreported
	r.readFrom(d)
	if context != nil {
		*context = r.context
	}
	return r.classes(u)
}

// readFrom reads the usage object at d. Anything but an object reports nothing.
func (r *reported) readFrom(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		if part := detailsOf(key); part != ofNothing {
			r.readDetails(d, part)
		} else if n := r.count(key); n != nil {
			count(d, n)
		} else if string(key) == "search_context_size" {
			r.context = upstream.OptString(d)
		}
	}
}

// count reads a number of tokens, also one that is written as a string. null and anything
// else count as not given.
func count(d *wire.Decoder, n *int64) {
	if v, ok := upstream.OptNumber(d); ok {
		*n = v
	}
}

func (r *reported) readDetails(d *wire.Decoder, part usagePart) {
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		if n := r.place(part, key); n != nil {
			count(d, n)
		} else if inner := partOf(part, key); inner != ofNothing {
			r.readDetails(d, inner)
		}
	}
}

// count is where the number of a field is stored; nil means nowhere.
func (r *reported) count(key []byte) *int64 {
	switch string(key) {
	case "prompt_tokens", "input_tokens":
		return &r.n[prompt]
	case "completion_tokens", "output_tokens":
		return &r.n[completion]
	case "total_tokens":
		return &r.n[total]
	case "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens":
		return &r.n[cachedApart]
	case "cache_creation_input_tokens":
		return &r.n[writtenApart]
	case "num_search_queries":
		return &r.n[searches]
	case "citation_tokens":
		return &r.n[citations]
	case "reasoning_tokens":
		return &r.n[reasoningApart]
	}
	return nil
}

// promptDetail is count for the parts of the prompt.
func (r *reported) promptDetail(key []byte) *int64 {
	switch string(key) {
	case "cached_tokens":
		return &r.n[cached]
	case "cache_creation_tokens", "cache_write_tokens":
		return &r.n[written]
	case "audio_tokens":
		return &r.n[audioIn]
	case "image_tokens":
		return &r.n[imageIn]
	}
	return nil
}

// completionDetail is count for the parts of the completion.
func (r *reported) completionDetail(key []byte) *int64 {
	switch string(key) {
	case "reasoning_tokens":
		return &r.n[reasoning]
	case "audio_tokens":
		return &r.n[audioOut]
	case "image_tokens":
		return &r.n[imageOut]
	}
	return nil
}

// known reports whether any count was given.
func (r *reported) known() bool { return r.n != unreported.n }

// merge takes over what a later usage object of the same response reports, count by count.
func (r *reported) merge(later *reported) {
	for i, n := range later.n {
		if n >= 0 {
			r.n[i] = n
		}
	}
	if later.context != "" {
		r.context = later.context
	}
}

// normal returns the counts with the differences between hosts removed: the prompt includes
// the cache, the completion includes the reasoning, and each is derived from the total where
// it is missing.
func (r *reported) normal() [numCounts]int64 {
	n := r.n
	if n[cached] <= 0 && n[cachedApart] >= 0 {
		n[cached] = n[cachedApart]
	}
	if n[written] <= 0 && n[writtenApart] >= 0 {
		n[written] = n[writtenApart]
	}
	if n[reasoning] <= 0 && n[reasoningApart] >= 0 {
		n[reasoning] = n[reasoningApart]
	}
	if n[prompt] >= 0 && n[completion] >= 0 && n[searches] >= 0 && n[reasoningApart] >= 0 {
		// A host that counts its searches counts reasoning and what it read of the web beside
		// the two sums, and beside their total.
		n[prompt] += max(n[citations], 0)
		n[completion] += n[reasoningApart]
		return n
	}
	switch {
	case n[prompt] < 0 && n[completion] < 0:
		return n
	case n[prompt] < 0:
		if rest := n[total] - n[completion]; rest > 0 {
			n[prompt] = rest
		}
		return n
	case n[completion] < 0:
		if rest := n[total] - n[prompt]; rest > 0 {
			n[completion] = rest
		}
		return n
	}
	// The total shows what a host counts beside its two sums.
	thought, cache := max(n[reasoning], 0), max(n[cached], 0)+max(n[written], 0)
	switch rest := n[total] - n[prompt] - n[completion]; {
	case n[total] <= 0 || rest < 0: // no total, or one that proves nothing
		if thought > n[completion] {
			n[completion] += thought
		}
	case rest == 0:
	case rest == thought:
		n[completion] += thought
	case rest == cache:
		n[prompt] += cache
	case rest == cache+thought:
		n[prompt], n[completion] = n[prompt]+cache, n[completion]+thought
	default: // Google's compatible host counts thoughts in the total alone
		n[completion] += rest
		if n[reasoning] <= 0 {
			n[reasoning] = rest
		}
	}
	return n
}

// classes splits the two sums into disjoint classes. reportedTotal is the host's own total
// if it is not their sum, otherwise 0.
func (r *reported) classes(u *pricing.Usage) (reportedTotal int64) {
	*u = pricing.Usage{}
	n := r.normal()
	if n[prompt] >= 0 {
		in := parted{u, n[prompt]}
		in.take(pricing.AudioCacheRead, min(n[audioCached], n[cached]))
		in.take(pricing.ImageCacheRead, min(n[imageCached], without(n[cached], n[audioCached])))
		in.take(pricing.CacheRead, without(n[cached], n[audioCached], n[imageCached]))
		in.take(pricing.CacheWrite30m, n[written30m])
		in.take(pricing.CacheWrite12h, n[written12h])
		in.take(pricing.CacheWrite5m, without(n[written], n[written30m], n[written12h]))
		in.take(pricing.AudioIn, without(n[audioIn], n[audioCached]))
		in.take(pricing.ImageIn, without(n[imageIn], n[imageCached]))
		u.Set(pricing.Input, in.left)
	}
	if n[completion] >= 0 {
		out := parted{u, n[completion]}
		out.take(pricing.Reasoning, n[reasoning])
		out.take(pricing.AudioOut, n[audioOut])
		out.take(pricing.ImageOut, n[imageOut])
		u.Set(pricing.Output, out.left)
	}
	if n[searches] >= 0 {
		u.Set(pricing.WebSearches, n[searches])
	} else if r.context != "" {
		u.Set(pricing.WebSearches, 1) // each request searches once
	}
	if n[total] > 0 && n[prompt] < 0 && n[completion] < 0 {
		u.Set(pricing.Input, n[total]) // see chat.Meter.TotalOnly
		return n[total]
	}
	if n[total] > 0 && n[total] != u.TotalTokens() {
		return n[total]
	}
	return 0
}

// parted is a sum of tokens from which the parts are subtracted, class by class.
type parted struct {
	of   *pricing.Usage
	left int64
}

// take subtracts n tokens of a class, but never more than is left; a negative n means
// that the provider did not report the class.
func (p *parted) take(c pricing.Class, n int64) {
	if n < 0 {
		return
	}
	n = min(n, max(p.left, 0))
	p.left -= n
	p.of.Set(c, n)
}

// without is a count minus its parts; a count that was not given stays so.
func without(n int64, parts ...int64) int64 {
	for _, p := range parts {
		if n > 0 && p > 0 {
			n = max(n-p, 0)
		}
	}
	return n
}

// appendUsage writes a usage object. extended adds the fields that clients of
// Anthropic models read.
func appendUsage(dst []byte, u *pricing.Usage, extended bool) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, u.InputTokens(), 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, u.OutputTokens(), 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.TotalTokens(), 10)
	read, write := u.Cached(), u.CacheWrites()
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, read, 10)
	if n, ok := u.Get(pricing.AudioIn); ok {
		dst = append(dst, `,"audio_tokens":`...)
		dst = strconv.AppendInt(dst, n+u.N(pricing.AudioCacheRead), 10)
	}
	dst = append(dst, '}')
	if n, ok := u.Get(pricing.Reasoning); ok {
		dst = append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...)
		dst = strconv.AppendInt(dst, n, 10)
		if n, ok := u.Get(pricing.AudioOut); ok {
			dst = append(dst, `,"audio_tokens":`...)
			dst = strconv.AppendInt(dst, n, 10)
		}
		dst = append(dst, '}')
	}
	if extended && read+write > 0 {
		dst = append(dst, `,"cache_read_input_tokens":`...)
		dst = strconv.AppendInt(dst, read, 10)
		dst = append(dst, `,"cache_creation_input_tokens":`...)
		dst = strconv.AppendInt(dst, write, 10)
	}
	return append(dst, '}')
}
