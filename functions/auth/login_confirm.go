package auth

import (
	"net/http"
	"net/url"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/confirm"
	"gateway/shared/store"
)

// loginRequest is a validated request to start a sign-in.
type loginRequest struct {
	admin.Values
	by    connection
	email string // may be empty
	back  string // path to return to
}

// query returns the parameters of the request.
func (a *loginRequest) query() url.Values {
	out := url.Values{}
	for _, name := range []string{"organisation_id", "email", "sso_client_id", "return_to"} {
		if v := a.Text(name); v != "" {
			out.Set(name, v)
		}
	}
	if a.Bool("fresh") {
		out.Set("fresh", "true")
	}
	return out
}

// action returns the action of a confirmation: exactly this sign-in.
func (a *loginRequest) action() string { return "log in " + a.query().Encode() }

// otherSession returns the email address of the signed-in user of this browser if that may be
// another user than the one who signs in, otherwise "".
func otherSession(f *family, c *admin.Call, a *loginRequest) (email string, err error) {
	token, ok := browser.Token(c.Request)
	if !ok {
		return "", nil
	}
	s, v, err := f.Sessions.Find(c.Context, token)
	if fault.Is(err, fault.Unauthorized) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	u, ok, err := resource.Load(c.Context, v, store.Scope{Org: s.Org}, membership.KindUser, s.User, membership.DecodeUser)
	if err != nil || !ok || s.Org == a.by.Scope.Org && (a.email == "" || a.email == u.Email) {
		return "", err
	}
	return u.Email, nil
}

// askLogin shows the confirmation page of a sign-in. signedIn is the address of the user of the
// session that would be replaced, or "".
func (f *family) askLogin(c *admin.Call, a *loginRequest, signedIn string) admin.Answer {
	value, cookie := confirm.Begin(a.action(), c.Now)
	fields := a.query()
	fields.Set(confirm.Field, value)
	// The form redirects to the identity provider, on any host.
	return confirmPage(a.by.Scope.Org, a.email, signedIn, admin.Address(f.PublicURL, c.Request)+pathLogin, fields, cookie, "https:", "http:")
}

// confirmPage returns the page that asks whether to sign in to an organization. Its form posts
// fields to an address, which may redirect to the sources in leads. cookie holds the confirmation.
func confirmPage(org, email, signedIn, to string, fields url.Values, cookie *http.Cookie, leads ...string) admin.Answer {
	rows := [][2]string{{"Organization", org}, {"You sign in as", email}, {"You are signed in as", signedIn}}
	body := "<p>Continue only if you want to sign in here. A session that you have in this browser is replaced.</p><dl>"
	for _, row := range rows {
		if row[1] != "" {
			body += "<dt>" + row[0] + "</dt><dd>" + page.Escape(row[1]) + "</dd>"
		}
	}
	body += `</dl><form method="post" action="` + page.Escape(to) + `">`
	for name, v := range fields {
		body += `<input type="hidden" name="` + page.Escape(name) + `" value="` + page.Escape(v[0]) + `">`
	}
	out := page.New(http.StatusOK, "Sign in?", body+"<button>Sign in</button></form>", leads...)
	out.Header.Set("Cache-Control", "no-store")
	out.Header.Add("Set-Cookie", cookie.String())
	return out
}
