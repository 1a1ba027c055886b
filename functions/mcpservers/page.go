package mcpservers

import (
	"net/http"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/fault"
)

// pages are rejections for people.
var pages = &admin.Refusals{ContentType: page.HTML, Schema: admin.Schema{"type": "string"}, Body: func(_ *admin.Call, f *fault.Fault) any {
	return page.New(f.Status(), "This cannot go on", "<p>"+page.Escape(f.Field+" "+f.Message)+"</p>")
}}

// bindingCookie ties a sign-in at an upstream to the browser that began it.
const bindingCookie = "__Host-gateway-connect"

// bound returns the cookie for so many seconds; below 0 it goes.
func bound(secret string, seconds int) *http.Cookie {
	return &http.Cookie{Name: bindingCookie, Value: secret, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}
