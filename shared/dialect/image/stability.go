package image

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
)

// Stability creates images on Stability AI: /v1/generation/{model}/text-to-image of
// the models of Stable Diffusion XL and 1.6, in JSON, and
// /v2beta/stable-image/generate/{model} of the later ones, which takes a form.
type Stability struct{ errors }

var _ chat.Translator = Stability{}

// Name implements chat.Translator.
func (Stability) Name() string { return "stability.images" }

var (
	stabilityV1 = names{
		"style", "style_preset", "style_preset", "style_preset", "cfg_scale", "cfg_scale", "guidance_scale", "cfg_scale",
		"clip_guidance_preset", "clip_guidance_preset", "sampler", "sampler", "seed", "seed", "steps", "steps",
		"num_inference_steps", "steps", "extras", "extras",
	}
	stabilityV2 = names{
		"negative_prompt", "negative_prompt", "seed", "seed", "output_format", "output_format", "mode", "mode",
		"strength", "strength", "style", "style_preset", "style_preset", "style_preset", "cfg_scale", "cfg_scale", "image", "image",
	}
	// xlShapes are the only sizes of Stable Diffusion XL 1.0.
	xlShapes = []shape{
		{1024, 1024}, {1152, 896}, {896, 1152}, {1216, 832}, {832, 1216}, {1344, 768}, {768, 1344}, {1536, 640}, {640, 1536},
	}
	stabilityShapes = []shape{{1, 1}, {16, 9}, {9, 16}, {3, 2}, {2, 3}, {4, 5}, {5, 4}, {21, 9}, {9, 21}}
)

// stabilityMost is how many images the older models create in one request.
const stabilityMost = 10

// EncodeRequest implements chat.Translator.
func (Stability) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := read(body)
	if err != nil {
		return dst, "", err
	}
	r.bytesOnly(a.Loss)
	r.dropStyle(a.Loss)
	if strings.HasPrefix(a.Model, "stable-diffusion-") {
		return r.diffusion(dst, a)
	}
	if err := r.atMost(1); err != nil {
		return dst, "", err
	}
	f := newForm()
	f.text("prompt", r.prompt)
	if strings.HasPrefix(a.Model, "sd3") && a.Model != "sd3" {
		f.text("model", a.Model)
	}
	if ratio := r.proportions(stabilityShapes, a.Loss); ratio != "" {
		f.text("aspect_ratio", ratio)
	}
	err = r.carry(stabilityV2, a.Loss, func(client, host string, raw []byte) error {
		if host == "image" {
			return f.file(client, host, raw)
		}
		return f.put(client, host, raw)
	})
	if err != nil {
		return dst, "", err
	}
	out, media := f.end(dst)
	return out, media, nil
}

// diffusion returns the request of the older models. A negative prompt is sent as a
// prompt with a negative weight.
func (r *request) diffusion(dst []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	if err := r.atMost(stabilityMost); err != nil {
		return dst, "", err
	}
	r.loseRatio(a.Loss)
	o := upstream.Begin(dst)
	o.Key("text_prompts")
	o.Open('[')
	o.Open('{')
	o.Str("text", r.prompt)
	o.Int("weight", 1)
	o.Close('}')
	if i := slices.IndexFunc(r.extra, func(x chat.Field) bool { return x.Name == "negative_prompt" }); i >= 0 {
		o.Open('{')
		o.Raw("text", r.extra[i].Raw)
		o.Int("weight", -1)
		o.Close('}')
		r.extra = slices.Delete(r.extra, i, i+1)
	}
	o.Close(']')
	if r.sized != "" {
		width, height := r.diffused(a)
		o.Int("height", height)
		o.Int("width", width)
	}
	o.IntIf("samples", r.n)
	if err := r.carry(stabilityV1, a.Loss, into(o)); err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// diffused returns the size of the images of an older model for the requested one.
func (r *request) diffused(a *chat.TranslatorRequest) (width, height int64) {
	if !strings.Contains(a.Model, "xl-1024") {
		return r.within(320, 1536, 64, a.Loss)
	}
	s := nearest(xlShapes, r.width, r.height)
	r.made(s.width, s.height, a.Loss)
	return s.width, s.height
}

// dropStyle removes the styles of OpenAI, which no other host knows.
func (r *request) dropStyle(loss *chat.Loss) {
	r.extra = slices.DeleteFunc(r.extra, func(x chat.Field) bool {
		known := x.Name == "style" && (string(x.Raw) == `"vivid"` || string(x.Raw) == `"natural"`)
		if known {
			loss.Add("style", upstream.UnsupportedField)
		}
		return known
	})
}

// DecodeResponse implements chat.Translator: {artifacts: [{base64, finishReason}]}
// of the older models, {image, finish_reason} or the image itself of the others.
func (Stability) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return members{"artifacts", "base64", "image"}.decode(dst, answer, h, a)
}

// shape is a size of images, or their proportions.
type shape struct{ width, height int64 }

func (s shape) ratio() string { return fmt.Sprintf("%d:%d", s.width, s.height) }

// off is how much two shapes differ: 0 for the same proportions.
func (s shape) off(width, height int64) float64 {
	return math.Abs(math.Log(float64(width) / float64(height) * float64(s.height) / float64(s.width)))
}

// nearest returns the shape of list with the nearest proportions; list is not empty.
func nearest(list []shape, width, height int64) shape {
	best := list[0]
	for _, s := range list[1:] {
		if s.off(width, height) < best.off(width, height)-1e-9 {
			best = s
		}
	}
	return best
}

// within returns the width and height with the nearest proportions and sides from low to
// high in steps of step.
func (r *request) within(low, high, step int64, loss *chat.Loss) (width, height int64) {
	w, h := float64(r.width), float64(r.height)
	if m := max(w, h); m > float64(high) {
		w, h = w*float64(high)/m, h*float64(high)/m
	}
	if m := min(w, h); m < float64(low) {
		w, h = w*float64(low)/m, h*float64(low)/m
	}
	round := func(v float64) int64 {
		return min(max(int64(math.Round(v/float64(step)))*step, low), high)
	}
	width, height = round(w), round(h)
	r.made(width, height, loss)
	return width, height
}

// made reports a size other than the requested one.
func (r *request) made(width, height int64, loss *chat.Loss) {
	if width != r.width || height != r.height {
		loss.Add(r.sized, fmt.Sprintf("made as %dx%d", width, height))
	}
}

// proportions is the aspect ratio to ask for: the client's own, or the nearest of list to
// the size; "" leaves it to the model. Only 1024x1024 needs no report, because it is what
// the models make of 1:1.
func (r *request) proportions(list []shape, loss *chat.Loss) string {
	switch {
	case r.ratio != "":
		if r.sized != "" {
			loss.Add(r.sized, "the aspect ratio is also set")
		}
		return r.ratio
	case r.sized == "":
		return ""
	}
	best := nearest(list, r.width, r.height)
	if r.width != 1024 || r.height != 1024 {
		loss.Add(r.sized, "made as "+best.ratio()+", in the provider's own size")
	}
	return best.ratio()
}
