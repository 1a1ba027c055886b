package image

import (
	"bytes"
	"encoding/base64"
	"mime/multipart"
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// form is a multipart/form-data body. Its boundary is random, so that no text of
// the client ends a part.
type form struct {
	b bytes.Buffer
	w *multipart.Writer
}

func newForm() *form {
	f := &form{}
	f.w = multipart.NewWriter(&f.b)
	return f
}

// text writes a field. Writes to memory do not fail.
func (f *form) text(name, value string) {
	w, err := f.w.CreateFormField(name)
	if err == nil {
		_, _ = w.Write([]byte(value))
	}
}

// put is what request.carry writes with: it writes texts, numbers, true and false.
func (f *form) put(client, host string, raw []byte) error {
	switch wire.KindOf(raw) {
	case wire.KindString:
		d := wire.NewDecoderAt(raw, client)
		f.text(host, d.Str())
		return d.End()
	case wire.KindNumber, wire.KindBool:
		f.text(host, string(raw))
		return nil
	}
	return fault.Invalid(client, "%s must be a text, a number, true or false for this provider", client)
}

// file writes an image that is in the body as base64 or as a data: URL.
func (f *form) file(client, host string, raw []byte) error {
	if wire.KindOf(raw) != wire.KindString {
		return fault.Invalid(client, "%s must be an image as base64 or a data: URL", client)
	}
	d := wire.NewDecoderAt(raw, client)
	text := d.Str()
	if err := d.End(); err != nil {
		return err
	}
	data, err := base64.StdEncoding.DecodeString(bareBase64(text))
	kind := http.DetectContentType(data)
	extension, isImage := strings.CutPrefix(kind, "image/")
	if err != nil || !isImage {
		return fault.Invalid(client, "%s must be an image as base64 or a data: URL; nothing is fetched from the web", client)
	}
	part, err := f.w.CreatePart(map[string][]string{
		"Content-Disposition": {`form-data; name="` + host + `"; filename="image.` + extension + `"`}, "Content-Type": {kind},
	})
	if err == nil {
		_, _ = part.Write(data)
	}
	return nil
}

// end appends the complete body and returns its media type.
func (f *form) end(dst []byte) (out []byte, contentType string) {
	_ = f.w.Close()
	return append(dst, f.b.Bytes()...), f.w.FormDataContentType()
}
