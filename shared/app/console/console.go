// Package console assembles the administration API, of which the web console is a client, from
// the core of an installation and the families that it is given. It finds the callers of that API
// by API key, session or cookie. The console's files are in functions/console.
package console

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/keysession"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// New returns the handler that serves the families.
func New(c *app.Core, audit admin.Recorder, families ...admin.Family) (*admin.Handler, error) {
	h, err := admin.NewHandler(admin.Deps{
		Resources: c.Resources, Sealer: c.Sealer, Authenticate: Authenticate(c), Audit: audit, Permissions: rights(c.Loader), Lenient: lenient(c.Loader), Repeats: func() bool { return !c.AllowDuplicates },
	}, families...)
	if err != nil {
		return nil, err
	}
	c.Administration = h
	return h, nil
}

// Secrets resolves secret mappings for calls that the administration makes itself.
func Secrets(c *app.Core) *provider.Loaded {
	return &provider.Loaded{Secrets: provider.NewSecrets(c.Sealer, provider.NewTokens(c.Transport, c.Now), c.Transport), Loader: c.Loader}
}

// Authenticate finds the caller of an administration request by its API key or its
// session. The key of a user has the role that the user has now, but never a higher rank than
// the key's creator had.
func Authenticate(core *app.Core) admin.Authenticate {
	a, l := core.Auth, core.Loader
	sessions := signedIn{Sessions(core)}
	byKey := byKey(a, l)
	return func(ctx context.Context, r *http.Request, requestID string) (admin.Caller, error) {
		sent, err := readCredential(r, core.PublicURL)
		switch {
		case err != nil:
			return admin.Caller{}, err
		case sent.keySession:
			_, c, err := bySession(ctx, core, sent.token)
			return c, err
		case signin.IsToken(sent.token):
			return sessions.caller(ctx, r, sent.token)
		}
		return byKey(ctx, sent.token, identity.AuthenticationAttempt{Request: r, ID: requestID})
	}
}

func byKey(a *identity.Authenticator, l *resource.Loader) func(context.Context, string, identity.AuthenticationAttempt) (admin.Caller, error) {
	return func(ctx context.Context, token string, by identity.AuthenticationAttempt) (admin.Caller, error) {
		p, err := a.Authenticate(ctx, token, by)
		if err != nil {
			return admin.Caller{}, err
		}
		return CallerOf(ctx, l, p)
	}
}

// CallerOf returns the caller that a principal is now. The role of a user's key is the
// user's present one, but never above the rank of the key's creator. A service key has at most
// the present rights of its sponsor.
func CallerOf(ctx context.Context, l *resource.Loader, p *identity.Principal) (admin.Caller, error) {
	c := admin.Caller{KeyID: p.KeyID, UserID: p.UserID, Type: string(p.Type), Scope: p.Scope, Scopes: p.Scopes, Limits: p.Subject}
	v, err := l.Fresh(ctx, p.Scope.Org)
	if err != nil {
		return admin.Caller{}, err
	}
	granted, personal, err := identity.Granted(ctx, v, p)
	if err != nil {
		return admin.Caller{}, err
	}
	if c.Shared = !personal; p.UserID == "" {
		if p.Type != identity.OrganisationService && p.Type != identity.WorkspaceService {
			return c.As(granted), nil
		}
		now, err := membership.LoadLimited(ctx, v, p.Scope, identity.KindKey, p.KeyID, granted, p.Scopes)
		c.Scopes, c.Sponsor, c.Reduced = now.Scopes, now.Sponsor, now.Reduced
		return c.As(now.Rank), err
	}
	own, ok, err := membership.LoadRank(ctx, v, p.Scope, p.UserID)
	if err != nil {
		return admin.Caller{}, err
	}
	if !ok {
		return admin.Caller{}, identity.ErrInvalidKey()
	}
	return c.As(own.Min(granted)), nil
}

// rights evaluates an organization's settings for the role of a caller.
func rights(l *resource.Loader) admin.PermissionCheck {
	return func(ctx context.Context, c *admin.Caller, scope string) (allowed, decided bool, err error) {
		v, err := l.Fresh(ctx, c.Scope.Org)
		if err != nil {
			return false, false, err
		}
		org, err := tenant.LoadSettings(ctx, v, c.Scope)
		if err != nil {
			return false, false, err
		}
		allowed, decided = org.Settings.Rule(string(c.Rank), scope)
		return allowed, decided, nil
	}
}

// lenient reports whether the settings of an organization ignore unknown fields.
func lenient(l *resource.Loader) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, org string) (bool, error) {
		v, err := l.Fresh(ctx, org)
		if err != nil {
			return false, err
		}
		of, err := tenant.LoadSettings(ctx, v, store.Scope{Org: org})
		if err != nil {
			return false, err
		}
		return of.Settings.Lenient, nil
	}
}

