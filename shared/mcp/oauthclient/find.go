package oauthclient

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/tenant/upstream"
)

// Authority describes an authorization server and what to request from it.
type Authority struct {
	Issuer        string
	Authorization string
	Token         string
	Registration  string
	AuthMethods   []string
	Documents     bool     // supports client metadata documents
	NamesItself   bool     // responses contain iss
	Resource      string   // the server's resource identifier; empty if none is requested (RFC 8707)
	Scopes        []string // that the server requires
}

// Finder discovers authorization servers.
type Finder struct {
	Transport http.RoundTripper // guarded
	Hosts     http.RoundTripper // guarded; also allows trusted hosts, for the server itself
	CheckURL  func(raw, field string) (*url.URL, error)
}

// described is the metadata of an authorization server (RFC 8414, OpenID Connect).
type described struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	Documents     bool     `json:"client_id_metadata_document_supported"`
	NamesItself   bool     `json:"authorization_response_iss_parameter_supported"`
}

// protected is the metadata of a protected resource (RFC 9728).
type protected struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// Find returns where users of a server sign in: as the integration configures, otherwise by
// discovery.
func (f *Finder) Find(ctx context.Context, server string, c *mcp.Configuration) (*Authority, error) {
	if e := c.External; e != nil {
		a := &Authority{Issuer: e.AuthorizationEndpoint, Authorization: e.AuthorizationEndpoint, Token: e.TokenEndpoint}
		return a, f.check(a)
	}
	if o := c.OAuth; o != nil && o.AuthorizationEndpoint != "" && o.TokenEndpoint != "" {
		a := &Authority{Issuer: o.Issuer, Authorization: o.AuthorizationEndpoint, Token: o.TokenEndpoint, Resource: server}
		return a, f.check(a)
	}
	p, err := f.protected(ctx, server)
	if err != nil {
		return nil, err
	}
	issuer := p.Servers[0]
	if c.OAuth != nil && c.OAuth.Issuer != "" {
		issuer = c.OAuth.Issuer
	}
	a, err := f.authority(ctx, issuer)
	if err != nil {
		return nil, err
	}
	a.Resource, a.Scopes = p.Resource, p.Scopes
	return a, f.check(a)
}

// check rejects addresses that must not be called or opened in a browser.
func (f *Finder) check(a *Authority) error {
	for _, address := range []string{a.Authorization, a.Token, a.Registration} {
		if address == "" {
			continue
		}
		if _, err := f.CheckURL(address, "address"); err != nil {
			return upstream.Fail(0, "the authorization server names an address that is not allowed: it %s", fault.From(err).Message)
		}
	}
	if a.Authorization == "" || a.Token == "" {
		return upstream.Fail(0, "the authorization server's metadata has no authorization_endpoint or token_endpoint")
	}
	return nil
}

// protected discovers the authorization server of a server. Without metadata the server is its
// own authorization server, as in early versions of the protocol.
func (f *Finder) protected(ctx context.Context, server string) (*protected, error) {
	at, err := url.Parse(server)
	if err != nil || at.Host == "" {
		return nil, upstream.Fail(0, "the server's address is invalid")
	}
	root := at.Scheme + "://" + at.Host
	const known = "/.well-known/oauth-protected-resource"
	places := []string{root + known + strings.TrimSuffix(at.EscapedPath(), "/"), root + known}
	metadataURL, scopes := f.challenged(ctx, server)
	if metadataURL != "" {
		places = append([]string{metadataURL}, places...)
	}
	var wrong *upstream.Failure // metadata that does not match
	for _, place := range slices.Compact(places) {
		if _, err := f.CheckURL(place, "address"); err != nil && !strings.HasPrefix(place, root+"/") {
			return nil, upstream.Fail(0, "the server's resource metadata is at an address that is not allowed")
		}
		p := new(protected)
		ok, err := document(ctx, f.transport(place, root), place, p)
		if err != nil {
			return nil, err
		}
		switch {
		case !ok || p.Resource == "" && len(p.Servers) == 0: // something else is served there
			continue
		case !covers(p.Resource, server):
			wrong = cmp.Or(wrong, upstream.Fail(0, "the server's resource metadata is for another resource"))
			continue
		case len(p.Servers) == 0:
			wrong = cmp.Or(wrong, upstream.Fail(0, "the server's resource metadata names no authorization server"))
			continue
		}
		if len(scopes) > 0 {
			p.Scopes = scopes
		}
		return p, nil
	}
	if wrong != nil {
		return nil, wrong
	}
	return &protected{Resource: server, Servers: []string{root}, Scopes: scopes}, nil
}

// transport returns the transport for an address. Trusted hosts are allowed only for the server
// itself.
func (f *Finder) transport(address, root string) http.RoundTripper {
	if f.Hosts != nil && strings.HasPrefix(address, root+"/") {
		return f.Hosts
	}
	return f.Transport
}

