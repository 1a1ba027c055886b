package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Principal is the authenticated caller of a request, with everything that admission needs. It
// is immutable and shared between requests.
type Principal struct {
	KeyID         string
	Name          string
	Type          KeyType
	Scope         store.Scope // Workspace is empty for organization keys
	WorkspaceSlug string
	UserID        string
	Rank          Rank   // stored with the key; see Granted
	EndUser       string // the user in a signed token, for logs; it may not be a platform user
	Scopes        ScopeSet
	Defaults      Defaults
	Subject       *ledger.Subject // nil without limits
	Audience      string          // id of the only MCP server that it may use; empty if unrestricted
	Until         time.Time       // zero if it does not expire
	rotated       bool            // Until is the end of a rotation's transition
	shared        bool            // other users may know the secret; see Secret.Shared
	Status        string
}

// As returns a copy of the principal with the type, the user and the workspace's slug that it had
// when it made something.
func (p *Principal) As(t KeyType, user, slug string) *Principal {
	former := *p
	former.Type, former.UserID, former.WorkspaceSlug = t, user, slug
	return &former
}

// Has reports whether the principal has the scope.
func (p *Principal) Has(scope string) bool { return p.Scopes.Has(scope) }

// principalBody is the part of a credential row that is opaque to the store.
type principalBody struct {
	ID            string             `json:"id"`
	Revision      int64              `json:"rev"`
	Name          string             `json:"name"`
	Type          KeyType            `json:"type"`
	UserID        string             `json:"user_id,omitempty"`
	WorkspaceSlug string             `json:"workspace_slug,omitempty"`
	Scopes        []string           `json:"scopes"`
	RateLimits    []ledger.RateLimit `json:"rate_limits,omitempty"`
	UsageLimits   *ledger.UsageLimit `json:"usage_limits,omitempty"`
	Defaults      Defaults           `json:"defaults"`
	Rank          Rank               `json:"rank,omitempty"`

	// For signed tokens of long-running work; see Entrust.
	EndUser string              `json:"end_user,omitempty"`
	Budgets []ledger.UsageLimit `json:"budgets,omitempty"`
}

// decodePrincipal decodes a credential row.
func decodePrincipal(it store.Item) (*Principal, error) {
	var b principalBody
	if err := json.Unmarshal(it.Bytes("body"), &b); err != nil {
		return nil, fmt.Errorf("identity: credential row: %w", err)
	}
	p := &Principal{
		KeyID: b.ID, Name: b.Name, Type: b.Type, UserID: b.UserID, WorkspaceSlug: b.WorkspaceSlug,
		Scope:  store.Scope{Org: it.String("org"), Workspace: it.String("ws")},
		Scopes: NewScopeSet(b.Scopes...), Defaults: b.Defaults, Status: it.String("status"), rotated: it.Bool("rotated"), shared: it.Bool("shared"),
	}
	if ms := it.Int("until"); ms != 0 {
		p.Until = time.UnixMilli(ms)
	}
	p.EndUser, p.Rank = b.EndUser, b.Rank
	p.Subject = SubjectOf(p.Scope, b.ID, b.Name, b.Revision, b.RateLimits, b.UsageLimits)
	if len(b.Budgets) > 0 {
		p.Subject = TokenSubject(p.Scope, b.ID, b.Name, b.RateLimits, b.Budgets)
	}
	return p, nil
}

// SubjectOf returns the ledger subject of a key, or nil without limits.
func SubjectOf(sc store.Scope, id, name string, revision int64, rates []ledger.RateLimit, budget *ledger.UsageLimit) *ledger.Subject {
	if len(rates) == 0 && budget == nil {
		return nil
	}
	s := &ledger.Subject{Scope: sc, Kind: ledger.Key, ID: id, Label: name, Rates: rates, Revision: revision}
	if budget != nil {
		s.Budgets = []ledger.UsageLimit{*budget}
	}
	return s
}

// TokenSubject returns the ledger subject of a signed token, or nil without limits.
func TokenSubject(sc store.Scope, id, name string, rates []ledger.RateLimit, budgets []ledger.UsageLimit) *ledger.Subject {
	if len(rates) == 0 && len(budgets) == 0 {
		return nil
	}
	return &ledger.Subject{Scope: sc, Kind: ledger.Key, ID: id, Label: name, Rates: rates, Budgets: budgets, Revision: 1}
}

