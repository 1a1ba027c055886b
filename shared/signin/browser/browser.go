// Package browser stores a session in a browser: in a cookie that scripts cannot read, other
// sites do not send and other hosts cannot set.
package browser

import (
	"net/http"
	"time"

	"gateway/shared/signin"
)

// Cookie is the name of the cookie. Its prefix makes browsers reject it without Secure, with a
// Domain, or with a narrower path.
const Cookie = "__Host-gateway-session"

// WriteHeader carries the write token of a session.
const WriteHeader = "X-Gateway-Csrf"

// Token returns the session token in the cookie of a request. Duplicate cookies are rejected:
// one of them is not the gateway's.
func Token(r *http.Request) (string, bool) {
	found, ok := single(r, Cookie)
	return found, ok && signin.IsToken(found)
}

// Set returns the cookie of a session.
func Set(token string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: Cookie, Value: token, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// Clear returns the cookie that removes the session's.
func Clear() *http.Cookie {
	c := Set("", time.Time{})
	c.MaxAge = -1
	return c
}

// bindingCookie ties a sign-in to the browser that began it. Unlike the session's cookie it is
// also sent when an identity provider redirects the browser back.
const bindingCookie = "__Host-gateway-signin"

// Bind returns the cookie of a pending sign-in.
func Bind(secret string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: bindingCookie, Value: secret, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// BindAcross is Bind for a browser that returns with a form from another site's page, as with
// SAML: stricter cookies are not sent then.
func BindAcross(secret string, until time.Time) *http.Cookie {
	c := Bind(secret, until)
	c.SameSite = http.SameSiteNoneMode
	return c
}

// Unbind returns the cookie that removes the binding.
func Unbind() *http.Cookie {
	c := Bind("", time.Time{})
	c.MaxAge = -1
	return c
}

// Binding returns the secret of the browser's pending sign-in, or "".
func Binding(r *http.Request) string {
	c, err := r.Cookie(bindingCookie)
	if err != nil {
		return ""
	}
	return c.Value
}
