package mcpservers

import (
	"net/http"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
)

// html is the media type of pages. They are whole: nothing is loaded, no script runs, and
// no other page shows them in itself.
const html = "text/html; charset=utf-8"

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace

const style = "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:10vh auto;padding:0 1rem}button{font:inherit;padding:.4rem 1.2rem}input{font:inherit;width:100%;padding:.4rem;margin:.3rem 0 1rem;box-sizing:border-box}dt{color:#666}dd{margin:0 0 .6rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}"

// page is a page with a title and a body of HTML. forms are further places that its forms
// may lead to.
func page(status int, title, body string, forms ...string) admin.Answer {
	h := http.Header{}
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action "+strings.Join(append([]string{"'self'"}, forms...), " ")+"; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	text := `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>` + escape(title) + "</title><style>" + style +
		"</style></head><body><h1>" + escape(title) + "</h1>" + body + "</body></html>\n"
	return admin.Answer{Status: status, Header: h, ContentType: html, Body: []byte(text)}
}

// pages are refusals for people.
var pages = &admin.Refusals{ContentType: html, Schema: admin.Schema{"type": "string"}, Body: func(_ *admin.Call, f *fault.Fault) any {
	return page(f.Status(), "This cannot go on", "<p>"+escape(f.Field+" "+f.Message)+"</p>").Body
}}

// bindingCookie ties a sign-in at an upstream to the browser that began it.
const bindingCookie = "__Host-gateway-connect"

// bound is the cookie for so many seconds; below 0 it goes.
func bound(secret string, seconds int) *http.Cookie {
	return &http.Cookie{Name: bindingCookie, Value: secret, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}
