package oauthclient

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
)

// PendingFor is the time limit of a sign-in.
const PendingFor = 10 * time.Minute

// kindPending is the kind of rows of pending sign-ins, keyed by the hash of their state.
const kindPending = "MCP_CONNECT"

// Flow is a pending sign-in. It can be taken once.
type Flow struct {
	Link      Link      `json:"-"`
	Workspace string    `json:"w"`
	Server    string    `json:"s"`
	User      string    `json:"u"`
	Target    string    `json:"url"` // address of the server
	Authority Authority `json:"a"`
	Client    Client    `json:"c"`
	Callback  string    `json:"r"`
	Verifier  string    `json:"v"` // PKCE code verifier (RFC 7636)
	Binding   string    `json:"b"` // hash of the browser's cookie
	Until     int64     `json:"x"` // Unix milliseconds
	Requested []string  `json:"k,omitempty"`
}

func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Begin stores the sign-in and returns the authorization address and the browser's binding
// value.
func (f *Flow) Begin(ctx context.Context, keys store.Table, s seal.Sealer, c *mcp.Configuration, now time.Time) (to, binding string, err error) {
	state := secret()
	binding = secret()
	f.Workspace, f.Server, f.User = f.Link.Workspace, f.Link.Server, f.Link.User
	f.Verifier, f.Binding, f.Until = secret(), identity.HashToken(binding), now.Add(PendingFor).UnixMilli()
	f.Requested = f.scopes(c)
	plain, err := json.Marshal(f)
	if err != nil {
		return "", "", err
	}
	hash := identity.HashToken(state)
	closed, err := s.Seal(ctx, sealed(f.Link.Org, hash, "pending"), plain)
	if err != nil {
		return "", "", fault.Unavailable(err)
	}
	row := store.Row{Key: store.Credential(kindPending, hash), Expires: now.Add(PendingFor), Item: store.Item{"org": f.Link.Org, "flow": closed}}
	if err := keys.Put(ctx, row, store.IfAbsent()); err != nil {
		return "", "", fault.Unavailable(err)
	}
	to, err = f.address(c, state)
	return to, binding, err
}

// address returns the authorization address. Parameters of the integration cannot replace those
// of the gateway.
func (f *Flow) address(c *mcp.Configuration, state string) (string, error) {
	u, err := url.Parse(f.Authority.Authorization)
	if err != nil {
		return "", upstream.Fail(0, "the authorization server's address is invalid")
	}
	sum := sha256.Sum256([]byte(f.Verifier))
	more := map[string]string(nil)
	switch {
	case c.External != nil:
		more = c.External.AuthorizationParams
	case c.OAuth != nil:
		more = c.OAuth.AuthorizationParams
	}
	q := u.Query()
	for name, v := range more {
		q.Set(name, v)
	}
	for name, v := range map[string]string{
		"response_type": "code", "client_id": f.Client.ID, "redirect_uri": f.Callback, "state": state, "scope": strings.Join(f.scopes(c), " "), "resource": f.Authority.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		if q.Del(name); v != "" {
			q.Set(name, v)
		}
	}
	u.RawQuery, u.Fragment = q.Encode(), ""
	return u.String(), nil
}

// scopes returns the requested scopes: those of the integration or else of the server, plus
// those that the server required when it rejected a call.
func (f *Flow) scopes(c *mcp.Configuration) []string {
	of := f.Authority.Scopes
	switch {
	case c.External != nil:
		of = strings.Fields(c.External.Scope)
	case c.OAuth != nil && c.OAuth.Scope != "":
		of = strings.Fields(c.OAuth.Scope)
	}
	return Union(of, f.Link.Scopes)
}

// errNoFlow returns the fault for an unknown or finished sign-in.
func errNoFlow() error {
	return fault.Invalid("state", "does not belong to a pending sign-in in this browser: call the MCP server again")
}

