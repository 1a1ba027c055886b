package jwt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// skew is the allowed difference between the clocks of issuer and gateway.
const skew = 5 * time.Second

// maxKnown is the number of cached tokens.
const maxKnown = 50_000

// Options are the dependencies of a Verifier.
type Options struct {
	Loader *resource.Loader
	Client http.RoundTripper // guarded, because customers configure the addresses of key sets
	Now    func() time.Time
	// Settings returns the location of an organization's keys.
	Settings func(id string, o *tenant.Organisation) Settings
	// ConfigKind is the kind of configs. A missing default config is ignored.
	ConfigKind resource.Kind
	// Users finds the platform user of an email address. It may be nil.
	Users Users
	// OnRejected is called for each rejection with a known organization, at most once a minute per
	// token. It may be nil.
	OnRejected func(ctx context.Context, org string, r Rejection)
}

// Users finds the platform users of an organisation.
type Users interface {
	// Member finds a user by email address; id is empty if there is none. member reports
	// whether the user may use the workspace.
	Member(ctx context.Context, v *resource.View, workspace store.Scope, email string) (id string, member bool, err error)
}

// Rejection describes a rejected token for the audit log.
type Rejection struct {
	Masked string // the first and last two characters of the token
	Reason string
	Status int
	By     identity.AuthenticationAttempt
}

// Verifier verifies tokens. It implements identity.TokenVerifier.
type Verifier struct {
	Options
	client http.RoundTripper
	now    func() time.Time

	mu       sync.Mutex
	sets     map[string]*keySet // by organization
	known    map[[sha256.Size]byte]*known
	rejected map[[sha256.Size]byte]time.Time // recently reported tokens
}

// known is a verified token.
type known struct {
	principal *identity.Principal
	email     string
	issued    time.Time         // zero if the token has no iat
	of        [sha256.Size]byte // fingerprint of the settings
}

// New returns a Verifier.
func New(o Options) *Verifier {
	return &Verifier{
		Options: o, client: o.Client, now: o.Now,
		sets: map[string]*keySet{}, known: map[[sha256.Size]byte]*known{}, rejected: map[[sha256.Size]byte]time.Time{},
	}
}

// Is reports whether a credential is a token and not a key.
func (v *Verifier) Is(credential string) bool { return Is(credential) }

// Verify returns the principal of a token: 401 if the token is invalid or its organization
// unknown, 403 if its workspace or user is not available, 503 if keys or stores cannot be read.
func (v *Verifier) Verify(ctx context.Context, token string, by identity.AuthenticationAttempt) (*identity.Principal, error) {
	org, p, err := v.verify(ctx, token)
	if err != nil && org != "" {
		v.reportRejection(ctx, org, token, by, fault.From(err))
	}
	return p, err
}

// verify also returns the organization if it exists.
func (v *Verifier) verify(ctx context.Context, token string) (string, *identity.Principal, error) {
	if len(token) > maxToken {
		return "", nil, invalid("it has more than %d bytes", maxToken)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", nil, invalid("it does not have three parts")
	}
	sum := sha256.Sum256([]byte(token))
	k := v.remembered(sum)
	var organisation string
	var err error
	if k != nil {
		organisation = k.principal.Scope.Org
	} else if organisation, err = organisationOf(parts[1]); err != nil {
		return "", nil, err
	}
	view, at, err := v.organisation(ctx, organisation)
	if view == nil {
		return "", nil, err
	}
	if err == nil && (k == nil || k.of != at.fingerprint()) {
		if k, err = v.admit(ctx, view, at, token, parts); err == nil {
			v.remember(sum, k)
		}
	}
	if err != nil {
		return organisation, nil, err
	}
	if err = v.fresh(at, k); err != nil {
		return organisation, nil, err
	}
	p, err := v.current(ctx, view, k)
	return organisation, p, err
}

