package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gateway/shared/identity"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/saml"
	"gateway/shared/store"
	"gateway/shared/testkit/idptest"
)

// samlIssuer is the identity provider of the npm package samlp, a process of its own.
type samlIssuer struct {
	t      *testing.T
	url    string
	issuer string
	key    []byte
	cert   []byte
}

func newSAMLIssuer(t *testing.T, issuer string) *samlIssuer {
	t.Helper()
	made := idptest.StartSAML(t, "../scripts/testdeps", issuer)
	return &samlIssuer{t: t, url: made.URL, issuer: issuer, key: made.Key, cert: made.Cert}
}

func pemOf(der []byte) string {
	return idptest.PEM("CERTIFICATE", der)
}

// next says who signs in next, and what is different about it.
func (i *samlIssuer) next(email string, options map[string]any) {
	i.t.Helper()
	raw, err := json.Marshal(map[string]any{"user": map[string]string{"email": email, "given": "Ann", "family": "Lee"}, "options": options})
	if err != nil {
		i.t.Fatal(err)
	}
	resp, err := http.Post(i.url+"/next", "application/json", strings.NewReader(string(raw)))
	if err != nil {
		i.t.Fatal(err)
	}
	resp.Body.Close()
}

var hidden = regexp.MustCompile(`name="(SAMLResponse|RelayState)"\s+value="([^"]*)"`)

