// Package browser stores a session in a browser: in a cookie that scripts cannot read, other
// sites do not send and other hosts cannot set.
package browser

import (
	"net/http"
	"strings"
	"time"

	"gateway/shared/signin"
	"gateway/shared/signin/keysession"
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

// KeyCookie is the name of the cookie of a session that was begun with an API key.
// PlainKeyCookie is its name where the gateway is reached without TLS, as on a developer's
// machine: browsers accept neither Secure nor the prefix there.
const (
	KeyCookie      = "__Host-gateway-key-session"
	PlainKeyCookie = "gateway-key-session"
)

// KeyToken returns the token of a session by key in the cookies of a request. public is the
// address of the installation; where it has TLS, only KeyCookie counts, because a cookie of
// the other name could come from another host of the domain.
func KeyToken(r *http.Request, public string) (string, bool) {
	token, ok := single(r, KeyCookie)
	if token == "" && !overTLS(r, public) {
		token, ok = single(r, PlainKeyCookie)
	}
	return token, ok && keysession.IsToken(token)
}

// SetKey returns the cookie of a session by key for the response to r.
func SetKey(r *http.Request, public, token string, until time.Time) *http.Cookie {
	c := &http.Cookie{Name: PlainKeyCookie, Value: token, Path: "/", Expires: until, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if overTLS(r, public) || strings.HasPrefix(r.Header.Get("Origin"), "https:") {
		c.Name, c.Secure = KeyCookie, true
	}
	return c
}

// ClearKey returns the cookies that remove a session by key.
func ClearKey() []*http.Cookie {
	secure := &http.Cookie{Name: KeyCookie, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	plain := &http.Cookie{Name: PlainKeyCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	return []*http.Cookie{secure, plain}
}

func overTLS(r *http.Request, public string) bool {
	return r.TLS != nil || strings.HasPrefix(public, "https:")
}

// single returns the value of a cookie. ok is false if there are several with different
// values: one of them is not the gateway's.
func single(r *http.Request, name string) (value string, ok bool) {
	for _, c := range r.Cookies() {
		if c.Name != name {
			continue
		}
		if value != "" && value != c.Value {
			return "", false
		}
		value = c.Value
	}
	return value, true
}
