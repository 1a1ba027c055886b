package mockprovider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// imageShape serves hosts that make images in their own format, below /images-of/ and their
// name: /images-of/workers, siliconflow, hyperbolic, segmind, fireworks, stability and fal,
// each followed by the host's own paths.
var imageShape = &shape{name: "images", match: imageMatch, authenticate: imageKey, refuse: imageRefuse}

const imageHead = "/images-of/"

var imageHosts = map[string]func(x *exchange, path string) *apiError{
	"workers": workersImage, "siliconflow": siliconflowImage, "hyperbolic": hyperbolicImage,
	"segmind": segmindImage, "fireworks": fireworksImage, "stability": stabilityImage,
	"fal": falImage,
}

// imageHost is the host's name and the rest of the path.
func imageHost(x *exchange) (host, path string) {
	rest, _ := strings.CutPrefix(x.path, imageHead)
	host, path, _ = strings.Cut(rest, "/")
	return host, "/" + path
}

func imageMatch(x *exchange) func(*exchange) *apiError {
	if !strings.HasPrefix(x.path, imageHead) {
		return nil
	}
	host, path := imageHost(x)
	handle := imageHosts[host]
	if handle == nil {
		return nil
	}
	return func(x *exchange) *apiError {
		if x.r.Method != http.MethodPost {
			return &apiError{status: http.StatusMethodNotAllowed, message: "Method Not Allowed"}
		}
		return handle(x, path)
	}
}

// imageKey looks for the key where the host does.
func imageKey(x *exchange) *apiError {
	key, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	switch host, _ := imageHost(x); host {
	case "segmind":
		key = x.r.Header.Get("X-Api-Key")
	case "fal":
		key, _ = strings.CutPrefix(x.r.Header.Get("Authorization"), "Key ")
	}
	switch {
	case key == "mock-limited":
		return &apiError{status: http.StatusTooManyRequests, message: "Too many requests", retryAfter: "1"}
	case !strings.HasPrefix(key, "mock-"):
		return &apiError{status: http.StatusUnauthorized, message: "Invalid authentication"}
	}
	return nil
}

// imageRefuse answers with an error in the host's shape.
func imageRefuse(x *exchange, e *apiError) {
	var body any
	switch host, path := imageHost(x); host {
	case "workers":
		body = map[string]any{"success": false, "result": nil, "messages": []any{}, "errors": []any{map[string]any{"code": 5006, "message": "AiError: " + e.message}}}
	case "siliconflow":
		body = map[string]any{"code": 20015, "message": e.message, "data": nil}
		if e.status == http.StatusUnauthorized {
			body = e.message
		}
	case "hyperbolic", "fal":
		body = map[string]any{"detail": []any{map[string]any{"loc": []any{"body"}, "msg": e.message, "type": "value_error"}}}
	case "fireworks":
		body = map[string]any{"fault": map[string]any{"faultstring": e.message, "detail": map[string]any{"errorcode": "steps.request.Failed"}}}
	case "stability":
		body = map[string]any{"id": "4c31", "name": stabilityName(e.status), "errors": []any{e.message}}
		if strings.HasPrefix(path, "/v1/") {
			body = map[string]any{"id": "4c31", "name": stabilityName(e.status), "message": e.message}
		}
	default:
		body = map[string]any{"error": e.message}
	}
	if !x.hasRow {
		x.row = x.s.bill.begin(x.path, x.model, "", false)
	}
	x.row.close(e.status, Usage{}, x.gone(), "")
	x.w.Header().Set("Content-Type", "application/json")
	if e.retryAfter != "" {
		x.w.Header().Set("Retry-After", e.retryAfter)
	}
	x.w.WriteHeader(e.status)
	_ = json.NewEncoder(x.w).Encode(body)
}

func stabilityName(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusForbidden:
		return "content_moderation"
	case http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	}
	return "bad_request"
}

// imagePrices hold nano-dollars for an image, as in the hosts' price lists.
var imagePrices = map[string]int64{
	"core": 30_000_000, "ultra": 80_000_000, "sd3.5-large": 65_000_000, "stable-diffusion-xl-1024-v1-0": 40_000_000,
}