// posted is the form that an address of the identity provider has a browser send.
func (i *samlIssuer) posted(address string) (action string, form url.Values) {
	i.t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		i.t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	form = url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(string(page), -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	_, rest, _ := strings.Cut(string(page), `action="`)
	action, _, _ = strings.Cut(rest, `"`)
	if resp.StatusCode != 200 || form.Get("SAMLResponse") == "" {
		i.t.Fatalf("the identity provider: %d %s", resp.StatusCode, page)
	}
	return html.UnescapeString(action), form
}

// samlEntrance is a gateway with such an identity provider and a verified domain.
type samlEntrance struct {
	*entrance
	saml *samlIssuer
	read map[string]any // the configuration
}

func newSAMLEntrance(t *testing.T) *samlEntrance {
	t.Helper()
	e := &samlEntrance{entrance: newEntrance(t), saml: newSAMLIssuer(t, "https://idp.example.com/entity")}
	e.configured = e.admin("POST", "/auth/sso-configurations", fmt.Sprintf(`{"name":"corp by saml","protocol":"saml","metadata_url":%q}`, e.saml.url+"/metadata"))["id"].(string)
	e.reread()
	return e
}

func (e *samlEntrance) reread() {
	e.t.Helper()
	e.read = e.admin("GET", "/auth/sso-configurations/"+e.configured, "")
}

func (e *samlEntrance) shown(name string) string { return e.read[name].(string) }

// post sends a form as a browser does.
func (e *samlEntrance) post(address string, form url.Values, jar map[string]string) reply {
	e.t.Helper()
	req, err := http.NewRequest("POST", address, strings.NewReader(form.Encode()))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, v := range jar {
		req.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		if c.MaxAge < 0 {
			delete(jar, c.Name)
		} else {
			jar[c.Name] = c.Value
		}
	}
	return reply{resp.StatusCode, resp.Header, string(raw)}
}

// there goes to the identity provider and gives the form that comes back.
func (e *samlEntrance) there(query string, jar map[string]string) url.Values {
	e.t.Helper()
	to := e.hop(e.base+"/auth/login?organisation_id=default&sso_client_id="+e.configured+query, jar)
	if to.status != 302 || !strings.Contains(to.header.Get("Set-Cookie"), "SameSite=None") {
		e.t.Fatalf("login: %d %s %v", to.status, to.body, to.header)
	}
	action, form := e.saml.posted(to.header.Get("Location"))
	if action != e.shown("sp_acs_url") {
		e.t.Fatalf("the response goes to %s", action)
	}
	return form
}

// as it should be: both names of the gateway, and more.
func (e *samlEntrance) options(more ...any) map[string]any {
	out := map[string]any{"acs": e.shown("sp_acs_url")}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

// by signs in and gives the response with the session's token.
func (e *samlEntrance) by(email, query string, options map[string]any) (reply, string) {
	e.t.Helper()
	e.saml.next(email, options)
	jar := map[string]string{}
	form := e.there(query, jar)
	got := e.post(e.shown("sp_acs_url"), form, jar)
	return got, jar[browser.Cookie]
}

func (e *samlEntrance) audited(want ...string) {
	e.t.Helper()
	eventually(e.t, func() error {
		got := e.logins()
		for _, s := range append(want, `"client_ip":"127.0.0.1"`, `"method":"saml"`) {
			if !strings.Contains(got, s) {
				return fmt.Errorf("no %s in %s", s, got)
			}
		}
		if strings.Contains(got, "SAMLResponse=") || strings.Contains(got, "saml:Assertion") {
			return errors.New("an assertion is in the audit log")
		}
		return nil
	})
}

func TestPeopleSignInBySAML(t *testing.T) {
	t.Parallel()
	e := newSAMLEntrance(t)
	e.wantStatus("described", e.call("POST", "/auth/sso-configurations/"+e.configured+"/verify", "", "X-Gateway-Api-Key", adminKey), 200, `"success":true`)
	got, token := e.by("ann@corp.example.com", "&return_to=/console", e.options())
	if got.status != 303 || got.header.Get("Location") != "/console" || token == "" {
		t.Fatalf("%d %s %v", got.status, got.body, got.header)
	}
	self := e.as(token, "GET", "/auth/self", "")
	e.wantStatus("a new member", self, 200, `"email":"ann@corp.example.com","first_name":"Ann","last_name":"Lee","role":"member"`)
	e.wantStatus("by saml", self, 200, `"method":"saml"`)

	// An invitation gives its role.
	e.admin("POST", "/admin/users/invites", `{"email":"bea@example.com","role":"admin","workspaces":[]}`)
	if _, token = e.by("Bea@Example.com", "", e.options("signResponse", true)); token == "" {
		t.Fatal("a signed response is refused")
	}
	e.wantStatus("invited", e.as(token, "GET", "/auth/self", ""), 200, `"role":"admin"`)

	certificate, err := base64.StdEncoding.DecodeString(e.shown("sp_certificate"))
	if err != nil {
		t.Fatal(err)
	}
	public := pemOf(certificate)
	for name, more := range map[string][]any{
		"signed twice":                   {"signResponse", true},
		"the response alone":             {"signResponse", true, "signAssertion", false},
		"encrypted":                      {"encryptionCert", public, "encryptionPublicKey", public},
		"encrypted in a signed response": {"encryptionCert", public, "encryptionPublicKey", public, "signResponse", true},
		"encrypted with GCM":             {"encryptionCert", public, "encryptionPublicKey", public, "encryptionAlgorithm", "http://www.w3.org/2009/xmlenc11#aes256-gcm"},
	} {
		if got, token := e.by("ann@corp.example.com", "&fresh=true", e.options(more...)); got.status != 303 || token == "" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}

	// Signed requests, which the identity provider checks by the gateway's certificate.
	e.admin("PUT", "/auth/sso-configurations/"+e.configured, `{"sign_requests":true}`)
	if got, token := e.by("ann@corp.example.com", "", e.options("signingCert", public)); got.status != 303 || token == "" {
		t.Errorf("a signed request: %d %s", got.status, got.body)
	}
	e.admin("PUT", "/auth/sso-configurations/"+e.configured, `{"disable_auto_provision_user":true}`)
	got, token = e.by("cid@example.com", "", e.options())
	e.wantStatus("not invited", got, 403, "not invited")
	foreign, none := e.by("cid@example.org", "", e.options())
	e.wantStatus("a foreign domain", foreign, 403, "not verified")
	if token != "" || none != "" {
		t.Error("a session for somebody who may not sign in")
	}
	e.wantStatus("nobody was made", e.call("GET", "/admin/users?email=cid@example.com", "", "X-Gateway-Api-Key", adminKey), 200, `"total":0`)
	e.audited("not invited", "is not verified", `"response_status_code":302`)
}

// TestOwnMetadataAreAtTheirAddress, for the identity provider, and nothing else is.
func TestOwnMetadataAreAtTheirAddress(t *testing.T) {
	t.Parallel()
	e := newSAMLEntrance(t)
	got := e.hop(e.shown("sp_metadata_url"), map[string]string{})
	if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "application/samlmetadata+xml") {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	for _, want := range []string{`entityID="` + e.shown("sp_entity_id") + `"`, `Location="` + e.shown("sp_acs_url") + `"`, e.shown("sp_certificate")} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	if e.shown("sp_entity_id") != e.base+"/auth/saml/default" || e.shown("sp_acs_url") != e.base+"/auth/saml/default/acs" {
		t.Errorf("%v", e.read)
	}
	for path, want := range map[string]int{
		"/auth/saml/default/metadata": 400, "/auth/saml/nowhere/metadata": 404, "/auth/saml/default%23X/metadata": 404, "/auth/saml/" + strings.Repeat("a", 3000) + "/metadata": 404,
		"/auth/saml/default/metadata?sso_client_id=" + e.entrance.oidcID(): 404, "/auth/saml/default/metadata?sso_client_id=x": 404,
	} {
		if got := e.hop(e.base+path, map[string]string{}); got.status != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, secret := range []string{string(e.saml.key), "service_key", "PRIVATE"} {
		if strings.Contains(got.body, secret) {
			t.Error("a secret is in the metadata")
		}
	}
}

// oidcID is the id of the configuration that every entrance has.
func (e *entrance) oidcID() string {
	e.t.Helper()
	got := e.call("GET", "/auth/sso-configurations?search=corp", "", "X-Gateway-Api-Key", adminKey)
	for _, row := range got.json(e.t)["data"].([]any) {
		if row.(map[string]any)["name"] == "corp" {
			return row.(map[string]any)["id"].(string)
		}
	}
	e.t.Fatal("no configuration")
	return ""
}

// TestASAMLResponseIsHeldAgainstItsRequest: each rejection has its twin, the same sign-in
// in the browser that began it.
func TestASAMLResponseIsHeldAgainstItsRequest(t *testing.T) {
	t.Parallel()
	e := newSAMLEntrance(t)
	e.saml.next("ann@example.com", e.options())
	to := e.shown("sp_acs_url")
	jar := map[string]string{}
	form := e.there("", jar)
	e.wantStatus("another browser", e.post(to, form, map[string]string{}), 401, "state")
	e.wantStatus("another browser's sign-in", e.post(to, form, map[string]string{"__Host-gateway-signin": "x"}), 401, "state")
	e.wantStatus("the way back of OpenID Connect", e.hop(e.base+"/auth/callback/default?code=x&state="+url.QueryEscape("x"), jar), 401, "state")
	if got := e.post(to, form, jar); got.status != 303 || jar[browser.Cookie] == "" {
		t.Fatalf("the browser that began it: %d %s", got.status, got.body)
	}
	e.wantStatus("a second time", e.post(to, form, jar), 401, "state")

	// The response of one sign-in in another: neither the request nor the browser fit.
	other := map[string]string{}
	mixed := e.there("", other)
	mixed.Set("SAMLResponse", form.Get("SAMLResponse"))
	got := e.post(to, mixed, other)
	e.wantStatus("the response to another request", got, 401, "another request")
	if other[browser.Cookie] != "" {
		t.Error("a session for the answer to another request")
	}
	for name, c := range map[string]struct {
		change  func(url.Values)
		status  int
		message string
	}{
		"no RelayState":          {func(f url.Values) { f.Del("RelayState") }, 401, "state"},
		"another RelayState":     {func(f url.Values) { f.Set("RelayState", strings.Repeat("A", 43)) }, 401, "state"},
		"an address":             {func(f url.Values) { f.Set("RelayState", "https://evil.example.com/") }, 401, "state"},
		"a long RelayState":      {func(f url.Values) { f.Set("RelayState", strings.Repeat("A", 5000)) }, 400, "RelayState"},
		"two RelayStates":        {func(f url.Values) { f.Add("RelayState", "x") }, 400, "RelayState"},
		"a header in RelayState": {func(f url.Values) { f.Set("RelayState", "x\r\nSet-Cookie: a=b") }, 400, "RelayState"},
		"no response":            {func(f url.Values) { f.Del("SAMLResponse") }, 400, "SAMLResponse"},
		"two responses":          {func(f url.Values) { f.Add("SAMLResponse", "x") }, 400, "SAMLResponse"},
		"no base64":              {func(f url.Values) { f.Set("SAMLResponse", "<>") }, 401, "base64"},
		"a document type": {func(f url.Values) {
			f.Set("SAMLResponse", base64.StdEncoding.EncodeToString([]byte(`<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>`)))
		}, 401, "document type"},
		"deep": {func(f url.Values) {
			f.Set("SAMLResponse", base64.StdEncoding.EncodeToString([]byte(strings.Repeat("<x>", 20000))))
		}, 401, "too deep"},
		"more than fits":      {func(f url.Values) { f.Set("SAMLResponse", strings.Repeat("A", 360_000)) }, 400, "SAMLResponse"},
		"a megabyte":          {func(f url.Values) { f.Set("SAMLResponse", strings.Repeat("A", 1<<20)) }, 413, "larger"},
		"changed":             {func(f url.Values) { changeResponse(t, f, "ann@example.com", "eve@example.com") }, 401, "was changed"},
		"another destination": {func(f url.Values) { changeResponse(t, f, `Destination="http`, `Destination="x`) }, 401, "destination"},
		"metadata is valid":   {func(url.Values) {}, 303, ""},
	} {
		jar := map[string]string{}
		form := e.there("", jar)
		c.change(form)
		if got := e.post(to, form, jar); got.status != c.status || !strings.Contains(got.body, c.message) || (jar[browser.Cookie] != "") != (c.status == 303) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for name, more := range map[string]struct {
		options []any
		message string
	}{
		"another audience":  {[]any{"audience", "urn:other"}, "another audience"},
		"another recipient": {[]any{"recipient", "https://other.example.com/acs"}, "another recipient"},
		"another issuer":    {[]any{"issuer", "urn:other"}, "another issuer"},
		"SHA-1":             {[]any{"signatureAlgorithm", "rsa-sha1", "digestAlgorithm", "sha1"}, "not allowed"},
		"not signed":        {[]any{"signAssertion", false}, "not signed"},
		"no success":        {[]any{"samlStatusCode", "urn:oasis:names:tc:SAML:2.0:status:Responder"}, "Responder"},
	} {
		got, token := e.by("ann@example.com", "", e.options(more.options...))
		if got.status != 401 || !strings.Contains(got.body, more.message) || token != "" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	e.wantStatus("another organization's address", e.post(e.base+"/auth/saml/nowhere/acs", form, jar), 404, "has an identity provider")
	e.audited("was changed", "another audience", "another request", "started in another browser")
}

// changeResponse changes the text of a response.
func changeResponse(t *testing.T, f url.Values, from, to string) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(f.Get("SAMLResponse"))
	if err != nil || !strings.Contains(string(raw), from) {
		t.Fatalf("%v: no %s in %s", err, from, raw)
	}
	f.Set("SAMLResponse", base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(string(raw), from, to))))
}

// TestSignInsThatBeginAtTheIdentityProvider are rejected unless the organization allows
// them and the user confirms them on a page of the gateway, since any site can have a browser
// post a response of any organization. An assertion is good once.
func TestSignInsThatBeginAtTheIdentityProvider(t *testing.T) {
	t.Parallel()
	e := newSAMLEntrance(t)
	to := e.shown("sp_acs_url")
	begin := func(options map[string]any) url.Values {
		e.saml.next("ann@example.com", options)
		_, form := e.saml.posted(e.saml.url + "/sso?RelayState=" + url.QueryEscape("https://evil.example.com/"))
		return form
	}
	good := e.options("audience", e.shown("sp_entity_id"))
	e.wantStatus("not allowed", e.post(to, begin(good), map[string]string{}), 403, "start at the identity provider")
	e.admin("PUT", "/auth/sso-configurations/"+e.configured, `{"allow_idp_initiated":true}`)
	form, jar := begin(good), map[string]string{}
	page := e.post(to, form, jar)
	if page.status != 200 || jar[browser.Cookie] != "" || !strings.Contains(page.body, "ann@example.com") || !strings.Contains(page.header.Get("Set-Cookie"), "SameSite=Strict") {
		t.Fatalf("without the user's confirmation: %d %s %v", page.status, page.body, page.header)
	}
	e.wantStatus("confirmed by another site", e.submit(page, jar, "Sec-Fetch-Site", "cross-site"), 403, "own page")
	e.wantStatus("confirmed in another browser", e.submit(page, map[string]string{}), 403, "own page")
	forged := url.Values{"SAMLResponse": form["SAMLResponse"], "confirmation": {"x.99999999999"}}
	e.wantStatus("confirmed without the page", e.post(to, forged, jar), 403, "own page")
	if got := e.submit(page, jar); got.status != 303 || got.header.Get("Location") != "/" || jar[browser.Cookie] == "" {
		t.Fatalf("%d %s %v", got.status, got.body, got.header)
	}
	e.wantStatus("a second time", e.submit(e.post(to, form, jar), jar), 401, "used before")
	e.wantStatus("of an issuer that nobody knows", e.post(to, begin(e.options("audience", e.shown("sp_entity_id"), "issuer", "urn:other")), map[string]string{}), 401, "started in another browser")
	e.wantStatus("for another audience", e.post(to, begin(e.options("audience", "urn:other")), map[string]string{}), 401, "another audience")
	e.wantStatus("garbage", e.post(to, url.Values{"SAMLResponse": {"AAAA"}}, map[string]string{}), 400, "SAMLResponse")

	// The response to a request is none of these, whoever brings it.
	e.wantStatus("the answer to a request", e.post(to, e.there("", map[string]string{}), map[string]string{}), 401, "started in another browser")
	e.audited("start at the identity provider", "used before")

	// Another organization has this provider's responses for nothing.
	const theirs = "admin-key-of-the-other-organisation"
	e.tenant("other", theirs, "data-key-of-the-other-organisation")
	made := e.call("POST", "/auth/sso-configurations", fmt.Sprintf(`{"name":"x","protocol":"saml","metadata_url":%q,"allow_idp_initiated":true}`, e.saml.url+"/metadata"), "X-Gateway-Api-Key", theirs)
	e.wantStatus("made", made, 200, "id")
	e.wantStatus("in another organisation", e.post(e.base+"/auth/saml/other/acs", begin(good), map[string]string{}), 401, "another")
}

// TestIdentityProvidersChangeTheirKeys: a key that is not known has the metadata read
// again, which a stranger's key does not help.
func TestIdentityProvidersChangeTheirKeys(t *testing.T) {
	t.Parallel()
	e := newSAMLEntrance(t)
	if _, token := e.by("ann@example.com", "", e.options()); token == "" {
		t.Fatal("refused with the first key")
	}
	key, cert, err := saml.NewKey("idp", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	newer := []any{"key", idptest.PEM("PRIVATE KEY", key), "cert", pemOf(cert)}
	got, _ := e.by("ann@example.com", "", e.options(newer...))
	e.wantStatus("while the copy is too young", got, 401, "not the identity provider's")

	// The copy is two minutes old.
	keys := e.g.core.Store.Table(store.Keys)
	row := store.Credential("SAMLMETA", identity.HashToken("default\x00"+e.configured+"\x00"+e.saml.url+"/metadata\x00"))
	_, _, err = keys.Update(t.Context(), store.Update{Key: row, Set: []store.Assign{{Path: store.At("at"), Value: time.Now().Add(-2 * time.Minute).UnixMilli()}}, If: []store.Cond{store.IfPresent()}})
	if err != nil {
		t.Fatal(err)
	}
	if got, token := e.by("ann@example.com", "", e.options(newer...)); got.status != 303 || token == "" {
		t.Fatalf("with the new key: %d %s", got.status, got.body)
	}
	e.saml.next("ann@example.com", e.options())
	jar := map[string]string{}
	e.wantStatus("with the old key, which is not published any more", e.post(e.shown("sp_acs_url"), e.there("", jar), jar), 401, "not the identity provider's")
}

// TestSAMLConfigurationsAreChecked: all errors at once, and nothing that is secret is shown.
func TestSAMLConfigurationsAreChecked(t *testing.T) {
	t.Parallel()
	e := newSAMLEntrance(t)
	resp, err := http.Get(e.saml.url + "/metadata")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	described, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(described))
	if err != nil {
		t.Fatal(err)
	}
	for body, messages := range map[string][]string{
		`{"name":"x","protocol":"saml"}`:                                                                                                                                          {`"metadata_url"`},
		`{"name":"x","protocol":"saml","metadata_url":"http://169.254.169.254/"}`:                                                                                                 {`"metadata_url"`},
		`{"name":"x","protocol":"saml","metadata_url":"file:///etc/passwd"}`:                                                                                                      {`"metadata_url"`},
		`{"name":"x","protocol":"saml","metadata_xml":"<x/>"}`:                                                                                                                    {`"metadata_xml"`, "cannot be used"},
		`{"name":"x","protocol":"saml","metadata_xml":"<!DOCTYPE x [<!ENTITY a \"b\">]><x/>"}`:                                                                                    {`"metadata_xml"`, "document type"},
		`{"name":"x","protocol":"saml","metadata_xml":` + string(text) + `,"issuer":"urn:other"}`:                                                                                 {`"metadata_xml"`, "does not describe the entity"},
		`{"name":"x","protocol":"saml","metadata_xml":` + string(text) + `,"metadata_url":"https://a.b"}`:                                                                         {`"metadata_xml"`, "cannot be combined"},
		`{"name":"x","protocol":"saml","metadata_xml":7,"sign_requests":"yes"}`:                                                                                                   {`"metadata_xml"`, `"sign_requests"`},
		`{"name":"x","protocol":"saml","metadata_xml":` + string(text) + `,"client_id":"c","client_secret":"s","scopes":["a"],"token_endpoint_auth_method":"client_secret_post"}`: {`"client_id"`, `"client_secret"`, `"scopes"`, `"token_endpoint_auth_method"`},
		`{"name":"x","issuer":"https://a.example.com","client_id":"c","client_secret":"s","metadata_xml":"<x/>","sign_requests":true,"email_attribute":"e"}`:                      {`"metadata_xml"`, `"sign_requests"`, `"email_attribute"`},
		`{"name":"x"}`:                   {`"issuer"`, `"client_id"`, `"client_secret"`},
		`{"name":"x","protocol":"ldap"}`: {`"protocol"`},
	} {
		got := e.call("POST", "/auth/sso-configurations", body, "X-Gateway-Api-Key", adminKey)
		if got.status != 400 {
			t.Errorf("%.100s: %d %s", body, got.status, got.body)
		}
		for _, s := range messages {
			if !strings.Contains(got.body, s) {
				t.Errorf("%.100s: no %s in %s", body, s, got.body)
			}
		}
	}
	e.wantStatus("the protocol of one that is there", e.call("PUT", "/auth/sso-configurations/"+e.configured, `{"protocol":"oidc"}`, "X-Gateway-Api-Key", adminKey), 400, "protocol")
	certificate := e.shown("sp_certificate")
	e.admin("PUT", "/auth/sso-configurations/"+e.configured, `{"metadata_url":null,"metadata_xml":`+string(text)+`,"email_attribute":"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"}`)
	e.reread()
	if e.shown("sp_certificate") != certificate {
		t.Error("another key after a change")
	}
	if got, token := e.by("ann@example.com", "", e.options()); got.status != 303 || token == "" {
		t.Errorf("by metadata that were given: %d %s", got.status, got.body)
	}
	for _, hides := range []string{"service_key", `"base"`} {
		if got := e.call("GET", "/auth/sso-configurations/"+e.configured, "", "X-Gateway-Api-Key", adminKey); strings.Contains(got.body, hides) {
			t.Errorf("%s is shown: %s", hides, got.body)
		}
	}
	e.wantStatus("a member of another organisation", e.call("GET", "/auth/sso-configurations/"+e.configured, "", "X-Gateway-Api-Key", workspaceKey), 403, "")

	// Nothing is published there: a clear rejection, and a reason at verify.
	nobody := httptest.NewServer(http.NotFoundHandler())
	defer nobody.Close()
	gone := e.admin("POST", "/auth/sso-configurations", fmt.Sprintf(`{"name":"gone","protocol":"saml","metadata_url":%q}`, nobody.URL))["id"].(string)
	e.wantStatus("verify", e.call("POST", "/auth/sso-configurations/"+gone+"/verify", "", "X-Gateway-Api-Key", adminKey), 200, "Not Found")
	if got := e.hop(e.base+"/auth/login?organisation_id=default&sso_client_id="+gone, map[string]string{}); got.status < 500 || !strings.Contains(got.body, "cannot be used") {
		t.Errorf("login: %d %s", got.status, got.body)
	}
}

// Anybody can send such responses: each address is bounded, and so is what they put into the
// audit log of the organization that the path names.
func TestAnswersThatNobodyCanReadAreBoundedAndAudited(t *testing.T) {
	t.Parallel()
	e := &samlEntrance{entrance: newEntrance(t)}
	to := e.base + "/auth/saml/default/acs"
	garbage := url.Values{"SAMLResponse": {"<>"}}
	got := e.post(to, garbage, map[string]string{})
	e.wantStatus("no response", got, 400, "cannot be read")
	e.audited("cannot be read")

	for path, send := range map[string]func(address string) reply{
		"/auth/saml/default/acs":      func(a string) reply { return e.post(a, garbage, map[string]string{}) },
		"/auth/saml/default/metadata": func(a string) reply { return e.hop(a, map[string]string{}) },
		"/auth/callback/default":      func(a string) reply { return e.hop(a, map[string]string{}) },
	} {
		eventually(t, func() error { // the count begins anew each minute
			for range 125 {
				if got := send(e.base + path); got.status == http.StatusTooManyRequests && got.header.Get("Retry-After") != "" {
					return nil
				}
			}
			return fmt.Errorf("%s is not bounded", path)
		})
	}
	if n := strings.Count(e.logins(), "cannot be read"); n > 2*60 {
		t.Errorf("the audit log has %d", n)
	}
}
