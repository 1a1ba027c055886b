// Package confirm ties an action that a link can start to a confirmation page of the gateway.
// Only the page knows the value that its form posts, only the browser that was shown the page
// has the matching cookie, and the value is accepted once.
package confirm

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/signin/browser"
	"gateway/shared/store"
)

// Field is the name of the form field that holds the value.
const Field = "confirmation"

// MaxValue is the length limit of a value.
const MaxValue = 128

// Life is the lifetime of a confirmation page.
const Life = 15 * time.Minute

// kind is the partition kind of used values.
const kind = "CONFIRMED"

// Begin returns the value for the form of a page that confirms an action, and the cookie
// that the page must set. The cookie is not sent with requests that other sites start.
func Begin(action string, now time.Time) (value string, cookie *http.Cookie) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	value = base64.RawURLEncoding.EncodeToString(b[:]) + "." + strconv.FormatInt(now.Add(Life).Unix(), 10)
	return value, cookieOf(action, digest(action, value), int(Life/time.Second))
}

// Clear returns the cookie that removes the one of an action.
func Clear(action string) *http.Cookie { return cookieOf(action, "", -1) }

// Consume checks that a request comes from the confirmation page of an action, and invalidates its
// value. It returns a 403 fault otherwise. public is the address of the installation.
func Consume(ctx context.Context, keys store.Table, r *http.Request, public, action, value string, now time.Time) error {
	until, ok := expiry(value)
	cookie, err := r.Cookie(name(action))
	if !ok || err != nil || !browser.SameOrigin(r, public) || !now.Before(until) ||
		subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(digest(action, value))) != 1 {
		return errNotConfirmed()
	}
	row := store.Row{Key: store.Credential(kind, identity.HashToken(value)), Item: store.Item{"until": until.UnixMilli()}, Expires: until}
	if err := keys.Put(ctx, row, store.IfAbsent()); err != nil {
		if _, used := store.AsCondition(err); used {
			return errNotConfirmed()
		}
		return fault.Unavailable(err)
	}
	return nil
}

func errNotConfirmed() error {
	return fault.New(fault.NotAllowed, Field, "must come from the gateway's own page, once and within 15 minutes. Open the link again")
}

func expiry(value string) (time.Time, bool) {
	_, text, ok := strings.Cut(value, ".")
	if !ok || len(value) > MaxValue {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0), err == nil
}

func digest(action, value string) string {
	sum := sha256.Sum256([]byte(value + "\x00" + action))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// name differs for each action, so that pages in two tabs do not replace each other's cookie.
func name(action string) string {
	sum := sha256.Sum256([]byte(action))
	return "__Host-gateway-confirm-" + hex.EncodeToString(sum[:4])
}

func cookieOf(action, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: name(action), Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}
