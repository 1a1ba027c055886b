package image

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
)

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
	if !r.given("steps") && !r.given("num_inference_steps") {
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
