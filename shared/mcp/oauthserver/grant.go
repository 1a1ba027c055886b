package oauthserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Scopes of clients. All includes the other two.
const (
	All   = "mcp"
	Read  = "mcp:read"  // everything except tool calls
	Write = "mcp:write" // tool calls
)

// Scopes lists the scopes, the default first.
var Scopes = []string{All, Read, Write}

// ScopesOf returns the supported scopes in a request. It ignores others such as offline_access,
// as RFC 6749, 3.3 allows: the response states the granted scopes. Without a supported scope it
// returns All.
func ScopesOf(text string) (scopes []string) {
	for s := range strings.FieldsSeq(text) {
		if slices.Contains(Scopes, s) && !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	if len(scopes) == 0 {
		scopes = []string{All}
	}
	return scopes
}

// UnknownScope returns the first scope that has the prefix of this package's scopes and is not
// supported, or "".
func UnknownScope(text string) string {
	for s := range strings.FieldsSeq(text) {
		if strings.HasPrefix(s, All) && !slices.Contains(Scopes, s) {
			return s
		}
	}
	return ""
}

// NarrowScopes returns the scopes of a refresh request that narrows the grant's scopes; empty if it
// does not. ok is false if the request exceeds the grant.
func NarrowScopes(of []string, text string) (scopes []string, ok bool) {
	for s := range strings.FieldsSeq(text) {
		if !slices.Contains(Scopes, s) {
			continue
		}
		if !slices.Contains(of, s) && !slices.Contains(of, All) {
			return nil, false
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes, true
}

// Lifetimes of codes and tokens.
const (
	CodeLife    = time.Minute
	AccessLife  = time.Hour
	RefreshLife = 30 * 24 * time.Hour // since the last use
)

// Grant is a user's authorization of a client.
type Grant struct {
	ID            string // random
	Scope         store.Scope
	WorkspaceSlug string
	User, Email   string
	Server        string // id of the server
	Client        string // id
	ClientName    string
	Scopes        []string
	Resource      string // address of the server
	Since         time.Time
}

// Code is an authorization code with the data to verify its exchange.
type Code struct {
	Grant
	Redirect  string
	Challenge string // S256
}

// Tokens are the tokens of a response.
type Tokens struct {
	Access, Refresh string
	Expires         time.Duration // lifetime of the access token
}

// Kinds of rows, keyed by hashes.
const (
	kindCode   = "MCP_CODE"
	kindGrant  = "MCP_GRANT"
	kindAccess = "MCP_ACCESS"
)

// Prefixes of tokens and lengths of their parts.
const (
	prefixAccess  = "ga-"
	prefixRefresh = "gr-"
	secretLength  = 43
	idLength      = 26
)

func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func key(kind, token string) store.Key { return store.Credential(kind, identity.HashToken(token)) }

// Errors of codes and tokens. Clients get the same error for both.
var (
	ErrUnknown = errors.New("oauthserver: unknown or expired code or token")
	ErrReused  = errors.New("oauthserver: the code or token was used before")
)

func (g *Grant) item(until time.Time) store.Item {
	return store.Item{
		"org": g.Scope.Org, "ws": g.Scope.Workspace, "slug": g.WorkspaceSlug, "user": g.User, "email": g.Email, "server": g.Server, "id": g.ID,
		"client": g.Client, "name": g.ClientName, "scopes": strings.Join(g.Scopes, " "), "resource": g.Resource, "since": g.Since.UnixMilli(), "until": until.UnixMilli(),
	}
}

func grantOf(it store.Item) Grant {
	return Grant{
		ID: it.String("id"), Scope: store.Scope{Org: it.String("org"), Workspace: it.String("ws")}, WorkspaceSlug: it.String("slug"), User: it.String("user"), Email: it.String("email"),
		Server: it.String("server"), Client: it.String("client"), ClientName: it.String("name"), Scopes: strings.Fields(it.String("scopes")), Resource: it.String("resource"),
		Since: time.UnixMilli(it.Int("since")).UTC(),
	}
}

// Begin stages a code for a new grant. It sets ID and Since.
func Begin(tx *resource.Tx, c *Code) (code string, err error) {
	code, c.ID, c.Since = secret(), rand.Text(), tx.Now().UTC().Truncate(time.Millisecond)
	until := tx.Now().Add(CodeLife)
	it := c.item(until)
	it["redirect"], it["challenge"] = c.Redirect, c.Challenge
	// The row outlives the code by a day, so that a reuse is detected.
	return code, tx.CreateCredential(store.Row{Key: key(kindCode, code), Item: it, Expires: until.Add(24 * time.Hour)})
}

// Matches reports whether a verifier matches the code's challenge (RFC 7636).
func (c *Code) Matches(verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(c.Challenge)) == 1
}

// Exchange stages the use of a code and the first tokens of its grant. The transaction fails
// with ErrReused if the code was exchanged before.
func (c *Code) Exchange(tx *resource.Tx, code string) (*Tokens, error) {
	tx.Do(store.Action{Table: store.Keys, Update: &store.Update{
		Key: key(kindCode, code), Set: []store.Assign{{Path: store.At("used"), Value: int64(1)}}, If: []store.Cond{store.IfPresent(), store.IfMissing(store.At("used"))},
	}}, ErrReused)
	t, it := c.issue(tx, c.Scopes)
	return t, tx.CreateCredential(store.Row{Key: key(kindGrant, c.ID), Item: it, Expires: tx.Now().Add(RefreshLife)})
}

// issue stages an access token with scopes. it is the grant's row with both tokens.
func (g *Grant) issue(tx *resource.Tx, scopes []string) (t *Tokens, it store.Item) {
	access, fresh := prefixAccess+secret(), secret()
	until := tx.Now().Add(AccessLife)
	row := store.Row{Key: key(kindAccess, access), Item: g.item(until), Expires: until}
	row.Item["scopes"] = strings.Join(scopes, " ")
	tx.Do(store.Action{Table: store.Keys, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}}, nil)
	it = g.item(tx.Now().Add(RefreshLife))
	it["access"], it["refresh"] = identity.HashToken(access), identity.HashToken(fresh)
	return &Tokens{Access: access, Refresh: prefixRefresh + g.ID + fresh, Expires: AccessLife}, it
}

// StoredGrant is a grant with its stored hashes.
type StoredGrant struct {
	Grant
	access, refresh string // hashes
}

// Renew stages new tokens for a grant. scopes are those of the access token; the grant's scopes
// do not change. The transaction fails with ErrReused if the refresh token was used before.
func (h *StoredGrant) Renew(tx *resource.Tx, scopes []string) (*Tokens, error) {
	t, it := h.issue(tx, scopes)
	tx.DeleteCredential(store.Credential(kindAccess, h.access))
	tx.Do(store.Action{Table: store.Keys, Put: &store.Put{
		Row: store.Row{Key: key(kindGrant, h.ID), Item: it, Expires: tx.Now().Add(RefreshLife)}, If: []store.Cond{store.IfEqual(store.At("refresh"), h.refresh)},
	}}, ErrReused)
	return t, nil
}

// End stages the deletion of a grant and its tokens, which takes effect within two seconds.
func (h *StoredGrant) End(tx *resource.Tx) {
	tx.DeleteCredential(store.Credential(kindAccess, h.access))
	tx.DeleteCredential(key(kindGrant, h.ID))
}

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

// Issuer returns the address of the authorization server, which is the gateway's. public is the
// result of cors.Public.
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
