package image

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// request is a client's request in the OpenAI format, with the fields that hosts of open
// models commonly add.
type request struct {
	prompt, format string
	n              chat.Opt[int64]
	width, height  int64        // pixels; 0 means left to the model
	sized          string       // the field that gave them: size or width
	ratio          string       // aspect_ratio
	extra          []chat.Field // other fields, in their order
}

// maxSide bounds a width and a height in pixels.
const maxSide = 1 << 14

// read reads a client's body. Streams are rejected: their events hold partial images,
// which none of these hosts has.
func read(body []byte) (*request, error) {
	d := wire.NewDecoder(body)
	r := &request{}
	size := ""
	var width, height chat.Opt[int64]
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch name := string(key); name {
		case "model":
			d.Skip()
		case "prompt":
			r.prompt = d.Str()
		case "n":
			r.n = chat.Some(d.Int())
		case "size":
			size = d.Str()
		case "width":
			width = chat.Some(d.Int())
		case "height":
			height = chat.Some(d.Int())
		case "aspect_ratio":
			r.ratio = d.Str()
		case "response_format":
			r.format = d.Str()
		case "stream":
			if d.Bool() {
				d.Fail("must be false or absent: this provider streams no images")
			}
		default:
			r.extra = append(r.extra, chat.Field{Name: name, Raw: upstream.Clone(d.Raw())})
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	switch {
	case r.prompt == "":
		return nil, fault.Invalid("prompt", "prompt must not be empty")
	case r.n.Set && r.n.Value < 1:
		return nil, fault.Invalid("n", "n must be at least 1")
	}
	return r, r.measure(size, width, height)
}

// measure settles the size: width and height win over size.
func (r *request) measure(size string, width, height chat.Opt[int64]) error {
	switch {
	case width.Set != height.Set:
		missing := "width"
		if width.Set {
			missing = "height"
		}
		return fault.Invalid(missing, "%s is required: width and height must be sent together", missing)
	case width.Set:
		r.width, r.height, r.sized = width.Value, height.Value, "width"
		for i, v := range []int64{r.width, r.height} {
			if name := []string{"width", "height"}[i]; v < 1 || v > maxSide {
				return fault.Invalid(name, "%s must be between 1 and %d", name, maxSide)
			}
		}
		if size != "" {
			r.extra = append(r.extra, chat.Field{Name: "size"}) // reported, because width and height are given as well
		}
		return nil
	case size == "" || size == "auto":
		return nil
	}
	w, h, found := strings.Cut(size, "x")
	var errW, errH error
	r.width, errW = strconv.ParseInt(w, 10, 32)
	r.height, errH = strconv.ParseInt(h, 10, 32)
	if !found || errW != nil || errH != nil || min(r.width, r.height) < 1 || max(r.width, r.height) > maxSide {
		return fault.Invalid("size", "size must be auto or a width and height such as 1024x1024")
	}
	r.sized = "size"
	return nil
}

// atMost rejects more images than the host makes in one request.
func (r *request) atMost(most int64) error {
	switch {
	case r.n.Or(1) <= most:
		return nil
	case most == 1:
		return fault.Invalid("n", "n must be 1 for this model, which creates one image per request; send the request again for more")
	}
	return fault.Invalid("n", "n must be at most %d for this model", most)
}

// bytesOnly reports that images will come as bytes where an address is wanted.
func (r *request) bytesOnly(loss *chat.Loss) {
	if r.format == "url" {
		loss.AddResponse("response_format", "images are returned as b64_json")
	}
}

// names are the fields that a host takes beside those of request; the list alternates
// between the client's name and the host's name. If several of them have one host's name,
// the first that is given is sent.
type names []string

func (n names) of(client string) string {
	for i := 0; i+1 < len(n); i += 2 {
		if n[i] == client {
			return n[i+1]
		}
	}
	return ""
}

// carry returns put the other fields by the host's names and reports those that the host
// does not take.
func (r *request) carry(taken names, loss *chat.Loss, put func(client, host string, raw []byte) error) error {
	var sent []string
	for _, x := range r.extra {
		host := taken.of(x.Name)
		switch {
		case x.Raw == nil:
			loss.Add(x.Name, "width and height are also set")
		case host == "":
			loss.Add(x.Name, upstream.UnsupportedField)
		case slices.Contains(sent, host):
			loss.Add(x.Name, "set by another field")
		default:
			sent = append(sent, host)
			if err := put(x.Name, host, x.Raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// into is a put that writes to a JSON body.
func into(o *upstream.Object) func(client, host string, raw []byte) error {
	return func(_, host string, raw []byte) error {
		o.Raw(host, raw)
		return nil
	}
}

// loseRatio reports an aspect ratio that the host does not take.
func (r *request) loseRatio(loss *chat.Loss) {
	if r.ratio != "" {
		loss.Add("aspect_ratio", upstream.UnsupportedField)
	}
}

// has reports whether an extra field is there.
func (r *request) has(name string) bool {
	return slices.ContainsFunc(r.extra, func(x chat.Field) bool { return x.Name == name })
}

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

// SiliconFlow is /images/generations of SiliconFlow, which has the path of
// OpenAI and other fields. Answers are {images: [{url}], timings, seed}.
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
		a.Loss.AddResponse("response_format", "images are returned by url")
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
