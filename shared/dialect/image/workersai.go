package image

import (
	"bytes"
	"encoding/base64"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// WorkersAI is /ai/run/{model} of Cloudflare's models that make images. Answers
// are {result: {image}} or the image itself.
type WorkersAI struct{ errors }

var _ chat.Translator = WorkersAI{}

// Name implements chat.Translator.
func (WorkersAI) Name() string { return "workers-ai.images" }

var workersNames = names{
	"negative_prompt", "negative_prompt", "steps", "num_steps", "num_steps", "num_steps", "num_inference_steps", "num_steps",
	"seed", "seed", "guidance", "guidance", "guidance_scale", "guidance", "cfg_scale", "guidance", "strength", "strength",
	"image_b64", "image_b64", "image", "image", "mask", "mask",
}

// The sides of images that the models make, in pixels.
const (
	workersLow  = 256
	workersHigh = 2048
)

// EncodeRequest implements chat.Translator. The models name the number of steps num_steps
// or steps and ignore the other name.
func (WorkersAI) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := read(body)
	if err == nil {
		err = r.atMost(1)
	}
	if err != nil {
		return dst, "", err
	}
	r.bytesOnly(a.Loss)
	r.loseRatio(a.Loss)
	if strings.Contains(a.Model, "flux-2") {
		return r.workersForm(dst, a.Loss)
	}
	o := upstream.Begin(dst)
	o.Str("prompt", r.prompt)
	switch {
	case r.sized == "":
	case strings.Contains(a.Model, "flux-1-schnell"):
		r.made(1024, 1024, a.Loss)
	default:
		width, height := r.within(workersLow, workersHigh, 8, a.Loss)
		o.Int("height", height)
		o.Int("width", width)
	}
	err = r.carry(workersNames, a.Loss, func(_, host string, raw []byte) error {
		o.Raw(host, raw)
		if host == "num_steps" {
			o.Raw("steps", raw)
		}
		return nil
	})
	if err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// workersForm is the request of the models of FLUX.2, which take forms only.
func (r *request) workersForm(dst []byte, loss *chat.Loss) ([]byte, string, error) {
	f := newForm()
	f.text("prompt", r.prompt)
	if r.sized != "" {
		width, height := r.within(workersLow, workersHigh, 8, loss)
		f.text("width", strconv.FormatInt(width, 10))
		f.text("height", strconv.FormatInt(height, 10))
	}
	taken := names{"steps", "steps", "num_steps", "steps", "num_inference_steps", "steps", "seed", "seed", "guidance", "guidance", "guidance_scale", "guidance"}
	if err := r.carry(taken, loss, f.put); err != nil {
		return dst, "", err
	}
	out, media := f.end(dst)
	return out, media, nil
}

// DecodeResponse implements chat.Translator.
func (WorkersAI) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return members{"result", "image"}.decode(dst, answer, h, a)
}

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
