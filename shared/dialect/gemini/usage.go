package gemini

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// counts is a usageMetadata object, or the usage of an interaction, which has the same counts
// under other names. Each chunk of a stream repeats it completely; a count that a later chunk
// omits is retained.
type counts struct {
	prompt, cached, candidates, thoughts, toolUse, total upstream.OptionalCount
	audioIn, imageIn                                     upstream.OptionalCount
	audioCached, imageCached                             upstream.OptionalCount
	audioOut, imageOut                                   upstream.OptionalCount
	searches                                             int64  // only in interactions
	mode                                                 string // in which it was served
}

func (c *counts) readFrom(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "promptTokenCount", "total_input_tokens":
			c.prompt.Read(d)
		case "cachedContentTokenCount", "total_cached_tokens":
			c.cached.Read(d)
		case "candidatesTokenCount", "responseTokenCount", "total_output_tokens": // the second name is that of Live sessions
			c.candidates.Read(d)
		case "thoughtsTokenCount", "total_thought_tokens":
			c.thoughts.Read(d)
		case "toolUsePromptTokenCount", "total_tool_use_tokens":
			c.toolUse.Read(d)
		case "totalTokenCount", "total_tokens":
			c.total.Read(d)
		case "trafficType", "serviceTier":
			c.readMode(d)
		case "promptTokensDetails", "input_tokens_by_modality":
			byModality(d, &c.audioIn, &c.imageIn)
		case "cacheTokensDetails", "cached_tokens_by_modality":
			byModality(d, &c.audioCached, &c.imageCached)
		case "candidatesTokensDetails", "responseTokensDetails", "output_tokens_by_modality":
			byModality(d, &c.audioOut, &c.imageOut)
		case "grounding_tool_count":
			c.searches += searchesOf(d)
		}
	}
}

// readMode reads in which mode a request was served; an unknown mode changes nothing.
func (c *counts) readMode(d *wire.Decoder) {
	if mode := pricing.ModeOf(optString(d)); mode != "" {
		c.mode = mode
	}
}

// byModality reads [{modality,tokenCount}] for the kinds that have prices of their own.
// Interactions call the count tokens, and write modalities in small letters.
func byModality(d *wire.Decoder, audio, image *upstream.OptionalCount) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return
	}
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		modality := ""
		var n upstream.OptionalCount
		for key := range d.Object {
			switch string(key) {
			case "modality":
				modality = optString(d)
			case "tokenCount", "tokens":
				n.Read(d)
			}
		}
		switch strings.ToUpper(modality) {
		case "AUDIO":
			*audio = n
		case "IMAGE":
			*image = n
		}
	}
}

// classes returns the counts as disjoint classes. The prompt includes cached tokens; the
// candidates exclude the thoughts; tokens read by tools are counted separately. total is
// the provider's total if it is not the sum.
func (c *counts) classes(u *pricing.Usage, searches int64) (total int64) {
	*u = pricing.Usage{}
	part := func(sum *int64, class pricing.Class, k upstream.OptionalCount) {
		if k == 0 {
			return
		}
		n := min(k.Get(), max(*sum, 0)) // a part never exceeds the total
		*sum -= n
		u.Set(class, n)
	}
	if c.prompt > 0 || c.toolUse > 0 {
		in := c.prompt.Get()
		cached := min(c.cached.Get(), in)
		fresh := in - cached
		rest := cached
		part(&rest, pricing.AudioCacheRead, c.audioCached)
		part(&rest, pricing.ImageCacheRead, c.imageCached)
		if c.cached > 0 {
			u.Set(pricing.CacheRead, rest)
		}
		part(&fresh, pricing.AudioIn, less(c.audioIn, c.audioCached))
		part(&fresh, pricing.ImageIn, less(c.imageIn, c.imageCached))
		u.Set(pricing.Input, fresh+c.toolUse.Get())
	}
	if c.candidates > 0 || c.thoughts > 0 {
		out := c.candidates.Get()
		part(&out, pricing.AudioOut, c.audioOut)
		part(&out, pricing.ImageOut, c.imageOut)
		u.Set(pricing.Output, out)
		if c.thoughts > 0 {
			u.Set(pricing.Reasoning, c.thoughts.Get())
		}
	} else if rest := c.total.Get() - c.prompt.Get() - c.toolUse.Get(); c.prompt > 0 && rest > 0 {
		u.Set(pricing.Output, rest)
	}
	if searches > 0 {
		u.Set(pricing.WebSearches, searches)
	}
	if c.total > 0 && c.total.Get() != u.TotalTokens() {
		return c.total.Get()
	}
	return 0
}

