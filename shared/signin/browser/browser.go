// Package browser keeps a session in a browser: in a cookie that no script can read, no
// other site sends and no other host sets.
package browser

import (
	"net/http"
	"time"

	"gateway/shared/signin"
)

// Cookie is the name of the cookie. Its prefix makes browsers reject it without Secure, with a
// Domain, or for only a part of the paths.
const Cookie = "__Host-gateway-session"

// WriteHeader carries the write token of a session.
const WriteHeader = "X-Gateway-Csrf"

// Token returns the session's token in the cookie of a request. If there are two cookies of
// this name, none counts: one of them is not the gateway's.
func Token(r *http.Request) (string, bool) {
	found, ok := single(r, Cookie)
	return found, ok && signin.IsToken(found)
}

// Set returns the cookie of a session until its end.
func Set(token string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: Cookie, Value: token, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// Clear removes the cookie.
func Clear() *http.Cookie {
	c := Set("", time.Time{})
	c.MaxAge = -1
	return c
}

// bindingCookie ties a sign-in to the browser that began it. It is also sent when an
// identity provider sends the browser back, unlike the session's cookie.
const bindingCookie = "__Host-gateway-signin"

// Bind returns the cookie of a sign-in that is in progress.
func Bind(secret string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: bindingCookie, Value: secret, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// BindAcross is Bind for a browser that comes back with a form from another site's page, as
// with SAML: stricter cookies are not sent then.
func BindAcross(secret string, until time.Time) *http.Cookie {
	c := Bind(secret, until)
	c.SameSite = http.SameSiteNoneMode
	return c
}

// Unbind removes this cookie.
func Unbind() *http.Cookie {
	c := Bind("", time.Time{})
	c.MaxAge = -1
	return c
}

// Binding returns the secret of the sign-in that the browser has begun; "": none.
func Binding(r *http.Request) string {
	c, err := r.Cookie(bindingCookie)
	if err != nil {
		return ""
	}
	return c.Value
}
