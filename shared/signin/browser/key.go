package browser

import (
	"net/http"
	"strings"
	"time"

	"gateway/shared/signin/keysession"
)

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