// organisation returns the organization's view and the location of its keys. The view is nil if
// there is no such organisation.
func (v *Verifier) organisation(ctx context.Context, id string) (*resource.View, Settings, error) {
	there, err := v.Loader.Exists(ctx, id)
	if err != nil {
		return nil, Settings{}, err
	}
	if !there {
		return nil, Settings{}, invalid("its organization is unknown")
	}
	view, err := v.Loader.Fresh(ctx, id)
	if err != nil {
		return nil, Settings{}, err
	}
	org, ok, err := resource.Load(ctx, view, store.Scope{Org: id}, tenant.KindOrganisation, id, tenant.DecodeOrganisation)
	if err != nil {
		return nil, Settings{}, err
	}
	if !ok {
		return nil, Settings{}, invalid("its organization is unknown")
	}
	at := v.Settings(id, org)
	if !at.On() {
		return view, at, fault.New(fault.NotAllowed, "x-gateway-api-key", "The token's organization accepts no tokens: no key set is configured")
	}
	return view, at, nil
}

// admit checks the signature and the times of a token, and reads its claims.
func (v *Verifier) admit(ctx context.Context, view *resource.View, at Settings, token string, parts []string) (*known, error) {
	h, err := readHeader(parts[0])
	if err != nil {
		return nil, err
	}
	c, err := readClaims(parts[1])
	if err != nil {
		return nil, err
	}
	key, err := v.key(ctx, v.set(c.Organisation, at), at, h)
	if err != nil {
		return nil, err
	}
	parser := golangjwt.NewParser(
		golangjwt.WithValidMethods([]string{"RS256"}), golangjwt.WithExpirationRequired(), golangjwt.WithIssuedAt(),
		golangjwt.WithLeeway(skew), golangjwt.WithStrictDecoding(), golangjwt.WithTimeFunc(v.now),
	)
	if _, err = parser.ParseWithClaims(token, &c.RegisteredClaims, func(*golangjwt.Token) (any, error) { return key, nil }); err != nil {
		return nil, reasonOf(err)
	}
	if len(c.Scopes) == 0 {
		return nil, fault.New(fault.NotAllowed, "x-gateway-api-key", "The claim scope of the token contains no scope that a token may have")
	}
	orgScope := store.Scope{Org: c.Organisation}
	ws, ok, err := resource.Load(ctx, view, orgScope, tenant.KindWorkspace, c.Workspace, tenant.DecodeWorkspace)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errWorkspace()
	}
	if id := c.Defaults.ConfigID; id != "" {
		_, ok, err := resource.Load(ctx, view, ws.Scope, v.ConfigKind, id, func(r resource.Record) (string, error) { return r.Status, nil })
		if err != nil {
			return nil, err
		}
		if !ok {
			c.Defaults.ConfigID = ""
		}
	}
	sum := sha256.Sum256([]byte(token))
	id := "jwt-" + hex.EncodeToString(sum[:16])
	p := &identity.Principal{
		KeyID: id, Name: c.User, Type: identity.SignedToken, Scope: ws.Scope, WorkspaceSlug: ws.Slug,
		EndUser: c.User, Scopes: identity.NewScopeSet(c.Scopes...), Defaults: c.Defaults, Status: identity.StatusActive,
		Until: c.ExpiresAt.Add(skew),
	}
	p.Subject = identity.TokenSubject(ws.Scope, id, c.User, c.Rates, c.Budgets)
	k := &known{principal: p, email: c.Email, of: at.fingerprint()}
	if c.IssuedAt != nil {
		k.issued = c.IssuedAt.Time
	}
	return k, nil
}

// fresh rejects a token that exceeds the organization's session lifetime.
func (v *Verifier) fresh(at Settings, k *known) error {
	switch {
	case at.MaxAge == 0:
		return nil
	case k.issued.IsZero():
		return invalid("the claim iat is missing, and the organization ends sessions after %d seconds", int64(at.MaxAge.Seconds()))
	case v.now().Sub(k.issued) > at.MaxAge+skew:
		return invalid("it was issued more than %d seconds ago, after which the organization ends sessions; sign in again", int64(at.MaxAge.Seconds()))
	}
	return nil
}

