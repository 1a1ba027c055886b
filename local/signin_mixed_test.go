package main

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"

	"gateway/shared/signin/browser"
)

// A provider that belongs to another organization sends a browser on to the provider of
// this one, with the state of its own sign-in, so that the gateway would hand it the code of
// a stranger: a mix-up, against which RFC 9207 helps only where the honest provider names
// itself. Here it does not.
func TestAnAnswerOfOneOrganisationEndsNoSignInToAnother(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	e.idp.set(func() { e.idp.more = map[string]any{"authorization_response_iss_parameter_supported": false} })
	const theirs = "admin-key-of-the-other-organisation"
	e.tenant("other", theirs, "data-key-of-the-other-organisation")
	evil := newIssuer(t)
	evil.set(func() { evil.more = map[string]any{"authorization_response_iss_parameter_supported": false} })
	made := e.call("POST", "/auth/sso-configurations", fmt.Sprintf(`{"name":"x","issuer":%q,"client_id":"the-client","client_secret":"a:secret&"}`, evil.URL), "X-Gateway-Api-Key", theirs)
	e.wantStatus("made", made, 200, "id")

	// Each organization has its own way back, which its configuration shows.
	mine := e.admin("GET", "/auth/sso-configurations/"+e.configured, "")["redirect_uri"]
	if mine != e.base+"/auth/callback/default" {
		t.Errorf("redirect_uri is %v", mine)
	}
	read := e.call("GET", "/auth/sso-configurations/"+made.json(t)["id"].(string), "", "X-Gateway-Api-Key", theirs)
	e.wantStatus("theirs", read, 200, fmt.Sprintf(`"redirect_uri":"%s/auth/callback/other"`, e.base))

	// The browser of somebody who signs in to the other organization comes back with a code
	// of this one's provider.
	jar := map[string]string{}
	there := e.hop(e.base+"/auth/login?organisation_id=other", jar)
	to, err := url.Parse(there.header.Get("Location"))
	if err != nil || there.status != 302 || to.Query().Get("redirect_uri") != e.base+"/auth/callback/other" {
		t.Fatalf("login: %d %s %v", there.status, there.body, there.header)
	}
	honest := map[string]string{}
	back, err := url.Parse(e.begin(ofAnn, honest))
	if err != nil {
		t.Fatal(err)
	}
	q := back.Query()
	q.Del("iss")
	code, state := q.Get("code"), q.Get("state")
	q.Set("state", to.Query().Get("state"))
	before := map[string]string{}
	maps.Copy(before, jar)
	got := e.hop(e.base+"/auth/callback/default?"+q.Encode(), jar)
	e.wantStatus("a code of another provider", got, 401, "state")
	if strings.Contains(fmt.Sprint(got.header["Set-Cookie"]), browser.Cookie) {
		t.Error("a session for a code of another provider")
	}
	if n := evil.exchanges(code); n != 0 {
		t.Errorf("the code was handed to the other provider %d times", n)
	}
	e.wantStatus("a sign-in is taken once", e.hop(e.base+"/auth/callback/other?"+q.Encode(), before), 401, "state")

	// Its twin: the same code and browser at the address that they belong to.
	q.Set("state", state)
	if got := e.hop(e.base+"/auth/callback/default?"+q.Encode(), honest); got.status != 302 || honest[browser.Cookie] == "" {
		t.Errorf("where it belongs: %d %s", got.status, got.body)
	}
	for path, want := range map[string]int{"/auth/callback/nowhere": 404, "/auth/callback/default%23X": 404, "/auth/callback/" + strings.Repeat("a", 3000): 404, "/auth/callback": 404, "/auth/callback/default": 401} {
		if got := e.hop(e.base+path+"?state=x&code=x", map[string]string{}); got.status != want {
			t.Errorf("%.60s: %d %s", path, got.status, got.body)
		}
	}
}
