package anthropic

import (
	"strconv"

	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// counts is a usage object as the provider wrote it, combined over the events of a stream:
// a count in a later event replaces the earlier one and is not added to it. The zero counts
// know nothing.
type counts struct {
	input, output, read, write upstream.Known
	write5m, write1h           upstream.Known
	thinking, searches         upstream.Known
	tier, speed, geo           string
	credit                     string  // status of a fallback credit
	rounds                     []round // of iterations; the last list counts
}

// read reads the usage object that d is at.
func (c *counts) readFrom(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "input_tokens":
			c.input.Read(d)
		case "output_tokens":
			c.output.Read(d)
		case "cache_read_input_tokens":
			c.read.Read(d)
		case "cache_creation_input_tokens":
			c.write.Read(d)
		case "cache_creation":
			c.readCreation(d)
		case "output_tokens_details":
			if d.Kind() == wire.KindObject {
				for inner := range d.Object {
					if string(inner) == "thinking_tokens" {
						c.thinking.Read(d)
					}
				}
			}
		case "service_tier":
			c.tier = upstream.OptString(d)
		case "speed":
			c.speed = upstream.OptString(d)
		case "inference_geo":
			c.geo = upstream.OptString(d)
		case "fallback_credit":
			c.readCredit(d)
		case "iterations":
			c.readRounds(d)
		case "server_tool_use":
			if d.Kind() == wire.KindObject {
				for inner := range d.Object {
					if string(inner) == "web_search_requests" {
						c.searches.Read(d)
					}
				}
			}
		}
	}
}

func (c *counts) readCreation(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "ephemeral_5m_input_tokens":
			c.write5m.Read(d)
		case "ephemeral_1h_input_tokens":
			c.write1h.Read(d)
		}
	}
}

// classes returns the counts as disjoint classes. Here input_tokens excludes cache reads
// and writes, so nothing is subtracted from it.
func (c *counts) classes(u *pricing.Usage) {
	*u = pricing.Usage{}
	set := func(class pricing.Class, k upstream.Known) {
		if k > 0 {
			u.Set(class, k.Get())
		}
	}
	set(pricing.Input, c.input)
	set(pricing.CacheRead, c.read)
	set(pricing.CacheWrite5m, c.write5m)
	set(pricing.CacheWrite1h, c.write1h)
	if c.write > 0 {
		// Writes missing from the split count as cached for five minutes.
		if rest := c.write.Get() - c.write1h.Get(); rest >= 0 {
			u.Set(pricing.CacheWrite5m, rest)
		}
	}
	if c.output > 0 {
		out := c.output.Get()
		if c.thinking > 0 {
			n := min(c.thinking.Get(), out)
			u.Set(pricing.Reasoning, n)
			out -= n
		}
		u.Set(pricing.Output, out)
	}
	set(pricing.WebSearches, c.searches)
}

// appendUsage writes a usage object.
func appendUsage(dst []byte, u *pricing.Usage) []byte {
	read, long := u.Cached(), u.N(pricing.CacheWrite1h)
	short := u.Written() - long
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, u.InputTokens()-read-short-long, 10)
	dst = append(dst, `,"cache_creation_input_tokens":`...)
	dst = strconv.AppendInt(dst, short+long, 10)
	dst = append(dst, `,"cache_read_input_tokens":`...)
	dst = strconv.AppendInt(dst, read, 10)
	if long > 0 {
		dst = append(dst, `,"cache_creation":{"ephemeral_5m_input_tokens":`...)
		dst = strconv.AppendInt(dst, short, 10)
		dst = append(dst, `,"ephemeral_1h_input_tokens":`...)
		dst = strconv.AppendInt(dst, long, 10)
		dst = append(dst, '}')
	}
	dst = append(dst, `,"output_tokens":`...)
	dst = strconv.AppendInt(dst, u.OutputTokens(), 10)
	if n, ok := u.Get(pricing.WebSearches); ok {
		dst = append(dst, `,"server_tool_use":{"web_search_requests":`...)
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}
