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

// EnvBase is the environment variable with the public address of MCP servers, if it differs
// from the gateway's.
const EnvBase = "MCP_GATEWAY_BASE_URL"

// EnvPublic is the environment variable with the gateway's public address.
const EnvPublic = "GATEWAY_PUBLIC_URL"

// BasePath is the path prefix of the gateway's routes.
const BasePath = "/v1"

// PathPrefix is the path prefix of servers, below the gateway's address.
const PathPrefix = "/mcp"

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

// Public returns the configured public address, or "" if the address of the request is used.
// public is the operator's setting.
func Public(public string) string {
	return strings.TrimRight(cmp.Or(os.Getenv(EnvBase), public), "/")
}

// Issuer returns the address of the authorization server, which is the gateway's. public is the
// result of Public.
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

// Target identifies a server in an address.
type Target struct{ Workspace, Slug string }

// Resource returns the address of a server.
func (t Target) Resource(issuer string) string {
	if t.Workspace != "" {
		return issuer + PathPrefix + "/" + url.PathEscape(t.Workspace) + "/" + url.PathEscape(t.Slug) + "/mcp"
	}
	return issuer + PathPrefix + "/" + url.PathEscape(t.Slug) + "/mcp"
}

// Metadata returns the address of a server's protected resource metadata.
func (t Target) Metadata(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(issuer, u.EscapedPath()) + PathProtected + strings.TrimPrefix(t.Resource(issuer), strings.TrimSuffix(issuer, u.EscapedPath()))
}

// TargetOf parses an escaped path below PathPrefix.
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

// ParseResource parses a server address from a client, which must equal Resource byte for byte.
func ParseResource(resource, issuer string) (t Target, ok bool) {
	path, ok := strings.CutPrefix(resource, issuer+PathPrefix+"/")
	if !ok {
		return t, false
	}
	t, ok = TargetOf(path)
	return t, ok && t.Resource(issuer) == resource
}

// Challenge sets the WWW-Authenticate header of a rejected request (RFC 9728, 5.1).
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
