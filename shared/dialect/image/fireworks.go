package image

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Fireworks makes images on Fireworks AI: /image_generation/{model} of the models
// of Stable Diffusion, /workflows/{model}/text_to_image of FLUX.1. Answers are
// [{base64, seed, finishReason}], {base64: list}, or the image itself.
type Fireworks struct{ errors }

var _ chat.Translator = Fireworks{}

// Name implements chat.Translator.
func (Fireworks) Name() string { return "fireworks.images" }

var (
	fireworksNames = names{
		"negative_prompt", "negative_prompt", "cfg_scale", "cfg_scale", "guidance_scale", "cfg_scale", "sampler", "sampler",
		"seed", "seed", "steps", "steps", "num_inference_steps", "steps", "safety_check", "safety_check",
		"lora_adapter_name", "lora_adapter_name", "lora_weight_filename", "lora_weight_filename",
	}
	fluxNames = names{
		"guidance_scale", "guidance_scale", "cfg_scale", "guidance_scale", "steps", "num_inference_steps",
		"num_inference_steps", "num_inference_steps", "seed", "seed",
	}
	fluxShapes = []shape{{1, 1}, {21, 9}, {16, 9}, {3, 2}, {5, 4}, {4, 5}, {2, 3}, {9, 16}, {9, 21}, {4, 3}, {3, 4}}
)

// fireworksMost is how many images of Stable Diffusion one request makes.
const fireworksMost = 10

// EncodeRequest implements chat.Translator.
func (Fireworks) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := read(body)
	if err != nil {
		return dst, "", err
	}
	r.bytesOnly(a.Loss)
	o := upstream.Begin(dst)
	switch {
	case strings.Contains(a.Model, "kontext"):
		err = fault.Newf(fault.UnsupportedOperation, "model", "The model responds with a job id instead of an image; use pass-through")
	case strings.Contains(a.Model, "flux-"):
		err = r.flux(o, a.Loss)
	default:
		err = r.fireworks(o, a.Loss)
	}
	if err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

func (r *request) flux(o *upstream.Object, loss *chat.Loss) error {
	if err := r.atMost(1); err != nil {
		return err
	}
	o.Str("prompt", r.prompt)
	o.StrIf("aspect_ratio", r.proportions(fluxShapes, loss))
	return r.carry(fluxNames, loss, into(o))
}

func (r *request) fireworks(o *upstream.Object, loss *chat.Loss) error {
	if err := r.atMost(fireworksMost); err != nil {
		return err
	}
	r.loseRatio(loss)
	o.Key("text_prompts")
	o.Open('[')
	o.Open('{')
	o.Str("text", r.prompt)
	o.Int("weight", 1)
	o.Close('}')
	o.Close(']')
	if r.sized != "" {
		width, height := r.within(512, 1024, 64, loss)
		o.Int("height", height)
		o.Int("width", width)
	}
	o.IntIf("samples", r.n)
	return r.carry(fireworksNames, loss, into(o))
}

// DecodeResponse implements chat.Translator.
func (Fireworks) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return members{"base64"}.decode(dst, answer, h, a)
}

// errors reads the error bodies of these hosts: those of upstream.DecodeError, a
// bare string, {fault: {faultstring, detail: {errorcode}}} of Fireworks AI and
// {id, name, message or errors} of Stability AI.
type errors struct{}

// DecodeError implements chat.Translator.
func (errors) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	p := readError(body)
	if p == nil {
		return upstream.DecodeError(status, h, body)
	}
	p.Status = status
	f := upstream.Fault(p)
	if p.Type == "content_moderation" {
		f.Code = chat.ContentFilter
	}
	return chat.CompleteFault(f, status, h)
}

// readError reads errors that upstream.ReadError does not know; nil for the rest.
func readError(body []byte) *chat.ProviderError {
	d := wire.NewDecoder(body)
	if d.Kind() == wire.KindString {
		p := &chat.ProviderError{Message: d.Str()}
		if d.End() != nil || p.Message == "" {
			return nil
		}
		return p
	}
	if d.Kind() != wire.KindObject {
		return nil
	}
	p := &chat.ProviderError{}
	var id, name string
	for key := range d.Object {
		switch string(key) {
		case "id":
			id = upstream.OptString(d)
		case "name":
			name = upstream.OptString(d)
		case "fault":
			if d.Kind() == wire.KindObject {
				readFault(d, p)
			}
		}
	}
	if d.End() != nil {
		return nil
	}
	if p.Message != "" {
		return p
	}
	if p = upstream.ReadError(body); p == nil || name == "" {
		return nil
	}
	p.Type, p.Param = name, id
	return p
}

func readFault(d *wire.Decoder, p *chat.ProviderError) {
	for key := range d.Object {
		switch string(key) {
		case "faultstring":
			p.Message = upstream.OptString(d)
		case "detail":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "errorcode" {
					p.Code = upstream.OptString(d)
				}
			}
		}
	}
}
