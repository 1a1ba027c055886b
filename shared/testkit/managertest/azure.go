package managertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

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
