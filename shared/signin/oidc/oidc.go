// Package oidc signs users in with OpenID Connect: discovery, the authorization code flow with
// PKCE, state and nonce, and strict validation of the ID token. It stores nothing: the caller
// must store the Pending until the callback.
package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	coreos "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"

	"gateway/shared/identity/jwk"
)

// Client authentication methods.
const (
	Basic      = "client_secret_basic"
	Post       = "client_secret_post"
	PrivateKey = "private_key_jwt"
)

// Client is the gateway's registration at an identity provider.
type Client struct {
	Issuer, ID, Secret string
	Method             string   // Basic, Post or PrivateKey
	Keys               []byte   // private JWK set, for PrivateKey
	Scopes             []string // in addition to openid, profile and email
	Redirect           string   // redirect URI
	Transport          http.RoundTripper
	Now                func() time.Time
}

// Pending contains what the callback is checked against.
type Pending struct {
	State, Nonce, Verifier string
	// Fresh requires the user to authenticate again; Since is the time of the request.
	Fresh bool
	Since time.Time
}

// User is the signed-in user according to the identity provider.
type User struct {
	Subject, Email      string
	FirstName, LastName string
	SessionID           string
	AuthenticatedAt     time.Time // zero if the provider does not state it
	Refresh             string    // refresh token; may be empty
	EndSession          string    // logout address at the provider; may be empty
}

// Limits of calls to an identity provider.
const (
	callTime    = 10 * time.Second
	maxResponse = 1 << 20
	skew        = time.Minute
)

// algorithms are the asymmetric signature algorithms.
var algorithms = []string{coreos.RS256, coreos.RS384, coreos.RS512, coreos.PS256, coreos.PS384, coreos.PS512, coreos.ES256, coreos.ES384, coreos.ES512, coreos.EdDSA}

// discoveryFields contains discovery fields that the library does not read.
type discoveryFields struct {
	EndSession  string   `json:"end_session_endpoint"`
	NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
	Challenges  []string `json:"code_challenge_methods_supported"`
	Auth        string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Keys        string   `json:"jwks_uri"`
}

// bounded limits the size of responses and does not follow redirects.
type bounded struct{ via http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.via.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxResponse), resp.Body}
	}
	return resp, err
}

func (c *Client) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	return coreos.ClientContext(ctx, c.caller()), cancel
}

func (c *Client) caller() *http.Client {
	return &http.Client{
		Transport: bounded{c.Transport}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// discover fetches the provider's metadata.
func (c *Client) discover(ctx context.Context) (*coreos.Provider, *discoveryFields, error) {
	p, err := coreos.NewProvider(ctx, c.Issuer)
	if err != nil {
		return nil, nil, fmt.Errorf("the provider's description cannot be used: %w", err)
	}
	var d discoveryFields
	if err := p.Claims(&d); err != nil {
		return nil, nil, fmt.Errorf("the provider's description cannot be used: %w", err)
	}
	for name, address := range map[string]string{"authorization_endpoint": d.Auth, "token_endpoint": d.Token, "jwks_uri": d.Keys} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, nil, fmt.Errorf("the provider's description has no usable %s", name)
		}
	}
	if len(d.Challenges) > 0 && !slices.Contains(d.Challenges, "S256") {
		return nil, nil, errors.New("the provider does not support PKCE with S256")
	}
	return p, &d, nil
}

// Check validates the provider's metadata, so that errors are found before the first sign-in.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := c.context(ctx)
	defer cancel()
	_, _, err := c.discover(ctx)
	return err
}

