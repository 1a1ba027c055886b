package oauthclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gateway/shared/mcp"
	"gateway/shared/tenant/upstream"
)

func anywhere(raw, _ string) (*url.URL, error) { return url.Parse(raw) }

// at serves documents, by path; "@" in them is the server's own address.
func at(t *testing.T, documents map[string]string) string {
	t.Helper()
	var self string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(strings.ReplaceAll(d, "@", self)))
	}))
	t.Cleanup(s.Close)
	self = s.URL
	return self
}

const (
	good      = `{"issuer":"@/a","authorization_endpoint":"@/in","token_endpoint":"@/token","code_challenge_methods_supported":["S256"]}`
	about     = `{"resource":"@/mcp","authorization_servers":["@/a"]}`
	ofServer  = "/.well-known/oauth-protected-resource/mcp"
	ofOAuth   = "/.well-known/oauth-authorization-server/a"
	ofOpenID  = "/.well-known/openid-configuration/a"
	ofOpenID2 = "/a/.well-known/openid-configuration"
)

// TestFindDiscoversAuthorizationServers: in each place that the specifications name, and only as they
// say of themselves.
func TestFindDiscoversAuthorizationServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		documents map[string]string
		why       string // "": it is found
	}{
		"oauth":                 {map[string]string{ofServer: about, ofOAuth: good}, ""},
		"openid, inserted":      {map[string]string{ofServer: about, ofOpenID: good}, ""},
		"openid, appended":      {map[string]string{ofServer: about, ofOpenID2: good}, ""},
		"at the root":           {map[string]string{"/.well-known/oauth-protected-resource": strings.Replace(about, "@/mcp", "@", 1), ofOAuth: good}, ""},
		"nothing is said":       {map[string]string{"/.well-known/oauth-authorization-server": strings.Replace(good, "@/a", "@", 1)}, ""},
		"another resource":      {map[string]string{ofServer: strings.Replace(about, "@/mcp", "https://other.example.com/mcp", 1), ofOAuth: good}, "another resource"},
		"a path beside":         {map[string]string{ofServer: strings.Replace(about, "@/mcp", "@/mc", 1), ofOAuth: good}, "another resource"},
		"no authority":          {map[string]string{ofServer: `{"resource":"@/mcp"}`}, "no authorization server"},
		"another issuer":        {map[string]string{ofServer: about, ofOAuth: strings.Replace(good, "@/a", "@/a/", 1)}, "another issuer"},
		"plain challenges only": {map[string]string{ofServer: about, ofOAuth: strings.Replace(good, "S256", "plain", 1)}, "S256"},
		"no challenges":         {map[string]string{ofServer: about, ofOAuth: `{"issuer":"@/a","authorization_endpoint":"@/in","token_endpoint":"@/t"}`}, "S256"},
		"members twice":         {map[string]string{ofServer: about, ofOAuth: `{"issuer":"@/a",` + good[1:]}, "no readable metadata"},
		"other types":           {map[string]string{ofServer: about, ofOAuth: `{"issuer":1}`}, "no readable metadata"},
		"no JSON":               {map[string]string{ofServer: "<html>"}, "no readable metadata"},
		"too long":              {map[string]string{ofServer: about, ofOAuth: `{"issuer":"` + strings.Repeat("a", maxDocument) + `"}`}, "no readable metadata"},
		"no address of tokens":  {map[string]string{ofServer: about, ofOAuth: strings.Replace(good, "token_endpoint", "x", 1)}, "no authorization_endpoint"},
		"undescribed":           {map[string]string{ofServer: about}, "no readable metadata"},
		"a page for the server": {map[string]string{ofServer: "<html>", "/.well-known/oauth-protected-resource": strings.Replace(about, "@/mcp", "@", 1), ofOAuth: good}, ""},
		"other JSON, server":    {map[string]string{ofServer: `{"error":"not found"}`, "/.well-known/oauth-protected-resource": strings.Replace(about, "@/mcp", "@", 1), ofOAuth: good}, ""},
		"a page for OAuth":      {map[string]string{ofServer: about, ofOAuth: "<html>", ofOpenID: good}, ""},
		"other JSON for OAuth":  {map[string]string{ofServer: about, ofOAuth: `{"error":"not found"}`, ofOpenID2: good}, ""},
		"a slash at the end of the server's word":    {map[string]string{ofServer: strings.Replace(about, "@/a", "@/", 1), "/.well-known/oauth-authorization-server": strings.Replace(good, "@/a", "@", 1)}, ""},
		"a slash at the end of the authority's word": {map[string]string{ofServer: strings.Replace(about, "@/a", "@", 1), "/.well-known/oauth-authorization-server": strings.Replace(good, "@/a", "@/", 1)}, ""},
	} {
		self := at(t, c.documents)
		f := Finder{Transport: http.DefaultTransport, CheckURL: anywhere}
		a, err := f.Find(context.Background(), self+"/mcp", new(mcp.Configuration))
		var failed *upstream.Failure
		switch {
		case c.why == "" && (err != nil || a.Token != self+"/token" || !strings.HasPrefix(self+"/mcp", a.Resource)):
			t.Errorf("%s: %v %+v", name, err, a)
		case c.why != "" && (!errors.As(err, &failed) || !strings.Contains(failed.Why, c.why)):
			t.Errorf("%s: %v %+v", name, err, a)
		}
	}
}