// Authenticator authenticates the credential of a request.
type Authenticator struct {
	// Tokens verifies signed tokens. If nil, they are unknown keys.
	Tokens TokenVerifier

	loader *resource.Loader
	now    func() time.Time
}

// TokenVerifier verifies signed tokens.
type TokenVerifier interface {
	// Is reports whether a credential is a signed token and not a key.
	Is(credential string) bool
	// Verify returns the principal of a token. Its errors are those of Authenticate, and 403
	// for a token without an available workspace or available scopes.
	Verify(ctx context.Context, token string, by AuthenticationAttempt) (*Principal, error)
}

// AuthenticationAttempt describes the request with a credential, so that a rejection can be recorded.
type AuthenticationAttempt struct {
	Request *http.Request // nil for work without a request
	ID      string        // the request id in the response; may be empty
}

// NewAuthenticator returns an Authenticator that reads keys through the loader.
func NewAuthenticator(l *resource.Loader, now func() time.Time) *Authenticator {
	return &Authenticator{loader: l, now: now}
}

// ErrInvalidKey returns the fault for unknown, invalid and archived keys, which must be
// indistinguishable.
func ErrInvalidKey() *fault.Fault {
	return fault.New(fault.Unauthorized, "x-gateway-api-key", "Invalid API key. Send a valid key in x-gateway-api-key, or as Authorization: Bearer")
}

// maxToken limits the input of the hash; the gateway's tokens are shorter.
const maxToken = 8 << 10

// Authenticate returns the principal of a raw token: 401 if it is unknown, archived, paused or
// expired.
func (a *Authenticator) Authenticate(ctx context.Context, token string, by AuthenticationAttempt) (*Principal, error) {
	if a.Tokens != nil && a.Tokens.Is(token) {
		return a.Tokens.Verify(ctx, token, by)
	}
	if token == "" || len(token) > maxToken {
		return nil, ErrInvalidKey()
	}
	var room [256]byte // avoids an allocation for most tokens
	sum := sha256.Sum256(append(room[:0], token...))
	var hash [2 * sha256.Size]byte
	hex.Encode(hash[:], sum[:])
	return a.ByHash(ctx, string(hash[:]))
}

// ByHash returns the principal of a token by HashToken of it, for work that outlives its
// request, because the token itself is not stored. Errors are those of Authenticate.
func (a *Authenticator) ByHash(ctx context.Context, hash string) (*Principal, error) {
	p, ok, err := resource.LoadCredential(ctx, a.loader, credentialKind, hash, decodePrincipal)
	if err != nil {
		return nil, err
	}
	if !ok || p.Status == StatusArchived {
		return nil, ErrInvalidKey()
	}
	if p.Status == StatusPaused {
		return nil, fault.New(fault.KeyPaused, "x-gateway-api-key", "This API key is paused. Users who may change the key can resume it")
	}
	if p.Status == StatusExpired || (!p.Until.IsZero() && !a.now().Before(p.Until)) {
		if p.rotated {
			return nil, ErrInvalidKey()
		}
		return nil, fault.New(fault.KeyExpired, "x-gateway-api-key", "This API key has expired")
	}
	return p, nil
}

// Entrust allows ByHash to find a signed token until a time that may be after its expiry: for
// work that began with the token and takes longer. The token itself does not become valid
// longer, because it is never looked up by its hash. Keys do not need this.
func (a *Authenticator) Entrust(ctx context.Context, p *Principal, hash string, until time.Time) error {
	if p.Type != SignedToken {
		return nil
	}
	// An existing row is not written again: each write invalidates the organization's caches.
	if known, err := a.ByHash(ctx, hash); err == nil && !known.Until.Before(until.Truncate(time.Millisecond)) {
		return nil
	}
	b := principalBody{
		ID: p.KeyID, Revision: 1, Name: p.Name, Type: p.Type, UserID: p.UserID, EndUser: p.EndUser, WorkspaceSlug: p.WorkspaceSlug,
		Scopes: p.Scopes.Sorted(), Defaults: p.Defaults,
	}
	if p.Subject != nil {
		b.RateLimits, b.Budgets = p.Subject.Rates, p.Subject.Budgets
	}
	body, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("identity: encode token: %w", err)
	}
	it := store.Item{"org": p.Scope.Org, "ws": p.Scope.Workspace, "id": p.KeyID, "status": StatusActive, "body": body, "until": until.UnixMilli()}
	return a.loader.Store(ctx, p.Scope, store.Row{Key: store.Credential(credentialKind, hash), Item: it, Expires: until})
}

