package auth

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/confirm"
	"gateway/shared/signin/oidc"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

// callbackPath is the path of redirect URIs. Each organization has a separate one below it, so
// that a response of one identity provider cannot end a sign-in at another: not every provider
// sends the issuer of RFC 9207.
const callbackPath = "/auth/callback/"

// pathLogin is the path that starts sign-ins.
const pathLogin = "/auth/login"

// loginRoutes returns the routes of a sign-in at an identity provider.
func (f *family) loginRoutes() []admin.Route {
	text := func(name string, most int64, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	fields := []admin.Field{
		text("organisation_id", 64, "The organization; default: the one with the domain of email."), text("email", 254, "Email of the user."),
		text("sso_client_id", 64, "Id of the configuration, if the organization has several."),
		text("return_to", 8192, "Path of this host to redirect to afterwards; default /."),
		{Name: "fresh", Type: admin.Boolean, Doc: "true: the identity provider must authenticate the user again."},
	}
	routes := []admin.Route{
		{Method: "GET", Path: pathLogin, Name: "logIn", Public: true, Errors: []int{302, 404, 429}, Produces: page.HTML, Response: admin.Schema{"type": "string"}, Do: f.login,
			Doc: "Redirect a browser to the identity provider of an organization. If the link is from another site, or another user is signed in, a page asks for confirmation first.", Query: fields},
		{Method: "POST", Path: pathLogin, Name: "confirmLogIn", Public: true, Unrecorded: true, Status: http.StatusSeeOther, Errors: []int{403, 404, 429}, Consumes: []string{form}, Do: f.confirmLogin,
			Doc: "Submit the page that GET returns.", Body: append(fields[:len(fields):len(fields)], text(confirm.Field, confirm.MaxValue, "Set by the page; valid once."))},
		{Method: "GET", Path: callbackPath + "{organisationId}", Name: "logInCallback", Public: true, Status: http.StatusFound, Errors: []int{401, 403, 404, 409, 429}, Do: f.callback,
			Doc: "Receive the redirect of an identity provider. The session is set as a cookie.", Query: []admin.Field{
				text("state", 256, "As it was sent."), text("code", 8192, "The authorization code."), text("iss", 2048, "Issuer of the response (RFC 9207)."),
				text("error", 255, "Why no code was issued."), text("error_description", 4096, "Human-readable form; not shown."), text("error_uri", 2048, "The same as an address; it is not followed."),
				text("session_state", 4096, "Ignored."), text("scope", 4096, "Ignored."), text("authuser", 255, "Ignored."), text("prompt", 255, "Ignored."), text("hd", 255, "Ignored."),
			}},
	}
	for i := range routes {
		f.bound(&routes[i])
	}
	return routes
}

func errNoLogin() error {
	return fault.New(fault.NotFound, "", "No organization with this name or domain has an identity provider")
}

// login starts a sign-in. It requires confirmation if the user may not expect it: a sign-in
// replaces the browser's session, and an identity provider may respond without a page.
func (f *family) login(c *admin.Call) (any, error) {
	a, err := f.readLogin(c, c.Query)
	if err != nil {
		return nil, err
	}
	other, err := otherSession(f, c, a)
	if err != nil {
		return nil, err
	}
	if other != "" || browser.CrossSite(c.Request) {
		return f.showLoginConfirmation(c, a, other), nil
	}
	return f.startLogin(c, a)
}

// confirmLogin starts a sign-in that the user has confirmed on the page of login.
func (f *family) confirmLogin(c *admin.Call) (any, error) {
	a, err := f.readLogin(c, c.Body)
	if err != nil {
		return nil, err
	}
	if err := confirm.Consume(c.Context, c.Resources.Store().Table(store.Keys), c.Request, f.PublicURL, a.action(), c.Body.Text(confirm.Field), c.Now); err != nil {
		return nil, err
	}
	got, err := f.startLogin(c, a)
	if out, ok := got.(admin.Response); ok {
		out.Status = http.StatusSeeOther // the browser must not post again
		out.Header.Add("Set-Cookie", confirm.Clear(a.action()).String())
		return out, err
	}
	return got, err
}

// readLogin validates the parameters of a sign-in.
func (f *family) readLogin(c *admin.Call, v admin.Values) (*loginRequest, error) {
	a := &loginRequest{Values: v}
	var ok bool
	if a.back, ok = sso.ReturnTo(v.Text("return_to")); !ok {
		return nil, fault.Invalid("return_to", "must be a path of this host, beginning with one /")
	}
	email, domain := sso.DomainOf(v.Text("email"))
	if v.HasValue("email") && email == "" {
		return nil, fault.Invalid("email", "is not an e-mail address")
	}
	a.email = email
	org := store.Scope{Org: v.Text("organisation_id")}
	if org.Org == "" {
		if email == "" {
			return nil, fault.Invalid("email", "is required, or organisation_id")
		}
		owner, ok, err := sso.OwnerOf(c.Context, c.Resources.Store(), domain)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errNoLogin()
		}
		org.Org = owner
	}
	if err := f.attempts.Count(c.Context, ofOrganisation, org.Org, c.Now); err != nil {
		return nil, err
	}
	if n, err := c.Resources.Generation(c.Context, org.Org); err != nil || n == 0 {
		return nil, cmp.Or(err, errNoLogin())
	}
	var err error
	a.by, err = f.findConnection(c, org, v.Text("sso_client_id"))
	return a, err
}