func (c *Client) config(p *coreos.Provider) *oauth2.Config {
	end := p.Endpoint()
	end.AuthStyle = oauth2.AuthStyleInParams
	secret := ""
	switch c.Method {
	case Basic:
		end.AuthStyle, secret = oauth2.AuthStyleInHeader, c.Secret
	case Post:
		secret = c.Secret
	}
	scopes := []string{coreos.ScopeOpenID, "profile", "email"}
	for _, s := range c.Scopes {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return &oauth2.Config{ClientID: c.ID, ClientSecret: secret, Endpoint: end, RedirectURL: c.Redirect, Scopes: scopes}
}

// Begin returns the authorization address.
func (c *Client) Begin(ctx context.Context, w *Pending, hint string) (string, error) {
	ctx, cancel := c.context(ctx)
	defer cancel()
	p, _, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	more := []oauth2.AuthCodeOption{coreos.Nonce(w.Nonce), oauth2.S256ChallengeOption(w.Verifier)}
	if hint != "" {
		more = append(more, oauth2.SetAuthURLParam("login_hint", hint))
	}
	prompt := ""
	if c.Renews() {
		prompt = "consent" // otherwise some providers ignore the scope
	}
	if w.Fresh {
		prompt = strings.TrimSpace("login " + prompt)
		more = append(more, oauth2.SetAuthURLParam("max_age", "0"))
	}
	if prompt != "" {
		more = append(more, oauth2.SetAuthURLParam("prompt", prompt))
	}
	return c.config(p).AuthCodeURL(w.State, more...), nil
}

// Finish validates the parameters of the callback. The error can be shown to users: it contains
// nothing secret.
func (c *Client) Finish(ctx context.Context, w *Pending, q url.Values) (*User, error) {
	ctx, cancel := c.context(ctx)
	defer cancel()
	p, d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	// RFC 9207: the response must come from the requested provider.
	if iss := q.Get("iss"); iss != "" && iss != c.Issuer || iss == "" && d.NamesItself {
		return nil, errors.New("the response is from another provider")
	}
	if e := q.Get("error"); e != "" {
		return nil, fmt.Errorf("the provider rejected the request: %s", plainLine(e))
	}
	code := q.Get("code")
	if code == "" || len(q["code"]) > 1 {
		return nil, errors.New("the response has no code")
	}
	more := []oauth2.AuthCodeOption{oauth2.VerifierOption(w.Verifier)}
	if c.Method == PrivateKey {
		assertion, err := c.assertion(d.Token)
		if err != nil {
			return nil, err
		}
		more = append(more, oauth2.SetAuthURLParam("client_assertion_type", assertionType), oauth2.SetAuthURLParam("client_assertion", assertion))
	}
	token, err := c.config(p).Exchange(ctx, code, more...)
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.ErrorCode != "" {
			return nil, fmt.Errorf("the provider rejected the code: %s", plainLine(refused.ErrorCode))
		}
		return nil, errors.New("the provider returned no tokens for the code")
	}
	return c.person(ctx, p, d, w, token)
}

// claims are those of an ID token and of the userinfo response.
type claims struct {
	Subject    string `json:"sub"`
	Party      string `json:"azp"`
	Email      string `json:"email"`
	Verified   *flag  `json:"email_verified"`
	GivenName  string `json:"given_name"`
	FamilyName string `json:"family_name"`
	AuthTime   int64  `json:"auth_time"`
	SessionID  string `json:"sid"`
}

// flag is a boolean; some providers encode it as a string.
type flag bool

func (f *flag) UnmarshalJSON(raw []byte) error {
	switch strings.Trim(string(raw), `"`) {
	case "true":
		*f = true
	case "false":
		*f = false
	default:
		return errors.New("is neither true nor false")
	}
	return nil
}

// usableKeys removes keys that the library cannot read, since it would reject the whole set.
type usableKeys struct{ via http.RoundTripper }

func (u usableKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.via.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	raw = jwk.Usable(raw)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return resp, nil
}

