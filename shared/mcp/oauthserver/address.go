package oauthserver

import (
	"cmp"
	"net/http"
	"net/url"
	"os"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
)

// EnvBase names the address that clients reach MCP servers below, where that is another
// than the gateway's own.
const EnvBase = "MCP_GATEWAY_BASE_URL"

// EnvPublic names the address of the gateway, where EnvBase names no other.
const EnvPublic = "GATEWAY_PUBLIC_URL"

// BasePath is that of the gateway's routes.
const BasePath = "/v1"

// Below is what the addresses of servers stand below, behind the gateway's own.
const Below = "/mcp"

// Paths below the gateway's address.
const (
	PathProtected = "/.well-known/oauth-protected-resource"
	PathServer    = "/.well-known/oauth-authorization-server"
	PathOpenID    = "/.well-known/openid-configuration"
	PathAuthorize = "/oauth/authorize"
	PathConsent   = "/oauth/postAuthorizeConsent"
	PathToken     = "/oauth/token"
	PathRegister  = "/oauth/register"
	PathRevoke    = "/oauth/revoke"
	PathInspect   = "/oauth/introspect"
)

// Public is the address that an installation is reached at: public is the operator's
// setting. "": where the request went.
func Public(public string) string {
	return strings.TrimRight(cmp.Or(os.Getenv(EnvBase), public), "/")
}

// Issuer is the authorization server's address, which is also that of the gateway. public
// is what Public gave.
func Issuer(public string, r *http.Request) string {
	if public != "" {
		return public
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + BasePath
}

// Target is a server as an address names it.
type Target struct{ Workspace, Slug string }

// Resource is the address of a server.
func (t Target) Resource(issuer string) string {
	if t.Workspace != "" {
		return issuer + Below + "/" + url.PathEscape(t.Workspace) + "/" + url.PathEscape(t.Slug) + "/mcp"
	}
	return issuer + Below + "/" + url.PathEscape(t.Slug) + "/mcp"
}

// Metadata is where the description of a server as a protected resource is.
func (t Target) Metadata(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(issuer, u.EscapedPath()) + PathProtected + strings.TrimPrefix(t.Resource(issuer), strings.TrimSuffix(issuer, u.EscapedPath()))
}

// TargetOf reads an escaped path below the address that all servers stand below.
func TargetOf(path string) (t Target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil || plain == "" {
			return t, false
		}
		parts[i] = plain
	}
	switch {
	case len(parts) == 2 && parts[1] == "mcp":
		return Target{Slug: parts[0]}, true
	case len(parts) == 3 && parts[2] == "mcp":
		return Target{parts[0], parts[1]}, true
	}
	return t, false
}

// Named reads the address of a server as a client sends it: byte for byte ours.
func Named(resource, issuer string) (t Target, ok bool) {
	path, ok := strings.CutPrefix(resource, issuer+Below+"/")
	if !ok {
		return t, false
	}
	t, ok = TargetOf(path)
	return t, ok && t.Resource(issuer) == resource
}

// Challenge tells a client that was refused where to sign in: RFC 9728, section 5.1.
func Challenge(h http.Header, public string, r *http.Request, path string, f *fault.Fault) {
	t, ok := TargetOf(path)
	issuer := Issuer(public, r)
	if !ok || strings.ContainsAny(issuer, `"\\`) {
		return
	}
	more := ""
	_, _, missing := identity.Token(r.Header)
	switch {
	case f.Code == fault.InsufficientScope:
		more = `, error="insufficient_scope", scope="` + Read + " " + Write + `"`
	case f.Status() != http.StatusUnauthorized:
		return
	case missing == nil:
		more = `, error="invalid_token", scope="` + All + `"`
	default:
		more = `, scope="` + All + `"`
	}
	h.Set("WWW-Authenticate", `Bearer resource_metadata="`+t.Metadata(issuer)+`"`+more)
}
