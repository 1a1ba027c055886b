package image

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/imagesize"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// response gathers the images of a host's response.
type response struct {
	data   []string // base64
	urls   []string
	reason string // why an image is missing
	failed bool   // the host reports it
}

// members are the names under which a host's response holds its images: strings,
// lists and objects of them.
type members []string

// gather reads a response with images under the names of m, at any depth of these names.
// It returns an error if there is none.
func (m members) gather(body []byte) (*response, error) {
	a := &response{}
	d := wire.NewDecoder(body)
	m.value(d, a, "")
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's response is not JSON", err)
	}
	switch {
	case a.failed:
		return nil, upstream.InBand(body)
	case len(a.data)+len(a.urls) > 0:
		return a, nil
	case a.reason != "":
		return nil, filtered(a.reason)
	case upstream.ReadError(body) != nil:
		return nil, upstream.InBand(body)
	}
	return nil, upstream.Invalid("The provider's response contains no image", nil)
}

// value reads the value of name.
func (m members) value(d *wire.Decoder, a *response, name string) {
	switch d.Kind() {
	case wire.KindString:
		if s := d.Str(); s != "" && name == "url" && !strings.HasPrefix(s, "data:") {
			a.urls = append(a.urls, s)
		} else if s != "" && name != "" {
			a.data = append(a.data, s)
		}
	case wire.KindArray:
		for range d.Array {
			m.value(d, a, name)
		}
	case wire.KindObject:
		m.object(d, a)
	default:
		d.Skip()
	}
}

// object reads one object. Images of an object that was filtered do not count: they are
// blurred.
func (m members) object(d *wire.Decoder, a *response) {
	var inner response
	for key := range d.Object {
		switch name := string(key); {
		case name == "finishReason" || name == "finish_reason":
			inner.reason = upstream.OptString(d)
		case name == "success" && d.Kind() == wire.KindBool:
			a.failed = a.failed || !d.Bool()
		case slices.Contains(m, name):
			m.value(d, &inner, name)
		}
	}
	a.failed = a.failed || inner.failed
	if blocked(inner.reason) {
		a.reason = inner.reason
		return
	}
	a.data, a.urls = append(a.data, inner.data...), append(a.urls, inner.urls...)
	if a.reason == "" && len(inner.data)+len(inner.urls) == 0 {
		a.reason = inner.reason
	}
}

// blocked reports whether a finish reason means that there is no image.
func blocked(reason string) bool { return reason == "CONTENT_FILTERED" || reason == "ERROR" }

// filtered is the refusal for a response without an image.
func filtered(reason string) error {
	status, code := http.StatusBadRequest, chat.ContentFilter
	if reason == "ERROR" {
		status = http.StatusBadGateway
	}
	f := upstream.Failed(status, "", "The provider made no image: "+reason)
	if reason != "ERROR" {
		f.Code = code
	}
	return f
}

// bare reads a response that is the image itself; ok is false for anything else, such as
// JSON.
func bare(body []byte, h http.Header) (a *response, ok bool, err error) {
	kind := h.Get("Content-Type")
	sniffed := strings.HasPrefix(http.DetectContentType(body), "image/")
	if !sniffed && !strings.HasPrefix(kind, "image/") {
		return nil, false, nil
	}
	if reason := h.Get("Finish-Reason"); blocked(reason) {
		return nil, true, filtered(reason)
	}
	if !sniffed {
		return nil, true, upstream.Invalid("The provider's response is not an image, although its type states it", nil)
	}
	return &response{data: []string{base64.StdEncoding.EncodeToString(body)}}, true, nil
}

// readResponse reads a response: the image itself, or JSON that holds images under the
// names of m.
func (m members) readResponse(body []byte, h http.Header) (*response, error) {
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); {
	case len(trimmed) == 0:
		return nil, upstream.Invalid("The provider's response is empty", nil)
	case trimmed[0] == '{' || trimmed[0] == '[' || trimmed[0] == '"':
		return m.gather(body)
	}
	if a, ok, err := bare(body, h); ok {
		return a, err
	}
	return nil, upstream.Invalid("The provider's response is neither JSON nor an image", nil)
}

