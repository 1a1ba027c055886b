package saml_test

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/signin/saml"
	"gateway/shared/store/sqlite"
)

func TestPersonOfAnAssertion(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.signResponse, f.sessionUntil = true, at(now.Add(time.Hour))
	f.attributes = names("Ann", strings.Repeat("é", 300))
	got, err := read(f)
	want := &saml.User{
		Subject: "ann@example.com", Email: "ann@example.com", FirstName: "Ann", LastName: strings.Repeat("é", 255), SessionIndex: "s1",
		Authenticated: now.Add(-time.Second), Until: now.Add(time.Hour), Issuer: idp, Assertion: "_a1", NotAfter: now.Add(7 * time.Minute),
	}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Fatalf("%v %s", err, cmp.Diff(want, got))
	}

	// Named attributes are the only ones that are looked at.
	f.service.Mapping = saml.Mapping{Email: "urn:mail", FirstName: "urn:first", LastName: "urn:last"}
	if _, err := read(f); err == nil || !strings.Contains(err.Error(), "no e-mail address") {
		t.Errorf("%v", err)
	}
	f.attributes = strings.NewReplacer(`"email"`, `"urn:mail"`).Replace(mail("bea@example.com"))
	if got, err = read(f); err != nil || got.Email != "bea@example.com" || got.Subject != "ann@example.com" || got.FirstName != "" {
		t.Errorf("%+v %v", got, err)
	}
}

// metadata of an identity provider with the certificates.
func metadata(entity string, certificates ...[]byte) string {
	k := ""
	for _, c := range certificates {
		k += `<md:KeyDescriptor use="signing">` + strings.ReplaceAll(info(pair{cert: c}), "<ds:KeyInfo>", `<ds:KeyInfo xmlns:ds="`+dsNS+`">`) + `</md:KeyDescriptor>`
	}
	return `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="` + entity + `"><!-- of a test --><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` + k +
		`<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://idp.example.com/post"/><md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example.com/sso?tenant=1"/></md:IDPSSODescriptor></md:EntityDescriptor>`
}

