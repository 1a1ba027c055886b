package oauthserver

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// find reads a row. It returns ErrUnknown if there is none.
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

// FindCode returns an authorization code. For a code that was exchanged it also returns
// ErrReused.
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

// FindGrant returns a grant.
func FindGrant(ctx context.Context, s store.Store, id string, now time.Time) (*StoredGrant, error) {
	it, err := find(ctx, s, key(kindGrant, id))
	if err != nil {
		return nil, err
	}
	if now.UnixMilli() >= it.Int("until") {
		return nil, ErrUnknown
	}
	return &StoredGrant{Grant: grantOf(it), access: it.String("access"), refresh: it.String("refresh")}, nil
}

// FindRefresh returns the grant of a refresh token. If the token is not the grant's latest, it
// also returns ErrReused.
func FindRefresh(ctx context.Context, s store.Store, token string, now time.Time) (*StoredGrant, error) {
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

// FindAccess returns the grant of an access token and the token's expiry.
func FindAccess(ctx context.Context, s store.Store, token string, now time.Time) (*StoredGrant, time.Time, error) {
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

// Allowed reports whether the grant's user is still a member of its workspace. Deactivation by
// an identity provider ends the grant even if the user is activated again.
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

// IsAccess reports whether a credential has the form of an access token.
func IsAccess(token string) bool {
	return len(token) == len(prefixAccess)+secretLength && strings.HasPrefix(token, prefixAccess)
}

// Verifier verifies access tokens for MCP servers and forwards other tokens to Next.
type Verifier struct {
	Loader *resource.Loader
	Now    func() time.Time
	Next   identity.TokenVerifier
}

var _ identity.TokenVerifier = (*Verifier)(nil)

// Is implements identity.TokenVerifier.
func (v *Verifier) Is(credential string) bool { return IsAccess(credential) || v.Next.Is(credential) }

func invalid() error {
	return fault.New(fault.Unauthorized, "authorization", "The access token is unknown, has expired or was revoked. Sign in again")
}

// access is the cached form of an access token.
type access struct {
	grant Grant
	until time.Time
	who   *identity.Principal
}

// Verify implements identity.TokenVerifier. Access tokens are valid only for MCP servers;
// package authz checks whether the token is for the called server.
func (v *Verifier) Verify(ctx context.Context, token string, by identity.AuthenticationAttempt) (*identity.Principal, error) {
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
	return strings.HasPrefix(r.URL.EscapedPath(), BasePath+PathPrefix+"/")
}

func decode(it store.Item) (*access, error) {
	g := grantOf(it)
	until := time.UnixMilli(it.Int("until"))
	return &access{g, until, &identity.Principal{
		KeyID: "grant-" + g.ID, Name: g.ClientName, Type: identity.WorkspaceUser, Scope: g.Scope, WorkspaceSlug: g.WorkspaceSlug, UserID: g.User, EndUser: g.Email,
		Scopes: identity.NewScopeSet(append([]string{"mcp.invoke"}, g.Scopes...)...), Audience: g.Server, Until: until, Status: identity.StatusActive,
	}}, nil
}

// HeldScopes returns the scopes of the caller's access token, separated by spaces. For other
// callers it returns needed if the caller has it, otherwise "".
func HeldScopes(who *identity.Principal, needed string) string {
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

// IsGatewayToken reports whether a credential has the form of an access or refresh token of the
// gateway.
func IsGatewayToken(token string) bool {
	return strings.HasPrefix(token, prefixAccess) || strings.HasPrefix(token, prefixRefresh)
}

// BuiltIn is the display name of the gateway's command line client.
const BuiltIn = "The gateway's command line"

// Reserved reports whether a name looks like that of a built-in client: it contains the
// client's name, or is its id.
func Reserved(name string) bool {
	s := skeleton(name)
	return strings.Contains(s, skeleton("gateway's command line")) || strings.TrimPrefix(s, "the") == skeleton("gateway-cli")
}

// skeleton returns the letters and digits of a name in one spelling: without case, accents and
// width, with look-alikes of other scripts replaced by Latin letters.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		r = unicode.ToLower(r)
		if latin, ok := lookalikes()[r]; ok {
			r = latin
		}
		if unicode.IsLetter(r) && !unicode.Is(unicode.Lm, r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// lookalikes maps letters and digits that look like a lowercase Latin letter (Unicode UTS 39).
// It is computed on first use, so that programs without registration do not link it.
var lookalikes = sync.OnceValue(func() map[rune]rune {
	out := map[rune]rune{}
	for latin, others := range map[rune]string{
		'a': "аαɑ", 'c': "сϲⅽ", 'd': "ԁⅾ", 'e': "еєҽ", 'g': "ɡցԍ", 'h': "һհ", 'i': "іιıɩ1lӏⅰ|", 'j': "јϳ", 'k': "кκ", 'm': "мⅿ", 'n': "ոпη",
		'o': "оοօ0", 'p': "рρ", 'q': "ԛ", 's': "ѕʂ", 't': "тτ", 'u': "υսʋ", 'v': "νѵⅴ", 'w': "ԝωɯ", 'x': "хχ", 'y': "уүγʏ", 'z': "ᴢ",
	} {
		for _, r := range others {
			out[r] = latin
		}
	}
	return out
})
