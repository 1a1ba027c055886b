// Package browsersession is the session of a browser, which begins with an API key or an
// invitation. Package auth adds it to the routes for signing in; without that package it is the
// only way to sign in.
package browsersession

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/acceptance"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/attempts"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/keysession"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

const path = "/session"

// Name is the name of the family.
const Name = "auth"

// Deps are the dependencies of the package.
type Deps struct {
	// Browser authenticates callers by their cookies, SessionOf returns the session of a user.
	Browser   admin.Authenticate
	SessionOf func(context.Context, *http.Request) (*signin.Session, string, error)
	// Keys authenticates API keys; CallerOf returns the current permissions of a key.
	Keys      *identity.Authenticator
	CallerOf  func(context.Context, *identity.Principal) (admin.Caller, error)
	Loader    *resource.Loader
	Store     store.Store
	PublicURL string // public address of the gateway; empty for the address of the request
}

// NewDeps returns the dependencies in an installation.
func NewDeps(c *app.Core) Deps {
	callerOf := func(ctx context.Context, p *identity.Principal) (admin.Caller, error) {
		return console.CallerOf(ctx, c.Loader, p)
	}
	return Deps{Browser: console.Browser(c), SessionOf: console.SessionOf(c, console.Sessions(c)), Keys: c.Auth, CallerOf: callerOf, Loader: c.Loader, Store: c.Resources.Store(), PublicURL: c.PublicURL}
}

// New returns the family of a gateway without package auth.
func New(d Deps) admin.Family {
	return admin.Family{Name: Name, Doc: "Sessions of browsers.", Routes: Routes(d)}
}

// Routes returns the routes.
func Routes(d Deps) []admin.Route {
	return (&family{d, &attempts.Counter{Store: d.Store}}).routes()
}

type family struct {
	Deps
	attempts *attempts.Counter
}

var ofWrongKeys = attempts.Limit{Name: "sign-ins with a wrong key", Most: 20, Take: 1, Each: time.Minute}

// browserSession describes the caller for a console.
type browserSession struct {
	Object         string         `json:"object"`
	Type           string         `json:"type"` // none, session, or the type of the API key
	OrganisationID *string        `json:"organisation_id"`
	WorkspaceID    *string        `json:"workspace_id"` // null: the entire organization, or no workspace is selected yet
	UserID         *string        `json:"user_id"`
	APIKeyID       *string        `json:"api_key_id"`
	Role           *string        `json:"role"`
	Scopes         []string       `json:"scopes"`
	BySettings     []string       `json:"scopes_by_settings"`
	Workspaces     []room         `json:"workspaces"`
	WriteToken     *string        `json:"csrf_token"`
	ExpiresAt      *admin.Instant `json:"expires_at"`
	Keys           []gained       `json:"api_keys,omitempty"`
}

type room struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
	Name string `json:"name"`
}

// gained is a key that an invitation included; it is shown once.
type gained struct {
	ID        string `json:"id"`
	Workspace string `json:"workspace_id"`
	Key       string `json:"key"`
}