// current checks everything that can change during a token's life: the clock, the workspace,
// and the user's membership.
func (v *Verifier) current(ctx context.Context, view *resource.View, k *known) (*identity.Principal, error) {
	p := k.principal
	if !v.now().Before(p.Until) {
		return nil, invalid("it has expired")
	}
	ws, ok, err := resource.Load(ctx, view, store.Scope{Org: p.Scope.Org}, tenant.KindWorkspace, p.Scope.Workspace, tenant.DecodeWorkspace)
	if err != nil {
		return nil, err
	}
	if !ok || ws.Status != tenant.StatusActive {
		return nil, errWorkspace()
	}
	if v.Users == nil || k.email == "" {
		return p, nil
	}
	id, member, err := v.Users.Member(ctx, view, p.Scope, k.email)
	switch {
	case err != nil:
		return nil, err
	case id == "":
		return p, nil
	case !member:
		return nil, fault.New(fault.NotAllowed, "x-gateway-api-key", "The token's user is not a member of its workspace")
	}
	named := *p
	named.UserID = id
	return &named, nil
}

func errWorkspace() error {
	return fault.New(fault.NotAllowed, "x-gateway-api-key", "The token's workspace does not exist or is not active")
}

// reasonOf translates the library's errors; the result quotes nothing of the token.
func reasonOf(err error) error {
	for _, c := range []struct {
		is      error
		message string
	}{
		{golangjwt.ErrTokenSignatureInvalid, "its signature does not match the signing key"},
		{golangjwt.ErrTokenExpired, "it has expired"},
		{golangjwt.ErrTokenRequiredClaimMissing, "the claim exp is missing"},
		{golangjwt.ErrTokenNotValidYet, "it is not valid yet (nbf)"},
		{golangjwt.ErrTokenUsedBeforeIssued, "it was issued in the future (iat)"},
	} {
		if errors.Is(err, c.is) {
			return invalid("%s", c.message)
		}
	}
	return invalid("it cannot be read: exp, nbf and iat must be numbers, and the signature base64url without padding")
}

// set returns the key set of an organization under its current settings.
func (v *Verifier) set(org string, at Settings) *keySet {
	of := at.fingerprint()
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sets[org]
	if s == nil || s.of != of {
		if len(v.sets) >= maxSets {
			clear(v.sets)
		}
		s = &keySet{of: of}
		v.sets[org] = s
	}
	return s
}

func (v *Verifier) remembered(sum [sha256.Size]byte) *known {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[sum]
}

func (v *Verifier) remember(sum [sha256.Size]byte, k *known) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxKnown {
		now := v.now()
		for s, old := range v.known {
			if !now.Before(old.principal.Until) {
				delete(v.known, s)
			}
		}
		if len(v.known) >= maxKnown {
			clear(v.known)
		}
	}
	v.known[sum] = k
}

// reportRejection reports a rejection, at most once a minute per token.
func (v *Verifier) reportRejection(ctx context.Context, org, token string, by identity.AuthenticationAttempt, f *fault.Fault) {
	if v.OnRejected == nil || f.Status() >= 500 {
		return
	}
	const every, most = time.Minute, 1000
	sum, now := sha256.Sum256([]byte(token)), v.now()
	v.mu.Lock()
	last, reported := v.rejected[sum]
	if reported = reported && now.Sub(last) < every; !reported {
		if len(v.rejected) >= most {
			for s, at := range v.rejected {
				if now.Sub(at) >= every {
					delete(v.rejected, s)
				}
			}
		}
		// Limits the reports caused by many different tokens from one sender.
		if reported = len(v.rejected) >= most; !reported {
			v.rejected[sum] = now
		}
	}
	v.mu.Unlock()
	if !reported {
		v.OnRejected(ctx, org, Rejection{Masked: identity.Mask(token), Reason: f.Message, Status: f.Status(), By: by})
	}
}
