package image

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// wires are the translators with a model of each of their shapes.
var wires = []struct {
	carrier chat.Translator
	model   string
}{
	{WorkersAI{}, "@cf/stabilityai/stable-diffusion-xl-base-1.0"}, {WorkersAI{}, "@cf/black-forest-labs/flux-1-schnell"}, {WorkersAI{}, "@cf/black-forest-labs/flux-2-dev"},
	{SiliconFlow{}, "Kwai-Kolors/Kolors"}, {Hyperbolic{}, "SDXL1.0-base"}, {Segmind{}, "sdxl1.0-txt2img"}, {Fal{}, "fal-ai/flux/dev"},
	{Fireworks{}, "accounts/fireworks/models/stable-diffusion-xl-1024-v1-0"}, {Fireworks{}, "flux-1-schnell-fp8"},
	{Stability{}, "stable-diffusion-xl-1024-v1-0"}, {Stability{}, "stable-diffusion-v1-6"}, {Stability{}, "core"}, {Stability{}, "sd3.5-large"},
}

func imageRequest(body []byte, model string) *chat.TranslatorRequest {
	return &chat.TranslatorRequest{Body: body, Model: model, Traits: &chat.Traits{}, Loss: &chat.Loss{}, Field: func(string) string { return "" }, Created: 1, ProviderName: "acme"}
}

// encoded is the request with a boundary that does not change.
func encoded(t testing.TB, c chat.Translator, body []byte, model string) (string, *chat.Loss, error) {
	t.Helper()
	a := imageRequest(body, model)
	out, media, err := c.EncodeRequest([]byte("x"), body, a)
	if err != nil {
		return "", a.Loss, err
	}
	if !bytes.HasPrefix(out, []byte("x")) {
		t.Fatalf("not appended: %.40q", out)
	}
	s := string(out[1:])
	if media == "" {
		if !json.Valid(out[1:]) {
			t.Fatalf("not JSON: %s", s)
		}
		return s, a.Loss, nil
	}
	_, params, err := mime.ParseMediaType(media)
	if err != nil || params["boundary"] == "" {
		t.Fatalf("%q: %v", media, err)
	}
	if _, err := multipart.NewReader(strings.NewReader(s), params["boundary"]).ReadForm(1 << 20); err != nil {
		t.Fatalf("not a form: %v: %s", err, s)
	}
	return strings.ReplaceAll(s, params["boundary"], "BOUNDARY"), a.Loss, nil
}