// browserRoutes begin, show and end the session of a browser.
func (f *family) routes() []admin.Route {
	text := func(name string, most int64, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	return []admin.Route{
		{Method: "POST", Path: path, Name: "createSession", Public: true, Action: audit.Login, Resource: "sessions", ResponseOf: admin.SchemaOf[browserSession], Errors: []int{401, 403, 404, 409, 429}, Do: f.beginByKey,
			Doc: "Sign in a browser with an API key or an invitation. The session is an HttpOnly cookie with the permissions of the key; it ends with the key, after 12 hours, or according to the settings. Changes require the header X-Gateway-Csrf with csrf_token, and the gateway's origin.",
			Body: []admin.Field{
				text("api_key", 8192, "The API key."), text("invitation", 256, "The token of an invitation that includes an API key. It is accepted, and its keys are shown once."),
				text("first_name", 255, "Of the invited user."), text("last_name", 255, "Of the invited user."),
			}},
		{Method: "GET", Path: path, Name: "getSession", Public: true, OptionalAuth: true, ResponseOf: admin.SchemaOf[browserSession], Errors: []int{403}, Do: f.showBrowser,
			Doc: "Read the caller's identity and permissions. type is none if no user is signed in.", Query: []admin.Field{text("workspace_id", 255, "Workspace to act in, for members of several workspaces.")}},
		{Method: "DELETE", Path: path, Name: "deleteSession", Scopes: []string{"auth.self"}, Level: admin.Shared, Authenticate: f.Browser, Action: audit.Logout, Resource: "sessions", ResponseOf: admin.SchemaOf[LoggedOut], Do: f.endBrowser,
			Doc: "End the session of the browser's cookie. logout_url, if there is one, ends the session at the identity provider as well."},
	}
}

// beginByKey signs in a browser with a key, which may come with an invitation.
func (f *family) beginByKey(c *admin.Call) (any, error) {
	if !browser.SameOrigin(c.Request, f.PublicURL) {
		return nil, fault.New(fault.NotAllowed, "origin", "Browsers can only sign in on the gateway's own pages. Open the console")
	}
	from := attempts.From(c.ClientIP())
	if err := f.attempts.Exhausted(c.Context, ofWrongKeys, from, c.Now); err != nil {
		return nil, err
	}
	key, invitation := c.Body.Text("api_key"), c.Body.Text("invitation")
	if (key == "") == (invitation == "") {
		return nil, fault.Invalid("api_key", "is required unless invitation is sent")
	}
	var keys []gained
	var err error
	if invitation != "" {
		if keys, err = acceptWithKey(f, c, invitation); err == nil {
			key = keys[0].Key
		}
	}
	var out *browserSession
	var cookie *http.Cookie
	if err == nil {
		out, cookie, err = openByKey(f, c, key)
	}
	if fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.KeyExpired) || fault.Is(err, fault.KeyPaused) || fault.Is(err, fault.NotFound) {
		if limit := f.attempts.Count(c.Context, ofWrongKeys, from, c.Now); limit != nil {
			return nil, limit
		}
	}
	if err != nil {
		return nil, err
	}
	out.Keys = keys
	header := http.Header{"Set-Cookie": {cookie.String(), browser.Clear().String()}, "Cache-Control": {"no-store"}}
	return admin.Response{JSON: out, Header: header}, nil
}

