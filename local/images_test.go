package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/pricing"
)

// imageHosts are the providers with a wire of their own for images, their place
// on the mock and further fields of their configurations.
var imageHosts = [][3]string{
	{"workers-ai", "/images-of/workers", `"workers_ai_account_id":"acc"`}, {"siliconflow", "/images-of/siliconflow", ""}, {"hyperbolic", "/images-of/hyperbolic", ""},
	{"segmind", "/images-of/segmind", ""}, {"fireworks-ai", "/images-of/fireworks", ""}, {"stability-ai", "/images-of/stability", ""},
	{"fal-ai", "/images-of/fal", ""},
}

func startImages(t *testing.T) *running {
	t.Helper()
	r := start(t)
	for _, h := range imageHosts {
		r.wired(h[0], h[1], h[2])
	}
	r.mock.Reset()
	return r
}

func TestImagesOfHostsWithWiresOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := startImages(t)
	a := &countingClient{running: r}
	const b64 = `"data":[{"b64_json":"iVBORw0KGgo`
	wanted := int64(0)
	for _, c := range []struct {
		model, more string
		n           int64
		path, sent  string // of the upstream request
		want, lost  string
	}{
		{"@workers-ai/@cf/black-forest-labs/flux-1-schnell", `,"steps":4`, 1, "/@cf/black-forest-labs/flux-1-schnell", `"num_steps":4`, b64, ""},
		{"@workers-ai/@cf/stabilityai/stable-diffusion-xl-base-1.0", `,"size":"512x512","quality":"hd"`, 1, "/stable-diffusion-xl-base-1.0", `"height":512`, b64, "quality"},
		{"@workers-ai/@cf/black-forest-labs/flux-2-dev", `,"size":"1024x768"`, 1, "/flux-2-dev", `name="width"`, b64, ""},
		{"@siliconflow/Kwai-Kolors/Kolors", `,"n":2,"size":"1024x1024","response_format":"b64_json"`, 2, "/images/generations", `"batch_size":2`, `{"url":"https://`, "response_format"},
		{"@hyperbolic/SDXL1.0-base", `,"size":"1024x768","backend":"auto"`, 1, "/v1/image/generation", `"model_name":"SDXL1.0-base"`, b64, ""},
		{"@segmind/sdxl1.0-txt2img", `,"n":3,"response_format":"url"`, 3, "/sdxl1.0-txt2img", `"samples":3`, b64, "response_format"},
		{"@fal-ai/fal-ai/flux/dev", `,"n":2,"size":"1024x768"`, 2, "/fal-ai/flux/dev", `"image_size":{"width":1024,"height":768}`, `{"url":"https://`, ""},
		{"@fal-ai/fal-ai/flux-pro/v1.1-ultra", `,"aspect_ratio":"16:9","response_format":"b64_json","user":"u"`, 1, "/fal-ai/flux-pro/v1.1-ultra", `"sync_mode":true`, b64, "user"},
		{"@fireworks-ai/accounts/fireworks/models/stable-diffusion-xl-1024-v1-0", `,"n":2,"size":"1792x1024"`, 2, "/image_generation/accounts/fireworks/models/stable-diffusion-xl-1024-v1-0", `"width":1024`, b64, "size"},
		{"@fireworks-ai/flux-1-schnell-fp8", `,"size":"1792x1024"`, 1, "/workflows/accounts/fireworks/models/flux-1-schnell-fp8/text_to_image", `"aspect_ratio":"16:9"`, b64, "size"},
		{"@stability-ai/stable-diffusion-xl-1024-v1-0", `,"n":2,"style":"anime"`, 2, "/v1/generation/stable-diffusion-xl-1024-v1-0/text-to-image", `"style_preset":"anime"`, b64, ""},
		{"@stability-ai/core", `,"size":"1024x1792"`, 1, "/v2beta/stable-image/generate/core", "9:16", b64, "size"},
		{"@stability-ai/sd3.5-large", `,"negative_prompt":"dogs","user":"u"`, 1, "/v2beta/stable-image/generate/sd3", "sd3.5-large", b64, "user"},
	} {
		got := a.send("/images/generations", fmt.Sprintf(`{"model":%q,"prompt":"a cat"%s}`, c.model, c.more), "X-Gateway-Strict-Open-Ai-Compliance", "false")
		last := r.mock.Requests(1)[0]
		provider, _, _ := strings.Cut(strings.TrimPrefix(c.model, "@"), "/")
		if !strings.Contains(got.body, c.want) || !strings.Contains(got.body, `"provider":"`+provider+`"`) || !strings.HasSuffix(last.Path, c.path) || !strings.Contains(string(last.Body), c.sent) {
			t.Errorf("%s: %.300s\nsent to %s: %s", c.model, got.body, last.Path, last.Body)
		}
		if lost := got.header.Get("X-Gateway-Translation"); lost != "" && c.lost == "" || !strings.Contains(lost, c.lost) {
			t.Errorf("%s: lost %q", c.model, lost)
		}
		if n := strings.Count(got.body, `"b64_json"`) + strings.Count(got.body, `"url"`); int64(n) != c.n {
			t.Errorf("%s: %d images", c.model, n)
		}
		wanted += c.n
	}
	booked, cost, bill := int64(0), int64(0), r.mock.Bill()
	for _, rec := range r.records(a.n) {
		booked += rec.Usage.N(pricing.Images)
		if rec.Provider == "stability-ai" {
			cost += int64(rec.Cost)
		}
	}
	if booked != wanted || cost != bill.Total.NanoDollars || cost == 0 || bill.Open != 0 {
		t.Errorf("%d of %d images are booked; cost %d, billed %d", booked, wanted, cost, bill.Total.NanoDollars)
	}
}

