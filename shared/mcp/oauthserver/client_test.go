package oauthserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func TestRegisteredIDContainsTheMetadata(t *testing.T) {
	t.Parallel()
	c, err := Register("An app", "https://app.example.com", []string{"http://127.0.0.1/cb", "https://app.example.com/cb"})
	if err != nil {
		t.Fatal(err)
	}
	f := Fetcher{}
	got, err := f.Find(context.Background(), c.ID)
	if err != nil || got.Name != "An app" || got.URI != c.URI || len(got.Redirects) != 2 {
		t.Fatalf("%+v %v", got, err)
	}
	for redirect, want := range map[string]bool{
		"http://127.0.0.1/cb": true, "http://127.0.0.1:4711/cb": true, "https://app.example.com/cb": true,
		"http://localhost/cb": false, "http://[::1]:1/cb": false, "http://127.0.0.1/cb/": false, "http://127.0.0.1/cb?x=1": false, "https://app.example.com:443/cb": false, "https://app.example.com/CB": false,
		"http://127.0.0.1:1@evil.example.com/cb": false, "https://app.example.com/cb#x": false, "": false, "http://127.0.0.1:4711/cb#": false,
	} {
		if got.Allows(redirect) != want {
			t.Errorf("%s: %t", redirect, !want)
		}
	}
	for _, id := range []string{"", "x", registeredPrefix, c.ID[:len(c.ID)-3], c.ID + "=", registeredPrefix + "e30", registeredPrefix + strings.Repeat("A", MaxClientID)} {
		if _, err := f.Find(context.Background(), id); !fault.Is(err, fault.InvalidRequest) || fault.From(err).Field != "client_id" {
			t.Errorf("%.60s: %v", id, err)
		}
	}
}

// rewired has requests for a host answered by a server of the test.
type rewired struct{ to *url.URL }

func (r rewired) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(req)
}

