// Package page makes the few pages that people see in a browser. A page is complete: it
// loads nothing, runs no script, and cannot be shown inside another page.
package page

import (
	"net/http"
	"strings"

	"gateway/shared/admin"
)

// HTML is the media type of pages.
const HTML = "text/html; charset=utf-8"

// Escape writes a text so that it reads as text in HTML, also inside attributes.
var Escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace

const style = "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:10vh auto;padding:0 1rem}button{font:inherit;padding:.4rem 1.2rem;margin-right:.5rem}input{font:inherit;width:100%;padding:.4rem;margin:.3rem 0 1rem;box-sizing:border-box}dt{color:#666}dd{margin:0 0 .6rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}"

// New is a page with a title and a body of HTML. forms are further places that its forms
// may lead to.
func New(status int, title, body string, forms ...string) admin.Response {
	return write(status, "", title, body, forms)
}

// Leading returns a page that redirects the browser to next.
func Leading(next string) admin.Response {
	to := Escape(next)
	return write(http.StatusOK, `<meta http-equiv="refresh" content="0;url=`+to+`">`, "One moment", `<p><a href="`+to+`">Go on</a></p>`, nil)
}

func write(status int, head, title, body string, forms []string) admin.Response {
	h := http.Header{}
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action "+strings.Join(append([]string{"'self'"}, forms...), " ")+"; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer, browsers would send "Origin: null" with the page's own forms.
	h.Set("Referrer-Policy", "same-origin")
	text := `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` + head +
		"<title>" + Escape(title) + "</title><style>" + style + "</style></head><body><h1>" + Escape(title) + "</h1>" + body + "</body></html>\n"
	return admin.Response{Status: status, Header: h, ContentType: HTML, Body: []byte(text)}
}