// certificate makes one of another key or with another signature.
func certificate(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestMetadataOfIdentityProviders(t *testing.T) {
	t.Parallel()
	k := keys()
	good := metadata(idp, k[0].cert, k[1].cert)
	p, err := saml.ParseMetadata([]byte(good), "", now)
	if err != nil || p.EntityID != idp || p.SignOn != "https://idp.example.com/sso?tenant=1" || len(p.Certificates) != 2 || !bytes.Equal(p.Certificates[1], k[1].cert) {
		t.Fatalf("%+v %v", p, err)
	}
	several := `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">` + good + metadata("urn:other", k[2].cert) + `</md:EntitiesDescriptor>`
	if p, err := saml.ParseMetadata([]byte(several), "urn:other", now); err != nil || !bytes.Equal(p.Certificates[0], k[2].cert) {
		t.Errorf("one of several: %+v %v", p, err)
	}
	if p, err := saml.ParseMetadata([]byte(strings.Replace(good, "entityID", `validUntil="2026-05-02T00:00:00Z" entityID`, 1)), idp, now); err != nil || !p.Until.Equal(now.Add(12*time.Hour)) {
		t.Errorf("with an end: %+v %v", p, err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ raw, entity, why string }{
		"none of several is named":   {several, "", "several"},
		"another is named":           {good, "urn:other", "does not describe the entity"},
		"two of a name":              {strings.Replace(several, "urn:other", idp, 1), idp, "several"},
		"no longer valid":            {strings.Replace(good, "entityID", `validUntil="2026-05-01T12:00:00Z" entityID`, 1), "", "no longer valid"},
		"an end that is none":        {strings.Replace(good, "entityID", `validUntil="soon" entityID`, 1), "", "not a time"},
		"no name":                    {strings.Replace(good, idp, "", 1), "", "entityID"},
		"a service":                  {strings.ReplaceAll(good, "IDPSSODescriptor", "SPSSODescriptor"), "", "IDPSSODescriptor"},
		"no redirect":                {strings.Replace(good, "HTTP-Redirect", "SOAP", 1), "", "HTTP-Redirect"},
		"a script for an address":    {strings.Replace(good, "https://idp.example.com/sso?tenant=1", "javascript:alert(1)//x", 1), "", "HTTP-Redirect"},
		"a key of 1024 bits":         {metadata(idp, certificate(t, small)), "", "2048"},
		"a key that is not RSA":      {metadata(idp, certificate(t, curve)), "", "2048"},
		"no keys":                    {metadata(idp), "", "certificates"},
		"eleven keys":                {metadata(idp, slices(k[0].cert, 11)...), "", "certificates"},
		"a certificate that is none": {metadata(idp, []byte("x")), "", "cannot be read"},
		"not base64":                 {strings.Replace(good, "<ds:X509Certificate>", "<ds:X509Certificate>*", 1), "", "cannot be read"},
		"a document type":            {`<!DOCTYPE x [<!ENTITY a "b">]>` + good, "", "document type"},
		"too large":                  {good + strings.Repeat(" ", saml.MaxMetadata), "", "too large"},
		"no XML":                     {"{}", "", "root element"},
		"a page":                     {"<html><body/></html>", "", "does not describe the entity"},
	} {
		if p, err := saml.ParseMetadata([]byte(c.raw), c.entity, now); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %+v, %v; want %q", name, p, err, c.why)
		}
	}
}

func slices(b []byte, n int) (out [][]byte) {
	for range n {
		out = append(out, b)
	}
	return out
}

func TestRequestURLRoundTrips(t *testing.T) {
	t.Parallel()
	s := service()
	s.Provider.SignOn = "https://idp.example.com/sso?tenant=1&x=a%20b"
	s.EntityID += `"><x a="`
	to, err := s.RequestURL("_id1", "the-state", true, now)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil || u.Host != "idp.example.com" || u.Query().Get("tenant") != "1" || u.Query().Get("RelayState") != "the-state" || u.Query().Has("Signature") {
		t.Fatalf("%s %v", to, err)
	}
	packed, err := base64.StdEncoding.DecodeString(u.Query().Get("SAMLRequest"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`ID="_id1"`, `ForceAuthn="true"`, `IssueInstant="2026-05-01T12:00:00Z"`, `AssertionConsumerServiceURL="` + acs + `"`, `Destination="https://idp.example.com/sso?tenant=1&amp;x=a%20b"`, "&#34;&gt;&lt;x a="} {
		if !bytes.Contains(doc, []byte(want)) {
			t.Errorf("no %s in %s", want, doc)
		}
	}
	for name, change := range map[string]func(*saml.Service){"asked for here": func(s *saml.Service) { s.SignRequests = true }, "asked for there": func(s *saml.Service) { s.Provider.WantsSigned = true }} {
		s := service()
		change(s)
		to, err := s.RequestURL("_id1", "a state&x=1", false, now)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(to)
		signed, signature, _ := strings.Cut(u.RawQuery, "&Signature=")
		raw, _ := url.QueryUnescape(signature)
		value, _ := base64.StdEncoding.DecodeString(raw)
		digest, h := sum(rsa256, []byte(signed))
		if err := rsa.VerifyPKCS1v15(&s.Key.PublicKey, h, digest, value); err != nil || u.Query().Get("SigAlg") != rsa256 || u.Query().Get("RelayState") != "a state&x=1" {
			t.Errorf("%s: %v %s", name, err, to)
		}
	}
}

// TestOwnMetadata: what an identity provider is given can be read, and has the key
// that it encrypts for.
func TestOwnMetadata(t *testing.T) {
	t.Parallel()
	s := service()
	raw := string(s.Metadata())
	for _, want := range []string{`entityID="` + entityID + `"`, `Location="` + acs + `"`, `use="encryption"`, `use="signing"`, base64.StdEncoding.EncodeToString(s.Certificate), `AuthnRequestsSigned="false"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
	if _, err := saml.ParseMetadata([]byte(raw), "", now); err == nil || !strings.Contains(err.Error(), "IDPSSODescriptor") {
		t.Errorf("it is read as another thing: %v", err)
	}
	secret, certificate, err := saml.NewKey("a gateway", now)
	if err != nil {
		t.Fatal(err)
	}
	made, err := saml.ReadKey(secret)
	read, bad := x509.ParseCertificate(certificate)
	if err != nil || bad != nil || !made.PublicKey.Equal(read.PublicKey) || read.Subject.CommonName != "a gateway" || read.NotAfter.Before(now.AddDate(19, 0, 0)) {
		t.Errorf("a new key: %v %v %+v", err, bad, read)
	}
	if _, err := saml.ReadKey(sha1.New().Sum(nil)); err == nil {
		t.Error("what is no key is one")
	}
}

// published is an identity provider that publishes its metadata.
type published struct {
	*httptest.Server
	body     atomic.Value
	requests atomic.Int64
}

func publish(t *testing.T, body string) *published {
	t.Helper()
	p := &published{}
	p.body.Store(body)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.requests.Add(1)
		if body := p.body.Load().(string); body != "" {
			fmt.Fprint(w, body)
			return
		}
		http.Redirect(w, nil, "http://127.0.0.1:1/", http.StatusFound)
	}))
	t.Cleanup(p.Close)
	return p
}

// TestPublishedMetadata are fetched once an hour, do for a day where nobody answers, and
// are fetched again for a key that is not known.
func TestPublishedMetadata(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k := keys()
	p := publish(t, metadata(idp, k[0].cert))
	source := &saml.Source{Store: s, Transport: http.DefaultTransport, Org: "o", ID: "c", URL: p.URL}
	start := time.Now() // the store drops by its own clock
	get := func(after time.Duration, renew bool, cert []byte, requests int64) {
		t.Helper()
		got, err := source.Get(context.Background(), start.Add(after), renew)
		if cert == nil {
			if err == nil {
				t.Fatalf("after %s: %+v", after, got)
			}
		} else if err != nil || len(got.Certificates) != 1 || !bytes.Equal(got.Certificates[0], cert) {
			t.Fatalf("after %s: %+v %v", after, got, err)
		}
		if n := p.requests.Load(); n != requests {
			t.Fatalf("after %s: asked %d times, want %d", after, n, requests)
		}
	}
	get(0, false, k[0].cert, 1)
	p.body.Store(metadata(idp, k[1].cert))
	get(30*time.Second, true, k[0].cert, 1)
	get(59*time.Minute, false, k[0].cert, 1)
	get(59*time.Minute, true, k[1].cert, 2)
	p.body.Store("nonsense")
	get(3*time.Hour, false, k[1].cert, 3)
	get(26*time.Hour, false, nil, 4)
	other := *source
	other.Org = "another"
	if _, err := other.Get(context.Background(), start, false); err == nil {
		t.Error("another organization has the copy")
	}
}

// TestAssertionIsAcceptedOnce, in its organization and of its issuer.
func TestAssertionIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := &saml.User{Issuer: idp, Assertion: "_a1", NotAfter: time.Now().Add(time.Hour)}
	for i, want := range []error{nil, saml.ErrUsed} {
		if err := saml.Use(context.Background(), s, "o", p); !errors.Is(err, want) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := saml.Use(context.Background(), s, "o", &saml.User{Issuer: "urn:other", Assertion: "_a1", NotAfter: p.NotAfter}); err != nil {
		t.Error(err)
	}
	if err := saml.Use(context.Background(), s, "another", p); err != nil {
		t.Error(err)
	}
}

// FuzzResponse: whatever comes, nobody is let in whom the identity provider has not
// signed, and nothing falls over.
func FuzzResponse(f *testing.F) {
	t := &testing.T{}
	for _, change := range []func(*forge){nothing, whole, both, func(g *forge) { g.encrypt = gcm() }, func(g *forge) { g.attributes = names("A", "B") }} {
		g := newForge(t)
		change(g)
		f.Add([]byte(mustRead(g)))
	}
	f.Add([]byte(`<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"/>`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := saml.Open(base64.StdEncoding.EncodeToString(raw))
		if err != nil {
			return
		}
		_ = m.Claimed()
		p, err := service().Check(m, saml.Expectation{Request: request, Now: now})
		if err == nil && (p.Subject != "ann@example.com" || p.Email != "ann@example.com") {
			t.Errorf("%+v was let in", p)
		}
	})
}

// FuzzMetadata: what is taken can be used.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(metadata(idp, keys()[0].cert)))
	f.Add(service().Metadata())
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := saml.ParseMetadata(raw, "", now)
		if err != nil {
			return
		}
		s := service()
		s.Provider = p
		if to, err := s.RequestURL("_i", "s", false, now); err != nil || p.EntityID == "" || len(p.Certificates) == 0 || strings.ContainsAny(to, "\r\n") {
			t.Errorf("%+v %q %v", p, to, err)
		}
	})
}
