package image

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
)

// Fal is /{model} of fal.ai in its synchronous mode. Responses are {images: [{url, width,
// height, content_type}], seed}; with sync_mode the url is a data: URL.
type Fal struct{ errors }

var _ chat.Translator = Fal{}

// Name implements chat.Translator.
func (Fal) Name() string { return "fal.images" }

var falNames = names{
	"negative_prompt", "negative_prompt", "seed", "seed", "steps", "num_inference_steps", "num_inference_steps", "num_inference_steps",
	"guidance_scale", "guidance_scale", "cfg_scale", "guidance_scale", "image_url", "image_url", "strength", "strength",
	"output_format", "output_format", "enable_safety_checker", "enable_safety_checker", "safety_tolerance", "safety_tolerance",
	"acceleration", "acceleration", "loras", "loras", "style", "style",
}

// falMost is how many images one request makes.
const falMost = 4

// EncodeRequest implements chat.Translator.
func (Fal) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := read(body)
	if err == nil {
		err = r.atMost(falMost)
	}
	if err != nil {
		return dst, "", err
	}
	r.dropStyle(a.Loss)
	o := upstream.Begin(dst)
	o.Str("prompt", r.prompt)
	o.StrIf("aspect_ratio", r.ratio)
	if r.sized != "" {
		o.Key("image_size")
		o.Open('{')
		o.Int("width", r.width)
		o.Int("height", r.height)
		o.Close('}')
	}
	o.IntIf("num_images", r.n)
	if r.format == "b64_json" {
		o.Bool("sync_mode", true)
	}
	if err := r.carry(falNames, a.Loss, into(o)); err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Fal) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return members{"images", "url"}.decode(dst, answer, h, a)
}