func TestClientsAreDescribedByTheirDocuments(t *testing.T) {
	t.Parallel()
	const id = "https://app.example.com/client.json"
	var status int
	var media, body string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer s.Close()
	to, _ := url.Parse(s.URL)
	refuse := false
	f := Fetcher{Transport: rewired{to}, CheckURL: func(raw, field string) (*url.URL, error) {
		if refuse {
			return nil, fault.New(fault.BlockedHost, field, "is not reachable")
		}
		return url.Parse(raw)
	}}
	document := func(change func(map[string]any)) string {
		d := map[string]any{"client_id": id, "client_name": "App", "redirect_uris": []string{"https://app.example.com/cb"}, "token_endpoint_auth_method": "none", "more": 1}
		change(d)
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	good := document(func(map[string]any) {})
	try := func(of string, st int, m, b string) (*Client, error) {
		status, media, body = st, m, b
		return f.Find(context.Background(), of)
	}
	c, err := try(id, 200, "application/json; charset=utf-8", good)
	if err != nil || c.ID != id || c.Host() != "app.example.com" || !c.Allows("https://app.example.com/cb") {
		t.Fatalf("%+v %v", c, err)
	}
	for name, bad := range map[string]struct {
		id     string
		status int
		media  string
		body   string
	}{
		"a redirect": {id, 302, "application/json", good}, "missing": {id, 404, "application/json", good}, "a page": {id, 200, "text/html", good}, "no JSON": {id, 200, "application/json", "{"},
		"twice": {id, 200, "application/json", `{"client_id":"x","client_id":"` + id + `"}`}, "a list": {id, 200, "application/json", "[]"}, "too large": {id, 200, "application/json", `{"x":"` + strings.Repeat("x", maxDocument) + `"}`},
		"of another":     {id, 200, "application/json", document(func(d map[string]any) { d["client_id"] = id + "?x" })},
		"with a secret":  {id, 200, "application/json", document(func(d map[string]any) { d["client_secret"] = "x" })},
		"with a key":     {id, 200, "application/json", document(func(d map[string]any) { d["token_endpoint_auth_method"] = "private_key_jwt" })},
		"no redirects":   {id, 200, "application/json", document(func(d map[string]any) { delete(d, "redirect_uris") })},
		"to a script":    {id, 200, "application/json", document(func(d map[string]any) { d["redirect_uris"] = []string{"javascript:x"} })},
		"another type":   {id, 200, "application/json", document(func(d map[string]any) { d["redirect_uris"] = "https://app.example.com/cb" })},
		"no path":        {"https://app.example.com", 200, "application/json", good},
		"the root":       {"https://app.example.com/", 200, "application/json", good},
		"with a user":    {"https://u@app.example.com/x", 200, "application/json", good},
		"with dots":      {"https://app.example.com/a/../client.json", 200, "application/json", good},
		"with fragments": {id + "#x", 200, "application/json", good},
		"plain http":     {"http://app.example.com/client.json", 200, "application/json", good},
	} {
		if _, err := try(bad.id, bad.status, bad.media, bad.body); err == nil || fault.From(err).Field != "client_id" || strings.Contains(err.Error(), s.URL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refuse = true
	if _, err := try(id, 200, "application/json", good); !fault.Is(err, fault.BlockedHost) {
		t.Errorf("inside: %v", err)
	}
}

func TestParseResourceRequiresExactAddresses(t *testing.T) {
	t.Parallel()
	const issuer = "https://gw.example.com/v1"
	for resource, want := range map[string]Target{
		issuer + "/mcp/tools/mcp": {Slug: "tools"}, issuer + "/mcp/team/tools/mcp": {"team", "tools"},
		issuer + "/mcp/tools/mcp/": {}, issuer + "/mcp//mcp": {}, issuer + "/mcp/tools": {}, issuer + "/mcp/a/b/c/mcp": {}, "https://gw.example.com/mcp/tools/mcp": {}, issuer + "/mcp/%74ools/mcp": {}, issuer + "/mcp/tools/mcp?x": {}, "": {},
	} {
		got, ok := ParseResource(resource, issuer)
		if ok != (want != Target{}) || ok && (got != want || got.Resource(issuer) != resource) {
			t.Errorf("%s: %v %t", resource, got, ok)
		}
	}
	if got := (Target{"team", "tools"}).Metadata(issuer); got != "https://gw.example.com/.well-known/oauth-protected-resource/v1/mcp/team/tools/mcp" {
		t.Error(got)
	}
}

func FuzzClients(f *testing.F) {
	c, err := Register("x", "", []string{"https://a.b/c"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.ID, "https://a.b/c", []byte(`{"client_id":"https://a.b/x","redirect_uris":["https://a.b/c"]}`))
	f.Fuzz(func(t *testing.T, id, redirect string, document []byte) {
		if strings.HasPrefix(id, registeredPrefix) {
			if c, err := decodeID(id); err == nil && c.Allows(redirect) && wrongRedirect(redirect) != "" {
				t.Errorf("%q may be gone to", redirect)
			}
		}
		if c, err := readDocument("https://a.b/x", document); err == nil && (c.ID != "https://a.b/x" || len(c.Redirects) == 0) {
			t.Errorf("%+v", c)
		}
		if t2, ok := ParseResource(redirect, "https://a.b/v1"); ok && t2.Resource("https://a.b/v1") != redirect {
			t.Errorf("%q is %v", redirect, t2)
		}
	})
}

// TestWrongRedirect has the bodies with which editors register, and schemes that
// systems handle themselves.
func TestWrongRedirect(t *testing.T) {
	t.Parallel()
	cursor := []string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"}
	code := []string{"https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"}
	for name, c := range map[string]struct{ requested, want []string }{
		"Cursor":                {cursor, cursor},
		"VS Code":               {code, code},
		"reversed domain":       {[]string{"com.example.app:/oauth2redirect"}, []string{"com.example.app:/oauth2redirect"}},
		"some are left out":     {[]string{"javascript:alert(1)", "https://a.example.com/cb", "http://a.example.com/cb"}, []string{"https://a.example.com/cb"}},
		"script":                {[]string{"javascript:alert(1)"}, nil},
		"script with a host":    {[]string{"javascript://x/%0aalert(1)"}, nil},
		"script in upper case":  {[]string{"JavaScript://x/"}, nil},
		"data":                  {[]string{"data:text/html,x", "data://x/y"}, nil},
		"file":                  {[]string{"file:///etc/passwd", "file://host/share"}, nil},
		"intent":                {[]string{"intent://x/#Intent;end"}, nil},
		"a diagnostic program":  {[]string{"ms-msdt://id/x", "search-ms://query"}, nil},
		"no host and no domain": {[]string{"myapp:/cb", "myapp:cb"}, nil},
		"a user":                {[]string{"cursor://a@b/cb"}, nil},
		"a fragment":            {[]string{"cursor://b/cb#x"}, nil},
	} {
		got, err := Register("An app", "", c.requested)
		if (err == nil) != (c.want != nil) || err == nil && !slices.Equal(got.Redirects, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := Register("An app", "", cursor)
	if err != nil {
		t.Fatal(err)
	}
	for redirect, want := range map[string]bool{cursor[0]: true, cursor[0] + "/x": false, cursor[0] + "?x=1": false, "cursor://anysphere.cursor-mcp/": false, "CURSOR://anysphere.cursor-mcp/oauth/callback": false} {
		if got.Allows(redirect) != want {
			t.Errorf("%s: %t", redirect, !want)
		}
	}
}

func TestUnknownScopesAreIgnored(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "mcp", "mcp offline_access": "mcp", "openid mcp:read": "mcp:read", "claudeai": "mcp", "mcp:read mcp:read": "mcp:read"} {
		if got := strings.Join(ScopesOf(text), " "); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	for text, want := range map[string]string{"": "", "mcp offline_access": "", "claudeai": "", "mcp:read mcp:admin": "mcp:admin", "mcp:reed": "mcp:reed", "mcpx": "mcpx"} {
		if got := UnknownScope(text); got != want {
			t.Errorf("%q: %q is unknown", text, got)
		}
	}
	for _, c := range []struct {
		of       []string
		text     string
		want     string
		accepted bool
	}{
		{[]string{All}, "mcp offline_access", "mcp", true}, {[]string{Read}, "offline_access", "", true}, {[]string{Read}, "mcp:write", "", false},
		{[]string{Read}, "mcp", "", false}, {[]string{All}, "mcp:read", "mcp:read", true}, {[]string{Read}, "", "", true},
	} {
		got, ok := NarrowScopes(c.of, c.text)
		if ok != c.accepted || strings.Join(got, " ") != c.want {
			t.Errorf("%v, %q: %v, %t", c.of, c.text, got, ok)
		}
	}
}
