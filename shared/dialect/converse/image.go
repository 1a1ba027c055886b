package converse

import (
	"encoding/base64"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// An image of an answer is a content block {image:{format,source:{bytes}}}. In a stream the
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
