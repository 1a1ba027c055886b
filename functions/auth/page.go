package auth

import (
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/mcp/entitled"
	"gateway/shared/mcp/granted"
	"gateway/shared/signin"
)

// html is the media type of pages. They are whole: nothing is loaded, no script runs, and
// no other page shows them in itself.
const html = "text/html; charset=utf-8"

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace

const style = "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:10vh auto;padding:0 1rem}button{font:inherit;padding:.4rem 1.2rem;margin-right:.5rem}input{font:inherit;width:100%;padding:.4rem;margin:.3rem 0 1rem;box-sizing:border-box}dt{color:#666}dd{margin:0 0 .6rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}"

// page is a page with a title and a body of HTML. next is where the browser goes by itself.
// forms are further places that its forms may lead to.
func page(status int, next, title, body string, forms ...string) admin.Answer {
	refresh := ""
	if next != "" {
		refresh = `<meta http-equiv="refresh" content="0;url=` + escape(next) + `">`
	}
	h := http.Header{}
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action "+strings.Join(append([]string{"'self'"}, forms...), " ")+"; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	text := `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` + refresh +
		"<title>" + escape(title) + "</title><style>" + style + "</style></head><body><h1>" + escape(title) + "</h1>" + body + "</body></html>\n"
	return admin.Answer{Status: status, Header: h, ContentType: html, Body: []byte(text)}
}

// signInFirst asks who sits there, so that the way in of its organisation is found.
func (f *granting) signInFirst(c *admin.Call, again string) admin.Answer {
	back := again
	if u, err := url.Parse(again); err == nil {
		// A browser that comes from the identity provider's site brings no session's cookie
		// yet: the page that it comes to is the one that leads to this one.
		q := u.Query()
		q.Del("here")
		back = u.EscapedPath() + "?" + q.Encode()
	}
	body := `<form method="get" action="` + escape(f.issuer(c)+"/auth/login") + `"><label>Your e-mail address<input type="email" name="email" required autofocus></label>` +
		`<input type="hidden" name="return_to" value="` + escape(back) + `"><button>Sign in</button></form>`
	return page(http.StatusOK, "", "Sign in to go on", body, "https:", "http:")
}

// askPerson shows who asks for what.
func (f *granting) askPerson(a *asked, p *deciding, facts *entitled.Facts) admin.Answer {
	to, _ := url.Parse(a.Text("redirect_uri")) // it was checked
	fields := ""
	for name, v := range a.query(url.Values{"csrf": {signin.WriteToken(p.token)}}) {
		fields += `<input type="hidden" name="` + escape(name) + `" value="` + escape(v[0]) + `">`
	}
	rows := [][2]string{{"Application", a.client.Shown()}}
	if h := a.client.Host(); h != "" {
		rows = append(rows, [2]string{"Described at", h})
	}
	rows = append(rows, [2]string{"Sends you back to", to.Host}, [2]string{"MCP server", facts.Server.Record.Name}, [2]string{"Workspace", p.workspace.Name},
		[2]string{"You are", p.user.Email}, [2]string{"It may", may(a.scopes)})
	list := "<dl>"
	for _, row := range rows {
		list += "<dt>" + row[0] + "</dt><dd>" + escape(row[1]) + "</dd>"
	}
	body := "<p>Allow this only if you began it yourself.</p>" + list + `</dl><form method="post" action="` + escape(a.issuer+granted.PathConsent) + `">` + fields +
		`<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Refuse</button></form>`
	return page(http.StatusOK, "", "Allow an application?", body, to.Scheme+"://"+to.Host)
}

// may says what scopes allow.
func may(scopes []string) string {
	switch strings.Join(scopes, " ") {
	case granted.Read:
		return "see and read what the server offers, and call no tools"
	case granted.Write:
		return "call tools of the server"
	}
	return "see and read what the server offers, and call its tools, as you"
}
