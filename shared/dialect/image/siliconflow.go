package image

import (
	"fmt"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
)

// SiliconFlow is /images/generations of SiliconFlow, which has the path of
// OpenAI and other members. Answers are {images: [{url}], timings, seed}.
type SiliconFlow struct{ errors }

var _ chat.Translator = SiliconFlow{}

// Name implements chat.Translator.
func (SiliconFlow) Name() string { return "siliconflow.images" }

var siliconflowNames = names{
	"negative_prompt", "negative_prompt", "seed", "seed", "steps", "num_inference_steps", "num_inference_steps", "num_inference_steps",
	"guidance_scale", "guidance_scale", "cfg_scale", "guidance_scale", "cfg", "cfg", "image", "image", "image2", "image2", "image3", "image3",
	"prompt_enhancement", "prompt_enhancement", "output_format", "output_format",
}

// siliconflowMost is how many images one request makes.
const siliconflowMost = 4

// EncodeRequest implements chat.Translator.
func (SiliconFlow) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := read(body)
	if err == nil {
		err = r.atMost(siliconflowMost)
	}
	if err != nil {
		return dst, "", err
	}
	r.loseRatio(a.Loss)
	if r.format == "b64_json" {
		a.Loss.AddAnswer("response_format", "images are given by url")
	}
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	o.Str("prompt", r.prompt)
	if r.sized != "" {
		o.Str("image_size", fmt.Sprintf("%dx%d", r.width, r.height))
	}
	o.IntIf("batch_size", r.n)
	if err := r.carry(siliconflowNames, a.Loss, into(o)); err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (SiliconFlow) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return members{"images", "url"}.decode(dst, answer, h, a)
}