// drawn opens the row of a request for images and applies the faults in its prompt.
func drawn(x *exchange, prompt string) (done bool, e *apiError) {
	if strings.Contains(x.model, "does-not-exist") {
		return true, &apiError{status: http.StatusNotFound, message: "model not found"}
	}
	if prompt == "" {
		return true, wireBad("prompt must be a non-empty string")
	}
	if e := steerBy(&x.st, prompt); e != nil {
		return true, e
	}
	return opened(x, seedOf(prompt))
}

// paint charges n images and answers with JSON.
func paint(x *exchange, n int64, body string) *apiError {
	chargeUnits(x, http.StatusOK, n*imagePrices[x.model])
	x.plain("img-mock", []byte(body), Usage{})
	return nil
}

// bare charges one image and answers with its bytes.
func bare(x *exchange) *apiError {
	image, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		panic(err) // a constant
	}
	chargeUnits(x, http.StatusOK, imagePrices[x.model])
	h := x.setHeaders("image/png", "img-mock")
	h["Content-Length"] = []string{strconv.Itoa(len(image))}
	x.w.WriteHeader(http.StatusOK)
	if cut := max(x.st.cutAfter, x.st.cutMid); cut != never {
		x.write(image[:min(len(image), cut)])
		x.flush()
		panic(http.ErrAbortHandler)
	}
	x.write(image)
	return nil
}

// wants reports whether the Accept header contains a type, such as application/json.
func wants(x *exchange, kind string) bool { return strings.Contains(x.r.Header.Get("Accept"), kind) }

// finish is the finish reason of an image.
func finish(x *exchange) string {
	if x.st.refuse {
		return "CONTENT_FILTERED"
	}
	return "SUCCESS"
}

// side refuses a number of pixels out of bounds.
func side(v value, names string, low, high, step int64) *apiError {
	for _, name := range strings.Fields(names) {
		if n, ok := v.get(name).integer(); v.get(name).given() && (!ok || n < low || n > high || n%step != 0) {
			return wireBad("%s must be between %d and %d, in steps of %d", name, low, high, step)
		}
	}
	return nil
}

// count is a number of images; 1 where the request has none.
func count(v value, name string, most int64) (int64, *apiError) {
	n, ok := v.get(name).integer()
	switch {
	case !v.get(name).given():
		return 1, nil
	case !ok || n < 1 || n > most:
		return 0, wireBad("%s must be between 1 and %d", name, most)
	}
	return n, nil
}

// repeated repeats an element in a JSON list.
func repeated(element string, n int64) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", int(n)), ",") + "]"
}

// falImage serves /{model}, called so that it answers at once; with sync_mode the answer
// contains the image.
func falImage(x *exchange, path string) *apiError {
	x.model = strings.TrimPrefix(path, "/")
	v, e := strictBody(x, "prompt! negative_prompt image_size aspect_ratio num_images seed guidance_scale num_inference_steps sync_mode enable_safety_checker output_format acceleration strength image_url safety_tolerance loras style")
	if e != nil {
		return e
	}
	n, e := count(v, "num_images", 4)
	if e != nil {
		return e
	}
	if size := v.get("image_size"); size.kind == object {
		if e := side(size, "width height", 1, 14142, 1); e != nil {
			return e
		}
	}
	if done, e := drawn(x, v.get("prompt").s); done {
		return e
	}
	url := "https://images.example/" + strconv.FormatInt(x.s.serial.Add(1), 10) + ".png"
	if v.get("sync_mode").yes {
		url = "data:image/png;base64," + picture
	}
	return paint(x, n, fmt.Sprintf(`{"images":%s,"timings":{"inference":0.3},"seed":7,"has_nsfw_concepts":%s,"prompt":%s}`,
		repeated(`{"url":"`+url+`","width":1024,"height":1024,"content_type":"image/png"}`, n), repeated("false", n), quoted(v.get("prompt").s)))
}