// unreported names the fields of body that make no difference to what c sends
// and that the loss report does not name.
func unreported(t testing.TB, c chat.Translator, body []byte, model string) []string {
	t.Helper()
	with, loss, err := encoded(t, c, body, model)
	if err != nil {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	var lost []string
	for name, v := range members {
		if name == "model" || name == "prompt" || string(v) == "null" || slices.Contains(loss.Paths(), name) {
			continue
		}
		rest := map[string]json.RawMessage{}
		for k, v := range members {
			if k != name {
				rest[k] = v
			}
		}
		raw, _ := json.Marshal(rest)
		if without, _, err := encoded(t, c, raw, model); err == nil && without == with && !plainDefault(name, v) {
			lost = append(lost, name)
		}
	}
	return lost
}

// plainDefault tells what every host does anyway.
func plainDefault(name string, v json.RawMessage) bool {
	switch name {
	case "n":
		return string(v) == "1"
	case "stream":
		return string(v) == "false"
	case "size":
		return string(v) == `"auto"` || string(v) == `""` || string(v) == `"1024x1024"`
	case "response_format", "aspect_ratio":
		return name == "response_format" || string(v) == `""`
	case "steps", "num_inference_steps":
		return string(v) == "20"
	}
	return false
}

const everything = `{"model":"m","prompt":"p","n":1,"size":"640x480","quality":"hd","style":"anime","user":"u","response_format":"url","background":"opaque",
"negative_prompt":"no","seed":5,"steps":12,"num_inference_steps":14,"num_steps":3,"guidance":2,"guidance_scale":3,"cfg_scale":4,"strength":0.5,"sampler":"s",
"scheduler":"x","image":"data:image/png;base64,` + pixel + `","mask":"m","style_preset":"anime","aspect_ratio":"3:2","mode":"text-to-image","output_format":"png",
"clip_guidance_preset":"NONE","extras":{},"safety_check":true,"backend":"auto","enable_refiner":true,"refiner":true,"control_scale":1,"qr_size":2,"unheard-of":[1],
"lora_adapter_name":"a","stream":false,"moderation":"low","output_compression":3,"partial_images":0}`

func TestNothingVanishesUnreported(t *testing.T) {
	for _, w := range wires {
		if lost := unreported(t, w.carrier, []byte(everything), w.model); len(lost) > 0 {
			t.Errorf("%s, %s: %v vanish", w.carrier.Name(), w.model, lost)
		}
		if _, loss, err := encoded(t, w.carrier, []byte(everything), w.model); err != nil || !slices.Contains(loss.Paths(), "unheard-of") {
			t.Errorf("%s, %s: %v %v", w.carrier.Name(), w.model, err, loss.Paths())
		}
	}
}

// FuzzRequest: a body gives a request in the host's form or a rejection below 500,
// and every field is sent or reported.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(`{"prompt":"p","width":1,"height":20000}`))
	f.Add([]byte(`{"prompt":"p","size":"0x0","n":-1,"stream":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if wire.CheckUTF8(body) != nil {
			return // the relay rejects it before it is translated
		}
		for _, w := range wires {
			_, _, err := encoded(t, w.carrier, body, w.model)
			if err != nil {
				if s := fault.From(err).Status(); s >= 500 {
					t.Fatalf("%s: %d: %v", w.carrier.Name(), s, err)
				}
				continue
			}
			if strings.Count(string(body), `"`) < 60 {
				if lost := unreported(t, w.carrier, body, w.model); len(lost) > 0 {
					t.Fatalf("%s, %s: %v vanish", w.carrier.Name(), w.model, lost)
				}
			}
		}
	})
}

// FuzzAnswer: any response is images or the provider's fault, and what the client
// gets is base64.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"result":{"image":"` + pixel + `"},"success":true}`, `{"images":[{"image":"` + pixel + `"}]}`, `[{"base64":"AAAA","finishReason":"SUCCESS"}]`,
		`{"artifacts":[{"base64":"AAAA"},{"finishReason":"ERROR"}]}`, `"x"`, "\x89PNG\r\n\x1a\n", `{"image":[["AAAA"]],"finish_reason":"CONTENT_FILTERED"}`,
	} {
		f.Add([]byte(s), "image/png")
	}
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		for _, w := range wires {
			out, _, m, err := w.carrier.DecodeResponse(nil, body, http.Header{"Content-Type": {kind}}, imageRequest([]byte(`{"prompt":"p"}`), w.model))
			if err != nil {
				if f := fault.From(err); f.Source != fault.SourceProvider {
					t.Fatalf("%s: %v", w.carrier.Name(), err)
				}
				continue
			}
			var got struct {
				Data []struct{ B64, URL string }
			}
			if err := json.Unmarshal(bytes.ReplaceAll(out, []byte("b64_json"), []byte("b64")), &got); err != nil || len(got.Data) == 0 || m.Usage.N(pricing.Images) != int64(len(got.Data)) {
				t.Fatalf("%s: %v: %s", w.carrier.Name(), err, out)
			}
			for _, d := range got.Data {
				if _, err := base64.StdEncoding.DecodeString(d.B64); err != nil || d.B64 == "" && d.URL == "" {
					t.Fatalf("%s: %v: %s", w.carrier.Name(), err, out)
				}
			}
		}
	})
}

