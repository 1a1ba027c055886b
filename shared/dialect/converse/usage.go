package converse

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// counts is a usage object as written by the provider. inputTokens excludes cache reads
// and writes.
type counts struct {
	input, output, total, read, write chat.Opt[int64]
	write1h                           chat.Opt[int64]
}

// readFrom reads the usage object that d is at.
func (c *counts) readFrom(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "inputTokens":
			upstream.Count(d, &c.input)
		case "outputTokens":
			upstream.Count(d, &c.output)
		case "totalTokens":
			upstream.Count(d, &c.total)
		case "cacheReadInputTokens":
			upstream.Count(d, &c.read)
		case "cacheWriteInputTokens":
			upstream.Count(d, &c.write)
		case "cacheDetails":
			c.readDetails(d)
		}
	}
}

// readDetails reads how long cache writes are retained: [{ttl, inputTokens}].
func (c *counts) readDetails(d *wire.Decoder) {
	if d.Kind() != wire.KindArray {
		return
	}
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		ttl := ""
		var n chat.Opt[int64]
		for key := range d.Object {
			switch string(key) {
			case "ttl":
				ttl = upstream.OptString(d)
			case "inputTokens":
				upstream.Count(d, &n)
			}
		}
		if ttl == "1h" && n.Set {
			c.write1h = chat.Some(c.write1h.Value + n.Value)
		}
	}
}

// classes returns the counts as disjoint classes, and the provider's own total when it is
// not their sum.
func (c *counts) classes(u *pricing.Usage) (reported int64) {
	*u = pricing.Usage{}
	set := func(class pricing.Class, n chat.Opt[int64]) {
		if n.Set {
			u.Set(class, n.Value)
		}
	}
	set(pricing.Input, c.input)
	set(pricing.CacheRead, c.read)
	set(pricing.CacheWrite1h, c.write1h)
	if c.write.Set {
		// Writes missing from the split count as cached for five minutes.
		u.Set(pricing.CacheWrite5m, max(0, c.write.Value-c.write1h.Value))
	}
	set(pricing.Output, c.output)
	sum := c.input.Value + c.read.Value + max(c.write.Value, c.write1h.Value) + c.output.Value
	if c.total.Set && c.total.Value != sum {
		return c.total.Value
	}
	return 0
}
