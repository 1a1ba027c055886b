package assembly_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
)

// offSite are the headers of requests that no page of the gateway has started.
var offSite = []http.Header{
	{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Sec-Fetch-Site": {"none"}},
	{"Origin": {"https://evil.example"}}, {"Origin": {"null"}}, {"Sec-Fetch-Site": {"same-origin"}, "Origin": {"https://evil.example"}},
}

// browse sends a request as a browser with a session does.
func (in *installation) browse(method, path, session string, form url.Values, headers http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://gateway.example/v1"+path, strings.NewReader(form.Encode()))
	r.RemoteAddr = "192.0.2.7:4711"
	r.AddCookie(&http.Cookie{Name: browser.Cookie, Value: session})
	if r.Header.Set("Content-Type", "application/json"); form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, v := range headers {
		r.Header[name] = v
	}
	w := httptest.NewRecorder()
	in.handler.ServeHTTP(w, r)
	return w
}

// filled replaces the variables of a path.
func filled(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "x" + strings.TrimPrefix(s[strings.IndexByte(s, '}')+1:], "{")
		}
	}
	return strings.Join(segments, "/")
}

// TestCookieWritesRequirePagesOfTheGateway calls every route that changes something with
// a session's cookie and its write token, as pages of other sites would.
func TestCookieWritesRequirePagesOfTheGateway(t *testing.T) {
	in := install(t, nil)
	in.user(rootKey, "ann@example.com", "admin", "", "")
	session := in.session("ann@example.com")
	checked := 0
	for _, f := range in.families {
		for _, r := range f.Routes {
			if r.Public || r.Method == http.MethodGet || r.Method == http.MethodHead {
				continue
			}
			for _, path := range append([]string{r.Path}, r.Aliases...) {
				for _, h := range offSite {
					h = h.Clone()
					h.Set(browser.WriteHeader, signin.WriteToken(session))
					got := in.browse(r.Method, filled(path), session, nil, h)
					refused := got.Code == http.StatusForbidden && strings.Contains(got.Body.String(), "x-gateway-csrf")
					if refused {
						checked++
					}
					// 401: cookies are not read at all.
					if !refused && got.Code != http.StatusUnauthorized {
						t.Errorf("%s %s with %v: %d %.200s", r.Method, path, h, got.Code, got.Body)
					}
				}
			}
		}
	}
	if checked < 900 {
		t.Errorf("only %d requests were refused for where they come from", checked)
	}
	h := http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"http://gateway.example"}}
	h.Set(browser.WriteHeader, signin.WriteToken(session))
	if got := in.browse("POST", "/auth/logout", session, nil, h); got.Code != http.StatusOK {
		t.Errorf("from the gateway's own page: %d %s", got.Code, got.Body)
	}
}

// Ways in which a route that a browser visits is protected from links of other sites.
const (
	shows    = "shows a page and changes nothing"
	value    = "needs the one-time value of a page"
	token    = "needs the write token of the session, on a page"
	ownPage  = "needs to come from a page of the gateway or from a program"
	provider = "ends what this browser started: needs its cookie and state"
	program  = "reads no cookie"
)

// visited are all routes that a browser may be sent to, or that a form may post to.
var visited = map[string]string{
	"GET /auth/login":                      shows, // or starts a sign-in; TestLoginConfirmsBeforeItReplacesASession
	"POST /auth/login":                     value,
	"GET /auth/callback/{organisationId}":  provider,
	"POST /auth/saml/{organisationId}/acs": provider, // or shows a page; TestSignInsThatBeginAtTheIdentityProvider
	"GET /oauth/authorize":                 shows,
	"POST /oauth/postAuthorizeConsent":     token,
	"GET /oauth/device":                    shows,
	"POST /oauth/device":                   token,
	"POST /oauth/device_authorization":     program,
	"POST /oauth/token":                    program,
	"POST /oauth/revoke":                   program,
	"POST /oauth/introspect":               token,
	"GET /oauth/upstream-connect":          shows,
	"POST /oauth/upstream-connect":         value,
	"GET /oauth/upstream-callback":         provider,
	"GET /admin/users/invites/accept":      shows,
	"POST /admin/users/invites/accept":     ownPage,
}

