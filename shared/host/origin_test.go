package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/host"
	"gateway/shared/host/originauth"
)

// TestOnlyTheEdgeIsLetIn calls each host with each form of the secret.
func TestOnlyTheEdgeIsLetIn(t *testing.T) {
	stream, buffered := start(t, "stream"), start(t, "buffered")
	container := host.RequireEdge(originauth.New([]string{"old-secret", "new-secret"}, nil, nil), http.HandlerFunc(echo))
	hosts := map[string]func(t *testing.T, ev []byte, h http.Header) (int, string){
		"stream": func(t *testing.T, ev []byte, _ http.Header) (int, string) {
			a := invoke(t, stream, ev, time.Minute)
			return a.Status, readAll(t, a)
		},
		"buffered": func(t *testing.T, ev []byte, _ http.Header) (int, string) {
			out := bodyOf(t, invoke(t, buffered, ev, time.Minute))
			return out.StatusCode, out.Body
		},
		"container": func(t *testing.T, _ []byte, h http.Header) (int, string) {
			r := httptest.NewRequest("POST", "/v1/echo", strings.NewReader("x"))
			r.Header, r.RemoteAddr = h, "130.176.1.1:0"
			w := httptest.NewRecorder()
			container.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		},
	}
	const hops = "203.0.113.9, 130.176.1.1"
	for name, c := range map[string]struct {
		secret []string
		hops   string
		want   string // the caller's address; empty: not let in
	}{
		"no secret":              {nil, hops, ""},
		"a wrong one":            {[]string{"guess"}, hops, ""},
		"a beginning of it":      {[]string{"new-secre"}, hops, ""},
		"another case":           {[]string{"New-Secret"}, hops, ""},
		"blanks around it":       {[]string{" new-secret "}, hops, ""},
		"two values":             {[]string{"new-secret", "guess"}, hops, ""},
		"the right one twice":    {[]string{"new-secret", "new-secret"}, hops, ""},
		"both live ones in one":  {[]string{"old-secret,new-secret"}, hops, ""},
		"an empty one":           {[]string{""}, hops, ""},
		"a long one":             {[]string{strings.Repeat("new-secret", 500)}, hops, ""},
		"the new one":            {[]string{"new-secret"}, "198.51.100.1, " + hops, "203.0.113.9:0"},
		"the old one":            {[]string{"old-secret"}, "2001:db8::1, 130.176.1.1", "[2001:db8::1]:0"},
		"one hop":                {[]string{"new-secret"}, "203.0.113.9", "130.176.1.1:0"},
		"a hop that is none":     {[]string{"new-secret"}, "unknown, 130.176.1.1", "130.176.1.1:0"},
		"a mapped address":       {[]string{"new-secret"}, "::ffff:203.0.113.9, 130.176.1.1", "203.0.113.9:0"},
		"a zone, which is local": {[]string{"new-secret"}, "fe80::1%eth0, 130.176.1.1", "[fe80::1]:0"},
	} {
		for kind, send := range hosts {
			t.Run(kind+": "+name, func(t *testing.T) {
				ev := event("POST", "/echo", withHeader("X-Forwarded-For", c.hops), withHeader(originauth.Header, c.secret...))
				h := http.Header{"X-Forwarded-For": {c.hops}, originauth.Header: c.secret}
				status, body := send(t, ev, h)
				if c.want == "" || kind == "buffered" && c.secret[0] == "old-secret" { // which knows one
					if status != 403 || !strings.Contains(body, "edge") || strings.Contains(body, "secret") {
						t.Errorf("%d %s", status, body)
					}
					var shape struct {
						Error struct{ Code, Message string }
					}
					if err := json.Unmarshal([]byte(body), &shape); err != nil || shape.Error.Code == "" || shape.Error.Message == "" {
						t.Errorf("%s: %v", body, err)
					}
					return
				}
				s := decodeSeen(t, body)
				if status != 200 || s.Remote != c.want {
					t.Errorf("%d, %s, want %s", status, s.Remote, c.want)
				}
				if s.Header.Get(originauth.Header) != "" {
					t.Error("the handler sees the origin secret")
				}
			})
		}
	}
}

// A body is not read of who is not let in.
func TestWhoIsNotLetInIsNotReadFrom(t *testing.T) {
	t.Parallel()
	h := host.RequireEdge(originauth.New([]string{"s"}, nil, nil), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was served") }))
	r := httptest.NewRequest("POST", "/v1/chat/completions", unread{t})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 403 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}