func TestAnswersThatAreTheImage(t *testing.T) {
	png, _ := base64.StdEncoding.DecodeString(pixel)
	jpeg := []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01")
	type headers = map[string]string
	for name, c := range map[string]struct {
		body   []byte
		h      headers
		status int // 0 means an image
		code   fault.Code
	}{
		"png":                        {png, headers{"Content-Type": "image/png"}, 0, ""},
		"jpeg":                       {jpeg, headers{"Content-Type": "image/jpeg"}, 0, ""},
		"of no type":                 {png, headers{"Content-Type": "application/octet-stream"}, 0, ""},
		"finished":                   {png, headers{"Content-Type": "image/png", "Finish-Reason": "SUCCESS"}, 0, ""},
		"filtered":                   {png, headers{"Content-Type": "image/png", "Finish-Reason": "CONTENT_FILTERED"}, 400, chat.ContentFilter},
		"a cut png":                  {png[:len(png)-5], headers{"Content-Type": "image/png"}, 502, fault.InvalidProviderResponse},
		"text that says png":         {[]byte("hello"), headers{"Content-Type": "image/png"}, 502, fault.InvalidProviderResponse},
		"a page":                     {[]byte("<html></html>"), headers{"Content-Type": "text/html"}, 502, fault.InvalidProviderResponse},
		"nothing":                    {nil, headers{"Content-Type": "image/png"}, 502, fault.InvalidProviderResponse},
		"JSON that is not an object": {[]byte(`[]`), nil, 502, fault.InvalidProviderResponse},
		"JSON that is cut":           {[]byte(`{"image":"` + pixel), nil, 502, fault.InvalidProviderResponse},
		"base64 with other signs":    {[]byte(`{"image":"AA*A","images":[{"image":"AA*A"}],"artifacts":[{"base64":"AA*A"}],"base64":"AA*A","result":{"image":"AA*A"}}`), nil, 502, fault.InvalidProviderResponse},
	} {
		for _, w := range wires {
			if (w.carrier == SiliconFlow{}) {
				continue
			}
			h := http.Header{}
			for k, v := range c.h {
				h.Set(k, v)
			}
			out, media, m, err := w.carrier.DecodeResponse(nil, c.body, h, imageRequest([]byte(`{"prompt":"p"}`), w.model))
			switch {
			case c.status == 0 && (err != nil || media != "" || m.Usage.N(pricing.Images) != 1 || !strings.Contains(string(out), `{"b64_json":"`+base64.StdEncoding.EncodeToString(c.body)+`"}`)):
				t.Errorf("%s, %s: %v %s", name, w.carrier.Name(), err, out)
			case c.status != 0 && (err == nil || fault.From(err).Status() != c.status || fault.From(err).Code != c.code):
				t.Errorf("%s, %s: %v %s", name, w.carrier.Name(), err, out)
			}
		}
	}
}

func TestSizesAreMadeWithinBounds(t *testing.T) {
	for w := int64(1); w <= maxSide; w = w*3/2 + 1 {
		for h := int64(1); h <= maxSide; h = h*3/2 + 1 {
			r := &request{width: w, height: h, sized: "size"}
			var loss chat.Loss
			width, height := r.within(320, 1536, 64, &loss)
			if width < 320 || height < 320 || width > 1536 || height > 1536 || width%64 != 0 || height%64 != 0 {
				t.Fatalf("%dx%d is made as %dx%d", w, h, width, height)
			}
			if loss.Empty() != (w == width && h == height) {
				t.Fatalf("%dx%d is made as %dx%d and reported %v", w, h, width, height, loss.Paths())
			}
			if wanted := float64(w) / float64(h); wanted > 0.3 && wanted < 3.3 && math.Abs(math.Log(wanted*float64(height)/float64(width))) > 0.2 {
				t.Fatalf("%dx%d is made as %dx%d", w, h, width, height)
			}
			if (w > h) != (width > height) && width != height {
				t.Fatalf("%dx%d is made as %dx%d", w, h, width, height)
			}
		}
	}
	if s := nearest(stabilityShapes, 1792, 1024); s.ratio() != "16:9" {
		t.Errorf("1792x1024 is %s", s.ratio())
	}
}

func TestTheBoundaryOfAFormIsNeverTheSame(t *testing.T) {
	body := []byte(`{"prompt":"p"}`)
	_, first, _ := Stability{}.EncodeRequest(nil, body, imageRequest(body, "core"))
	_, second, _ := Stability{}.EncodeRequest(nil, body, imageRequest(body, "core"))
	if first == second || !strings.HasPrefix(first, "multipart/form-data; boundary=") {
		t.Errorf("%q, %q", first, second)
	}
}
