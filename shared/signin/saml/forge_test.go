package saml_test

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"gateway/shared/signin/saml"
)

const (
	idp      = "https://idp.example.com/entity"
	entityID = "https://gateway.example.com/v1/auth/saml/org"
	acs      = entityID + "/acs"
	request  = "_request-1"
	dsNS     = "http://www.w3.org/2000/09/xmldsig#"
	excC14N  = "http://www.w3.org/2001/10/xml-exc-c14n#"
	envelope = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
	rsa256   = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	sha256   = "http://www.w3.org/2001/04/xmlenc#sha256"
	xenc     = "http://www.w3.org/2001/04/xmlenc#"
	xenc11   = "http://www.w3.org/2009/xmlenc11#"
	oaep     = xenc + "rsa-oaep-mgf1p"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// keys of tests, which open nothing: of the identity provider, of the next one it will
// have, of a stranger, and of the gateway. Each line has a key and its certificate. They
// are kept since making them takes most of the time of a fuzzer.
type pair struct {
	key  *rsa.PrivateKey
	cert []byte
}

//go:embed testdata/keys.txt
var stored string

var keys = sync.OnceValue(func() (out [4]pair) {
	part := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			panic(err)
		}
		return b
	}
	for i, line := range strings.Split(strings.TrimSpace(stored), "\n") {
		raw, cert, _ := strings.Cut(line, " ")
		key, err := saml.ReadKey(part(raw))
		if err != nil {
			panic(err)
		}
		out[i] = pair{key, part(cert)}
	}
	return out
})

func service() *saml.Service {
	k := keys()
	return &saml.Service{
		EntityID: entityID, Consumer: acs, Key: k[3].key, Certificate: k[3].cert,
		Provider: &saml.Provider{EntityID: idp, SignOn: "https://idp.example.com/sso", Certificates: [][]byte{k[0].cert, k[1].cert}},
	}
}

// forge makes responses, good ones unless it is told otherwise.
type forge struct {
	t                               *testing.T
	key                             pair
	issuer, responseIssuer          string
	audience, recipient             string
	destination                     string
	answers, confirms               string // InResponseTo of the response, of the confirmation
	notBefore, until, confirmUntil  time.Time
	issued, shown                   time.Time
	sessionUntil                    string
	name, format, attributes, id    string
	conditions, status, method      string
	signResponse, signAssertion     bool
	sigMethod, digest, canonical    string
	transforms, keyInfo, uri, extra string
	plain                           func(string) string // of the assertion before it is signed
	encrypt                         func(*forge, string) string
	bend                            func(string) string // of the whole at the end
	encode                          func([]byte) string
	wanted                          saml.Expectation
	service                         *saml.Service
}

func newForge(t *testing.T) *forge {
	t.Helper()
	return &forge{
		t: t, key: keys()[0], issuer: idp, responseIssuer: idp, audience: entityID, recipient: acs, destination: acs, answers: request, confirms: request,
		notBefore: now.Add(-time.Minute), until: now.Add(5 * time.Minute), confirmUntil: now.Add(5 * time.Minute), issued: now, shown: now.Add(-time.Second),
		name: "ann@example.com", format: "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress", id: "_a1", status: "urn:oasis:names:tc:SAML:2.0:status:Success",
		method: "urn:oasis:names:tc:SAML:2.0:cm:bearer", signAssertion: true, sigMethod: rsa256, digest: sha256, canonical: excC14N,
		transforms: `<ds:Transform Algorithm="` + envelope + `"></ds:Transform><ds:Transform Algorithm="` + excC14N + `"></ds:Transform>`,
		encode:     base64.StdEncoding.EncodeToString, wanted: saml.Expectation{Request: request, Now: now}, service: service(),
	}
}

