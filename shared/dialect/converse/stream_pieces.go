package converse

import (
	"encoding/base64"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// pieces are what a delta may bring; values alias the event.
type pieces struct {
	text, input, thought, signature, redacted, citation []byte

	image []byte // base64
}

func rawString(d *wire.Decoder) []byte {
	if d.Kind() != wire.KindString {
		d.Skip()
		return nil
	}
	return d.RawStr()
}

func (p *pieces) read(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "text":
			p.text = rawString(d)
		case "toolUse":
			if d.Kind() == wire.KindObject {
				for key := range d.Object {
					if string(key) == "input" {
						p.input = rawString(d)
					}
				}
			}
		case "reasoningContent":
			if d.Kind() == wire.KindObject {
				for key := range d.Object {
					switch string(key) {
					case "text":
						p.thought = rawString(d)
					case "signature":
						p.signature = rawString(d)
					case "redactedContent":
						p.redacted = rawString(d)
					}
				}
			}
		case "image":
			_, data := readImage(d)
			p.image = []byte(data)
		case "citation":
			if d.Kind() == wire.KindObject {
				p.citation = d.Raw()
			}
		}
	}
}

// invoked meters a chunk of InvokeModelWithResponseStream, {"bytes": base64 of the model's
// own event}. The last one holds the service's counts.
func (s *streamDecoder) invoked() error {
	d := &s.d
	var data []byte
	for key := range d.Object {
		if string(key) == "bytes" {
			data, _ = base64.StdEncoding.DecodeString(upstream.OptString(d))
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	s.m.Started = true
	s.m.OutputBytes += int64(len(data))
	in := wire.NewDecoder(data)
	if in.Kind() != wire.KindObject {
		return nil
	}
	for key := range in.Object {
		if string(key) != "amazon-bedrock-invocationMetrics" || in.Kind() != wire.KindObject {
			continue
		}
		for key := range in.Object {
			switch string(key) {
			case "inputTokenCount":
				upstream.Count(in, &s.u.input)
			case "outputTokenCount":
				upstream.Count(in, &s.u.output)
			case "cacheReadInputTokenCount":
				upstream.Count(in, &s.u.read)
			case "cacheWriteInputTokenCount":
				upstream.Count(in, &s.u.write)
			}
		}
		s.m.Complete = true
		s.u.classes(&s.m.Usage)
	}
	return nil
}

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
