package together_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// sendChat sends a chat with headers and returns the response.
func (h *installation) sendChat(key string, headers map[string]string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(`{"model":"@saved/gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}`))
	r.Header.Set("X-Gateway-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

// The organization sets how long a cached response is used if a config does not say so, and
// the most that a config may say. A change also applies to responses that are cached already.
func TestTheOrganisationBoundsTheCache(t *testing.T) {
	at := time.Now()
	h := newInstallationAt(t, func() time.Time { return at })
	m := newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"s","slug":"saved","provider":"openai","key":"k","workspace_id":"default","customHost":"`+m.url+`"}`)
	const settings = "/admin/organisation/settings"
	send := func(config string) string {
		t.Helper()
		got := h.sendChat(workspaceKey, map[string]string{"X-Gateway-Config": config})
		if got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		return got.Header().Get("X-Gateway-Cache-Status")
	}
	expect := func(config, want string) {
		t.Helper()
		if got := send(config); got != want {
			t.Errorf("%s after %s: %s, want %s", config, at, got, want)
		}
	}
	const plain, short, long = `{"cache":"simple"}`, `{"cache":{"mode":"simple","max_age":600}}`, `{"cache":{"mode":"simple","max_age":7776000}}`
	day := 24 * time.Hour

	// Without a setting: seven days, or the age of the config.
	expect(plain, "MISS")
	at = at.Add(7*day - time.Second)
	expect(plain, "HIT")
	expect(short, "MISS") // too old for the smaller age; the response is replaced
	expect(plain, "HIT")

	// More than any config may ask for.
	h.admin("PUT", settings, `{"cache_settings":{"max_age":25923000}}`)
	at = at.Add(8 * day)
	expect(plain, "MISS")
	at = at.Add(300 * day)
	expect(plain, "HIT")
	expect(long, "MISS")

	// Less than the configs' ages, and than those of existing entries.
	h.admin("PUT", settings, `{"cache_settings":{"max_age":3600}}`)
	at = at.Add(time.Hour - time.Second)
	expect(long, "HIT")
	at = at.Add(2 * time.Second)
	expect(plain, "MISS")
	at = at.Add(601 * time.Second)
	expect(short, "MISS")
	at = at.Add(time.Hour)
	expect(long, "MISS")

	h.admin("PUT", settings, `{"cache_settings":{"max_age":null}}`)
	expect(long, "HIT")
}

func TestSettingsOfTheOrganisationHoldForRequests(t *testing.T) {
	h := newInstallation(t)
	m := newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"s","slug":"saved","provider":"openai","key":"k","workspace_id":"default","customHost":"`+m.url+`"}`)
	const settings = "/admin/organisation/settings"
	inline := map[string]string{"X-Gateway-Config": `{"retry":{"attempts":1}}`}
	for _, c := range []struct {
		body string
		want int
	}{
		{`{"data_plane_security_settings":{"block_inline_config":true}}`, http.StatusBadRequest},
		{`{"data_plane_security_settings":{"block_inline_config":false}}`, http.StatusOK},
		{`{"data_plane_security_settings":null}`, http.StatusBadRequest},
	} {
		h.admin("PUT", settings, c.body)
		got := h.sendChat(workspaceKey, inline)
		if got.Code != c.want || got.Code != http.StatusOK && !strings.Contains(got.Body.String(), "inline_config_blocked") {
			t.Errorf("%s: %d %s", c.body, got.Code, got.Body)
		}
	}
}

// A workspace may have its own value if the organization allows it: requests follow the
// setting of their workspace.
func TestSettingsOfAWorkspaceHoldForItsRequests(t *testing.T) {
	h := newInstallation(t)
	m := newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"s","slug":"saved","provider":"openai","key":"k","workspace_id":"default","customHost":"`+m.url+`"}`)
	const own = "/admin/workspaces/default/settings"
	inline := map[string]string{"X-Gateway-Config": `{"retry":{"attempts":1}}`}
	expect := func(want int) {
		t.Helper()
		if got := h.sendChat(workspaceKey, inline); got.Code != want {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
	h.admin("PUT", "/admin/organisation/settings", `{"data_plane_security_settings":{"block_inline_config":true},"workspace_overrides":{"data_plane_security_settings":true}}`)
	expect(http.StatusBadRequest)
	h.admin("PUT", own, `{"data_plane_security_settings":{"block_inline_config":false}}`)
	expect(http.StatusOK)
	h.admin("PUT", "/admin/organisation/settings", `{"workspace_overrides":{"data_plane_security_settings":false}}`)
	expect(http.StatusBadRequest)
	h.admin("PUT", "/admin/organisation/settings", `{"workspace_overrides":{"data_plane_security_settings":true}}`)
	expect(http.StatusBadRequest)
}

func TestModelsThatTheSettingsAllow(t *testing.T) {
	h := newInstallation(t)
	m := newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"s","slug":"saved","provider":"openai","key":"k","workspace_id":"default","customHost":"`+m.url+`"}`)
	const settings, own = "/admin/organisation/settings", "/admin/workspaces/default/settings"
	for _, c := range []struct {
		path, body string
		allowed    bool
	}{
		{settings, `{"model_settings":{"allowed_models":["gpt-4o-mini"]}}`, true},
		{settings, `{"model_settings":{"allowed_models":["gpt-4o"]}}`, false},
		{settings, `{"model_settings":{"allowed_models":["openai/gpt-*"]}}`, true},
		{settings, `{"model_settings":{"allowed_models":["anthropic/*"]}}`, false},
		{settings, `{"model_settings":{"allowed_models":["*"]}}`, true},
		{settings, `{"model_settings":{"allowed_models":["claude-*"]},"workspace_overrides":{"model_settings":true}}`, false},
		{own, `{"model_settings":{"allowed_models":["gpt-4o-mini"]}}`, true},
		{own, `{"model_settings":{"allowed_models":null}}`, false},
		{settings, `{"model_settings":null}`, true},
	} {
		h.admin("PUT", c.path, c.body)
		got := h.sendChat(workspaceKey, nil)
		if c.allowed && got.Code != http.StatusOK || !c.allowed && got.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", c.body, got.Code, got.Body)
		}
		if text := got.Body.String(); !c.allowed && (!strings.Contains(text, `gpt-4o-mini\" of openai`) || !strings.Contains(text, "model_not_allowed") || !strings.Contains(text, "allowed are")) {
			t.Errorf("%s: %s", c.body, text)
		}
		listed := strings.Contains(h.get(workspaceKey, "/models").Body.String(), `"@saved/gpt-4o-mini"`)
		if listed != c.allowed {
			t.Errorf("%s: the model is listed: %v", c.body, listed)
		}
	}
}

func (h *installation) get(key, path string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequest("GET", "/v1"+path, nil)
	r.Header.Set("X-Gateway-Api-Key", key)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}
