package mockprovider

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// workersImage serves /{model}. FLUX.2 accepts forms; Stable Diffusion answers with the
// bytes of the image, the others with base64.
func workersImage(x *exchange, path string) *apiError {
	x.model = strings.TrimPrefix(path, "/")
	prompt := ""
	if strings.Contains(x.model, "flux-2") {
		u, e := parseForm(x)
		if e != nil {
			return e
		}
		if e := onlyFields(u, "prompt", "width", "height", "steps", "seed", "guidance"); e != nil {
			return e
		}
		prompt = u.fields["prompt"]
	} else {
		v, e := strictBody(x, "prompt! negative_prompt height width image image_b64 mask num_steps steps strength guidance seed")
		if e != nil {
			return e
		}
		if e := side(v, "width height", 256, 2048, 1); e != nil {
			return e
		}
		if strings.Contains(x.model, "schnell") && (v.get("width").given() || v.get("height").given()) {
			return wireBad("this model makes images of one size")
		}
		prompt = v.get("prompt").s
	}
	if done, e := drawn(x, prompt); done {
		return e
	}
	if strings.Contains(x.model, "stable-diffusion") {
		return bare(x)
	}
	if x.st.refuse {
		return &apiError{status: http.StatusBadRequest, message: "Input prompt contains NSFW content"}
	}
	return paint(x, 1, `{"result":{"image":"`+picture+`"},"success":true,"errors":[],"messages":[]}`)
}

// siliconflowImage serves /images/generations.
func siliconflowImage(x *exchange, path string) *apiError {
	if path != "/images/generations" {
		return &apiError{status: http.StatusNotFound, message: "404 page not found"}
	}
	v, e := strictBody(x, "model! prompt! image_size batch_size negative_prompt seed num_inference_steps guidance_scale cfg image image2 image3 prompt_enhancement output_format")
	if e != nil {
		return e
	}
	n, e := count(v, "batch_size", 4)
	if e != nil {
		return e
	}
	if size := v.get("image_size"); size.given() && !strings.Contains(size.s, "x") {
		return wireBad("image_size must be such as 1024x1024")
	}
	if done, e := drawn(x, v.get("prompt").s); done {
		return e
	}
	images := repeated(`{"url":"https://images.example/`+strconv.FormatInt(x.s.serial.Add(1), 10)+`.png"}`, n)
	return paint(x, n, `{"images":`+images+`,"timings":{"inference":0.5},"seed":7,"data":`+images+`}`)
}

// hyperbolicImage serves /v1/image/generation.
func hyperbolicImage(x *exchange, path string) *apiError {
	if path != "/v1/image/generation" {
		return &apiError{status: http.StatusNotFound, message: "Not Found"}
	}
	v, e := strictBody(x, "model_name! prompt! height width backend negative_prompt steps cfg_scale seed sampler strength enable_refiner prompt_2 negative_prompt_2 image controlnet_name controlnet_image lora")
	if e != nil {
		return e
	}
	if x.model = v.get("model_name").s; x.model == "" {
		return wireBad("model_name must be a string")
	}
	if e := side(v, "width height", 1, 2048, 1); e != nil {
		return e
	}
	if done, e := drawn(x, v.get("prompt").s); done {
		return e
	}
	return paint(x, 1, `{"images":[{"index":0,"image":"`+picture+`","random_seed":3}],"inference_time":1.5}`)
}

// segmindImage serves /{model}.
func segmindImage(x *exchange, path string) *apiError {
	x.model = strings.TrimPrefix(path, "/")
	v, e := strictBody(x, "prompt! samples! num_inference_steps! base64 img_width img_height negative_prompt style scheduler guidance_scale seed strength refiner high_noise_fraction image control_scale control_start control_end qr_text invert size")
	if e != nil {
		return e
	}
	n, e := count(v, "samples", 10)
	if e != nil {
		return e
	}
	if done, e := drawn(x, v.get("prompt").s); done {
		return e
	}
	switch {
	case !v.get("base64").yes:
		return bare(x)
	case n == 1:
		return paint(x, 1, `{"image":"`+picture+`"}`)
	}
	return paint(x, n, `{"image":`+repeated(`"`+picture+`"`, n)+`}`)
}

// fireworksImage serves /image_generation/{model} and the workflows of FLUX. A single image is
// sent as bytes unless the request asks for JSON.
func fireworksImage(x *exchange, path string) *apiError {
	if flux, ok := strings.CutPrefix(path, "/workflows/"); ok {
		return fluxImage(x, flux)
	}
	model, ok := strings.CutPrefix(path, "/image_generation/")
	if !ok || !strings.HasPrefix(model, "accounts/") {
		return &apiError{status: http.StatusNotFound, message: "Path not found"}
	}
	x.model = model
	v, e := strictBody(x, "text_prompts! height width samples steps seed cfg_scale sampler safety_check negative_prompt lora_adapter_name lora_weight_filename")
	if e != nil {
		return e
	}
	if e := side(v, "width height", 512, 1024, 64); e != nil {
		return e
	}
	if e := side(v, "steps", 10, 150, 1); e != nil {
		return e
	}
	n, e := count(v, "samples", 10)
	if e != nil {
		return e
	}
	if !wants(x, "application/json") && n > 1 {
		return wireBad("samples must be 1 unless application/json is accepted")
	}
	if done, e := drawn(x, firstPrompt(v)); done {
		return e
	}
	if !wants(x, "application/json") {
		return bare(x)
	}
	return paint(x, n, repeated(`{"base64":"`+picture+`","seed":4,"finishReason":"`+finish(x)+`"}`, n))
}

