package oauthclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"gateway/shared/mcp"
	"gateway/shared/store"
)

// TestInsufficientParsesChallenges: what a rejection for scopes asks for, and what is asked of the
// user then.
func TestInsufficientParsesChallenges(t *testing.T) {
	t.Parallel()
	for challenge, want := range map[string]string{
		`Bearer error="insufficient_scope", scope="a b"`:                                          "a b",
		`bearer scope="b", error="insufficient_scope"`:                                            "b",
		`Bearer error="invalid_token", scope="a"`:                                                 "",
		`Basic error="insufficient_scope", scope="a"`:                                             "",
		`Bearer error="insufficient_scope"`:                                                       "",
		`Bearer error="insufficient_scope", scope="a` + "\x01" + `"`:                              "",
		`Bearer error="insufficient_scope", scope="` + strings.Repeat("a ", 60) + `"`:             "",
		`Bearer error="insufficient_scope", scope="` + strings.Repeat("a", maxScopeBytes+1) + `"`: "",
	} {
		if got := strings.Join(Insufficient([]string{"Basic x", challenge}), " "); got != want {
			t.Errorf("%.80s: %q", challenge, got)
		}
	}
	if got := Union([]string{"a", "b"}, []string{"b", "c", "c"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = strings.Repeat(string(rune('a'+i%26)), 40+i)
	}
	if got := strings.Join(Union(nil, many), " "); len(got) > 2*maxScopeBytes {
		t.Errorf("%d bytes", len(got))
	}
	f := &Flow{Authority: Authority{Scopes: []string{"a"}}, Link: Link{Scopes: []string{"b"}}}
	for _, c := range []struct {
		conf *mcp.Configuration
		want string
	}{
		{&mcp.Configuration{}, "a b"},
		{&mcp.Configuration{OAuth: &mcp.OAuthMetadata{Scope: "own of-it"}}, "own of-it b"},
		{&mcp.Configuration{External: &mcp.ExternalAuth{Scope: "theirs"}}, "theirs b"},
	} {
		if got := strings.Join(f.scopes(c.conf), " "); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// TestFindPrefersScopesOfChallenges: what the server itself asks for goes before what its
// description lists.
func TestFindPrefersScopesOfChallenges(t *testing.T) {
	t.Parallel()
	var self string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			w.Header().Set("WWW-Authenticate", `Bearer scope="tools.read", resource_metadata="`+self+`/about"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		documents := map[string]string{"/about": strings.Replace(about, `{`, `{"scopes_supported":["all"],`, 1), ofOAuth: good}
		d, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(d, "@", self))
	}))
	t.Cleanup(s.Close)
	self = s.URL
	f := Finder{Transport: http.DefaultTransport, CheckURL: anywhere}
	a, err := f.Find(context.Background(), self+"/mcp", new(mcp.Configuration))
	if err != nil || !slices.Equal(a.Scopes, []string{"tools.read"}) {
		t.Errorf("%v %+v", err, a)
	}
}

// TestRegisterSelectsTheAuthMethod: by what an authorization server gives, and by what it
// says that it takes.
func TestRegisterSelectsTheAuthMethod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes         []string
		answer        string
		method        string // "": it cannot go on
		secret        string
		requested     string
		callback, app string
	}{
		"public":                         {[]string{"none"}, `{"client_id":"c"}`, methodNone, "", methodNone, "https://g.example.com/cb", "web"},
		"a secret with its method":       {nil, `{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}`, methodPost, "s", methodNone, "https://g.example.com/cb", "web"},
		"a secret alone":                 {nil, `{"client_id":"c","client_secret":"s"}`, methodBasic, "s", methodNone, "http://127.0.0.1:8787/cb", "native"},
		"a secret that is not needed":    {[]string{"none"}, `{"client_id":"c","client_secret":"s"}`, methodNone, "", methodNone, "https://g.example.com/cb", "web"},
		"a secret, as it was asked for":  {[]string{"client_secret_post"}, `{"client_id":"c","client_secret":"s"}`, methodPost, "s", methodPost, "https://g.example.com/cb", "web"},
		"no secret where one is needed":  {[]string{"client_secret_basic"}, `{"client_id":"c"}`, "", "", methodBasic, "https://g.example.com/cb", "web"},
		"a way that the gateway has not": {nil, `{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"private_key_jwt"}`, "", "", methodNone, "https://g.example.com/cb", "web"},
		"no id":                          {nil, `{}`, "", "", methodNone, "https://g.example.com/cb", "web"},
	} {
		var sent registration
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewDecoder(r.Body).Decode(&sent)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, c.answer)
		}))
		got, err := Register(context.Background(), http.DefaultTransport, &Authority{Registration: s.URL, AuthMethods: c.takes}, new(mcp.Configuration), Endpoints{Callback: c.callback}, store.Scope{Workspace: "w"}, "server")
		s.Close()
		if sent.AuthMethod != c.requested || sent.Application != c.app {
			t.Errorf("%s: asked %+v", name, sent)
		}
		if (err != nil) != (c.method == "") || err == nil && (got.Method != c.method || got.Secret != c.secret) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}
