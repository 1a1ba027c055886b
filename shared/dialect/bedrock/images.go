package bedrock

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Images is InvokeModel of Titan, Nova Canvas and Stability models that make
// images. Answers hold base64, never addresses.
type Images struct{ errors }

var _ chat.Translator = Images{}

// Name implements chat.Translator.
func (Images) Name() string { return "bedrock.images" }

// imageRequest is a client's request in the OpenAI format.
type imageRequest struct {
	prompt, size, quality, style, format string
	n                                    chat.Opt[int64]
	extra                                []chat.Field
}

func readImage(body []byte) (*imageRequest, error) {
	d := wire.NewDecoder(body)
	r := &imageRequest{}
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "model":
			d.Skip()
		case "prompt":
			r.prompt = d.Str()
		case "n":
			r.n = chat.Some(d.Int())
		case "size":
			r.size = d.Str()
		case "quality":
			r.quality = d.Str()
		case "style":
			r.style = d.Str()
		case "response_format":
			r.format = d.Str()
		default:
			r.extra = append(r.extra, chat.Field{Name: string(key), Raw: upstream.Clone(d.Raw())})
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	if r.prompt == "" {
		return nil, fault.Invalid("prompt", "prompt must not be empty")
	}
	return r, nil
}

// pixels reads a size such as 1024x1024; zeros for auto and for none.
func (r *imageRequest) pixels() (width, height int64, err error) {
	if r.size == "" || r.size == "auto" {
		return 0, 0, nil
	}
	w, h, found := strings.Cut(r.size, "x")
	width, err1 := strconv.ParseInt(w, 10, 32)
	height, err2 := strconv.ParseInt(h, 10, 32)
	if !found || err1 != nil || err2 != nil || width < 1 || height < 1 {
		return 0, 0, fault.Invalid("size", "size must be auto or a width and height such as 1024x1024")
	}
	return width, height, nil
}

// lose reports fields that are not carried.
func (r *imageRequest) lose(loss *chat.Loss, carried ...string) {
	if r.format == "url" {
		loss.AddResponse("response_format", "this provider returns b64_json")
	}
	if r.quality != "" && !slices.Contains(carried, "quality") {
		loss.Add("quality", upstream.UnsupportedField)
	}
	if r.style != "" && !slices.Contains(carried, "style") {
		loss.Add("style", upstream.UnsupportedField)
	}
	for _, x := range r.extra {
		if !slices.Contains(carried, x.Name) {
			loss.Add(x.Name, upstream.UnsupportedField)
		}
	}
}

// pass writes extra fields under the provider's names; the list alternates between the
// client's name and the provider's name.
func (r *imageRequest) pass(o *upstream.Object, pairs ...string) {
	for _, x := range r.extra {
		for i := 0; i < len(pairs); i += 2 {
			if x.Name == pairs[i] {
				o.Raw(pairs[i+1], x.Raw)
			}
		}
	}
}

// EncodeRequest implements chat.Translator.
func (Images) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := readImage(body)
	if err != nil {
		return dst, "", err
	}
	o := upstream.Begin(dst)
	switch m := a.Model; {
	case strings.Contains(m, "titan-image"), strings.Contains(m, "nova-canvas"):
		err = r.amazon(o, a.Loss)
	case strings.Contains(m, "stable-diffusion-xl"):
		err = r.diffusion(o, a.Loss)
	case strings.Contains(m, "stability."):
		err = r.stability(o, a.Loss)
	default:
		err = fault.Newf(fault.UnsupportedOperation, "model", "Images of this model on %s are not supported; use a Titan, Nova Canvas or Stability model", a.ProviderName)
	}
	if err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// amazon writes a request of Titan and Nova Canvas.
func (r *imageRequest) amazon(o *upstream.Object, loss *chat.Loss) error {
	width, height, err := r.pixels()
	if err != nil {
		return err
	}
	if r.n.Set && r.n.Value > 5 {
		return fault.Invalid("n", "n must be at most 5 for this model")
	}
	r.lose(loss, "quality", "negative_prompt", "seed", "cfg_scale")
	o.Str("taskType", "TEXT_IMAGE")
	o.Key("textToImageParams")
	o.Open('{')
	o.Str("text", r.prompt)
	r.pass(o, "negative_prompt", "negativeText")
	o.Close('}')
	o.Key("imageGenerationConfig")
	o.Open('{')
	o.Int("numberOfImages", max(1, r.n.Value))
	if width > 0 {
		o.Int("width", width)
		o.Int("height", height)
	}
	switch r.quality {
	case "":
	case "hd", "high", "premium":
		o.Str("quality", "premium")
	default:
		o.Str("quality", "standard")
	}
	r.pass(o, "cfg_scale", "cfgScale", "seed", "seed")
	o.Close('}')
	return nil
}

// leastSide is the least width and height of the older Stability models.
const leastSide = 320