// covers reports whether a resource is the server or a parent path on its host.
func covers(resource, server string) bool {
	r, err := url.Parse(resource)
	s, bad := url.Parse(server)
	if err != nil || bad != nil || !strings.EqualFold(r.Scheme, s.Scheme) || !strings.EqualFold(r.Host, s.Host) || r.RawQuery != "" || r.Fragment != "" {
		return false
	}
	of, at := strings.TrimSuffix(r.EscapedPath(), "/"), strings.TrimSuffix(s.EscapedPath(), "/")
	return of == at || strings.HasPrefix(at, of+"/")
}

// challenged returns the metadata address and the scopes in the server's challenge, if any.
func (f *Finder) challenged(ctx context.Context, server string) (at string, scopes []string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return "", nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	via := f.Transport
	if f.Hosts != nil {
		via = f.Hosts
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return "", nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return "", nil
	}
	for _, c := range resp.Header.Values("Www-Authenticate") {
		if metadataURL := param(c, "resource_metadata"); at == "" && metadataURL != "" {
			at = metadataURL
		}
		if scopes == nil {
			scopes = scopesOf(param(c, "scope"))
		}
	}
	return at, scopes
}

// param returns a parameter of a Bearer challenge, or "".
func param(challenge, name string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(challenge), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	for rest = strings.TrimSpace(rest); rest != ""; {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return ""
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if strings.HasPrefix(value, `"`) {
			end := strings.IndexByte(value[1:], '"')
			if end < 0 {
				return ""
			}
			value, rest = value[1:1+end], value[end+2:]
		} else {
			value, rest, _ = strings.Cut(value, ",")
			rest = "," + rest
		}
		if strings.EqualFold(key, name) {
			return strings.TrimSpace(value)
		}
		rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), ","))
	}
	return ""
}

// authority fetches the metadata of an authorization server.
func (f *Finder) authority(ctx context.Context, issuer string) (*Authority, error) {
	u, err := f.CheckURL(issuer, "issuer")
	if err != nil {
		return nil, upstream.Fail(0, "the authorization server's address is not allowed: it %s", fault.From(err).Message)
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	places := []string{root + oauth + path, root + openID + path, root + path + openID}
	var wrong *upstream.Failure // metadata that does not match
	for _, place := range slices.Compact(places) {
		d := new(described)
		ok, err := document(ctx, f.Transport, place, d)
		if err != nil {
			return nil, err
		}
		switch {
		case !ok || d.Issuer == "": // something else is served there
			continue
		case !sameIssuer(d.Issuer, issuer):
			wrong = cmp.Or(wrong, upstream.Fail(0, "the authorization server's metadata has another issuer"))
			continue
		case !slices.Contains(d.Challenges, "S256"):
			wrong = cmp.Or(wrong, upstream.Fail(0, "the authorization server does not support the code challenge method S256"))
			continue
		}
		return &Authority{
			Issuer: d.Issuer, Authorization: d.Authorization, Token: d.Token, Registration: d.Registration, AuthMethods: d.AuthMethods,
			Documents: d.Documents, NamesItself: d.NamesItself,
		}, nil
	}
	return nil, cmp.Or(wrong, upstream.Fail(0, "the authorization server has no readable metadata"))
}

// sameIssuer reports whether two issuers are equal. Without a path, one may end with a slash
// (RFC 3986, 6.2.3), as those of Google's MCP servers do.
func sameIssuer(a, b string) bool {
	if a == b {
		return true
	}
	a, b = strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")
	_, rest, ok := strings.Cut(a, "://")
	return a == b && ok && !strings.ContainsAny(rest, "/?#")
}

// Limits of scopes in challenges.
const (
	maxScopes     = 50
	maxScopeBytes = 1024 // total size
)

// Insufficient returns the scopes that a server requires in addition (RFC 6750, step-up), or
// nil.
func Insufficient(challenges []string) []string {
	for _, c := range challenges {
		if param(c, "error") == "insufficient_scope" {
			return scopesOf(param(c, "scope"))
		}
	}
	return nil
}

// scopesOf parses a list of scopes. It returns nil if the list is invalid or too long.
func scopesOf(list string) []string {
	odd := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	scopes := strings.Fields(list)
	if len(list) > maxScopeBytes || len(scopes) > maxScopes || strings.ContainsFunc(list, odd) {
		return nil
	}
	return scopes
}

// Union returns the distinct scopes of both lists in order. It omits scopes that would make the
// list too long.
func Union(one, other []string) []string {
	out := slices.Clone(one)
	size := len(strings.Join(one, " "))
	for _, s := range other {
		if size += len(s) + 1; !slices.Contains(out, s) && size <= 2*maxScopeBytes {
			out = append(out, s)
		}
	}
	return out
}