// verify checks the signature, the audience and the times of an ID token. jwks is the address
// of the provider's keys.
func (c *Client) verify(ctx context.Context, jwks, raw string) (*coreos.IDToken, error) {
	caller := c.caller()
	caller.Transport = usableKeys{caller.Transport}
	keys := coreos.NewRemoteKeySet(coreos.ClientContext(ctx, caller), jwks)
	id, err := coreos.NewVerifier(c.Issuer, keys, &coreos.Config{ClientID: c.ID, SupportedSigningAlgs: algorithms, Now: c.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	var payload json.RawMessage
	if err := id.Claims(&payload); err != nil {
		return nil, err
	}
	if bad := jwk.BadTime(payload); bad != "" {
		return nil, fmt.Errorf("%s must be a number", bad)
	}
	return id, nil
}

func (c *Client) person(ctx context.Context, p *coreos.Provider, d *discoveryFields, w *Pending, token *oauth2.Token) (*User, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok || raw == "" {
		return nil, errors.New("the provider returned no ID token")
	}
	id, err := c.verify(ctx, d.Keys, raw)
	if err != nil {
		return nil, fmt.Errorf("the ID token is not valid: %s", plainLine(err.Error()))
	}
	var cl claims
	if err := id.Claims(&cl); err != nil {
		return nil, errors.New("the claims of the ID token cannot be read")
	}
	now := c.Now()
	switch {
	case w.Nonce == "" || id.Nonce != w.Nonce:
		return nil, errors.New("the nonce of the ID token is not the one that was sent")
	case cl.Party != "" && cl.Party != c.ID, len(id.Audience) > 1 && cl.Party == "":
		return nil, errors.New("the ID token is for another party (azp)")
	case cl.Subject == "":
		return nil, errors.New("the ID token has no subject")
	case id.IssuedAt.After(now.Add(skew)):
		return nil, errors.New("the ID token was issued in the future")
	}
	if id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil {
		return nil, errors.New("the ID token belongs to another access token (at_hash)")
	}
	if w.Fresh && (cl.AuthTime == 0 || time.Unix(cl.AuthTime, 0).Before(w.Since.Add(-skew))) {
		return nil, errors.New("the provider did not authenticate the user again (auth_time)")
	}
	if cl.Email == "" && p.UserInfoEndpoint() != "" {
		if err := c.fetchUserinfo(ctx, p, token, &cl); err != nil {
			return nil, err
		}
	}
	if cl.Email == "" {
		return nil, errors.New("the provider returned no e-mail address")
	}
	if cl.Verified != nil && !bool(*cl.Verified) {
		return nil, errors.New("the e-mail address is not verified by the provider")
	}
	out := &User{Subject: cl.Subject, Email: cl.Email, FirstName: truncate(cl.GivenName), LastName: truncate(cl.FamilyName), SessionID: cl.SessionID, EndSession: d.EndSession}
	if c.Renews() {
		out.Refresh = token.RefreshToken
	}
	if cl.AuthTime > 0 {
		out.AuthenticatedAt = time.Unix(cl.AuthTime, 0).UTC()
	}
	return out, nil
}

// fetchUserinfo requests userinfo if the ID token lacks required claims.
func (c *Client) fetchUserinfo(ctx context.Context, p *coreos.Provider, token *oauth2.Token, cl *claims) error {
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return errors.New("the provider returned no user information")
	}
	var more claims
	if err := info.Claims(&more); err != nil || more.Subject != cl.Subject {
		return errors.New("the provider returned information about another user")
	}
	cl.Email, cl.Verified = more.Email, more.Verified
	if cl.GivenName == "" {
		cl.GivenName, cl.FamilyName = more.GivenName, more.FamilyName
	}
	return nil
}

// CheckKeys rejects anything but a set of private signing keys.
func CheckKeys(raw []byte) error {
	_, err := signingKey(raw)
	return err
}

func signingKey(raw []byte) (*jose.JSONWebKey, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, errors.New("must be a JSON Web Key Set of private keys")
	}
	for i := range set.Keys {
		k := &set.Keys[i]
		if k.Use != "enc" && k.Valid() && !k.IsPublic() && algorithmOf(k) != "" {
			return k, nil
		}
	}
	return nil, errors.New("must have a private RSA, EC or Ed25519 key to sign with")
}

// algorithmOf returns the signature algorithm of a key, or "" for symmetric keys, with which
// others could also sign.
func algorithmOf(k *jose.JSONWebKey) jose.SignatureAlgorithm {
	if k.Algorithm != "" {
		if slices.Contains(algorithms, k.Algorithm) {
			return jose.SignatureAlgorithm(k.Algorithm)
		}
		return ""
	}
	for _, a := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA} {
		if s, err := jose.NewSigner(jose.SigningKey{Algorithm: a, Key: k}, nil); err == nil {
			if _, err := s.Sign([]byte("x")); err == nil {
				return a
			}
		}
	}
	return ""
}

// assertion returns the client assertion for the token endpoint (RFC 7523).
func (c *Client) assertion(endpoint string) (string, error) {
	k, err := signingKey(c.Keys)
	if err != nil {
		return "", errors.New("the configuration has no key to sign with")
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithmOf(k), Key: k}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", errors.New("the configuration's key does not sign")
	}
	now := c.Now()
	return jwt.Signed(s).Claims(jwt.Claims{
		Issuer: c.ID, Subject: c.ID, Audience: jwt.Audience{endpoint}, ID: oauth2.GenerateVerifier(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Minute)),
	}).Serialize()
}

// plainLine converts a provider's text to one short line of plain characters.
func plainLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}

// truncate truncates a name to the stored length, on one line.
func truncate(s string) string {
	r := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")))
	return string(r[:min(len(r), 255)])
}

// LogoutURL returns the address that ends the session at the provider, or "". The provider may
// redirect the browser to back afterwards.
func LogoutURL(end, client, back string) string {
	u, err := url.Parse(end)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	q := u.Query()
	q.Set("client_id", client)
	q.Set("post_logout_redirect_uri", back)
	u.RawQuery = q.Encode()
	return u.String()
}
