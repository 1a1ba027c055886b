package mcpservers

import (
	"net/http"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/fault"
)

// pages renders rejections as HTML pages.
var pages = &admin.Rejections{ContentType: page.HTML, Schema: admin.Schema{"type": "string"}, Body: func(_ *admin.Call, f *fault.Fault) any {
	return page.New(f.Status(), "This request is not valid", "<p>"+page.Escape(f.Field+" "+f.Message)+"</p>")
}}

// bindingCookie ties a sign-in at an upstream to the browser that began it.
const bindingCookie = "__Host-gateway-connect"

// bound returns the cookie with a lifetime in seconds; a negative one removes it.
func bound(secret string, seconds int) *http.Cookie {
	return &http.Cookie{Name: bindingCookie, Value: secret, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}
