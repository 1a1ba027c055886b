package converse

import (
	"encoding/base64"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// NewStreamEncoder implements chat.ResponseWriter.
func (Converse) NewStreamEncoder(o *chat.Options) chat.StreamEncoder {
	return &streamEncoder{o: *o, indexes: map[blockKey]int{}}
}

// blockKey identifies a block of a response by kind of piece, and by the call or the
// provider's block.
type blockKey struct {
	kind byte // t text, r reasoning, c call, i image
	n    int
}

// streamEncoder writes the events of one stream. Blocks may overlap on this wire.
type streamEncoder struct {
	o       chat.Options
	usage   pricing.Usage
	began   bool
	calls   bool
	indexes map[blockKey]int // of the blocks that are open
	next    int
	stop    chat.StopReason
	buf     []byte
}

func (s *streamEncoder) event(dst []byte, name string, write func(w *upstream.Object)) []byte {
	w := upstream.Begin(s.buf[:0])
	write(w)
	w.Close('}')
	s.buf = w.B
	return wire.AppendEventStream(dst, name, w.B)
}

func (s *streamEncoder) begin(dst []byte) []byte {
	if s.began {
		return dst
	}
	s.began = true
	return s.event(dst, "messageStart", func(w *upstream.Object) { w.Str("role", "assistant") })
}

// index is that of the open block, or a new one.
func (s *streamEncoder) index(k blockKey) int64 {
	i, ok := s.indexes[k]
	if !ok {
		i = s.next
		s.next++
		s.indexes[k] = i
	}
	return int64(i)
}

// delta writes one piece; write fills the delta object.
func (s *streamEncoder) delta(dst []byte, k blockKey, write func(w *upstream.Object)) []byte {
	dst = s.begin(dst)
	return s.event(dst, "contentBlockDelta", func(w *upstream.Object) {
		w.Int("contentBlockIndex", s.index(k))
		w.Key("delta")
		w.Open('{')
		write(w)
		w.Close('}')
	})
}

// nested writes {outer:{inner:raw}}.
func nested(outer, inner string, raw []byte) func(w *upstream.Object) {
	return func(w *upstream.Object) {
		w.Key(outer)
		w.Open('{')
		w.Raw(inner, raw)
		w.Close('}')
	}
}

// Append implements chat.StreamEncoder.
func (s *streamEncoder) Append(dst []byte, d *chat.Delta) []byte {
	if d.Choice > 0 {
		return dst // a client of this dialect reads one response
	}
	switch d.Kind {
	case chat.DeltaStart:
		if d.Usage != nil {
			s.usage = *d.Usage
		}
	case chat.DeltaText, chat.DeltaRefusal:
		raw := d.JSON
		dst = s.delta(dst, blockKey{'t', d.Block}, func(w *upstream.Object) { w.Raw("text", raw) })
	case chat.DeltaThinking:
		dst = s.delta(dst, blockKey{'r', d.Block}, nested("reasoningContent", "text", d.JSON))
	case chat.DeltaSignature:
		dst = s.delta(dst, blockKey{'r', d.Block}, nested("reasoningContent", "signature", d.JSON))
	case chat.DeltaRedacted:
		dst = s.delta(dst, blockKey{'r', d.Block}, nested("reasoningContent", "redactedContent", d.JSON))
	case chat.DeltaImage:
		dst = s.image(dst, d)
	case chat.DeltaToolStart:
		s.calls = true
		dst = s.begin(dst)
		dst = s.event(dst, "contentBlockStart", func(w *upstream.Object) {
			w.Int("contentBlockIndex", s.index(blockKey{'c', d.Call}))
			w.Key("start")
			w.Open('{')
			w.Key("toolUse")
			w.Open('{')
			w.Str("toolUseId", d.ID)
			w.Str("name", s.o.ToolName(d.Name))
			w.B = append(w.B, "}}"...)
		})
	case chat.DeltaToolArgs:
		dst = s.delta(dst, blockKey{'c', d.Call}, nested("toolUse", "input", d.JSON))
	case chat.DeltaBlockStop:
		if d.Call >= 0 {
			return s.close(dst, blockKey{'c', d.Call})
		}
		return s.close(s.close(dst, blockKey{'r', d.Block}), blockKey{'t', d.Block})
	case chat.DeltaStop:
		dst = s.begin(dst)
		s.stop = d.Stop
	case chat.DeltaUsage:
		s.usage = *d.Usage
	}
	return dst
}

// close ends a block if it is open.
func (s *streamEncoder) close(dst []byte, k blockKey) []byte {
	i, ok := s.indexes[k]
	if !ok {
		return dst
	}
	delete(s.indexes, k)
	return s.event(dst, "contentBlockStop", func(w *upstream.Object) { w.Int("contentBlockIndex", int64(i)) })
}

// Finish implements chat.StreamEncoder.
func (s *streamEncoder) Finish(dst []byte) []byte {
	dst = s.begin(dst)
	for i := range s.next { // in their order
		for k, at := range s.indexes {
			if at == i {
				dst = s.close(dst, k)
				break
			}
		}
	}
	dst = s.event(dst, "messageStop", func(w *upstream.Object) { w.Str("stopReason", nativeStop(s.stop, s.calls)) })
	return s.event(dst, "metadata", func(w *upstream.Object) { appendUsage(w, &s.usage) })
}

// Error implements chat.StreamEncoder.
func (s *streamEncoder) Error(dst []byte, f *fault.Fault) []byte {
	return Converse{}.AppendStreamError(dst, f, &s.o)
}

// An image of a response is a content block {image:{format,source:{bytes}}}. In a stream the
// format is in the start of the block, and its bytes are in one or more deltas (ImageBlockStart
// and ImageBlockDelta of the AWS SDK for JavaScript 3, 2026-11-29).

// imageFormat returns the wire's name of an image's format, "" if the wire has none.
func imageFormat(m *chat.Media) string {
	if f := formats[m.MIME]; f.block == "image" && m.Data != "" {
		return f.format
	}
	return ""
}

// appendImage writes an image block; nothing for one without a place.
func appendImage(w *upstream.Object, m *chat.Media) {
	format := imageFormat(m)
	if format == "" {
		return
	}
	w.Open('{')
	w.Key("image")
	w.Open('{')
	w.Str("format", format)
	w.Key("source")
	w.Open('{')
	w.Str("bytes", m.Data)
	w.B = append(w.B, "}}}"...)
}

// image writes an image as a separate block.
func (s *streamEncoder) image(dst []byte, d *chat.Delta) []byte {
	m := chat.ReadImage(d.Text())
	format := imageFormat(m)
	if format == "" {
		return dst
	}
	dst = s.begin(dst)
	k := blockKey{'i', s.next}
	dst = s.event(dst, "contentBlockStart", func(w *upstream.Object) {
		w.Int("contentBlockIndex", s.index(k))
		w.Raw("start", []byte(`{"image":{"format":"`+format+`"}}`))
	})
	dst = s.delta(dst, k, func(w *upstream.Object) {
		w.Key("image")
		w.Open('{')
		w.Key("source")
		w.Open('{')
		w.Str("bytes", m.Data)
		w.B = append(w.B, "}}"...)
	})
	return s.close(dst, k)
}

// decodeImage reads {format,source:{bytes}}. An image that is elsewhere is no part.
func decodeImage(d *wire.Decoder) chat.Part {
	format, data := readImage(d)
	if data == "" {
		return chat.Part{}
	}
	return chat.Part{Kind: chat.Image, Media: chat.ReadImage("data:image/" + format + ";base64," + data)}
}

// readImage reads an image block, or its start or delta in a stream.
func readImage(d *wire.Decoder) (format, data string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return "", ""
	}
	for key := range d.Object {
		switch string(key) {
		case "format":
			format = upstream.OptString(d)
		case "source":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "bytes" {
					data = upstream.OptString(d)
				}
			}
		}
	}
	return format, data
}

// picture buffers a piece of an image until its block ends.
func (s *streamDecoder) picture(b *block, piece []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(piece))
	if err != nil {
		return s.unreadable(err)
	}
	b.image = append(b.image, raw...)
	s.m.Started = true
	return nil
}

// address returns the address of an image after its block has ended.
func (b *block) address() []byte {
	m := chat.Media{Data: base64.StdEncoding.EncodeToString(b.image)}
	if b.format != "" {
		m.MIME = "image/" + b.format
	}
	return wire.AppendJSONString(nil, m.Address())
}