func firstPrompt(v value) string {
	if prompts := v.get("text_prompts").arr; len(prompts) > 0 {
		return prompts[0].get("text").s
	}
	return ""
}

var fluxRatios = []string{"", "1:1", "21:9", "16:9", "3:2", "5:4", "4:5", "2:3", "9:16", "9:21", "4:3", "3:4"}

func fluxImage(x *exchange, path string) *apiError {
	model, ok := strings.CutSuffix(path, "/text_to_image")
	if !ok {
		return &apiError{status: http.StatusNotFound, message: "Path not found"}
	}
	x.model = model
	v, e := strictBody(x, "prompt! aspect_ratio guidance_scale num_inference_steps seed")
	if e != nil {
		return e
	}
	if !slices.Contains(fluxRatios, v.get("aspect_ratio").s) {
		return wireBad("aspect_ratio is none of %s", strings.Join(fluxRatios[1:], ", "))
	}
	if done, e := drawn(x, v.get("prompt").s); done {
		return e
	}
	if !wants(x, "application/json") {
		return bare(x)
	}
	return paint(x, 1, `{"id":"1","base64":["data:image/png;base64,`+picture+`"],"finishReason":"`+finish(x)+`","seed":4}`)
}

// stabilityImage serves /v1/generation/{model}/text-to-image, in JSON, and
// /v2beta/stable-image/generate/{model}, with a form.
func stabilityImage(x *exchange, path string) *apiError {
	if model, ok := strings.CutPrefix(path, "/v2beta/stable-image/generate/"); ok {
		return stableImage(x, model)
	}
	model, ok := strings.CutPrefix(path, "/v1/generation/")
	model, whole := strings.CutSuffix(model, "/text-to-image")
	if !ok || !whole || !strings.HasPrefix(model, "stable-diffusion-") {
		return &apiError{status: http.StatusNotFound, message: "The requested resource was not found."}
	}
	x.model = model
	v, e := strictBody(x, "text_prompts! height width cfg_scale clip_guidance_preset sampler samples seed steps style_preset extras")
	if e != nil {
		return e
	}
	if e := side(v, "width height", 320, 1536, 64); e != nil {
		return e
	}
	n, e := count(v, "samples", 10)
	if e != nil {
		return e
	}
	if done, e := drawn(x, firstPrompt(v)); done {
		return e
	}
	return paint(x, n, `{"artifacts":`+repeated(`{"base64":"`+picture+`","seed":4,"finishReason":"`+finish(x)+`"}`, n)+`}`)
}

// onlyFields refuses fields of a form other than names.
func onlyFields(u *uploaded, names ...string) *apiError {
	for name := range u.fields {
		if !slices.Contains(names, name) {
			return wireBad("%s: unrecognized field", name)
		}
	}
	return nil
}

var stableRatios = []string{"", "16:9", "1:1", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21"}

func stableImage(x *exchange, model string) *apiError {
	u, e := parseForm(x)
	if e != nil {
		return e
	}
	x.model = model
	names := []string{"prompt", "negative_prompt", "aspect_ratio", "seed", "output_format", "style_preset"}
	switch model {
	case "core":
	case "ultra":
		names = append(names, "strength")
	case "sd3":
		names = append(names, "strength", "model", "mode", "cfg_scale")
		if x.model = u.fields["model"]; x.model == "" {
			x.model = "sd3.5-large"
		}
	default:
		return &apiError{status: http.StatusNotFound, message: "not found"}
	}
	if e := onlyFields(u, names...); e != nil {
		return e
	}
	image := len(u.files["image"]) > 0
	switch {
	case !slices.Contains(stableRatios, u.fields["aspect_ratio"]):
		return wireBad("aspect_ratio: must be one of %s", strings.Join(stableRatios[1:], ", "))
	case u.fields["mode"] == "image-to-image" && (!image || u.fields["strength"] == ""):
		return wireBad("image, strength: required for image-to-image")
	case image && model == "core":
		return wireBad("image: unrecognized field")
	}
	if done, e := drawn(x, u.fields["prompt"]); done {
		return e
	}
	if wants(x, "application/json") {
		return paint(x, 1, `{"image":"`+picture+`","finish_reason":"`+finish(x)+`","seed":343940597}`)
	}
	x.w.Header().Set("Finish-Reason", finish(x))
	x.w.Header().Set("Seed", "343940597")
	return bare(x)
}