// diffusion writes a request of Stable Diffusion XL.
func (r *imageRequest) diffusion(o *upstream.Object, loss *chat.Loss) error {
	width, height, err := r.pixels()
	if err != nil {
		return err
	}
	if width > 0 && (width < leastSide || height < leastSide) {
		return fault.Invalid("size", "size must be at least %dx%d for this model", leastSide, leastSide)
	}
	r.lose(loss, "style", "seed", "cfg_scale", "steps", "sampler", "clip_guidance_preset")
	o.Key("text_prompts")
	o.Open('[')
	o.Open('{')
	o.Str("text", r.prompt)
	o.Int("weight", 1)
	o.Close('}')
	o.Close(']')
	o.IntIf("samples", r.n)
	if width > 0 {
		o.Int("width", width)
		o.Int("height", height)
	}
	o.StrIf("style_preset", r.style)
	r.pass(o, "seed", "seed", "cfg_scale", "cfg_scale", "steps", "steps", "sampler", "sampler", "clip_guidance_preset", "clip_guidance_preset")
	return nil
}

// ratios are the shapes that the newer Stability models make.
var ratios = []struct {
	name          string
	width, height int64
}{{"1:1", 1, 1}, {"16:9", 16, 9}, {"9:16", 9, 16}, {"3:2", 3, 2}, {"2:3", 2, 3}, {"4:5", 4, 5}, {"5:4", 5, 4}, {"21:9", 21, 9}, {"9:21", 9, 21}}

// ratio is the name of the shape that is nearest to a size.
func ratio(width, height int64) string {
	best, least := "", 0.0
	for _, x := range ratios {
		off := float64(width*x.height)/float64(height*x.width) - 1
		if off < 0 {
			off = float64(height*x.width)/float64(width*x.height) - 1
		}
		if best == "" || off < least {
			best, least = x.name, off
		}
	}
	return best
}

// stability writes a request of the newer Stability models, which make one image.
func (r *imageRequest) stability(o *upstream.Object, loss *chat.Loss) error {
	width, height, err := r.pixels()
	if err != nil {
		return err
	}
	if r.n.Set && r.n.Value > 1 {
		return fault.Invalid("n", "n must be 1 for this model, which creates one image")
	}
	r.lose(loss, "negative_prompt", "seed", "aspect_ratio", "output_format", "mode")
	o.Str("prompt", r.prompt)
	hasRatio := slices.ContainsFunc(r.extra, func(x chat.Field) bool { return x.Name == "aspect_ratio" })
	if width > 0 && !hasRatio {
		o.Str("aspect_ratio", ratio(width, height))
	}
	r.pass(o, "negative_prompt", "negative_prompt", "seed", "seed", "aspect_ratio", "aspect_ratio", "output_format", "output_format", "mode", "mode")
	return nil
}

// DecodeResponse implements chat.Translator: images[], or artifacts[] of the older
// Stability models.
func (Images) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var images []string
	reason := ""
	for key := range d.Object {
		switch string(key) {
		case "images":
			if d.Kind() == wire.KindArray {
				for range d.Array {
					if s := upstream.OptString(d); s != "" {
						images = append(images, s)
					}
				}
			}
		case "artifacts":
			if d.Kind() == wire.KindArray {
				for range d.Array {
					image, finish := readArtifact(d)
					if image != "" && finish != "CONTENT_FILTERED" && finish != "ERROR" {
						images = append(images, image)
					} else if reason == "" {
						reason = finish
					}
				}
			}
		case "finish_reasons":
			if d.Kind() == wire.KindArray {
				for range d.Array {
					if s := upstream.OptString(d); s != "" {
						reason = s
					}
				}
			}
		case "error":
			reason = upstream.OptString(d)
		}
	}
	switch err := d.End(); {
	case err != nil:
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", err)
	case len(images) == 0 && reason != "":
		f := upstream.Failed(http.StatusBadRequest, "", "The provider made no image: "+reason)
		f.Code = chat.ContentFilter
		return dst, "", chat.Meter{}, f
	case len(images) == 0:
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	o := upstream.Begin(dst)
	o.Int("created", a.Created)
	o.Key("data")
	o.Open('[')
	for _, image := range images {
		o.Open('{')
		o.Str("b64_json", image)
		o.Close('}')
	}
	o.Close(']')
	if a.ProviderName != "" {
		o.Str("provider", a.ProviderName)
	}
	o.Close('}')
	m := chat.Meter{Complete: true, Started: true}
	m.Usage.Set(pricing.Images, int64(len(images)))
	return o.B, "", m, nil
}

func readArtifact(d *wire.Decoder) (image, finish string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return "", ""
	}
	for key := range d.Object {
		switch string(key) {
		case "base64":
			image = upstream.OptString(d)
		case "finishReason":
			finish = upstream.OptString(d)
		}
	}
	return image, finish
}
