package anthropic

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// round is one call to a model within a turn: usage.iterations has one of each.
type round struct {
	kind, model string
	counts
}

// maxRounds bounds the rounds of one turn that are read; later ones are not charged
// separately.
const maxRounds = 1024

func (c *counts) readRounds(d *wire.Decoder) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return
	}
	c.rounds = nil
	for range d.Array {
		if d.Kind() != wire.KindObject || len(c.rounds) == maxRounds {
			d.Skip()
			continue
		}
		raw := d.Raw()
		var r round
		inner := wire.NewDecoder(raw)
		for key := range inner.Object {
			switch string(key) {
			case "type":
				r.kind = upstream.OptString(inner)
			case "model":
				r.model = upstream.OptString(inner)
			case "iterations":
				inner.Skip() // they do not nest
			}
		}
		r.readFrom(wire.NewDecoder(raw))
		r.rounds = nil
		c.rounds = append(c.rounds, r)
	}
}

func (c *counts) readCredit(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		if string(key) == "status" {
			c.credit = upstream.OptString(d)
		}
	}
}

// creditShown states that, with a redeemed fallback credit, the counts of a response
// already include cached tokens as reads. If it were false, cache writes would be charged
// as reads.
const creditShown = true

// ending is how a response ended, which the bill depends on besides usage.
type ending struct{ stop, category string }

// chargedRefusals are the categories of refusals that are charged although nothing was put
// out. All others are free.
var chargedRefusals = map[string]bool{"bio": true, "frontier_llm": true, "reasoning_extraction": true}

// free reports whether a response costs nothing: it was rejected before any output.
func (e ending) free(u *pricing.Usage) bool {
	return e.stop == "refusal" && u.OutputTokens() == 0 && !chargedRefusals[e.category]
}

// bill sets the charged usage, which may differ from the top level of usage: if rounds
// are listed, only they are charged. A round that names its model is a separate line,
// even if the response names the same model: after a fallback that is not the requested
// one, which determines the price of the rest.
func (c *counts) bill(e ending, u *pricing.Usage, s *chat.PriceFacts) {
	s.Mode, s.Region, s.Extra = c.mode(), region(c.geo), nil
	c.classes(u)
	if len(c.rounds) > 0 {
		searches, present := u.Get(pricing.WebSearches)
		*u = pricing.Usage{}
		c.billRounds(u, s)
		if _, counted := u.Get(pricing.WebSearches); present && !counted {
			u.Set(pricing.WebSearches, searches)
		}
	}
	if c.credit == "redeemed" && !creditShown {
		asRead(u)
	}
	if e.free(u) {
		nothing(u)
	}
}

func (c *counts) billRounds(u *pricing.Usage, s *chat.PriceFacts) {
	u.Set(pricing.Input, 0)
	u.Set(pricing.Output, 0)
	last := c.lastAttempt()
	for i := range c.rounds {
		r := &c.rounds[i]
		var used pricing.Usage
		r.classes(&used)
		if r.attempt() && i < last && used.OutputTokens() == 0 {
			continue // this model declined before any output, and another took its place
		}
		if r.model == "" {
			*u = u.Sum(used)
			continue
		}
		mode := r.mode()
		if mode == "" {
			mode = s.Mode
		}
		s.Extra = append(s.Extra, chat.Line{Model: r.model, Mode: mode, Usage: used})
	}
}

// attempt reports whether a model was to respond in this round.
func (r *round) attempt() bool { return r.kind == "message" || r.kind == "fallback_message" }

// lastAttempt is the index of the last fallback; -1 when none was needed.
func (c *counts) lastAttempt() int {
	for i := len(c.rounds) - 1; i >= 0; i-- {
		if c.rounds[i].kind == "fallback_message" {
			return i
		}
	}
	return -1
}

// mode returns the served price mode, "" if the provider did not report it. A fast
// response has a separate price, regardless of the tier.
func (c *counts) mode() string {
	tier := pricing.ModeOf(c.tier)
	switch {
	case c.speed == "fast":
		return pricing.Fast
	case tier == "" && c.speed == "standard":
		return pricing.Standard
	}
	return tier
}

// region returns where a response was generated, if that has a separate price.
func region(geo string) string {
	if geo == "global" || geo == "not_available" {
		return ""
	}
	return geo
}

// asRead charges cache writes as reads.
func asRead(u *pricing.Usage) {
	u.Add(pricing.CacheRead, u.CacheWrites())
	for _, c := range [...]pricing.Class{pricing.CacheWrite5m, pricing.CacheWrite1h} {
		if _, present := u.Get(c); present {
			u.Set(c, 0)
		}
	}
}

// nothing sets the counts of all classes to zero; the classes stay known.
func nothing(u *pricing.Usage) {
	for c := range pricing.NumClasses {
		if _, present := u.Get(c); present {
			u.Set(c, 0)
		}
	}
}

// counts is a usage object as the provider wrote it, combined over the events of a stream:
// a count in a later event replaces the earlier one and is not added to it. The zero counts
// know nothing.
type counts struct {
	input, output, read, write upstream.OptionalCount
	write5m, write1h           upstream.OptionalCount
	thinking, searches         upstream.OptionalCount
	tier, speed, geo           string
	credit                     string  // status of a fallback credit
	rounds                     []round // of iterations; the last list counts
}

// readFrom reads the usage object that d is at.
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
	set := func(class pricing.Class, k upstream.OptionalCount) {
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
	short := u.CacheWrites() - long
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
