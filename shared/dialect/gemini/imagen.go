package gemini

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Imagen is :predict of the Imagen models, on AI Studio and on Vertex AI, for
// clients of /images/generations.
type Imagen struct{}

var _ chat.Translator = Imagen{}

// Name implements chat.Translator.
func (Imagen) Name() string { return "google.imagen" }

// maxSamples is how many images one request makes.
const maxSamples = 8

// pictured is a client's request.
type pictured struct {
	prompt, quality, style, size, format string
	n, compression                       chat.Opt[int64]
	pass                                 []chat.Field // of the provider's own, by its names
}

// vertexOnly are parameters that AI Studio rejects.
var vertexOnly = map[string]bool{"seed": true, "negativePrompt": true, "addWatermark": true, "storageUri": true, "enhancePrompt": true}

func (p *pictured) read(body []byte, a *chat.TranslatorRequest) error {
	d := wire.NewDecoder(body)
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch name := string(key); name {
		case "model":
			d.Skip()
		case "prompt":
			p.prompt = d.Str()
		case "n":
			p.n = chat.Some(d.Int())
		case "quality":
			p.quality = d.Str()
		case "style":
			p.style = d.Str()
		case "size":
			p.size = d.Str()
		case "output_format":
			p.format = "image/" + d.Str()
		case "mimeType", "mime_type":
			p.format = d.Str()
		case "output_compression":
			p.compression = chat.Some(d.Int())
		case "response_format":
			if d.Str() == "url" {
				a.Loss.AddResponse(name, "images are returned as b64_json")
			}
		case "aspectRatio", "aspect_ratio", "seed", "negativePrompt", "negative_prompt", "personGeneration", "person_generation", "safetySetting", "safety_setting",
			"addWatermark", "add_watermark", "enhancePrompt", "enhance_prompt", "language", "storageUri", "storage_uri", "guidanceScale", "guidance_scale", "sampleImageSize", "sample_image_size":
			own := camel(name)
			if vertexOnly[own] && a.ProviderName == "google" {
				a.Loss.Add(name, upstream.UnsupportedField)
				continue
			}
			p.pass = append(p.pass, chat.Field{Name: own, Raw: upstream.Clone(d.Raw())})
		default:
			a.Loss.Add(name, upstream.UnsupportedField)
		}
	}
	return d.End()
}

// EncodeRequest implements chat.Translator.
func (Imagen) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	var p pictured
	if err := p.read(body, a); err != nil {
		return dst, "", err
	}
	if p.n.Set && (p.n.Value < 1 || p.n.Value > maxSamples) {
		return dst, "", fault.Invalid("n", "n must be between 1 and %d for this provider", maxSamples)
	}
	o := upstream.Begin(dst)
	o.Key("instances")
	o.Open('[')
	o.Open('{')
	o.Str("prompt", p.prompt)
	o.Close('}')
	o.Close(']')
	o.Key("parameters")
	o.Open('{')
	o.Int("sampleCount", p.n.Or(1)) // the provider's own number is 4
	for _, x := range p.pass {
		o.Raw(x.Name, x.Raw)
	}
	if p.style != "" {
		o.Str("sampleImageStyle", p.style)
	}
	if err := p.shape(o, a); err != nil {
		return dst, "", err
	}
	if err := p.output(o); err != nil {
		return dst, "", err
	}
	o.Close('}')
	o.Close('}')
	return o.B, "", nil
}

// ratios are the shapes of images that the provider makes.
var ratios = []struct {
	name  string
	value float64
}{{"1:1", 1}, {"4:3", 4.0 / 3}, {"3:4", 3.0 / 4}, {"16:9", 16.0 / 9}, {"9:16", 9.0 / 16}}