// startLogin redirects the browser to the identity provider.
func (f *family) startLogin(c *admin.Call, a *loginRequest) (any, error) {
	p := &sso.Pending{Pending: oidc.Pending{Fresh: a.Bool("fresh")}, Org: a.by.Scope.Org, Connection: a.by.ID, ReturnTo: a.back}
	if a.by.Form.IsSAML() {
		return bySAML{f}.loginBySAML(c, a.by, p)
	}
	client, err := f.client(c, a.by)
	if err != nil {
		return nil, err
	}
	if err := sso.Start(c.Context, c.Resources.Store(), p, c.Now); err != nil {
		return nil, err
	}
	to, err := client.Begin(c.Context, &p.Pending, a.email)
	if err != nil {
		return nil, fault.New(fault.ProviderUnreachable, "", "The identity provider cannot be used: "+describeFailure(err))
	}
	return redirect(to, browser.Bind(p.Binding, c.Now.Add(sso.PendingFor))), nil
}

// findConnection returns the requested configuration of an organization, or its only one.
func (f *family) findConnection(c *admin.Call, org store.Scope, id string) (connection, error) {
	rows, err := c.Resources.List(c.Context, org, sso.KindConnection)
	if err != nil {
		return connection{}, err
	}
	if id == "" && len(rows) > 1 {
		return connection{}, fault.Invalid("sso_client_id", "is required: the organization has several configurations")
	}
	for i := range rows {
		if id == "" || rows[i].ID == id {
			return stored(c, org, rows[i].ID)
		}
	}
	return connection{}, errNoLogin()
}

func stored(c *admin.Call, org store.Scope, id string) (connection, error) {
	rec, ok, err := c.Resources.Get(c.Context, org, sso.KindConnection, id)
	if err != nil {
		return connection{}, err
	}
	if !ok || rec.Archived() {
		return connection{}, errNoLogin()
	}
	form, err := sso.DecodeConnection(rec)
	return connection{Record: &rec, Form: form}, err
}

func redirect(to string, cookies ...*http.Cookie) admin.Response {
	a := admin.Redirect(http.StatusFound, to)
	for _, cookie := range cookies {
		a.Header.Add("Set-Cookie", cookie.String())
	}
	a.Header.Set("Referrer-Policy", "no-referrer")
	return a
}

// describeFailure returns a description of an identity provider's failure for users, of at most 300 bytes.
func describeFailure(err error) string {
	s := fault.From(err).Message
	if f := (*fault.Fault)(nil); !errors.As(err, &f) {
		s = err.Error()
	}
	return s[:min(len(s), 300)]
}

// callback ends a sign-in: with a session, or with a rejection in the audit log.
func (f *family) callback(c *admin.Call) (any, error) {
	if more := c.Request.URL.Query()["state"]; len(more) > 1 {
		return nil, fault.Invalid("state", "was sent %d times; send it once", len(more))
	}
	org, err := organisation(c)
	if err != nil {
		return nil, err
	}
	p, err := sso.ConsumeState(c.Context, c.Resources.Store(), c.Query.Text("state"), browser.Binding(c.Request), c.Now)
	if err != nil && p != nil {
		return nil, f.stray(c, store.Scope{Org: p.Org}, signin.ByOIDC, p.Connection, err)
	}
	if err != nil {
		return nil, err // the organization is unknown; the attempt was counted
	}
	if p.Org != org.Org {
		return nil, f.stray(c, store.Scope{Org: p.Org}, signin.ByOIDC, p.Connection, sso.NoPending())
	}
	it, err := stored(c, org, p.Connection)
	if err != nil {
		return nil, err
	}
	if it.Form.IsSAML() {
		return nil, f.stray(c, org, signin.ByOIDC, it.ID, sso.NoPending())
	}
	client, err := f.client(c, it)
	if err != nil {
		return nil, err
	}
	person, err := client.Finish(c.Context, &p.Pending, c.Request.URL.Query())
	if err != nil {
		return nil, f.reject(c, it, "", fault.New(fault.Unauthorized, "", "The sign-in failed: "+describeFailure(err)))
	}
	token, s, err := f.admit(c, it, person, time.Time{})
	if err != nil {
		return nil, f.reject(c, it, person.Email, err)
	}
	return redirect(p.ReturnTo, append(browser.ClearKey(), browser.Set(token, s.Until), browser.Unbind())...), nil
}

