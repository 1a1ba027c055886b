package mockprovider

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// sent posts a body with headers.
func sent(s *Server, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const oneField = "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat\r\n"

func TestHostsOfImages(t *testing.T) {
	s := New(Options{})
	form := []string{"Authorization", "Bearer mock-key", "Content-Type", "multipart/form-data; boundary=b"}
	bearer := []string{"Authorization", "Bearer mock-key", "Content-Type", "application/json"}
	wantJSON := append(bearer[:4:4], "Accept", "application/json")
	segmind := []string{"X-Api-Key", "mock-key"}
	prompts := `{"text_prompts":[{"text":"a cat"}]`
	const sdxl, core = "/images-of/fireworks/image_generation/accounts/fireworks/models/sdxl", "/images-of/stability/v2beta/stable-image/generate/core"
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
		want             string
	}{
		{"no key", "/images-of/workers/@cf/m", `{"prompt":"a"}`, nil, 401, `"success":false`},
		{"a key in the wrong place", "/images-of/segmind/m", `{}`, bearer, 401, `"error"`},
		{"workers", "/images-of/workers/@cf/flux-1-schnell", `{"prompt":"a","steps":4}`, bearer, 200, `"result":{"image":"`},
		{"workers bare", "/images-of/workers/@cf/stable-diffusion-xl", `{"prompt":"a"}`, bearer, 200, "\x89PNG"},
		{"workers, a size that is none", "/images-of/workers/@cf/m", `{"prompt":"a","width":128}`, bearer, 400, "width must be"},
		{"workers, unknown", "/images-of/workers/@cf/m", `{"prompt":"a","n":1}`, bearer, 422, "n: extra"},
		{"workers, JSON to FLUX.2", "/images-of/workers/@cf/flux-2-dev", `{"prompt":"a"}`, bearer, 400, "multipart"},
		{"workers, FLUX.2", "/images-of/workers/@cf/flux-2-dev", oneField + "--b--\r\n", form, 200, `"image"`},
		{"siliconflow", "/images-of/siliconflow/images/generations", `{"model":"m","prompt":"a","batch_size":2}`, bearer, 200, `"url":"https://`},
		{"siliconflow, too many", "/images-of/siliconflow/images/generations", `{"model":"m","prompt":"a","batch_size":5}`, bearer, 400, `"code":20015`},
		{"siliconflow, another path", "/images-of/siliconflow/m/text-to-image", `{}`, bearer, 404, "404"},
		{"hyperbolic", "/images-of/hyperbolic/v1/image/generation", `{"model_name":"m","prompt":"a"}`, bearer, 200, `"random_seed"`},
		{"hyperbolic, model", "/images-of/hyperbolic/v1/image/generation", `{"model":"m","prompt":"a"}`, bearer, 400, "model_name: field required"},
		{"segmind", "/images-of/segmind/m", `{"prompt":"a","samples":2,"num_inference_steps":20,"base64":true}`, segmind, 200, `"image":["`},
		{"segmind bare", "/images-of/segmind/m", `{"prompt":"a","samples":1,"num_inference_steps":20}`, segmind, 200, "\x89PNG"},
		{"fireworks", sdxl, prompts + `,"samples":2}`, wantJSON, 200, `"finishReason":"SUCCESS"`},
		{"fireworks bare", sdxl, prompts + `}`, bearer, 200, "\x89PNG"},
		{"fireworks, several bare", sdxl, prompts + `,"samples":2}`, bearer, 400, `"fault"`},
		{"fireworks, steps", sdxl, prompts + `,"steps":5}`, wantJSON, 400, "steps must be"},
		{"fireworks, FLUX", "/images-of/fireworks/workflows/accounts/fireworks/models/flux-1-dev-fp8/text_to_image", `{"prompt":"a","aspect_ratio":"16:9"}`, wantJSON, 200, `"base64":["data:image/png`},
		{"fireworks, FLUX, a ratio that is none", "/images-of/fireworks/workflows/accounts/fireworks/models/flux-1-dev-fp8/text_to_image", `{"prompt":"a","aspect_ratio":"7:5"}`, wantJSON, 400, "aspect_ratio"},
		{"stability 1", "/images-of/stability/v1/generation/stable-diffusion-v1-6/text-to-image", prompts + `}`, bearer, 200, `"artifacts"`},
		{"stability 1, a size that is none", "/images-of/stability/v1/generation/stable-diffusion-v1-6/text-to-image", prompts + `,"width":300}`, bearer, 400, `"message":"width`},
		{"stability 2", core, oneField + "--b--\r\n", append(form[:4:4], "Accept", "application/json"), 200, `"finish_reason":"SUCCESS"`},
		{"stability 2 bare", core, oneField + "--b--\r\n", form, 200, "\x89PNG"},
		{"stability 2, JSON", core, `{"prompt":"a"}`, bearer, 400, `"errors":[`},
		{"stability 2, an image to core", core, oneField + "--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\nx\r\n--b--\r\n", form, 400, "unrecognized"},
		{"stability 2, unknown field", core, oneField + "--b\r\nContent-Disposition: form-data; name=\"size\"\r\n\r\nx\r\n--b--\r\n", form, 400, "size: unrecognized"},
		{"no model", "/images-of/stability/v2beta/stable-image/generate/other", "", form, 400, "errors"},
	} {
		if got := sent(s, c.path, c.body, c.headers...); got.Code != c.status || !strings.Contains(got.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
	}
	if got := s.Bill(); got.Models["core"].NanoDollars != 2*30_000_000 || got.Open != 0 {
		t.Errorf("%+v", got.Models["core"])
	}
}

func TestAzureOpenAI(t *testing.T) {
	s := New(Options{})
	key := []string{"Api-Key", "mock-key", "Content-Type", "application/json"}
	const dated = "/azure-openai/deployments/dep/chat/completions"
	hi := `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
		want             string
	}{
		{"dated", dated + "?api-version=2024-10-21", hi, key, 200, `"choices"`},
		{"no version", dated, hi, key, 404, "Resource not found"},
		{"v1", "/azure-openai/v1/chat/completions", hi, key, 200, `"choices"`},
		{"v1 with a version", "/azure-openai/v1/chat/completions?api-version=2024-10-21", hi, key, 400, "not allowed"},
		{"bearer key", dated + "?api-version=2024-10-21", hi, []string{"Authorization", "Bearer mock-key"}, 401, "Access denied"},
		{"unknown deployment", "/azure-openai/deployments/unknown/chat/completions?api-version=2024-10-21", hi, key, 404, "DeploymentNotFound"},
		{"stream", dated + "?api-version=2024-10-21", `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hello"}]}`, key, 200, `data: {"choices":[],"created":0,`},
		{"filtered", dated + "?api-version=2024-10-21", `{"model":"gpt-4o","messages":[{"role":"user","content":"mock: status=400 code=content_filter"}]}`, key, 400, "ResponsibleAIPolicyViolation"},
		{"a wrong secret", "/azure-openai/mock-tenant/oauth2/v2.0/token", "grant_type=client_credentials&client_id=c&client_secret=x&scope=https://ai.azure.com/.default", []string{"Content-Type", "application/x-www-form-urlencoded"}, 401, "invalid_client"},
		{"a token", "/azure-openai/mock-tenant/oauth2/v2.0/token", "grant_type=client_credentials&client_id=c&client_secret=mock-secret&scope=https://ai.azure.com/.default", []string{"Content-Type", "application/x-www-form-urlencoded"}, 200, `"access_token":"entra-mock-`},
		{"a token's use", dated + "?api-version=2024-10-21", hi, []string{"Authorization", "Bearer entra-mock-x", "Content-Type", "application/json"}, 200, `"choices"`},
	} {
		if got := sent(s, c.path, c.body, c.headers...); got.Code != c.status || !strings.Contains(got.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
	}
}