// ExpiredPrincipal returns the principal of an invalid key, so that work that began with it can be
// finished: it has only the given scopes. If the key still has a budget, further costs are
// charged to it, because an expired or rotated key may become valid again.
func (a *Authenticator) ExpiredPrincipal(ctx context.Context, sc store.Scope, keyID string, scopes ...string) (*Principal, error) {
	p := &Principal{KeyID: keyID, Scope: sc, Scopes: NewScopeSet(scopes...)}
	v, err := a.loader.Fresh(ctx, sc.Org)
	if err != nil {
		return nil, err
	}
	subject, ok, err := resource.Load(ctx, v, sc, KindKey, keyID, func(rec resource.Record) (*ledger.Subject, error) {
		var k Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return nil, fmt.Errorf("identity: decode key: %w", err)
		}
		return SubjectOf(sc, rec.ID, rec.Name, rec.Rev, k.RateLimits, k.UsageLimits), nil
	})
	if err != nil {
		return nil, err
	}
	if ok {
		p.Subject = subject
	}
	return p, nil
}

// keyHeaders are the headers in which clients of single providers send their key, in the order
// of evaluation.
var keyHeaders = [...]string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// Token reads the gateway credential of a request: x-gateway-api-key, otherwise Authorization:
// Bearer, otherwise a header of a provider's clients. inAuthorization is set if Authorization
// contains the gateway's key and must not be sent to a provider: some clients send one key in
// both headers. A duplicate header is rejected.
func Token(h http.Header) (token string, inAuthorization bool, err error) {
	if v := h["X-Gateway-Api-Key"]; len(v) > 0 {
		if len(v) > 1 {
			return "", false, fault.Invalid("x-gateway-api-key", "was sent %d times; send it once", len(v))
		}
		token = strings.TrimSpace(v[0])
		return token, holds(h["Authorization"], token), nil
	}
	v := h["Authorization"]
	if len(v) > 1 {
		return "", false, fault.Invalid("authorization", "was sent %d times; send it once", len(v))
	}
	if len(v) == 1 && len(v[0]) > 7 && strings.EqualFold(v[0][:7], "Bearer ") {
		return strings.TrimSpace(v[0][7:]), true, nil
	}
	for _, name := range keyHeaders {
		switch v := h[name]; {
		case len(v) > 1:
			return "", false, fault.Invalid(strings.ToLower(name), "was sent %d times; send it once", len(v))
		case len(v) == 1 && strings.TrimSpace(v[0]) != "":
			token = strings.TrimSpace(v[0])
			return token, holds(h["Authorization"], token), nil
		}
	}
	return "", false, fault.New(fault.Unauthorized, "x-gateway-api-key", "No API key was sent. Send one in x-gateway-api-key, or as Authorization: Bearer")
}

// holds reports whether a value is the token, with or without a scheme.
func holds(values []string, token string) bool {
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) > 7 && strings.EqualFold(v[:7], "Bearer ") {
			v = strings.TrimSpace(v[7:])
		}
		if v == token && token != "" {
			return true
		}
	}
	return false
}

// Granted returns the highest rank of a principal, and whether only its user can know its
// secret. Principals other than keys are personal; signed tokens have at most the rank of an
// organization admin, whichever user they name.
func Granted(ctx context.Context, v *resource.View, p *Principal) (rank Rank, personal bool, err error) {
	switch {
	case p.Rank != "":
		return p.Rank, !p.shared, nil
	case p.Type == SignedToken && p.UserID == "":
		return RankWorkspaceAdmin, true, nil
	case p.Type == SignedToken:
		return RankOrganisationAdmin, true, nil
	case p.Audience != "": // an access token that its user granted to a client of one MCP server
		return RankMember, true, nil
	case p.Type == "":
		return RankOwner, true, nil
	}
	// A key from before ranks were stored. Its record is cached with the organization.
	type granted struct {
		rank     Rank
		personal bool
	}
	g, ok, err := resource.Load(ctx, v, p.Scope, KindKey, p.KeyID, func(rec resource.Record) (granted, error) {
		var k Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return granted{}, fmt.Errorf("identity: decode key: %w", err)
		}
		rank, personal := k.Granted(rec.CreatedBy)
		return granted{rank, personal}, nil
	})
	if err != nil || !ok {
		return "", false, err
	}
	return g.rank, g.personal, nil
}
