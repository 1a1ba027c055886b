package image

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
)

// Hyperbolic is /v1/image/generation of Hyperbolic. Answers are {images:
// [{index, image, random_seed}], inference_time} with base64.
type Hyperbolic struct{ errors }

var _ chat.Translator = Hyperbolic{}

// Name implements chat.Translator.
func (Hyperbolic) Name() string { return "hyperbolic.images" }

var hyperbolicNames = names{
	"backend", "backend", "negative_prompt", "negative_prompt", "steps", "steps", "num_inference_steps", "steps",
	"cfg_scale", "cfg_scale", "guidance_scale", "cfg_scale", "seed", "seed", "sampler", "sampler", "strength", "strength",
	"enable_refiner", "enable_refiner", "prompt_2", "prompt_2", "negative_prompt_2", "negative_prompt_2",
	"image", "image", "controlnet_name", "controlnet_name", "controlnet_image", "controlnet_image", "lora", "lora",
}

// EncodeRequest implements chat.Translator.
func (Hyperbolic) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := read(body)
	if err == nil {
		err = r.atMost(1)
	}
	if err != nil {
		return dst, "", err
	}
	r.bytesOnly(a.Loss)
	r.loseRatio(a.Loss)
	o := upstream.Begin(dst)
	o.Str("model_name", a.Model)
	o.Str("prompt", r.prompt)
	if r.sized != "" {
		o.Int("height", r.height)
		o.Int("width", r.width)
	}
	if err := r.carry(hyperbolicNames, a.Loss, into(o)); err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Hyperbolic) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return members{"images", "image"}.decode(dst, answer, h, a)
}