// shape turns a size into the nearest aspect ratio.
func (p *pictured) shape(o *upstream.Object, a *chat.TranslatorRequest) error {
	if p.size == "" || p.size == "auto" {
		return nil
	}
	for _, x := range p.pass {
		if x.Name == "aspectRatio" {
			a.Loss.Add("size", "the aspect ratio is also set")
			return nil
		}
	}
	w, h, ok := strings.Cut(p.size, "x")
	width, errW := strconv.ParseFloat(w, 64)
	height, errH := strconv.ParseFloat(h, 64)
	if !ok || errW != nil || errH != nil || width < 1 || height < 1 || width > 1e5 || height > 1e5 {
		return fault.Invalid("size", "size must be WIDTHxHEIGHT, such as 1024x1024")
	}
	best := ratios[0]
	for _, r := range ratios {
		if math.Abs(math.Log(width/height/r.value)) < math.Abs(math.Log(width/height/best.value)) {
			best = r
		}
	}
	if width != 1024 || height != 1024 {
		a.Loss.Add("size", "made as "+best.name+", in the provider's own size")
	}
	o.Str("aspectRatio", best.name)
	return nil
}

// output writes the form of the file: quality is hd or a number.
func (p *pictured) output(o *upstream.Object) error {
	switch p.quality {
	case "":
	case "hd", "high":
		p.compression = chat.Some(int64(100))
	case "standard", "auto", "medium", "low":
		p.compression = chat.Some(int64(75))
	default:
		n, err := strconv.ParseInt(p.quality, 10, 64)
		if err != nil || n < 0 || n > 100 {
			return fault.Invalid("quality", "quality must be hd, standard or a number from 0 to 100 for this provider")
		}
		p.compression = chat.Some(n)
	}
	if p.format == "" && !p.compression.Set {
		return nil
	}
	o.Key("outputOptions")
	o.Open('{')
	o.StrIf("mimeType", p.format)
	o.IntIf("compressionQuality", p.compression)
	o.Close('}')
	return nil
}

// DecodeResponse implements chat.Translator: {"created":s,"data":[{"b64_json":...}]}.
// Images that the provider filtered are missing in it; if none is left, it is a refusal.
func (Imagen) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	o := upstream.Begin(dst)
	o.Int("created", a.Created)
	o.Key("data")
	o.Open('[')
	n, failed, filtered := int64(0), false, ""
	if d.Kind() == wire.KindArray {
		return dst, "", chat.Meter{}, inBandError(answer)
	}
	for key := range d.Object {
		switch {
		case string(key) == "error":
			failed = true
		case string(key) == "predictions" && d.Kind() == wire.KindArray:
			for range d.Array {
				if picture(d, o, &filtered) {
					n++
				}
			}
		}
	}
	if err := d.End(); err != nil {
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", err)
	}
	switch {
	case failed:
		return dst, "", chat.Meter{}, inBandError(answer)
	case n == 0:
		return dst, "", chat.Meter{}, noPicture(filtered)
	}
	o.Close(']')
	if a.ProviderName != "" {
		o.Str("provider", a.ProviderName)
	}
	o.Close('}')
	m := chat.Meter{Complete: true, Started: true}
	m.Usage.Set(pricing.Images, n)
	return o.B, "", m, nil
}

// picture writes one image; false when it was filtered.
func picture(d *wire.Decoder, o *upstream.Object, filtered *string) bool {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return false
	}
	var data, prompt []byte
	for key := range d.Object {
		switch string(key) {
		case "bytesBase64Encoded":
			if d.Kind() == wire.KindString {
				data = d.RawStr()
			}
		case "prompt":
			if d.Kind() == wire.KindString {
				prompt = d.RawStr()
			}
		case "raiFilteredReason":
			*filtered = optString(d)
		}
	}
	if len(data) <= 2 {
		return false
	}
	o.Open('{')
	o.Raw("b64_json", data)
	if len(prompt) > 2 {
		o.Raw("revised_prompt", prompt)
	}
	o.Close('}')
	return true
}

// noPicture is the rejection if all images of a response were filtered.
func noPicture(reason string) *fault.Fault {
	message := "The provider made no image: all were filtered"
	if reason != "" {
		message += ": " + reason
	}
	p := &chat.ProviderError{Status: http.StatusBadRequest, Type: "content_filter", Code: "content_filter", Message: message}
	f := fault.New(chat.ContentFilter, "prompt", message).WithCause(p)
	f.Source, f.StatusCode = fault.SourceProvider, http.StatusBadRequest
	return f
}

// DecodeError implements chat.Translator.
func (Imagen) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}
