package oauthserver

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// find reads a row; ErrUnknown where there is none, or not any more.
func find(ctx context.Context, s store.Store, k store.Key) (store.Item, error) {
	it, ok, err := s.Table(store.Keys).Get(ctx, k, true)
	switch {
	case err != nil:
		return nil, fault.Unavailable(err)
	case !ok:
		return nil, ErrUnknown
	}
	return it, nil
}

// FindCode gives an authorization code; ErrReused with it for one that was exchanged.
func FindCode(ctx context.Context, s store.Store, code string, now time.Time) (*Code, error) {
	if len(code) != secretLength {
		return nil, ErrUnknown
	}
	it, err := find(ctx, s, key(kindCode, code))
	if err != nil {
		return nil, err
	}
	c := &Code{Grant: grantOf(it), Redirect: it.String("redirect"), Challenge: it.String("challenge")}
	switch {
	case it.Int("used") != 0:
		return c, ErrReused
	case now.UnixMilli() >= it.Int("until"):
		return nil, ErrUnknown
	}
	return c, nil
}

// FindGrant gives a grant by its id.
func FindGrant(ctx context.Context, s store.Store, id string, now time.Time) (*Held, error) {
	it, err := find(ctx, s, key(kindGrant, id))
	if err != nil {
		return nil, err
	}
	if now.UnixMilli() >= it.Int("until") {
		return nil, ErrUnknown
	}
	return &Held{Grant: grantOf(it), access: it.String("access"), refresh: it.String("refresh")}, nil
}

// FindRefresh gives the grant of a refresh token; ErrReused with it where the token is not
// the grant's newest.
func FindRefresh(ctx context.Context, s store.Store, token string, now time.Time) (*Held, error) {
	rest, ok := strings.CutPrefix(token, prefixRefresh)
	if !ok || len(rest) != idLength+secretLength {
		return nil, ErrUnknown
	}
	h, err := FindGrant(ctx, s, rest[:idLength], now)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(identity.HashToken(rest[idLength:])), []byte(h.refresh)) != 1 {
		return h, ErrReused
	}
	return h, nil
}

// FindAccess gives the grant of an access token, and when the token ends.
func FindAccess(ctx context.Context, s store.Store, token string, now time.Time) (*Held, time.Time, error) {
	if !IsAccess(token) {
		return nil, time.Time{}, ErrUnknown
	}
	it, err := find(ctx, s, key(kindAccess, token))
	if err != nil {
		return nil, time.Time{}, err
	}
	until := time.UnixMilli(it.Int("until")).UTC()
	if !now.Before(until) {
		return nil, until, ErrUnknown
	}
	h, err := FindGrant(ctx, s, it.String("id"), now)
	return h, until, err
}

// Allowed tells whether the grant's user is still a member of its workspace. When an
// identity provider deactivates a user, that ends the grant for good, even if the user
// comes back.
func (g *Grant) Allowed(ctx context.Context, v *resource.View) (bool, error) {
	_, ok, err := membership.LoadRole(ctx, v, g.Scope, g.User)
	if err != nil || !ok {
		return false, err
	}
	u, ok, err := resource.Load(ctx, v, g.Scope.Organisation(), membership.KindUser, g.User, membership.DecodeUser)
	if err != nil || !ok {
		return false, err
	}
	return g.Since.UnixMilli() > u.StoppedAt, nil
}

// IsAccess tells whether a credential has the form of an access token.
func IsAccess(token string) bool {
	return len(token) == len(prefixAccess)+secretLength && strings.HasPrefix(token, prefixAccess)
}

// Verifier takes access tokens where servers are called, and hands other tokens on.
type Verifier struct {
	Loader *resource.Loader
	Now    func() time.Time
	Next   identity.TokenVerifier
}

var _ identity.TokenVerifier = (*Verifier)(nil)

// Is implements identity.TokenVerifier.
func (v *Verifier) Is(credential string) bool { return IsAccess(credential) || v.Next.Is(credential) }

func invalid() error {
	return fault.New(fault.Unauthorized, "authorization", "The access token is not known, has expired or was revoked. Sign in again")
}

// access is a token as it is remembered.
type access struct {
	grant Grant
	until time.Time
	who   *identity.Principal
}

// Verify implements identity.TokenVerifier. A token opens MCP servers and nothing else of
// the gateway; whether it is for the server that is called is entitled's to decide.
func (v *Verifier) Verify(ctx context.Context, token string, by identity.Asked) (*identity.Principal, error) {
	if !IsAccess(token) {
		return v.Next.Verify(ctx, token, by)
	}
	if by.Request == nil || !below(by.Request) {
		return nil, identity.ErrInvalidKey()
	}
	a, ok, err := resource.LoadCredential(ctx, v.Loader, kindAccess, identity.HashToken(token), decode)
	if err != nil {
		return nil, err
	}
	if !ok || !v.Now().Before(a.until) {
		return nil, invalid()
	}
	view, err := v.Loader.Fresh(ctx, a.grant.Scope.Org)
	if err != nil {
		return nil, err
	}
	if member, err := a.grant.Allowed(ctx, view); err != nil || !member {
		if err == nil {
			err = invalid()
		}
		return nil, err
	}
	return a.who, nil
}

func below(r *http.Request) bool {
	return strings.HasPrefix(r.URL.EscapedPath(), BasePath+Below+"/")
}

func decode(it store.Item) (*access, error) {
	g := grantOf(it)
	until := time.UnixMilli(it.Int("until"))
	return &access{g, until, &identity.Principal{
		KeyID: "grant-" + g.ID, Name: g.ClientName, Type: identity.WorkspaceUser, Scope: g.Scope, WorkspaceSlug: g.WorkspaceSlug, UserID: g.User, EndUser: g.Email,
		Scopes: identity.NewScopeSet(append([]string{"mcp.invoke"}, g.Scopes...)...), Audience: g.Server, Until: until, Status: identity.StatusActive,
	}}, nil
}

// Under tells which scopes a caller has here: those of its access token, separated by
// spaces; of another caller the needed one, or "" if it does not hold it.
func Under(who *identity.Principal, needed string) string {
	if who.Audience == "" {
		if who.Has(needed) {
			return needed
		}
		return ""
	}
	var held []string
	for _, s := range Scopes {
		if who.Has(identity.NormalScope(s)) {
			held = append(held, s)
		}
	}
	return strings.Join(held, " ")
}

// IsOurs tells whether a credential has the form of a token that the gateway gave.
func IsOurs(token string) bool {
	return strings.HasPrefix(token, prefixAccess) || strings.HasPrefix(token, prefixRefresh)
}
