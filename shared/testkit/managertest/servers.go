// Package managertest has fake secret managers, for tests: AWS Secrets Manager (with its token
// service), Azure Key Vault (with Entra) and HashiCorp Vault. They reject what the real ones
// reject, and count calls.
package managertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is what the three have in common.
type Server struct {
	URL string

	mu    sync.Mutex
	calls map[string]int
	down  int    // > 0: every call is answered with this status
	raw   string // answered in place of a secret
	now   func() time.Time
	t     testing.TB
}

func (s *Server) start(t testing.TB, now func() time.Time, handler http.HandlerFunc) {
	s.t, s.now, s.calls = t, now, map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.down > 0 {
			s.calls["down"]++
			w.WriteHeader(s.down)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(srv.Close)
	s.URL = srv.URL
}

// Down answers every call with a status from now on; 0: normally again.
func (s *Server) Down(status int) { s.mu.Lock(); s.down = status; s.mu.Unlock() }

// Answer gives a body in place of a secret; "": normally again.
func (s *Server) Answer(body string) { s.mu.Lock(); s.raw = body; s.mu.Unlock() }

// Calls is how often each of these was called: read, login, renew, token, role, down.
func (s *Server) Calls(what string) int { s.mu.Lock(); defer s.mu.Unlock(); return s.calls[what] }

// Do runs f while no call is answered, to change the server's fields.
func (s *Server) Do(f func()) { s.mu.Lock(); defer s.mu.Unlock(); f() }

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if text, ok := v.(string); ok {
		_, _ = io.WriteString(w, text)
		return
	}
	_ = json.NewEncoder(w).Encode(v)
}

// Vault is a server of HashiCorp Vault.
type Vault struct {
	Server
	Namespace string
	// Secrets by their path: those of version 2 under <mount>/data/<path>, those of version 1
	// under other paths.
	Secrets map[string]string // JSON objects
	Tokens  map[string]time.Time
	// For logins.
	RoleID, SecretID string
	JWT, Role        string
	Lease            time.Duration // lifetime of the tokens that logins give
	made             int
}

// NewVault starts one.
func NewVault(t testing.TB, now func() time.Time) *Vault {
	v := &Vault{Secrets: map[string]string{}, Tokens: map[string]time.Time{}, Lease: time.Hour}
	v.start(t, now, v.serve)
	return v
}

func vaultErrors(texts ...string) any {
	return map[string]any{"errors": append([]string{}, texts...)}
}

func (v *Vault) serve(w http.ResponseWriter, r *http.Request) {
	path, ok := trim(r.URL.EscapedPath(), "/v1/")
	if !ok || r.URL.RawQuery != "" {
		reply(w, 404, vaultErrors())
		return
	}
	if r.Header.Get("X-Vault-Request") != "true" || r.Header.Get("X-Vault-Namespace") != v.Namespace {
		reply(w, 400, vaultErrors("missing header"))
		return
	}
	switch {
	case r.Method == "POST" && path == "auth/approle/login":
		var in struct {
			RoleID   string `json:"role_id"`
			SecretID string `json:"secret_id"`
		}
		v.login(w, r, &in, func() bool { return v.RoleID != "" && in.RoleID == v.RoleID && in.SecretID == v.SecretID })
	case r.Method == "POST" && path == "auth/kubernetes/login":
		var in struct {
			JWT  string `json:"jwt"`
			Role string `json:"role"`
		}
		v.login(w, r, &in, func() bool { return v.JWT != "" && in.JWT == v.JWT && in.Role == v.Role })
	case r.Method == "POST" && path == "auth/token/renew-self":
		token := r.Header.Get("X-Vault-Token")
		if !v.valid(token) {
			reply(w, 403, vaultErrors("permission denied"))
			return
		}
		v.calls["renew"]++
		v.Tokens[token] = v.now().Add(v.Lease)
		v.respondToken(w, token)
	case r.Method == "GET":
		v.read(w, r, path)
	default:
		reply(w, 405, vaultErrors("unsupported operation"))
	}
}

func (v *Vault) valid(token string) bool {
	until, known := v.Tokens[token]
	return known && (until.IsZero() || v.now().Before(until))
}

func (v *Vault) login(w http.ResponseWriter, r *http.Request, in any, good func() bool) {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if dec.Decode(in) != nil || r.Header.Get("X-Vault-Token") != "" {
		reply(w, 400, vaultErrors("failed to parse JSON input"))
		return
	}
	v.calls["login"]++
	if !good() {
		reply(w, 400, vaultErrors("invalid role or secret ID"))
		return
	}
	v.made++
	token := fmt.Sprintf("hvs.made-%d", v.made)
	v.Tokens[token] = v.now().Add(v.Lease)
	v.respondToken(w, token)
}

