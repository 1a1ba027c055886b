package openai

import (
	"strconv"

	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// reported is a usage object as the provider wrote it. A count of -1 was not
// given; hosts also write -1 for "not known".
type reported struct {
	prompt, completion, total               int64
	cached, cacheWrite, audioIn, imageIn    int64
	reasoning, audioOut, imageOut, searches int64
	written30m, written12h                  int64 // of cacheWrite
	audioCached, imageCached                int64 // of cached, and of audioIn and imageIn
	context                                 string
}

// readUsage reads the usage object at d into disjoint classes. total is the provider's own
// total if it is not their sum, otherwise 0. context is set to how much of the web was
// searched, if that is reported; it may be nil.
func readUsage(d *wire.Decoder, u *pricing.Usage, context *string) (total int64) {
	if d.Null() {
		return 0
	}
	r := unreported
	for key := range d.Object {
		if part := detailsOf(key); part != ofNothing {
			r.readDetails(d, part)
		} else if n := r.count(key); n != nil {
			count(d, n)
		} else if string(key) == "search_context_size" {
			r.context = upstream.OptString(d)
		}
	}
	if context != nil {
		*context = r.context
	}
	return r.classes(u)
}

var unreported = reported{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, ""}

// count reads a number of tokens. null and anything but a number count as not given.
func count(d *wire.Decoder, n *int64) {
	if d.Kind() != wire.KindNumber {
		d.Skip()
		return
	}
	*n = upstream.Number(d)
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

// count is where the number of a member is stored; nil: nowhere.
func (r *reported) count(key []byte) *int64 {
	switch string(key) {
	case "prompt_tokens", "input_tokens":
		return &r.prompt
	case "completion_tokens", "output_tokens":
		return &r.completion
	case "total_tokens":
		return &r.total
	case "prompt_cache_hit_tokens":
		if r.cached < 0 {
			return &r.cached
		}
	case "num_search_queries":
		return &r.searches
	}
	return nil
}

// promptDetail is count for the parts of the prompt.
func (r *reported) promptDetail(key []byte) *int64 {
	switch string(key) {
	case "cached_tokens":
		return &r.cached
	case "cache_creation_tokens", "cache_write_tokens":
		return &r.cacheWrite
	case "audio_tokens":
		return &r.audioIn
	case "image_tokens":
		return &r.imageIn
	}
	return nil
}

// completionDetail is count for the parts of the completion.
func (r *reported) completionDetail(key []byte) *int64 {
	switch string(key) {
	case "reasoning_tokens":
		return &r.reasoning
	case "audio_tokens":
		return &r.audioOut
	case "image_tokens":
		return &r.imageOut
	}
	return nil
}

// classes subtracts the parts from the two sums.
func (r *reported) classes(u *pricing.Usage) (total int64) {
	*u = pricing.Usage{}
	if r.prompt >= 0 {
		in := parted{u, r.prompt}
		in.take(pricing.AudioCacheRead, min(r.audioCached, r.cached))
		in.take(pricing.ImageCacheRead, min(r.imageCached, without(r.cached, r.audioCached)))
		in.take(pricing.CacheRead, without(r.cached, r.audioCached, r.imageCached))
		in.take(pricing.CacheWrite30m, r.written30m)
		in.take(pricing.CacheWrite12h, r.written12h)
		in.take(pricing.CacheWrite5m, without(r.cacheWrite, r.written30m, r.written12h))
		in.take(pricing.AudioIn, without(r.audioIn, r.audioCached))
		in.take(pricing.ImageIn, without(r.imageIn, r.imageCached))
		u.Set(pricing.Input, in.left)
	}
	if r.completion >= 0 {
		out := parted{u, r.completion}
		// Some hosts leave reasoning out of completion_tokens; their total shows it.
		if r.reasoning > 0 && (r.total == r.prompt+r.completion+r.reasoning || r.reasoning > r.completion) {
			out.left += r.reasoning
		}
		out.take(pricing.Reasoning, r.reasoning)
		out.take(pricing.AudioOut, r.audioOut)
		out.take(pricing.ImageOut, r.imageOut)
		u.Set(pricing.Output, out.left)
	}
	if r.searches >= 0 {
		u.Set(pricing.WebSearches, r.searches)
	} else if r.context != "" {
		u.Set(pricing.WebSearches, 1) // each request searches once
	}
	if r.total > 0 && r.prompt < 0 && r.completion < 0 {
		u.Set(pricing.Input, r.total)
	}
	if r.total > 0 && r.total != u.TotalTokens() {
		return r.total
	}
	return 0
}

// parted is a sum of tokens whose parts are taken out of it, class by class.
type parted struct {
	of   *pricing.Usage
	left int64
}

// take takes n tokens of a class, but never more than the sum has left; with n below
// zero the provider did not tell of the class.
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

// appendUsage writes a usage object. extended adds the members that clients of
// Anthropic models read.
func appendUsage(dst []byte, u *pricing.Usage, extended bool) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, u.InputTokens(), 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, u.OutputTokens(), 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.TotalTokens(), 10)
	read, write := u.Cached(), u.Written()
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
