package responses

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// An image that a model returns is an image_generation_call item: its result is base64.

// takesImage reports whether an image has a place in an item.
func takesImage(m *chat.Media) bool { return m.Data != "" }

// appendImage writes the fields of an image item that follow its type. Without data the image
// is still being made.
func appendImage(dst []byte, m *chat.Media) []byte {
	if m == nil {
		return append(dst, `,"status":"in_progress","result":null`...)
	}
	dst = append(dst, `,"status":"completed","output_format":`...)
	dst = wire.AppendJSONString(dst, strings.TrimPrefix(m.MIME, "image/"))
	return wire.AppendJSONString(append(dst, `,"result":`...), m.Data)
}

// image writes an image of a complete response.
func (w *itemWriter) image(m *chat.Media) {
	if takesImage(m) {
		w.endMessage()
		w.begin("ig", "image_generation_call")
		w.b = append(appendImage(w.b, m), '}')
	}
}

// image writes the events of an image of a stream.
func (s *streamEncoder) image(dst []byte, d *chat.Delta) []byte {
	m := chat.ReadImage(d.Text())
	if !takesImage(m) {
		return dst
	}
	it := &openItem{kind: imageItem, ended: true}
	dst = s.open(s.release(dst), it, "ig")
	for _, kind := range [...]string{"response.image_generation_call.in_progress", "response.image_generation_call.completed"} {
		dst = append(of(s.event(dst, kind), it), "}\n\n"...)
	}
	it.media = m
	return s.end(dst, it, "completed")
}

// image returns the part of an image item that a client sends back; ok is false without an image.
func (it *item) image() (p chat.Part, ok bool) {
	if it.kind != "image_generation_call" || it.resultData == "" {
		return p, false
	}
	mime := ""
	if it.outputFormat != "" {
		mime = "image/" + it.outputFormat
	}
	m := chat.ReadImage("data:" + mime + ";base64," + it.resultData)
	return chat.Part{Kind: chat.Image, Media: m, At: place(it.at, -1)}, m.Data != ""
}
