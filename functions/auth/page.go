package auth

import (
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/fault"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/signin"
)

// arrive returns the user at the browser. again is the address of the page, with the query
// parameter here; first is the response that must precede the page.
func (f *granting) arrive(c *admin.Call, again string) (p *deciding, first *admin.Answer, err error) {
	if !c.Query.Bool("here") {
		// Browsers send the session cookie only with requests from this site's pages.
		lead := page.Leading(again)
		return nil, &lead, nil
	}
	p, err = f.person(c)
	if fault.Is(err, fault.Unauthorized) {
		ask := f.signInFirst(c, again)
		return nil, &ask, nil
	}
	return p, nil, err
}

// signInFirst requests the email address, which determines the organization's identity
// provider.
func (f *granting) signInFirst(c *admin.Call, again string) admin.Answer {
	back := again
	if u, err := url.Parse(again); err == nil {
		// After a redirect from the identity provider the browser does not send the session
		// cookie, so it first gets a page that leads here.
		q := u.Query()
		q.Del("here")
		back = u.EscapedPath() + "?" + q.Encode()
	}
	body := `<form method="get" action="` + page.Escape(f.issuer(c)+"/auth/login") + `"><label>Your e-mail address<input type="email" name="email" required autofocus></label>` +
		`<input type="hidden" name="return_to" value="` + page.Escape(back) + `"><button>Sign in</button></form>`
	return page.New(http.StatusOK, "Sign in to continue", body, "https:", "http:")
}

// askPerson shows the client and what it requests.
func (f *granting) askPerson(a *asked, p *deciding, facts *authz.Facts) admin.Answer {
	to, _ := url.Parse(a.Text("redirect_uri")) // validated before
	fields := ""
	for name, v := range a.query(url.Values{"csrf": {signin.WriteToken(p.token)}}) {
		fields += `<input type="hidden" name="` + page.Escape(name) + `" value="` + page.Escape(v[0]) + `">`
	}
	rows := [][2]string{{"Application", a.client.Shown()}}
	if h := a.client.Host(); h != "" {
		rows = append(rows, [2]string{"Described at", h})
	}
	rows = append(rows, [2]string{"Sends you back to", shownHost(to)}, [2]string{"MCP server", facts.Server.Record.Name}, [2]string{"Workspace", p.workspace.Name},
		[2]string{"You are", p.user.Email}, [2]string{"It may", may(a.scopes)})
	list := "<dl>"
	for _, row := range rows {
		list += "<dt>" + row[0] + "</dt><dd>" + page.Escape(row[1]) + "</dd>"
	}
	body := "<p>Allow this only if you began it yourself.</p>" + list + `</dl><form method="post" action="` + page.Escape(a.issuer+oauthserver.PathConsent) + `">` + fields +
		`<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Refuse</button></form>`
	return page.New(http.StatusOK, "Allow an application?", body, formSource(to))
}

// shownHost returns the displayed form of a redirect URI: its host, or the scheme of an
// application on the user's machine.
func shownHost(to *url.URL) string {
	if to.Scheme == "https" || to.Scheme == "http" {
		return to.Host
	}
	return "an application on this computer (" + to.Scheme + ":)"
}

// formSource returns the source of a redirect URI in a content security policy, which has no
// hosts for other schemes.
func formSource(to *url.URL) string {
	if to.Scheme == "https" || to.Scheme == "http" {
		return to.Scheme + "://" + to.Host
	}
	return to.Scheme + ":"
}

// may describes scopes.
func may(scopes []string) string {
	switch strings.Join(scopes, " ") {
	case oauthserver.Read:
		return "see and read what the server offers, and call no tools"
	case oauthserver.Write:
		return "call tools of the server"
	}
	return "see and read what the server offers, and call its tools, as you"
}
