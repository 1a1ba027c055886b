package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAllowedModelsHoldForWhatIsPassedThrough sends each way of naming a model in a request
// that is passed through or in a form, and requests that name none, while the settings allow
// one model only.
func TestAllowedModelsHoldForWhatIsPassedThrough(t *testing.T) {
	t.Parallel()
	host := &everything{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"s","slug":"saved","provider":"openai","key":"k","workspace_id":"default","customHost":%q}`, server.URL))
	r.admin("PUT", "/admin/organisation/settings", `{"model_settings":{"allowed_models":["small","whisper-*"]}}`)
	long := strings.Repeat("x", 9<<20)
	override := `{"provider":"@saved","override_params":{"model":"small"}}`
	for _, c := range []struct {
		path, body string
		want       int
		headers    []string
	}{
		{"/proxy/chat/completions", `{"model":"small"}`, 200, nil},
		{"/proxy/chat/completions", `{"model":"big"}`, 403, nil},
		{"/proxy/chat/completions", `{"messages":[]}`, 403, nil}, // the host has a default
		{"/proxy/responses", `{"prompt":{"id":"pmpt_1"}}`, 403, nil},
		{"/proxy/anything", ``, 403, nil},
		{"/proxy/images/generations?model=small", `{"prompt":"x"}`, 403, nil}, // the host reads it from the body
		{"/proxy/images/generations", `{"prompt":"x","tools":[{"model":"small"}]}`, 403, nil},
		{"/proxy/responses?model=small", `{"prompt":{"id":"pmpt_1"},"input":"x"}`, 403, nil},
		{"/proxy/vector_stores", `{"name":"v"}`, 200, nil},
		{"/proxy/chat/completions", `{"model":"small","fallbacks":["big"]}`, 403, nil},
		{"/proxy/chat/completions", `{"model":"small","fallbacks":["small"]}`, 200, nil},
		{"/proxy/chat/completions", `{"model":"small","models":["big"]}`, 403, nil},
		{"/proxy/chat/completions", `{"model":"small","preset":"theirs"}`, 403, nil}, // OpenRouter stores presets with their models
		{"/proxy/chat/completions", `{"model":"small","preset":null}`, 200, nil},
		{"/proxy/chat/completions", `{"model":"whisper-1@preset/theirs"}`, 403, nil},
		{"/chat/completions", `{"model":"small","preset":"theirs","messages":[{"role":"user","content":"x"}]}`, 403, nil},
		{"/chat/completions", `{"model":"whisper-1@preset/theirs","messages":[{"role":"user","content":"x"}]}`, 403, nil},
		{"/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, 403, []string{"X-Gateway-Config", strings.Replace(override, `"small"`, `"small","preset":"theirs"`, 1)}},
		{"/proxy/engines/small/completions", `{"model":"big"}`, 403, nil},
		{"/proxy/chat/completions", `{"model":"big"}`, 403, []string{"Content-Type", "text/plain"}},
		{"/proxy/engines/small/completions", `{"model":"big"}`, 403, []string{"Content-Type", "application/x-protobuf"}},
		{"/proxy/anything", `{"model":"small"}`, 403, nil}, // a decoy, where the path names the model in a form of its own
		{"/proxy/v1/predictions", `{"model":"small","version":"big"}`, 403, nil},
		{"/proxy/serving-endpoints/big/invocations", `{"model":"small"}`, 403, nil},
		{"/proxy/batch/jobs", `{"model":"small","input_files":["f"]}`, 403, nil},
		{"/proxy/v1beta/models/small:batchGenerateContent", `{"batch":{"input_config":{"file_name":"files/abc"}}}`, 403, nil},

		{"/proxy/audio/transcriptions", form("model", "small", "file", "a:b"), 200, formType},
		{"/proxy/audio/transcriptions", form("file", "a:b", "model", "small"), 200, formType},
		{"/proxy/audio/transcriptions", form("file", "a:b", "model", "big"), 403, formType},
		{"/proxy/audio/transcriptions", form("file", "a:b"), 403, formType},
		{"/proxy/audio/transcriptions", strings.Replace(form("model", "small", "file", "a:b"), `name="file"`, `name="model"`, 1), 403, formType},
		{"/audio/transcriptions", strings.Replace(form("model", "whisper-1", "file", "a:b", "image", "c:big"), `name="image"`, `name="model"`, 1), 403, formType},
		{"/proxy/audio/transcriptions", form("model", "small", "fallback_model", "big", "file", "a:b"), 403, formType},
		{"/proxy/audio/transcriptions", form("model", "small", "file", "a:"+long), 200, formType},
		{"/proxy/audio/transcriptions", form("model", "small", "file", "a:"+long, "model", "big"), 413, formType},
		{"/proxy/audio/transcriptions", form("model", "big", "file", "a:b"), 403, append([]string{"X-Gateway-Config", override}, formType...)},
		{"/proxy/files", form("file", "a:"+long, "purpose", "vision"), 200, formType},

		{"/audio/transcriptions", form("model", "whisper-1", "file", "a:b"), 200, formType},
		{"/audio/transcriptions", form("model", "big", "file", "a:b"), 403, formType},
		{"/audio/transcriptions", form("model", "whisper-1", "models[]", "big", "file", "a:b"), 403, formType},
		{"/audio/transcriptions", form("model", "whisper-1", "file", "a:"+long), 200, formType},
		{"/audio/transcriptions", form("model", "whisper-1", "file", "a:"+long, "model", "big"), 413, formType},
		{"/files", form("file", "a:"+long, "purpose", "vision"), 200, formType},
	} {
		headers := append([]string{"X-Gateway-Provider", "@saved"}, c.headers...)
		if len(c.headers) > 0 && c.headers[0] == "X-Gateway-Config" {
			headers = c.headers
		}
		before := host.requests.Load()
		got := r.call("POST", c.path, c.body, headers...)
		if sent := host.requests.Load() != before; got.status != c.want || sent && got.status == 403 {
			t.Errorf("%s %.200q: %d %s", c.path, c.body, got.status, got.body)
		}
	}
}

// TestModelsOfIntegrationsHoldForEveryModelOfABody names a model that the integration does not
// enable in each place besides the outermost one.
func TestModelsOfIntegrationsHoldForEveryModelOfABody(t *testing.T) {
	t.Parallel()
	host := &everything{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"few","slug":"few","ai_provider_id":"openai","key":"k","configurations":{"custom_host":%q}}`, server.URL))
	r.admin("PUT", "/integrations/few/workspaces", fmt.Sprintf(`{"workspaces":[{"id":%q,"enabled":true}]}`, r.workspace()))
	r.admin("PUT", "/integrations/few/models", `{"allow_all_models":false,"models":[{"slug":"small","enabled":true}]}`)
	for _, c := range []struct {
		path, body string
		want       int
		headers    []string
	}{
		{"/proxy/chat/completions", `{"model":"small"}`, 200, nil},
		{"/proxy/chat/completions", `{"model":"big"}`, 403, nil},
		{"/proxy/chat/completions", `{"model":"small","models":["big"]}`, 403, nil},
		{"/proxy/chat/completions", `{"model":"small","fallbacks":["big"]}`, 403, nil},
		{"/proxy/chat/completions", `{"model":"small","preset":"theirs"}`, 403, nil},
		{"/proxy/responses", `{"model":"small","tools":[{"type":"image_generation","model":"big"}]}`, 403, nil},
		{"/proxy/messages/batches", `{"requests":[{"custom_id":"a","params":{"model":"big"}}]}`, 403, nil},
		{"/proxy/engines/big/completions", `{"prompt":"x"}`, 403, nil},
		{"/chat/completions", `{"model":"small","models":["big"],"messages":[{"role":"user","content":"x"}]}`, 403, nil},
		{"/responses", `{"model":"small","input":"x","tools":[{"type":"image_generation","model":"big"}]}`, 403, nil},
		{"/audio/transcriptions", form("model", "small", "models[]", "big", "file", "a:b"), 403, formType},
	} {
		before := host.requests.Load()
		got := r.call("POST", c.path, c.body, append([]string{"X-Gateway-Provider", "@few"}, c.headers...)...)
		if sent := host.requests.Load() != before; got.status != c.want || sent && got.status == 403 {
			t.Errorf("%s %.200q: %d %s", c.path, c.body, got.status, got.body)
		}
	}
}