func TestImagesThatFail(t *testing.T) {
	t.Parallel()
	r := startImages(t)
	for _, c := range []struct {
		name, model, prompt, more string
		status                    int
		want                      string
	}{
		{"two where one is made", "@hyperbolic/SDXL1.0-base", "a cat", `,"n":2`, 400, `"param":"n"`},
		{"a stream", "@stability-ai/core", "a cat", `,"stream":true`, 400, `"param":"stream"`},
		{"no size", "@workers-ai/@cf/m", "a cat", `,"size":"big"`, 400, `"param":"size"`},
		{"the host rejects", "@fireworks-ai/sdxl", "a cat", `,"steps":3`, 400, "steps must be between 10 and 150"},
		{"the host is missing it", "@hyperbolic/does-not-exist", "a cat", "", 404, "model not found"},
		{"limited", "@segmind/m", "mock: status=429 retry-after=7\na cat", "", 429, `"source":"provider"`},
		{"filtered in JSON", "@stability-ai/core", "mock: refuse\na cat", "", 400, "content_filter"},
		{"filtered with 400", "@workers-ai/@cf/black-forest-labs/flux-1-schnell", "mock: refuse\na cat", "", 400, "NSFW"},
		{"a page", "@segmind/m", "mock: html status=200\na cat", "", 502, "invalid_provider_response"},
		{"nothing", "@siliconflow/m", "mock: empty\na cat", "", 502, "invalid_provider_response"},
		{"garbage", "@hyperbolic/SDXL1.0-base", "mock: garbage=after:40\na cat", "", 502, "invalid_provider_response"},
		{"cut JSON", "@fireworks-ai/flux-1-dev-fp8", "mock: cut=after:40\na cat", "", 502, `"error"`},
		{"a cut image", "@workers-ai/@cf/stabilityai/stable-diffusion-xl-base-1.0", "mock: cut=after:20\na cat", "", 502, `"error"`},
		{"down", "@stability-ai/stable-diffusion-v1-6", "mock: status=503\na cat", "", 503, `"source":"provider"`},
	} {
		got := r.call("POST", "/images/generations", fmt.Sprintf(`{"model":%q,"prompt":%q%s}`, c.model, c.prompt, c.more))
		if got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
	for slug := range map[string]bool{"siliconflow": true, "stability-ai": true} {
		if got := r.call("POST", "/images/generations", `{"model":"m","prompt":"a"}`, "X-Gateway-Provider", slug, "Authorization", "Bearer wrong", "X-Gateway-Custom-Host", strings.TrimSuffix(r.mockBase(), "/v1")+"/images-of/"+strings.TrimSuffix(slug, "-ai")); got.status != 401 {
			t.Errorf("%s: a wrong key: %d %s", slug, got.status, got.body)
		}
	}
}

// TestImageReachesTheHost: base64 of the caller's body becomes a file of the
// host's form, byte for byte.
func TestImageReachesTheHost(t *testing.T) {
	t.Parallel()
	r := startImages(t)
	image := "\x89PNG\r\n\x1a\n--b\r\nanything\x00\xff"
	got := r.call("POST", "/images/generations", `{"model":"@stability-ai/sd3.5-large","prompt":"a cat","mode":"image-to-image","strength":0.5,"image":"`+base64.StdEncoding.EncodeToString([]byte(image))+`"}`)
	if last := r.mock.Requests(1)[0]; got.status != 200 || !strings.Contains(string(last.Body), "\r\n\r\n"+image+"\r\n--") || !strings.HasPrefix(last.Headers.Get("Content-Type"), "multipart/form-data; boundary=") {
		t.Errorf("%d %s\n%q", got.status, got.body, last.Body)
	}
}

func TestModelsOfGoogle(t *testing.T) {
	t.Parallel()
	r, _ := startGoogle(t)
	_, host, _ := googleMock(t)
	for name, headers := range map[string][]string{
		"saved":  {"X-Gateway-Provider", "@google"},
		"direct": {"X-Gateway-Provider", "google", "Authorization", "Bearer mock-google", "X-Gateway-Custom-Host", host},
	} {
		got := r.call("GET", "/models", "", headers...)
		if got.status != 200 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
			continue
		}
		body := got.json(t)
		data, _ := body["data"].([]any)
		if body["object"] != "list" || len(data) == 0 {
			t.Errorf("%s: %s", name, got.body)
		}
		for _, m := range data {
			if m := m.(map[string]any); m["object"] != "model" || m["owned_by"] != "google" || m["id"] == "" || strings.HasPrefix(fmt.Sprint(m["id"]), "models/") {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}
