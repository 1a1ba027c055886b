package together_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMistypedPathsAreNamed calls paths that are nearly those of a route, with keys of both
// kinds: no provider is called, and the response names the path that was probably meant.
func TestMistypedPathsAreNamed(t *testing.T) {
	h := newInstallation(t)
	for _, c := range []struct {
		method, path string
		status       int
		message      string
	}{
		{"GET", "/config", 404, "did you mean /configs?"},
		{"GET", "/api_keys", 404, "did you mean /api-keys?"},
		{"GET", "/apikeys/some-id", 404, "did you mean /api-keys?"},
		{"POST", "/virtualkeys", 404, "did you mean /virtual-keys?"},
		{"GET", "/configs/some/versionz", 404, "did you mean /configs/{slug}/versions?"},
		{"GET", "/admin/workspace", 404, "did you mean /admin/workspaces?"},
		{"GET", "/configs/a/b/c/d", 404, "There is no such route; paths of the administration are never forwarded"},
		{"GET", "/chat/completions", 405, "This route accepts POST, not GET"},
		{"GET", "/embedding", 404, "did you mean /embeddings?"},
	} {
		for _, key := range []string{adminKey, workspaceKey} {
			status, answer := h.do(c.method, c.path, key, "")
			if status != c.status || !strings.Contains(answer, c.message) {
				t.Errorf("%s %s: %d %.300s, want %d %q", c.method, c.path, status, answer, c.status, c.message)
			}
		}
	}
	// A path that is not near any of the gateway's says what pass-through needs.
	if status, answer := h.do("GET", "/weather", workspaceKey, ""); status != 400 || !strings.Contains(answer, "x-gateway-provider header is required") {
		t.Error(status, answer)
	}
}

// TestNearPathsArePassedThrough calls a path that is nearly the administration's with a
// provider: it is the provider's.
func TestNearPathsArePassedThrough(t *testing.T) {
	h, m := newInstallation(t), newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"k","slug":"k","provider":"openai","key":"sk-first-secret","workspace_id":"default","customHost":"`+m.url+`"}`)
	r := httptest.NewRequest("GET", "/v1/config", nil)
	r.Header.Set("X-Gateway-Api-Key", workspaceKey)
	r.Header.Set("X-Gateway-Provider", "@k")
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || m.header("Authorization") != "Bearer sk-first-secret" {
		t.Error(w.Code, w.Body.String())
	}
}

// TestMetadataMustBeAnObject sends metadata that is not a JSON object.
func TestMetadataMustBeAnObject(t *testing.T) {
	h, m := newInstallation(t), newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"k","slug":"k","provider":"openai","key":"sk-first-secret","workspace_id":"default","customHost":"`+m.url+`"}`)
	for metadata, want := range map[string]string{
		"team=a": "400 ", `{"team":"a"`: "400 ", `["a"]`: "400 ", `"a"`: "400 ", `5`: "400 ",
		`{"team":"a"}`: "200 ", `{}`: "200 ", "null": "200 ", "": "200 ", "team=a lenient": "200 ",
	} {
		r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(`{"model":"@k/gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}`))
		r.Header.Set("X-Gateway-Api-Key", workspaceKey)
		r.Header.Set("Content-Type", "application/json")
		sent, lenient := strings.CutSuffix(metadata, " lenient")
		r.Header.Set("X-Gateway-Metadata", sent)
		if lenient {
			r.Header.Set("X-Gateway-Lenient", "true")
		}
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		if got := fmt.Sprint(w.Code, " "); got != want || w.Code == 400 && !strings.Contains(w.Body.String(), "x-gateway-metadata") {
			t.Errorf("%s: %d %.300s, want %s", metadata, w.Code, w.Body, want)
		}
	}
}