// SessionType is the type of callers that have signed in.
const SessionType = "session"

// sent is the credential of a request.
type sent struct {
	token      string
	keySession bool // the token is that of a session by key, which counts as a cookie alone
}

// readCredential returns the caller's credential: from a header, or else from a browser's
// cookie. A write with a cookie must come from a page of the gateway and needs the write
// token as well, which no other site can know. public is the address of the installation.
func readCredential(r *http.Request, public string) (sent, error) {
	token, _, err := identity.Token(r.Header)
	if err == nil {
		return sent{token: token}, nil
	}
	if !fault.Is(err, fault.Unauthorized) {
		return sent{}, err
	}
	cookie, byKey := browser.KeyToken(r, public)
	if !byKey {
		var ok bool
		if cookie, ok = browser.Token(r); !ok {
			return sent{}, err
		}
	}
	if safe := r.Method == http.MethodGet || r.Method == http.MethodHead; !safe && !mayWrite(r, public, cookie, byKey) {
		return sent{}, fault.New(fault.NotAllowed, strings.ToLower(browser.WriteHeader), "Calls with the session cookie that change something must send "+browser.WriteHeader+", as returned by GET /session and GET /auth/self, and must come from the gateway's own pages")
	}
	return sent{token: cookie, keySession: byKey}, nil
}

// mayWrite reports whether a request with a cookie may change something. A session by key
// is used by pages alone, which always send their origin.
func mayWrite(r *http.Request, public, cookie string, byKey bool) bool {
	if byKey && len(r.Header.Values("Origin")) == 0 {
		return false
	}
	written := r.Header.Get(browser.WriteHeader)
	return browser.SameOrigin(r, public) && subtle.ConstantTimeCompare([]byte(written), []byte(signin.WriteToken(cookie))) == 1
}

// credential returns a credential that is no session by key.
func credential(r *http.Request, public string) (string, error) {
	got, err := readCredential(r, public)
	if err == nil && got.keySession {
		err = fault.New(fault.Unauthorized, "", "This route accepts signed-in users and JSON Web Tokens, not API keys")
	}
	return got.token, err
}

// bySession returns a session by key and its caller, which is the key's.
func bySession(ctx context.Context, core *app.Core, token string) (*keysession.Session, admin.Caller, error) {
	s, p, err := keysession.Find(ctx, core.Loader, core.Auth, core.Resources.Now(), token)
	if err != nil {
		return nil, admin.Caller{}, err
	}
	c, err := CallerOf(ctx, core.Loader, p)
	if fault.Is(err, fault.Unauthorized) {
		err = keysession.Ended()
	}
	return s, c, err
}

// Browser finds the caller of a route about the session of a browser, by its cookie: a
// session by key, or one of a user.
func Browser(core *app.Core) admin.Authenticate {
	sessions := signedIn{Sessions(core)}
	return func(ctx context.Context, r *http.Request, _ string) (admin.Caller, error) {
		without := *r // headers are no session
		without.Header = r.Header.Clone()
		for _, name := range []string{"X-Gateway-Api-Key", "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
			without.Header.Del(name)
		}
		got, err := readCredential(&without, core.PublicURL)
		if err != nil {
			return admin.Caller{}, err
		}
		if got.keySession {
			_, c, err := bySession(ctx, core, got.token)
			c.Scopes = itself
			return c, err
		}
		of, u, _, err := sessions.find(ctx, got.token)
		if err != nil {
			return admin.Caller{}, err
		}
		return admin.Caller{UserID: of.User, Type: SessionType, Scope: store.Scope{Org: of.Org}, Role: admin.Role(u.Role), Scopes: itself, Since: of.Authenticated}, nil
	}
}

// signedIn makes callers of people with sessions.
type signedIn struct {
	sessions *signin.Sessions
}

// Sessions are those of an installation, as this process knows them.
func Sessions(c *app.Core) *signin.Sessions {
	s := signin.New(c.Loader, c.Resources)
	s.Renewal = c.Renewal
	return s
}

// caller is the user of a session, in the place where the request acts, with the rights
// that the user has there now.
func (s signedIn) caller(ctx context.Context, r *http.Request, token string) (admin.Caller, error) {
	of, u, v, err := s.find(ctx, token)
	if err != nil {
		return admin.Caller{}, err
	}
	named := namedByPath(ctx, v, of.Org, r)
	if !u.IsOrganisationAdmin() && !u.MemberOf(named) {
		named = "" // the route reports it as missing, like a workspace that does not exist
	}
	return s.in(ctx, v, of, u, named)
}

// find gives a session and its user. It fails if the user has left.
func (s signedIn) find(ctx context.Context, token string) (*signin.Session, *membership.User, *resource.View, error) {
	of, v, err := s.sessions.Find(ctx, token)
	if err != nil {
		return nil, nil, nil, err
	}
	u, ok, err := resource.Load(ctx, v, store.Scope{Org: of.Org}, membership.KindUser, of.User, membership.DecodeUser)
	if err == nil && (!ok || u.Leaving) {
		err = signin.Ended()
	}
	if err == nil {
		err = s.sessions.Use(ctx, of)
	}
	return of, u, v, err
}

