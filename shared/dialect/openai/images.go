package openai

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// Images of an answer are in the images field of its message or delta, a list of
// {type:"image_url",image_url:{url}}: OpenAI itself has no place for them, OpenRouter and hosts
// like it do (openrouter.ai/docs/features/multimodal/image-generation, 2026-11-29).

// imageAddress returns the address of one element of images, "" if it has none.
func imageAddress(d *wire.Decoder) (address string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ""
	}
	for key := range d.Object {
		if string(key) != "image_url" {
			continue
		}
		if d.Kind() != wire.KindObject {
			address = upstream.OptString(d)
			continue
		}
		for key := range d.Object {
			if string(key) == "url" {
				address = upstream.OptString(d)
			}
		}
	}
	return address
}

// isImage reports whether a part is an image.
func isImage(p chat.Part) bool { return p.Kind == chat.Image }

// imageParts reads images into parts.
func imageParts(d *wire.Decoder) (parts []chat.Part) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return nil
	}
	for range d.Array {
		if address := imageAddress(d); address != "" {
			parts = append(parts, chat.Part{Kind: chat.Image, Media: chat.ReadImage(address)})
		}
	}
	return parts
}

// images returns the images of a chunk. Each is a block.
func (s *streamDecoder) images(st *choiceState, list []byte, emit func(*chat.Delta) error) error {
	for _, p := range imageParts(wire.NewDecoder(list)) {
		s.m.Started = true
		s.m.Pieces++
		s.out = chat.Delta{Kind: chat.DeltaImage, Choice: st.index, Block: blockImages + st.images, Call: -1, JSON: wire.AppendJSONString(nil, p.Media.Address())}
		if err := emit(&s.out); err != nil {
			return err
		}
		st.images++
		s.out = chat.Delta{Kind: chat.DeltaBlockStop, Choice: st.index, Block: s.out.Block, Call: -1}
		if err := emit(&s.out); err != nil {
			return err
		}
	}
	return nil
}

// appendImages writes the images field of a message after a comma; nothing if it has no image.
func appendImages(dst []byte, parts []chat.Part) []byte {
	n := 0
	for i := range parts {
		if parts[i].Kind != chat.Image {
			continue
		}
		if n++; n == 1 {
			dst = append(dst, `,"images":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendImage(dst, wire.AppendJSONString(nil, parts[i].Media.Address()))
	}
	if n > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// appendImage writes one image; address is a JSON string.
func appendImage(dst, address []byte) []byte {
	dst = append(dst, `{"type":"image_url","image_url":{"url":`...)
	return append(append(dst, address...), "}}"...)
}

// image writes an image for clients that did not request the strict format: as
// OpenRouter's, and as a block of content_blocks, which preserves its position between
// the others.
func (s *streamEncoder) image(dst []byte, d *chat.Delta) []byte {
	if s.o.Strict {
		return dst
	}
	dst = s.open(dst, d.Choice)
	whole := appendImage(nil, d.JSON)
	dst = append(append(append(dst, `"images":[`...), whole...), "],"...)
	block := *d
	block.JSON = whole
	return s.close(appendBlockDelta(dst, &block, "block"))
}