// ReadUsage reads a separate usageMetadata object: the usage, and the tokens of the
// prompt, including cached ones. For anything else both are unknown.
func ReadUsage(raw []byte) (u pricing.Usage, prompt int64) {
	d := wire.NewDecoder(raw)
	var c counts
	c.readFrom(d)
	if d.End() != nil {
		return u, 0
	}
	c.classes(&u, 0)
	return u.Bounded(), c.prompt.Get()
}

// less is a count without a part of it.
func less(k, part upstream.OptionalCount) upstream.OptionalCount {
	if k == 0 {
		return 0
	}
	return upstream.OptionalCount(max(k.Get()-part.Get(), 0) + 1)
}

// appendUsage writes a usageMetadata object.
func appendUsage(dst []byte, u *pricing.Usage) []byte {
	cached := u.Cached()
	reasoning := u.N(pricing.Reasoning)
	dst = append(dst, `{"promptTokenCount":`...)
	dst = strconv.AppendInt(dst, u.InputTokens(), 10)
	if cached > 0 {
		dst = append(dst, `,"cachedContentTokenCount":`...)
		dst = strconv.AppendInt(dst, cached, 10)
	}
	dst = append(dst, `,"candidatesTokenCount":`...)
	dst = strconv.AppendInt(dst, u.OutputTokens()-reasoning, 10)
	if reasoning > 0 {
		dst = append(dst, `,"thoughtsTokenCount":`...)
		dst = strconv.AppendInt(dst, reasoning, 10)
	}
	dst = append(dst, `,"totalTokenCount":`...)
	dst = strconv.AppendInt(dst, u.TotalTokens(), 10)
	return append(dst, '}')
}

// MeterInteraction reads the usage of an interaction, from the object itself or from the
// event of a stream that contains it. ended reports that the provider has finished it.
func MeterInteraction(answer []byte) (m chat.Meter, ended bool) {
	r := interaction{status: "in_progress"}
	d := wire.NewDecoder(answer)
	r.readFrom(d)
	if d.End() != nil {
		return m, false
	}
	m = chat.Meter{Model: r.model, ID: r.id, Finish: r.status, Started: true}
	m.Mode = r.counts.mode
	m.ReportedTotal = r.counts.classes(&m.Usage, r.counts.searches)
	m.Usage = m.Usage.Bounded()
	ended = r.status != "in_progress" && r.status != "queued"
	m.Complete = ended
	return m, ended
}

type interaction struct {
	id, model, status string
	counts            counts
}

func (r *interaction) readFrom(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "interaction": // of an event
			r.readFrom(d)
		case "id":
			r.id = optString(d)
		case "model":
			r.model = optString(d)
		case "status":
			r.status = optString(d)
		case "service_tier":
			r.counts.readMode(d)
		case "usage":
			r.counts.readFrom(d)
		}
	}
}

// searchesOf reads [{type,count}] for the searches that are priced.
func searchesOf(d *wire.Decoder) (searches int64) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return 0
	}
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		kind, n := "", upstream.OptionalCount(0)
		for key := range d.Object {
			switch string(key) {
			case "type":
				kind = optString(d)
			case "count":
				n.Read(d)
			}
		}
		if kind == "google_search" {
			searches += n.Get()
		}
	}
	return searches
}
