package cohere

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// counts are the units of usage or meta as the provider wrote them.
type counts struct {
	input, output, cached             chat.Opt[int64] // tokens
	billedIn, billedOut, billedImages chat.Opt[int64]
	searches                          chat.Opt[int64]
	images                            chat.Opt[int64]
}

// read reads the usage or meta object that d is at.
func (c *counts) read(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "tokens":
			each(d, func(key string) {
				switch key {
				case "input_tokens":
					upstream.Count(d, &c.input)
				case "output_tokens":
					upstream.Count(d, &c.output)
				}
			})
		case "billed_units":
			each(d, c.billed(d))
		case "cached_tokens":
			upstream.Count(d, &c.cached)
		}
	}
}

func (c *counts) billed(d *wire.Decoder) func(string) {
	return func(key string) {
		switch key {
		case "input_tokens":
			upstream.Count(d, &c.billedIn)
		case "output_tokens":
			upstream.Count(d, &c.billedOut)
		case "image_tokens":
			upstream.Count(d, &c.billedImages)
		case "images":
			upstream.Count(d, &c.images)
		case "search_units":
			upstream.Count(d, &c.searches)
		}
	}
}

// each reads the members of an object.
func each(d *wire.Decoder, member func(key string)) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		member(string(key))
	}
}

// tokens returns the tokens for clients, in disjoint classes; the billed ones if there
// are no others.
func (c *counts) tokens() pricing.Usage {
	var u pricing.Usage
	in, out := c.input, c.output
	if !in.Set && !out.Set {
		in, out = c.billedIn, c.billedOut
	}
	if in.Set {
		n := in.Value
		if c.cached.Set {
			read := min(c.cached.Value, n)
			u.Set(pricing.CacheRead, read)
			n -= read
		}
		u.Set(pricing.Input, n)
	}
	if out.Set {
		u.Set(pricing.Output, out.Value)
	}
	return u
}

// bill returns the charged usage; unknown if the provider does not report it separately.
func (c *counts) bill() pricing.Usage {
	var u pricing.Usage
	if c.billedIn.Set {
		u.Set(pricing.Input, c.billedIn.Value)
	}
	if c.billedImages.Set {
		u.Set(pricing.ImageIn, c.billedImages.Value)
	}
	if c.billedOut.Set {
		u.Set(pricing.Output, c.billedOut.Value)
	}
	return u
}

// total is the sum of the tokens where the bill has another sum; otherwise 0.
func (c *counts) total() int64 {
	told, bill := c.tokens(), c.bill()
	if bill.Known() && told.TotalTokens() != bill.TotalTokens() {
		return told.TotalTokens()
	}
	return 0
}

// appendUsage writes a usage object.
func appendUsage(dst []byte, u *pricing.Usage) []byte {
	pair := func(dst []byte) []byte {
		dst = append(dst, `{"input_tokens":`...)
		dst = strconv.AppendInt(dst, u.InputTokens(), 10)
		dst = append(dst, `,"output_tokens":`...)
		dst = strconv.AppendInt(dst, u.OutputTokens(), 10)
		return append(dst, '}')
	}
	dst = append(dst, `{"billed_units":`...)
	dst = pair(dst)
	dst = append(dst, `,"tokens":`...)
	dst = pair(dst)
	if n, ok := u.Get(pricing.CacheRead); ok {
		dst = append(dst, `,"cached_tokens":`...)
		dst = strconv.AppendInt(dst, n, 10)
	}
	return append(dst, '}')
}