// TestFindPrefersConfiguredEndpoints: nothing is called where both addresses are known.
func TestFindPrefersConfiguredEndpoints(t *testing.T) {
	t.Parallel()
	f := Finder{Transport: nil, CheckURL: anywhere} // any call would panic
	a, err := f.Find(context.Background(), "https://mcp.example.com/mcp", &mcp.Configuration{OAuth: &mcp.OAuthMetadata{AuthorizationEndpoint: "https://a.example.com/in", TokenEndpoint: "https://a.example.com/t"}})
	if err != nil || a.Resource != "https://mcp.example.com/mcp" || a.Authorization != "https://a.example.com/in" {
		t.Errorf("%v %+v", err, a)
	}
	c := Configured(&mcp.Configuration{External: &mcp.ExternalAuth{ClientID: "c", ClientSecret: "s"}})
	if c == nil || c.Method != methodBasic {
		t.Errorf("%+v", c)
	}
	if c := ByDocument(&Authority{Documents: true}, Endpoints{Document: "http://127.0.0.1/x"}); c != nil {
		t.Errorf("a document that others cannot read: %+v", c)
	}
}

// TestAuthorizationParamsCannotReplaceProtocolParameters: what the integration adds to the way out.
func TestAuthorizationParamsCannotReplaceProtocolParameters(t *testing.T) {
	t.Parallel()
	f := &Flow{Authority: Authority{Authorization: "https://a.example.com/in?state=theirs&tenant=1", Resource: "https://mcp.example.com/mcp"}, Client: Client{ID: "me"}, Callback: "https://g.example.com/cb", Verifier: "v"}
	to, err := f.address(&mcp.Configuration{OAuth: &mcp.OAuthMetadata{Scope: "a b", AuthorizationParams: map[string]string{"prompt": "consent", "state": "evil", "client_id": "evil"}}}, "ours")
	u, bad := url.Parse(to)
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	q := u.Query()
	for name, want := range map[string]string{"state": "ours", "client_id": "me", "prompt": "consent", "tenant": "1", "scope": "a b", "resource": "https://mcp.example.com/mcp", "code_challenge_method": "S256", "redirect_uri": "https://g.example.com/cb"} {
		if len(q[name]) != 1 || q.Get(name) != want {
			t.Errorf("%s is %q", name, q[name])
		}
	}
}

func FuzzChallenge(f *testing.F) {
	for _, s := range []string{`Bearer error="invalid_token", resource_metadata="https://a/b"`, `Bearer resource_metadata=https://a/b , scope="x y"`, `Bearer resource_metadata="`, "Basic x", "bearer a=b,,c=\"d\"e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := param(s, "resource_metadata"); got != "" && !strings.Contains(s, got) {
			t.Errorf("%q gives %q", s, got)
		}
	})
}

func FuzzDescriptions(f *testing.F) {
	f.Add(good, "https://mcp.example.com/mcp")
	f.Fuzz(func(t *testing.T, raw, server string) {
		var d described
		_ = json.Unmarshal([]byte(raw), &d)
		if covers(d.Issuer, server) {
			r, _ := url.Parse(d.Issuer)
			s, _ := url.Parse(server)
			if !strings.EqualFold(r.Host, s.Host) {
				t.Errorf("%q covers %q", d.Issuer, server)
			}
		}
	})
}