// decode is DecodeResponse of hosts with images under the names of m.
func (m members) decode(dst, body []byte, h http.Header, req *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	a, err := m.readResponse(body, h)
	if err != nil {
		return dst, "", chat.Meter{}, err
	}
	o := upstream.Begin(dst)
	o.Int("created", req.Created)
	o.Key("data")
	o.Open('[')
	for i, s := range a.data {
		raw := bareBase64(s)
		if !wholeBase64(raw) {
			return dst, "", chat.Meter{}, upstream.Invalid("Image "+strconv.Itoa(i+1)+" of the provider's response is not valid base64", nil)
		}
		o.Open('{')
		o.Key("b64_json")
		o.B = append(append(append(o.B, '"'), raw...), '"')
		o.Close('}')
	}
	for _, u := range a.urls {
		o.Open('{')
		o.Str("url", u)
		o.Close('}')
	}
	o.Close(']')
	if req.ProviderName != "" {
		o.Str("provider", req.ProviderName)
	}
	o.Close('}')
	meter := chat.Meter{Complete: true, Started: true}
	meter.Usage.Set(pricing.Images, int64(len(a.data)+len(a.urls)))
	for _, s := range a.data {
		if pixels, ok := imagesize.PixelsOfBase64(s); ok {
			meter.Sized, meter.Pixels = meter.Sized+1, meter.Pixels+pixels
		}
	}
	return o.B, "", meter, nil
}

// bareBase64 is the base64 of a data: URL, or s.
func bareBase64(s string) string {
	if strings.HasPrefix(s, "data:") {
		if _, data, ok := strings.Cut(s, ";base64,"); ok {
			return data
		}
	}
	return s
}

// pngEnd is the last chunk of a PNG with its checksum.
const pngEnd = "IEND\xaeB`\x82"

// wholeBase64 reports whether s is base64 to its end. A PNG must have its last chunk, so
// that a cut at an unlucky place is noticed too.
func wholeBase64(s string) bool {
	if len(s) == 0 || len(s)%4 != 0 {
		return false
	}
	digits := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for i := range len(digits) {
		c := digits[i]
		if !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/') {
			return false
		}
	}
	if !strings.HasPrefix(s, "iVBORw0KGgo") { // the signature of PNG
		return true
	}
	tail, err := base64.StdEncoding.DecodeString(s[max(0, len(s)-24):])
	return err == nil && bytes.Contains(tail, []byte(pngEnd))
}

// Segmind is /v1/{model} of Segmind. Answers are {image: base64 or a list of it},
// or the image itself.
type Segmind struct{ errors }

var _ chat.Translator = Segmind{}

// Name implements chat.Translator.
func (Segmind) Name() string { return "segmind.images" }

var segmindNames = names{
	"negative_prompt", "negative_prompt", "style", "style", "steps", "num_inference_steps", "num_inference_steps", "num_inference_steps",
	"scheduler", "scheduler", "guidance_scale", "guidance_scale", "cfg_scale", "guidance_scale", "seed", "seed", "strength", "strength",
	"refiner", "refiner", "high_noise_fraction", "high_noise_fraction", "image", "image",
	"control_scale", "control_scale", "control_start", "control_start", "control_end", "control_end",
	"qr_text", "qr_text", "invert", "invert", "qr_size", "size",
}

// The most images of one request and the usual number of steps.
const (
	segmindMost  = 10
	segmindSteps = 20
)

// EncodeRequest implements chat.Translator.
func (Segmind) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := read(body)
	if err == nil {
		err = r.atMost(segmindMost)
	}
	if err != nil {
		return dst, "", err
	}
	r.bytesOnly(a.Loss)
	r.loseRatio(a.Loss)
	r.dropStyle(a.Loss)
	o := upstream.Begin(dst)
	o.Str("prompt", r.prompt)
	o.Int("samples", r.n.Or(1))
	if r.sized != "" {
		o.Int("img_width", r.width)
		o.Int("img_height", r.height)
	}
	if !r.has("steps") && !r.has("num_inference_steps") {
		o.Int("num_inference_steps", segmindSteps)
	}
	if err := r.carry(segmindNames, a.Loss, into(o)); err != nil {
		return dst, "", err
	}
	o.Bool("base64", true) // otherwise one image would come bare, and several not at all
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Segmind) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return members{"image", "images"}.decode(dst, answer, h, a)
}