// ConsumeState returns the sign-in of a state and ends it. binding is the value in the browser's
// cookie.
func ConsumeState(ctx context.Context, keys store.Table, s seal.Sealer, state, binding string, now time.Time) (*Flow, error) {
	if len(state) != len(secret()) {
		return nil, errNoFlow()
	}
	hash := identity.HashToken(state)
	key := store.Credential(kindPending, hash)
	it, ok, err := keys.Get(ctx, key, true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok {
		return nil, errNoFlow()
	}
	plain, err := s.Open(ctx, sealed(it.String("org"), hash, "pending"), it.Bytes("flow"))
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	f := new(Flow)
	if err := json.Unmarshal(plain, f); err != nil {
		return nil, err
	}
	if now.UnixMilli() >= f.Until || subtle.ConstantTimeCompare([]byte(identity.HashToken(binding)), []byte(f.Binding)) != 1 {
		return nil, errNoFlow() // another browser; the one that began the sign-in can still finish it
	}
	if err := keys.Delete(ctx, key, store.IfPresent()); err != nil {
		if _, taken := store.AsCondition(err); taken {
			return nil, errNoFlow()
		}
		return nil, fault.Unavailable(err)
	}
	f.Link = Link{Org: it.String("org"), Workspace: f.Workspace, Server: f.Server, User: f.User}
	return f, nil
}

// ErrUnknownClient is returned when the authorization server no longer recognizes the gateway,
// which must register again.
var ErrUnknownClient = upstream.Fail(http.StatusUnauthorized, "the authorization server no longer recognizes the gateway: try again")

// Finish checks the authorization response and exchanges its code.
func (f *Flow) Finish(ctx context.Context, via http.RoundTripper, answer url.Values, now time.Time) (*StoredTokens, error) {
	for name, values := range answer {
		if len(values) > 1 {
			return nil, fault.Invalid(name, "was sent %d times; send it once", len(values))
		}
	}
	a := &f.Authority
	if iss := answer.Get("iss"); a.NamesItself && iss == "" || iss != "" && a.Issuer != "" && iss != a.Issuer { // RFC 9207, 2.4: simple string comparison
		return nil, upstream.Fail(0, "the response is from another authorization server")
	}
	if code := answer.Get("error"); code != "" {
		return nil, upstream.Fail(0, "the authorization server returned the error %s", shown(code))
	}
	if answer.Get("code") == "" {
		return nil, fault.Invalid("code", "is required")
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {answer.Get("code")}, "redirect_uri": {f.Callback}, "code_verifier": {f.Verifier}}
	held := &StoredTokens{Target: f.Target, Token: a.Token, Resource: a.Resource, Client: f.Client, Requested: f.Requested}
	err := held.request(ctx, via, form, now)
	if held.rejected == "invalid_client" || held.rejected == "unauthorized_client" {
		return nil, ErrUnknownClient
	}
	return held, err
}

// StoredTokens are the tokens of a user at a server, with the data to renew them.
type StoredTokens struct {
	Target    string   `json:"url"` // the server's address; the tokens are sent only there
	Token     string   `json:"token_endpoint"`
	Resource  string   `json:"resource,omitempty"`
	Client    Client   `json:"client"`
	Access    string   `json:"access_token"`
	Refresh   string   `json:"refresh_token,omitempty"`
	Expires   int64    `json:"expires"`         // Unix seconds; zero if the server did not state it
	Requested []string `json:"asked,omitempty"` // scopes that were requested
	rejected  string
}

// renewBefore is how long before its expiry an access token is replaced.
const renewBefore = 30 * time.Second

// request replaces the tokens with those from the token endpoint.
func (h *StoredTokens) request(ctx context.Context, via http.RoundTripper, form url.Values, now time.Time) error {
	if h.Resource != "" {
		form.Set("resource", h.Resource)
	}
	by := h.Client.authenticate(form)
	got, err := requestToken(ctx, via, h.Token, form, by)
	if h.rejected = got.Error; err != nil {
		return err
	}
	if h.Access, h.Expires = got.Access, 0; got.Expires > 0 {
		h.Expires = now.Add(got.Expires).Unix()
	}
	if got.Refresh != "" {
		h.Refresh = got.Refresh
	}
	return nil
}

// refresh requests new tokens with the refresh token. If the authorization server rotates refresh tokens, the old one
// becomes invalid.
func (h *StoredTokens) refresh(ctx context.Context, via http.RoundTripper, now time.Time) error {
	return h.request(ctx, via, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {h.Refresh}}, now)
}

// valid reports whether the access token can be sent.
func (h *StoredTokens) valid(now time.Time) bool {
	return h.Expires == 0 || now.Add(renewBefore).Unix() < h.Expires
}

// Paths below the gateway's address.
const (
	PathConnect  = "/oauth/upstream-connect"
	PathCallback = "/oauth/upstream-callback"
	PathDocument = "/oauth/upstream-client.json"
)

// linkLife is the lifetime of a link.
const linkLife = 15 * time.Minute

// Link asks one user to sign in at one server.
type Link struct {
	Org       string `json:"-"`
	Workspace string `json:"w"`
	Server    string `json:"s"` // id
	User      string `json:"u"`
	Expires   int64  `json:"x"` // Unix seconds
	// Scopes are requested in addition to those that the server names.
	Scopes []string `json:"c,omitempty"`
}

// Scope returns the scope of the server.
func (l *Link) Scope() store.Scope { return store.Scope{Org: l.Org, Workspace: l.Workspace} }

// sealed binds a sealed value to its purpose and place.
func sealed(org, place, what string) seal.Binding {
	return seal.Binding{Org: org, Table: "mcp", PK: place, SK: what}
}

const maxLink = 4096

// Address returns the sealed sign-in address. It cannot be forged.
func (l *Link) Address(ctx context.Context, s seal.Sealer, issuer string, now time.Time) (string, error) {
	l.Expires = now.Add(linkLife).Unix()
	plain, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	closed, err := s.Seal(ctx, sealed(l.Org, "", "connect"), plain)
	if err != nil {
		return "", fault.Unavailable(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(l.Org)) + "." + base64.RawURLEncoding.EncodeToString(closed)
	return issuer + PathConnect + "?" + url.Values{"link": {text}}.Encode(), nil
}

// errNoLink returns the fault for an invalid or expired link.
func errNoLink() error {
	return fault.Invalid("link", "is invalid or has expired: call the MCP server again for a new one")
}

// ReadLink opens a link.
func ReadLink(ctx context.Context, s seal.Sealer, text string, now time.Time) (*Link, error) {
	of, rest, ok := strings.Cut(text, ".")
	org, bad := base64.RawURLEncoding.DecodeString(of)
	closed, worse := base64.RawURLEncoding.DecodeString(rest)
	if !ok || len(text) > maxLink || bad != nil || worse != nil || len(org) == 0 || len(org) > 64 || len(closed) == 0 {
		return nil, errNoLink()
	}
	plain, err := s.Open(ctx, sealed(string(org), "", "connect"), closed)
	l := &Link{Org: string(org)}
	if err != nil || json.Unmarshal(plain, l) != nil || now.Unix() >= l.Expires {
		return nil, errNoLink()
	}
	return l, nil
}