// TestEveryBrowserRouteIsProtectedFromLinksOfOtherSites enumerates the routes with pages,
// redirects and forms: a new one fails until it is decided how it is protected.
func TestEveryBrowserRouteIsProtectedFromLinksOfOtherSites(t *testing.T) {
	in := install(t, nil)
	in.user(rootKey, "ann@example.com", "admin", "", "")
	session := in.session("ann@example.com")
	redirects := func(status int) bool { return status >= 300 && status < 400 && status != http.StatusNotModified }
	seen := map[string]bool{}
	for _, f := range in.families {
		for _, r := range f.Routes {
			produces := r.Produces
			if produces == "" {
				produces = f.Produces
			}
			form := slices.ContainsFunc(r.Consumes, func(media string) bool { return strings.HasSuffix(media, "form-urlencoded") })
			accepts := strings.HasSuffix(r.Path, "/accept")
			if produces != page.HTML && !redirects(r.Status) && !slices.ContainsFunc(r.Errors, redirects) && !form && !accepts {
				continue
			}
			if f.Name == "docs" && r.Method == http.MethodGet {
				continue // pages of the documentation
			}
			name := r.Method + " " + r.Path
			rule, known := visited[name]
			if !known {
				t.Errorf("%s is visited by browsers: decide how it is protected from links of other sites", name)
			}
			seen[name] = true
			in.protected(t, &r, rule, session)
		}
	}
	for name := range visited {
		if !seen[name] {
			t.Errorf("%s is no route any more", name)
		}
	}
}

// protected sends a route what other sites can have a browser send.
func (in *installation) protected(t *testing.T, r *admin.Route, rule, session string) {
	t.Helper()
	body := url.Values{
		"link": {"Zmlyc3Q.AAAA"}, "organisation_id": {"first"}, "confirmation": {"x.99999999999"}, "csrf": {signin.WriteToken(session)}, "decision": {"allow"}, "user_code": {"BBBB-BBBB"},
		"token": {"x"}, "state": {strings.Repeat("s", 43)}, "RelayState": {strings.Repeat("s", 43)}, "SAMLResponse": {"AAAA"}, "code": {"c"}, "here": {"true"},
	}
	own := url.Values{}
	for _, fields := range [][]admin.Field{r.Query, r.Body} {
		for _, f := range fields {
			if v, ok := body[f.Name]; ok {
				own[f.Name] = v
			}
		}
	}
	path := strings.Replace(r.Path, "{organisationId}", "first", 1)
	for _, h := range offSite {
		var got *httptest.ResponseRecorder
		switch {
		case r.Method == http.MethodGet:
			got = in.browse(r.Method, path+"?"+own.Encode(), session, nil, h)
		case len(r.Consumes) == 0:
			got = in.browse(r.Method, path+"?"+own.Encode(), session, nil, h)
		default:
			got = in.browse(r.Method, path, session, own, h)
		}
		what := r.Method + " " + r.Path
		for _, c := range got.Result().Cookies() {
			if c.MaxAge >= 0 {
				t.Errorf("%s (%s) with %v sets %s", what, rule, h, c.Name)
			}
		}
		if to := got.Header().Get("Location"); to != "" {
			t.Errorf("%s (%s) with %v leads to %s", what, rule, h, to)
		}
		switch rule {
		case value, token:
			if got.Code != http.StatusForbidden && got.Code != http.StatusNotFound {
				t.Errorf("%s (%s) with %v: %d %.300s", what, rule, h, got.Code, got.Body)
			}
		case ownPage:
			if got.Code != http.StatusForbidden {
				t.Errorf("%s (%s) with %v: %d %.300s", what, rule, h, got.Code, got.Body)
			}
		case provider:
			if got.Code < 400 || got.Code > 499 {
				t.Errorf("%s (%s) with %v: %d %.300s", what, rule, h, got.Code, got.Body)
			}
		case program:
			// The cookie must make no difference.
			without := in.browse(r.Method, path, "", own, h)
			if got.Code != without.Code {
				t.Errorf("%s (%s): %d with a cookie, %d without", what, rule, got.Code, without.Code)
			}
		}
	}
}