// openByKey begins a session of an API key.
func openByKey(f *family, c *admin.Call, key string) (*browserSession, *http.Cookie, error) {
	p, err := f.Keys.Authenticate(c.Context, key, identity.AuthenticationAttempt{Request: c.Request, ID: c.RequestID})
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains([]identity.KeyType{identity.OrganisationService, identity.WorkspaceService, identity.WorkspaceUser}, p.Type) || p.Audience != "" {
		return nil, nil, fault.Invalid("api_key", "must be an API key; a token cannot start a session")
	}
	caller, err := f.CallerOf(c.Context, p)
	if err != nil {
		return nil, nil, err
	}
	c.Caller, c.Scope = caller, caller.Scope.Organisation()
	c.SetResource(p.KeyID)
	var token string
	var s *keysession.Session
	err = c.Change(func(tx *resource.Tx) error {
		token, s, err = keysession.Begin(tx, p, key)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	out, err := describe(c)
	if err != nil {
		return nil, nil, err
	}
	write := signin.WriteToken(token)
	until := admin.Instant(s.Until)
	out.WriteToken, out.ExpiresAt = &write, &until
	return out, browser.SetKey(c.Request, f.PublicURL, token, s.Until), nil
}

// acceptWithKey accepts an invitation that gives its user a key. Others are rejected before
// they are accepted.
func acceptWithKey(f *family, c *admin.Call, token string) ([]gained, error) {
	org, id, err := membership.OfToken(c.Context, c.Resources.Store(), token)
	if err != nil {
		return nil, err
	}
	rec, ok, err := c.Resources.Get(c.Context, org, membership.KindInvite, id)
	if err != nil {
		return nil, err
	}
	if ok {
		form, err := membership.DecodeInvite(rec)
		if err != nil {
			return nil, err
		}
		if form.Keys == nil || len(form.Workspaces) == 0 {
			return nil, fault.New(fault.Conflict, "invitation", "includes no API key: accept it with its link, then sign in with single sign-on or with a key from an admin")
		}
		signsIn, err := acceptance.CanSignIn(c, org, form.Email)
		if err != nil {
			return nil, err
		}
		if signsIn {
			return nil, fault.New(fault.Conflict, "invitation", "is for a user of single sign-on: accept it with its link, then sign in with the e-mail address")
		}
	}
	a, err := acceptance.Accept(c, token, c.Body.Text("first_name"), c.Body.Text("last_name"))
	if err != nil {
		return nil, err
	}
	var keys []gained
	for _, k := range a.Keys {
		keys = append(keys, gained{k.ID, k.Workspace, k.Secret})
	}
	if len(keys) == 0 {
		return nil, fault.New(fault.Conflict, "invitation", "was already accepted; sign in with an existing key")
	}
	return keys, nil
}

func (f *family) showBrowser(c *admin.Call) (any, error) {
	if c.Caller.Scope.Org == "" {
		return noSession(), nil
	}
	if ws := c.Query.Text("workspace_id"); ws != "" && c.Caller.In != nil && !c.Caller.OfOrganisation() {
		rec, ok, err := c.Workspace(ws)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, admin.Denied()
		}
		if c.Caller, err = c.Caller.In(c.Context, rec.ID); err != nil {
			return nil, err
		}
	}
	out, err := describe(c)
	if err != nil {
		return nil, err
	}
	if _, _, err := identity.Token(c.Request.Header); err == nil {
		return out, nil // the caller has a header, and no session
	}
	token, until, err := cookieSession(f, c)
	if err != nil {
		return nil, err
	}
	write, at := signin.WriteToken(token), admin.Instant(until)
	out.WriteToken, out.ExpiresAt = &write, &at
	return out, nil
}

func noSession() *browserSession {
	return &browserSession{Object: "session", Type: "none", Scopes: []string{}, BySettings: []string{}, Workspaces: []room{}}
}

// cookieSession returns the token and the end of the session in the request's cookie.
func cookieSession(f *family, c *admin.Call) (string, time.Time, error) {
	if token, ok := browser.KeyToken(c.Request, f.PublicURL); ok {
		s, _, err := keysession.Find(c.Context, f.Loader, f.Keys, c.Now, token)
		if err != nil {
			return "", time.Time{}, err
		}
		return token, s.Until, nil
	}
	of, token, err := f.SessionOf(c.Context, c.Request)
	if err != nil || of == nil {
		return "", time.Time{}, err
	}
	return token, of.Until, nil
}

// describe describes the caller, with the scopes that it may use.
func describe(c *admin.Call) (*browserSession, error) {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	out := noSession()
	out.Type, out.OrganisationID, out.UserID, out.APIKeyID, out.Role = c.Caller.Type, text(c.Caller.Scope.Org), text(c.Caller.UserID), text(c.Caller.KeyID), text(string(c.Caller.Role))
	if len(c.Caller.Workspaces) < 2 {
		out.WorkspaceID = text(c.Caller.Scope.Workspace)
	}
	if set, ok := c.Caller.Scopes.(identity.ScopeSet); ok {
		for _, scope := range slices.Sorted(maps.Keys(set)) {
			ok, bySettings, err := c.Allows(scope)
			if err != nil {
				return nil, err
			}
			if ok {
				out.Scopes = append(out.Scopes, scope)
			}
			if bySettings {
				out.BySettings = append(out.BySettings, scope)
			}
		}
	}
	rows, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if c.Caller.MayAccess(rows[i].ID) {
			out.Workspaces = append(out.Workspaces, room{rows[i].ID, rows[i].Slug, rows[i].Name})
		}
	}
	return out, nil
}

// LoggedOut is the response to the end of a session.
type LoggedOut struct {
	LogoutURL *string `json:"logout_url"`
}

func (f *family) endBrowser(c *admin.Call) (any, error) {
	out := LoggedOut{}
	var end func(*resource.Tx)
	if token, ok := browser.KeyToken(c.Request, f.PublicURL); ok {
		s, _, err := keysession.Find(c.Context, f.Loader, f.Keys, c.Now, token)
		if err != nil {
			return nil, err
		}
		end = func(tx *resource.Tx) { keysession.End(tx, s) }
	} else {
		of, _, err := f.SessionOf(c.Context, c.Request)
		if err != nil {
			return nil, err
		}
		if of.LogoutURL != "" {
			out.LogoutURL = &of.LogoutURL
		}
		c.SetResource(of.ID)
		end = func(tx *resource.Tx) { signin.End(tx, of) }
	}
	if err := c.Change(func(tx *resource.Tx) error { end(tx); return nil }); err != nil {
		return nil, err
	}
	header := http.Header{"Set-Cookie": {browser.Clear().String()}}
	for _, cookie := range browser.ClearKey() {
		header.Add("Set-Cookie", cookie.String())
	}
	return admin.Response{JSON: out, Header: header}, nil
}
