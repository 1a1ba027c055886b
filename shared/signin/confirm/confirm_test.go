package confirm

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

func TestTakeAcceptsOnlyTheValueOfThePageOnceInItsBrowser(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	keys, now := s.Table(store.Keys), time.Now()
	value, cookie := Begin("connect a", now)
	other, otherCookie := Begin("connect a", now)
	_, elsewhere := Begin("connect b", now)
	if cookie.SameSite != http.SameSiteStrictMode || !cookie.HttpOnly || !cookie.Secure || cookie.Name == elsewhere.Name {
		t.Errorf("cookie %v", cookie)
	}
	take := func(action, value string, at time.Time, cookie *http.Cookie, header ...string) error {
		r := httptest.NewRequest("POST", "http://gateway.example/v1/x", nil)
		if cookie != nil {
			r.AddCookie(cookie)
		}
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return Consume(t.Context(), keys, r, "", action, value, at)
	}
	for what, err := range map[string]error{
		"no value":               take("connect a", "", now, cookie),
		"no cookie":              take("connect a", value, now, nil),
		"another page's cookie":  take("connect a", value, now, otherCookie),
		"another page's value":   take("connect a", other, now, cookie),
		"another action":         take("connect b", value, now, cookie),
		"another expiry":         take("connect a", value+"0", now, cookie),
		"a value of its own":     take("connect a", strings.Repeat("A", 43)+".99999999999", now, cookie),
		"too long":               take("connect a", strings.Repeat("A", MaxValue)+value, now, cookie),
		"too late":               take("connect a", value, now.Add(Life), cookie),
		"from another site":      take("connect a", value, now, cookie, "Sec-Fetch-Site", "cross-site"),
		"from another origin":    take("connect a", value, now, cookie, "Origin", "https://evil.example"),
		"from a page of nothing": take("connect a", value, now, cookie, "Origin", "null"),
	} {
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if err := take("connect a", value, now, cookie, "Sec-Fetch-Site", "same-origin", "Origin", "http://gateway.example"); err != nil {
		t.Errorf("the page itself: %v", err)
	}
	if take("connect a", value, now, cookie) == nil {
		t.Error("accepted twice")
	}
}
