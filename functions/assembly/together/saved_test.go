package together_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/mux"
	"gateway/shared/app/plane"
	"gateway/shared/egress"
	"gateway/shared/relay"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
)

const (
	adminKey     = "admin-key-of-the-tests"
	workspaceKey = "workspace-key-of-the-tests"
)

// noBooks takes usage records and forgets them.
type noBooks struct{}

func (noBooks) Emit(context.Context, *usage.Record) error { return nil }

// model is a provider that records the headers of its requests.
type model struct {
	url  string
	mu   sync.Mutex
	last http.Header
}

func newModel(t *testing.T) *model {
	m := &model{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		m.mu.Lock()
		m.last = r.Header.Clone()
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c-1","object":"chat.completion","created":1,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
	}))
	t.Cleanup(s.Close)
	m.url = s.URL + "/v1"
	return m
}

func (m *model) header(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last.Get(name)
}

// installation is the complete gateway on a store in a temporary folder.
type installation struct {
	t       *testing.T
	handler http.Handler
}

func newInstallation(t *testing.T) *installation { return newInstallationAt(t, nil) }

// newInstallationAt is newInstallation by another clock.
func newInstallationAt(t *testing.T, now func() time.Time) *installation {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	policy := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, TrustedHosts: []string{"127.0.0.1"}}
	core := app.New(app.Backends{Store: s, Embedded: true, Sealer: admintest.Sealer{}}, app.Settings{Egress: policy, Now: now})
	t.Cleanup(core.CloseIdleConnections)
	core.AllowDuplicates = true // tests create many equal resources
	if _, err := core.Bootstrap(context.Background(), app.First{AdminKey: adminKey, WorkspaceKey: workspaceKey, AllowInline: true}); err != nil {
		t.Fatal(err)
	}
	admin, err := console.New(core, nil, assembly.Administration(core, nil)...)
	if err != nil {
		t.Fatal(err)
	}
	return &installation{t, &mux.Handler{Data: relay.NewMux(plane.New(core, noBooks{}, plane.Options{Jobs: plane.Jobs(), Translators: plane.Translators(), Sessions: relay.NewSessions()}), assembly.DataPlane()), Admin: admin}}
}

func (h *installation) do(method, path, key, body string) (int, string) {
	h.t.Helper()
	r := httptest.NewRequest(method, "/v1"+path, strings.NewReader(body))
	r.Header.Set("X-Gateway-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (h *installation) admin(method, path, body string) map[string]any {
	h.t.Helper()
	status, answer := h.do(method, path, adminKey, body)
	if status != http.StatusOK {
		h.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h *installation) chat(slug string) (int, string) {
	h.t.Helper()
	return h.do("POST", "/chat/completions", workspaceKey, `{"model":"@`+slug+`/gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}`)
}

func (h *installation) answers(slug string, want int) {
	h.t.Helper()
	if status, body := h.chat(slug); status != want {
		h.t.Errorf("@%s answers %d %s, want %d", slug, status, body, want)
	}
}

func TestSavedVirtualKeyAnswersWithItsCredential(t *testing.T) {
	h, m := newInstallation(t), newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"k","slug":"k","provider":"openai","key":"sk-first-secret","workspace_id":"default","customHost":"`+m.url+`","customHeaders":{"X-Team":"red"}}`)
	h.answers("k", http.StatusOK)
	if m.header("Authorization") != "Bearer sk-first-secret" || m.header("X-Team") != "red" {
		t.Errorf("upstream got %q and %q", m.header("Authorization"), m.header("X-Team"))
	}
	h.admin("PUT", "/virtual-keys/k", `{"workspace_id":"default","key":"sk-second-secret"}`)
	h.answers("k", http.StatusOK)
	if got := m.header("Authorization"); got != "Bearer sk-second-secret" {
		t.Errorf("after the change upstream got %q", got)
	}
	h.admin("PUT", "/virtual-keys/k", `{"workspace_id":"default","rate_limits":[{"type":"requests","unit":"rpm","value":0}]}`)
	h.answers("k", http.StatusTooManyRequests)
	h.admin("PUT", "/virtual-keys/k", `{"workspace_id":"default","rate_limits":null}`)
	h.answers("k", http.StatusOK)
	h.admin("DELETE", "/virtual-keys/k?workspace_id=default", "")
	h.answers("k", http.StatusBadRequest)
}

func TestAccessOfAWorkspaceIsOpenedAndRevoked(t *testing.T) {
	h, m := newInstallation(t), newModel(t)
	h.admin("POST", "/integrations", `{"name":"shared","slug":"shared","ai_provider_id":"openai","key":"sk-shared-secret","configurations":{"custom_host":"`+m.url+`"}}`)
	h.answers("shared", http.StatusBadRequest)
	access := func(members string) {
		t.Helper()
		h.admin("PUT", "/integrations/shared/workspaces", `{"workspaces":[{"id":"default",`+members+`}]}`)
	}
	access(`"enabled":true`)
	h.answers("shared", http.StatusOK)
	if got := m.header("Authorization"); got != "Bearer sk-shared-secret" {
		t.Errorf("upstream got %q", got)
	}
	access(`"enabled":false`)
	h.answers("shared", http.StatusForbidden)
	access(`"enabled":true,"rate_limits":[{"type":"requests","unit":"rpm","value":0}]`)
	h.answers("shared", http.StatusTooManyRequests)
	access(`"enabled":true,"rate_limits":null`)
	h.answers("shared", http.StatusOK)
	h.admin("PUT", "/integrations/shared/models", `{"allow_all_models":false}`)
	h.answers("shared", http.StatusForbidden)
	h.admin("PUT", "/integrations/shared/models", `{"models":[{"slug":"gpt-4o-mini","enabled":true}]}`)
	h.answers("shared", http.StatusOK)
	h.admin("DELETE", "/integrations/shared", "")
	h.answers("shared", http.StatusBadRequest)
}

func TestBudgetOfAProviderIsCountedAndReset(t *testing.T) {
	h, m := newInstallation(t), newModel(t)
	h.admin("POST", "/virtual-keys", `{"name":"k","slug":"k","provider":"openai","key":"sk-first-secret","workspace_id":"default","customHost":"`+m.url+`","usage_limits":{"type":"tokens","credit_limit":100000}}`)
	h.answers("k", http.StatusOK)
	used := func() any {
		t.Helper()
		return h.admin("GET", "/providers/k?workspace_id=default", "")["usage_limits"].(map[string]any)["current_usage"]
	}
	if got := used(); got != 10.0 {
		t.Errorf("current_usage %v", got)
	}
	h.admin("PUT", "/providers/k", `{"workspace_id":"default","reset_usage":true}`)
	if got := used(); got != 0.0 {
		t.Errorf("current_usage after the reset %v", got)
	}
}
