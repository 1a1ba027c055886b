package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"gateway/shared/signin/browser"
)

// TestLoginConfirmsBeforeItReplacesASession covers links that sign a browser in as somebody
// whom its user does not expect.
func TestLoginConfirmsBeforeItReplacesASession(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	bea := e.signIn(e.person("bea@corp.example.com", "member", "default", "member"), 0)
	ann := e.signIn(e.person("ann@corp.example.com", "member", "default", "member"), 0)
	link := e.base + "/auth/login?" + ofAnn
	with := func(session string) map[string]string { return map[string]string{browser.Cookie: session} }
	const page = "Continue only if you want to sign in here"

	for what, c := range map[string]struct {
		jar      map[string]string
		site     string
		confirms bool
	}{
		"from another site":           {nil, "cross-site", true},
		"from another host":           {nil, "same-site", true},
		"typed":                       {nil, "none", false},
		"from a page of the gateway":  {nil, "same-origin", false},
		"typed, as another user":      {with(bea), "none", true},
		"own page, as another user":   {with(bea), "same-origin", true},
		"typed, as the same user":     {with(ann), "none", false},
		"cross-site, as the same one": {with(ann), "cross-site", true},
		"a session that has ended":    {with("gs-" + strings.Repeat("A", 43)), "none", false},
	} {
		jar := map[string]string{}
		maps.Copy(jar, c.jar)
		got := e.hop(link, jar, "Sec-Fetch-Site", c.site)
		if c.confirms {
			e.wantStatus(what, got, 200, page)
		} else {
			e.wantStatus(what, got, 302, "")
		}
	}

	jar := with(bea)
	confirmation := e.hop(link, jar, "Sec-Fetch-Site", "none")
	e.wantStatus("whose session is replaced", confirmation, 200, "bea@corp.example.com")
	for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		e.wantStatus(strings.Join(h, " "), e.submit(confirmation, jar, h...), 403, "confirmation")
	}
	e.wantStatus("in another browser", e.submit(confirmation, with(ann)), 403, "confirmation")
	to := e.submit(confirmation, jar, "Sec-Fetch-Site", "same-origin", "Origin", strings.TrimSuffix(e.base, "/v1"))
	e.wantStatus("confirmed", to, 303, "")
	back := e.hop(to.header.Get("Location"), map[string]string{})
	done := e.hop(back.header.Get("Location"), jar)
	if done.status != 302 || jar[browser.Cookie] == bea || done.header.Get("Location") != "/console" {
		t.Errorf("%d %s to %q", done.status, done.body, done.header.Get("Location"))
	}
}

// TestSessionsEndWithWhatAdmittedThem takes away, one after the other, everything that a
// sign-in needed.
func TestSessionsEndWithWhatAdmittedThem(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	e.person("ann@corp.example.com", "admin")
	domain := func() string {
		return e.admin("GET", "/auth/domains", "")["data"].([]any)[0].(map[string]any)["id"].(string)
	}
	enter := func() string {
		t.Helper()
		got, session := e.enter(ofAnn)
		if got.status != 302 || session == "" {
			t.Fatalf("%d %s", got.status, got.body)
		}
		e.wantStatus("signed in", e.as(session, "GET", "/auth/self", ""), 200, "ann@corp.example.com")
		return session
	}
	ended := func(what, session string) {
		t.Helper()
		e.wantStatus(what, e.as(session, "GET", "/auth/self", ""), 401, "ended")
		e.wantStatus(what, e.as(session, "GET", "/admin/users", ""), 401, "ended")
	}
	session := enter()
	e.admin("PUT", "/auth/domains/"+domain(), `{"allow_subdomains":false}`)
	ended("the domain no longer covers the address", session)
	e.admin("PUT", "/auth/domains/"+domain(), `{"allow_subdomains":true}`)
	e.wantStatus("it does again", e.as(session, "GET", "/auth/self", ""), 200, "ann@corp.example.com")
	e.admin("DELETE", "/auth/domains/"+domain(), "")
	ended("the domain is gone", session)
	e.verify("example.com", true)
	session = enter()
	e.admin("DELETE", fmt.Sprintf("/auth/sso-configurations/%s", e.configured), "")
	ended("the configuration is gone", session)
}