// admit creates the session of a user whom an identity provider authenticated. until limits its
// end; zero means the limit of the settings.
func (f *family) admit(c *admin.Call, it connection, who *oidc.User, until time.Time) (token string, s *signin.Session, err error) {
	email, domain := sso.DomainOf(who.Email)
	if email == "" {
		return "", nil, fault.New(fault.NotAllowed, "", "The identity provider sent no valid email address")
	}
	allowed, err := sso.Allows(c.Context, c.Resources, it.Scope, domain)
	if err != nil {
		return "", nil, err
	}
	if !allowed {
		return "", nil, fault.New(fault.NotAllowed, "", "Addresses of this domain may not sign in: it is not verified")
	}
	a := &sso.Admission{
		Org: it.Scope, Email: email, FirstName: who.FirstName, LastName: who.LastName, InvitedOnly: it.Form.InvitedOnly, Claim: c.RequestID,
		Resources: c.Resources, Sealer: c.Sealer,
	}
	again := 0
	for more := true; more; {
		err := c.Resources.Change(c.Context, it.Scope, func(tx *resource.Tx) (err error) {
			if more, err = a.Step(tx); err != nil || more {
				return err
			}
			// A user who is deactivated concurrently gets no session that outlives it.
			if err := tx.RequireUnchanged(a.User); err != nil {
				return err
			}
			s = &signin.Session{
				Org: it.Scope.Org, User: a.User.ID, Method: method(it), Via: it.ID, Subject: who.Subject, ProviderSID: who.SessionID, LogoutURL: f.logoutURL(c, it, who),
				ClientIP: c.ClientIP(), Agent: agent(c.Request), Authenticated: who.AuthenticatedAt, Until: until,
			}
			if who.Refresh != "" {
				s.Renewable = &signin.Renewable{Token: who.Refresh, Sealer: c.Sealer}
			}
			if token, err = signin.Begin(tx, s); err != nil {
				return err
			}
			return audit.Append(tx, f.entry(c, it, http.StatusFound, a.User.ID, map[string]string{"email": email, "session_id": s.ID, "provisioned": yes(a.New)}))
		})
		if fault.Is(err, fault.Conflict) && again < maxAgain {
			more, again = true, again+1 // a concurrent sign-in of the same user was faster
			continue
		}
		if errors.Is(err, sso.ErrStopped) {
			return "", nil, fault.New(fault.NotAllowed, "", "This user is deactivated and may not sign in")
		}
		if errors.Is(err, sso.ErrUninvited) {
			return "", nil, fault.New(fault.NotAllowed, "", "You are not invited to this organization")
		}
		if err != nil {
			return "", nil, err
		}
	}
	return token, s, nil
}

// maxAgain is the number of retries after a conflict with another sign-in.
const maxAgain = 5

// method returns the sign-in method of a configuration.
func method(it connection) string {
	if it.Form.IsSAML() {
		return signin.BySAML
	}
	return signin.ByOIDC
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// maxAgent is the length limit of a stored user agent.
const maxAgent = 255

func agent(r *http.Request) string {
	s := r.UserAgent()
	return s[:min(len(s), maxAgent)]
}

// reject records a failed sign-in in the audit log and returns the fault.
func (f *family) reject(c *admin.Call, it connection, email string, why error) error {
	f.record(c, it.Scope, f.entry(c, it, fault.From(why).Status(), "", map[string]string{"email": email, "error": fault.From(why).Message}))
	return why
}

func (f *family) record(c *admin.Call, org store.Scope, e audit.Entry) {
	if f.Record == nil {
		return
	}
	if err := f.Record(c.Context, org.Org, e); err != nil {
		slog.Error("a rejected sign-in was not recorded in the audit log", "request_id", c.RequestID, "error", err)
	}
}

// stray records in the audit log a response without a pending sign-in: none was begun, another
// browser began it, or the response cannot be read. Anyone can send such responses, so only the
// first of each minute are logged. id is the configuration, or "".
func (f *family) stray(c *admin.Call, org store.Scope, method, id string, why error) error {
	if fault.From(why).Status() >= http.StatusInternalServerError || f.attempts.Count(c.Context, ofStrays, org.Org, c.Now) != nil {
		return why
	}
	f.record(c, org, entryBy(c, method, id, fault.From(why).Status(), "", map[string]string{"error": fault.From(why).Message}))
	return why
}

func (f *family) entry(c *admin.Call, it connection, status int, user string, details map[string]string) audit.Entry {
	return entryBy(c, method(it), it.ID, status, user, details)
}

func entryBy(c *admin.Call, method, id string, status int, user string, details map[string]string) audit.Entry {
	details["method"], details["sso_client_id"] = method, id
	return audit.Entry{
		Method: c.Request.Method, URI: c.Request.URL.EscapedPath(), RequestID: c.RequestID, UserID: user, UserType: audit.UserTypeUser,
		StatusCode: status, ResourceType: "auth", Action: audit.Login, ResourceID: id, ClientIP: c.ClientIP(), Details: details,
	}
}

// logoutURL returns the address that ends the session at the identity provider.
func (f *family) logoutURL(c *admin.Call, it connection, who *oidc.User) string {
	return oidc.LogoutURL(who.EndSession, it.Form.ClientID, admin.Address(f.PublicURL, c.Request))
}