func (v *Vault) respondToken(w http.ResponseWriter, token string) {
	reply(w, 200, map[string]any{"request_id": "r", "data": nil, "auth": map[string]any{"client_token": token, "lease_duration": int(v.Lease / time.Second), "renewable": true, "policies": []string{"default"}}})
}

func (v *Vault) read(w http.ResponseWriter, r *http.Request, path string) {
	if !v.valid(r.Header.Get("X-Vault-Token")) {
		reply(w, 403, vaultErrors("permission denied"))
		return
	}
	v.calls["read"]++
	if v.raw != "" {
		reply(w, 200, v.raw)
		return
	}
	mount, rest, _ := cut(path)
	data, ok := v.Secrets[path]
	switch _, versioned := trim(rest, "data/"); {
	case !ok && v.Secrets[mount+"/data/"+rest] != "":
		reply(w, 404, map[string]any{"errors": []string{}, "warnings": []string{"Invalid path for a versioned K/V secrets engine. See the API docs for the appropriate API endpoints to use. If using the Vault CLI, use 'vault kv get' for this operation."}})
	case !ok:
		reply(w, 404, vaultErrors())
	case versioned:
		reply(w, 200, `{"request_id":"r","lease_id":"","renewable":false,"data":{"data":`+data+`,"metadata":{"created_time":"2026-01-01T00:00:00Z","deletion_time":"","destroyed":false,"version":3}}}`)
	default:
		reply(w, 200, `{"request_id":"r","lease_duration":2764800,"data":`+data+`}`)
	}
}

func trim(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

func cut(path string) (mount, rest string, ok bool) {
	for i := range len(path) {
		if path[i] == '/' {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

// Azure is a key vault, the Entra that gives tokens for it, and the identity service of a
// host.
type Azure struct {
	Server
	Tenant, Client, Secret string            // of an application
	IdentityKey            string            // of the host's identity service
	Secrets                map[string]string // by name, or name/version
	Resource               string            // resource of the tokens
	tokens                 map[string]time.Time
	made                   int
}

// NewAzure starts one.
func NewAzure(t testing.TB, now func() time.Time) *Azure {
	a := &Azure{Secrets: map[string]string{}, Resource: "https://vault.azure.net", tokens: map[string]time.Time{}}
	a.start(t, now, a.serve)
	return a
}

func (a *Azure) serve(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.EscapedPath(); {
	case r.Method == "POST" && path == "/"+a.Tenant+"/oauth2/v2.0/token":
		a.calls["token"]++
		if r.ParseForm() != nil || r.PostForm.Get("grant_type") != "client_credentials" || r.PostForm.Get("scope") != a.Resource+"/.default" {
			reply(w, 400, map[string]string{"error": "invalid_scope"})
			return
		}
		if r.PostForm.Get("client_id") != a.Client || r.PostForm.Get("client_secret") != a.Secret {
			reply(w, 401, map[string]string{"error": "invalid_client"})
			return
		}
		reply(w, 200, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": a.token()})
	case r.Method == "GET" && path == "/msi/token":
		a.calls["identity"]++
		if r.Header.Get("X-IDENTITY-HEADER") != a.IdentityKey || r.URL.Query().Get("resource") != a.Resource || a.IdentityKey == "" {
			reply(w, 400, map[string]string{"statusCode": "400"})
			return
		}
		token := a.token()
		reply(w, 200, map[string]any{"access_token": token, "expires_on": fmt.Sprint(a.tokens[token].Unix()), "resource": a.Resource, "token_type": "Bearer"})
	case r.Method == "GET" && strings.HasPrefix(path, "/secrets/"):
		a.read(w, r, strings.TrimPrefix(path, "/secrets/"))
	default:
		reply(w, 404, map[string]any{"error": map[string]string{"code": "NotFound"}})
	}
}

func (a *Azure) token() string {
	a.made++
	token := fmt.Sprintf("ey.azure-%d", a.made)
	a.tokens[token] = a.now().Add(time.Hour)
	return token
}

func (a *Azure) read(w http.ResponseWriter, r *http.Request, name string) {
	refuse := func(status int, code string) {
		reply(w, status, map[string]any{"error": map[string]string{"code": code, "message": "the message may quote " + name}})
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	until, known := a.tokens[bearer]
	value, there := a.Secrets[name]
	switch {
	case r.URL.Query().Get("api-version") == "":
		refuse(400, "BadParameter")
	case !known || !a.now().Before(until):
		refuse(401, "Unauthorized")
	case !there:
		a.calls["read"]++
		refuse(404, "SecretNotFound")
	default:
		a.calls["read"]++
		if a.raw != "" {
			reply(w, 200, a.raw)
			return
		}
		reply(w, 200, map[string]any{"value": value, "id": a.URL + "/secrets/" + name, "attributes": map[string]any{"enabled": true}})
	}
}