// in is the caller in a workspace; "": no workspace was chosen.
func (s signedIn) in(ctx context.Context, v *resource.View, of *signin.Session, u *membership.User, workspace string) (admin.Caller, error) {
	c := admin.Caller{UserID: of.User, Type: SessionType, Scope: store.Scope{Org: of.Org}, Since: of.Authenticated}
	if u.IsOrganisationAdmin() {
		c.Scopes = membership.AllPermissions
		return c.As(membership.OrganisationRank(u.Role)), nil
	}
	if len(u.Workspaces) == 0 {
		return admin.Caller{}, admin.Denied()
	}
	c.In = func(ctx context.Context, workspace string) (admin.Caller, error) {
		return s.in(ctx, v, of, u, workspace)
	}
	switch {
	case workspace != "" && !u.MemberOf(workspace):
		return admin.Caller{}, admin.Denied()
	case workspace == "" && len(u.Workspaces) > 1:
		// No workspace is chosen yet: scopes are checked again when one is, and until then the
		// role is the lowest.
		c.Scope.Workspace, c.Workspaces = u.Workspaces[0], u.Workspaces
		c.Scopes = anywhere
		return c.As(identity.RankMember), nil
	case workspace == "":
		workspace = u.Workspaces[0]
	}
	c.Scope.Workspace = workspace
	rank, ok, err := membership.LoadRank(ctx, v, c.Scope, of.User)
	if err != nil {
		return admin.Caller{}, err
	}
	if !ok {
		return admin.Caller{}, admin.Denied()
	}
	c.Scopes = identity.NewScopeSet(membership.ScopesOf(rank.Role())...)
	return c.As(rank), nil
}

// anywhere are the scopes of a user before a workspace is chosen.
var anywhere = identity.NewScopeSet(membership.ScopesOf(membership.Admin)...)

// namedByPath is the id of the workspace that the path of a request names, by its slug or
// its id.
func namedByPath(ctx context.Context, v *resource.View, org string, r *http.Request) string {
	segments := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	n := slices.Index(segments, "workspaces")
	if n < 0 || n+1 >= len(segments) || n > 2 || slices.Contains(segments[:n], "scim") {
		return ""
	}
	name, err := url.PathUnescape(segments[n+1])
	if err != nil {
		return ""
	}
	id, ok, err := resource.Load(ctx, v, store.Scope{Org: org}, tenant.KindWorkspace, name, func(rec resource.Record) (string, error) { return rec.ID, nil })
	if err != nil || !ok {
		return ""
	}
	return id
}

// Self finds the caller of a route about the caller itself: people with sessions, in their
// organization, and signed tokens. API keys are rejected.
func Self(core *app.Core) admin.Authenticate {
	sessions := signedIn{Sessions(core)}
	return func(ctx context.Context, r *http.Request, requestID string) (admin.Caller, error) {
		token, err := credential(r, core.PublicURL)
		if err != nil {
			return admin.Caller{}, err
		}
		if signin.IsToken(token) {
			of, u, _, err := sessions.find(ctx, token)
			if err != nil {
				return admin.Caller{}, err
			}
			return admin.Caller{UserID: of.User, Type: SessionType, Scope: store.Scope{Org: of.Org}, Role: admin.Role(u.Role), Scopes: itself, Since: of.Authenticated}, nil
		}
		if core.Auth.Tokens == nil || !core.Auth.Tokens.Is(token) {
			return admin.Caller{}, fault.New(fault.Unauthorized, "", "This route accepts signed-in users and JSON Web Tokens, not API keys")
		}
		p, err := core.Auth.Authenticate(ctx, token, identity.AuthenticationAttempt{Request: r, ID: requestID})
		if err != nil {
			return admin.Caller{}, err
		}
		return admin.Caller{KeyID: p.KeyID, UserID: p.UserID, Type: string(p.Type), Scope: p.Scope, Scopes: itself}, nil
	}
}

// itself is the scope of routes about the caller, which cannot be granted.
var itself = identity.NewScopeSet("auth.self")

// SessionOf returns the session, and its token, of an authenticated request; nil for signed
// tokens.
func SessionOf(core *app.Core, sessions *signin.Sessions) func(ctx context.Context, r *http.Request) (*signin.Session, string, error) {
	return func(ctx context.Context, r *http.Request) (*signin.Session, string, error) {
		token, err := credential(r, core.PublicURL)
		if err != nil || !signin.IsToken(token) {
			return nil, "", err
		}
		of, _, err := sessions.Find(ctx, token)
		return of, token, err
	}
}