func at(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func attributeOf(name, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(` %s="%s"`, name, value)
}

// make returns what a browser would post.
func (f *forge) make() string {
	f.t.Helper()
	conditions := f.conditions
	if conditions == "" {
		conditions = `<saml:AudienceRestriction><saml:Audience>` + f.audience + `</saml:Audience></saml:AudienceRestriction>`
	}
	a := `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="` + f.id + `" IssueInstant="` + at(f.issued) + `" Version="2.0"><saml:Issuer>` + f.issuer + `</saml:Issuer><saml:Subject><saml:NameID` + attributeOf("Format", f.format) + `>` + f.name +
		`</saml:NameID><saml:SubjectConfirmation Method="` + f.method + `"><saml:SubjectConfirmationData` + attributeOf("InResponseTo", f.confirms) + ` NotOnOrAfter="` + at(f.confirmUntil) + `" Recipient="` + f.recipient +
		`"></saml:SubjectConfirmationData></saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="` + at(f.notBefore) + `" NotOnOrAfter="` + at(f.until) + `">` + conditions + `</saml:Conditions><saml:AuthnStatement AuthnInstant="` +
		at(f.shown) + `" SessionIndex="s1"` + attributeOf("SessionNotOnOrAfter", f.sessionUntil) + `><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
		f.attributes + `</saml:Assertion>`
	if f.plain != nil {
		a = f.plain(a)
	}
	if f.signAssertion {
		a = f.sign(a)
	}
	if f.encrypt != nil {
		a = f.encrypt(f, a)
	}
	r := `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"` + attributeOf("Destination", f.destination) + ` ID="_r1"` + attributeOf("InResponseTo", f.answers) + ` IssueInstant="` + at(f.issued) + `" Version="2.0">` +
		`<saml:Issuer xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">` + f.responseIssuer + `</saml:Issuer><samlp:Status><samlp:StatusCode Value="` + f.status + `"></samlp:StatusCode></samlp:Status>` + a + f.extra + `</samlp:Response>`
	if f.signResponse {
		r = f.sign(r)
	}
	if f.bend != nil {
		r = f.bend(r)
	}
	return f.encode([]byte(r))
}

var hashes = map[string]crypto.Hash{
	sha256: crypto.SHA256, dsNS + "sha1": crypto.SHA1, "http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384, xenc + "sha512": crypto.SHA512,
	rsa256: crypto.SHA256, dsNS + "rsa-sha1": crypto.SHA1, "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384": crypto.SHA384, "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512": crypto.SHA512,
}

func sum(method string, b []byte) ([]byte, crypto.Hash) {
	h, ok := hashes[method]
	if !ok {
		h = crypto.SHA256
	}
	w := h.New()
	w.Write(b)
	return w.Sum(nil), h
}

// sign puts a signature after the issuer of an element.
func (f *forge) sign(text string) string {
	f.t.Helper()
	doc := etree.NewDocument()
	if err := doc.ReadFromString(text); err != nil {
		f.t.Fatal(err)
	}
	uri := "#" + doc.Root().SelectAttrValue("ID", "")
	if f.uri != "" {
		uri = f.uri
	}
	canonical, err := dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("").Canonicalize(doc.Root().Copy())
	if err != nil {
		f.t.Fatal(err)
	}
	digest, _ := sum(f.digest, canonical)
	info := `<ds:SignedInfo xmlns:ds="` + dsNS + `"><ds:CanonicalizationMethod Algorithm="` + f.canonical + `"></ds:CanonicalizationMethod><ds:SignatureMethod Algorithm="` + f.sigMethod + `"></ds:SignatureMethod><ds:Reference URI="` + uri +
		`"><ds:Transforms>` + f.transforms + `</ds:Transforms><ds:DigestMethod Algorithm="` + f.digest + `"></ds:DigestMethod><ds:DigestValue>` + base64.StdEncoding.EncodeToString(digest) + `</ds:DigestValue></ds:Reference></ds:SignedInfo>`
	hashed, h := sum(f.sigMethod, []byte(info))
	value, err := rsa.SignPKCS1v15(rand.Reader, f.key.key, h, hashed)
	if err != nil {
		f.t.Fatal(err)
	}
	signature := `<ds:Signature xmlns:ds="` + dsNS + `">` + strings.Replace(info, ` xmlns:ds="`+dsNS+`"`, "", 1) + `<ds:SignatureValue>` + base64.StdEncoding.EncodeToString(value) + `</ds:SignatureValue>` + f.keyInfo + `</ds:Signature>`
	return strings.Replace(text, "</saml:Issuer>", "</saml:Issuer>"+signature, 1)
}

// info returns a KeyInfo with a certificate.
func info(p pair) string {
	return `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + base64.StdEncoding.EncodeToString(p.cert) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`
}

// truncate takes from the first begin to the first end after it.
func truncate(text, begin, end string) string {
	_, rest, ok := strings.Cut(text, begin)
	inner, _, there := strings.Cut(rest, end)
	if !ok || !there {
		panic("no " + begin + " in the response")
	}
	return begin + inner + end
}

func assertionOf(r string) string { return truncate(r, "<saml:Assertion ", "</saml:Assertion>") }
func signatureOf(r string) string { return truncate(r, "<ds:Signature ", "</ds:Signature>") }

// evil returns an element without its signature that names another user by another id.
func evil(e string) string {
	if strings.Contains(e, "<ds:Signature ") {
		e = strings.Replace(e, signatureOf(e), "", 1)
	}
	return strings.NewReplacer("ann@example.com", "eve@example.com", `ID="_a1"`, `ID="_evil"`, `ID="_r1"`, `ID="_evil2"`).Replace(e)
}

// sealed encrypts with AES of a mode and RSA-OAEP.
func sealed(mode, wrap, mask string, h, mgf crypto.Hash, to func() *rsa.PublicKey) func(*forge, string) string {
	return func(f *forge, plain string) string {
		size := 32
		if strings.Contains(mode, "128") {
			size = 16
		}
		secret := make([]byte, size)
		_, _ = rand.Read(secret)
		block, err := aes.NewCipher(secret)
		if err != nil {
			f.t.Fatal(err)
		}
		var content []byte
		if strings.HasSuffix(mode, "gcm") {
			c, err := cipher.NewGCM(block)
			if err != nil {
				f.t.Fatal(err)
			}
			nonce := make([]byte, c.NonceSize())
			_, _ = rand.Read(nonce)
			content = append(nonce, c.Seal(nil, nonce, []byte(plain), nil)...)
		} else {
			pad := 16 - len(plain)%16
			padded := append([]byte(plain), make([]byte, pad)...)
			padded[len(padded)-1] = byte(pad)
			iv := make([]byte, 16)
			_, _ = rand.Read(iv)
			content = append(iv, make([]byte, len(padded))...)
			cipher.NewCBCEncrypter(block, iv).CryptBlocks(content[16:], padded)
		}
		var key []byte
		if wrap == xenc+"rsa-1_5" {
			//lint:ignore SA1019 it is what has to be rejected
			key, err = rsa.EncryptPKCS1v15(rand.Reader, to(), secret)
		} else {
			key, err = rsa.EncryptOAEPWithOptions(rand.Reader, to(), secret, &rsa.OAEPOptions{Hash: h, MGFHash: mgf})
		}
		if err != nil {
			f.t.Fatal(err)
		}
		b := base64.StdEncoding.EncodeToString
		return `<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"><xenc:EncryptedData xmlns:xenc="` + xenc + `" Type="` + xenc + `Element"><xenc:EncryptionMethod Algorithm="` + mode + `"></xenc:EncryptionMethod><ds:KeyInfo xmlns:ds="` + dsNS +
			`"><xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="` + wrap + `">` + mask + `</xenc:EncryptionMethod><xenc:CipherData><xenc:CipherValue>` + b(key) + `</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey></ds:KeyInfo><xenc:CipherData><xenc:CipherValue>` +
			b(content) + `</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>`
	}
}

func ours() *rsa.PublicKey { return &keys()[3].key.PublicKey }

func gcm() func(*forge, string) string {
	return sealed(xenc11+"aes256-gcm", oaep, "", crypto.SHA1, crypto.SHA1, ours)
}

func cbc() func(*forge, string) string {
	return sealed(xenc+"aes256-cbc", oaep, "", crypto.SHA1, crypto.SHA1, ours)
}
