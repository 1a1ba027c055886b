package saml

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"
)

// Allowed signature algorithms. SHA-1 is not among them.
var (
	signatureMethods = []string{
		"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512",
	}
	digestMethods = []string{
		"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384", "http://www.w3.org/2001/04/xmlenc#sha512",
	}
)

const (
	exclusive = "http://www.w3.org/2001/10/xml-exc-c14n#"
	enveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
)

// errSignature is the only error of well-formed signatures that no key of the identity provider
// has created for this content.
var errSignature = errors.New("the signature is not the identity provider's, or what it covers was changed")

// verify returns an element exactly as its signature covers it: parsed from the canonical bytes
// with a signed digest, independent of the surrounding document. KeyInfo is ignored: keys come
// only from the metadata.
func verify(el *etree.Element, keys []*x509.Certificate, now time.Time) (*etree.Element, error) {
	if err := shape(el); err != nil {
		return nil, err
	}
	around, err := etreeutils.NSBuildParentContext(el)
	if err != nil {
		return nil, errSignature
	}
	alone, err := etreeutils.NSDetatch(around, el)
	if err != nil {
		return nil, errSignature
	}
	signature := only(alone, nsSignature, "Signature")
	if signature == nil {
		return nil, errSignature
	}
	for _, info := range children(signature, nsSignature, "KeyInfo") {
		signature.RemoveChild(info)
	}
	for _, key := range keys {
		v := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{key}})
		v.Clock = dsig.NewFakeClockAt(now)
		covered, err := v.Validate(alone)
		if err == nil && covered != nil && covered.Tag == el.Tag && covered.NamespaceURI() == el.NamespaceURI() && attribute(covered, "ID") == attribute(el, "ID") {
			return covered, nil
		}
	}
	return nil, errSignature
}

// shape rejects every signature except the plain kind: a direct child of the element that it
// covers, by its id, complete, with the two transforms of SAML and without other content.
func shape(el *etree.Element) error {
	bad := errors.New("the signature has an unsupported form; use enveloped, exclusive canonicalization, RSA with SHA-256 or better")
	signature := only(el, nsSignature, "Signature")
	if signature == nil {
		return bad
	}
	for _, c := range signature.ChildElements() {
		if c.NamespaceURI() != nsSignature || !slices.Contains([]string{"SignedInfo", "SignatureValue", "KeyInfo"}, c.Tag) {
			return bad
		}
	}
	info := only(signature, nsSignature, "SignedInfo")
	if info == nil || only(signature, nsSignature, "SignatureValue") == nil || len(children(signature, nsSignature, "KeyInfo")) > 1 || len(info.ChildElements()) != 3 {
		return bad
	}
	way, method, ref := only(info, nsSignature, "CanonicalizationMethod"), only(info, nsSignature, "SignatureMethod"), only(info, nsSignature, "Reference")
	if way == nil || method == nil || ref == nil || attribute(way, "Algorithm") != exclusive {
		return bad
	}
	if !slices.Contains(signatureMethods, attribute(method, "Algorithm")) || len(method.ChildElements()) > 0 {
		return errors.New("the signature's algorithm is not allowed: RSA with SHA-256, SHA-384 or SHA-512")
	}
	id := attribute(el, "ID")
	if id == "" || attribute(ref, "URI") != "#"+id || len(ref.ChildElements()) != 3 {
		return bad
	}
	digest, transforms := only(ref, nsSignature, "DigestMethod"), only(ref, nsSignature, "Transforms")
	if digest == nil || transforms == nil || only(ref, nsSignature, "DigestValue") == nil {
		return bad
	}
	if !slices.Contains(digestMethods, attribute(digest, "Algorithm")) {
		return errors.New("the signature's digest is not allowed: SHA-256, SHA-384 or SHA-512")
	}
	steps := transforms.ChildElements()
	if len(steps) != 2 || !hasName(steps[0], nsSignature, "Transform") || !hasName(steps[1], nsSignature, "Transform") ||
		attribute(steps[0], "Algorithm") != enveloped || len(steps[0].ChildElements()) > 0 || attribute(steps[1], "Algorithm") != exclusive {
		return bad
	}
	for _, c := range steps[1].ChildElements() {
		if !hasName(c, exclusive, "InclusiveNamespaces") || len(c.ChildElements()) > 0 {
			return bad
		}
	}
	return nil
}

// arranged rejects ambiguous documents: a second assertion or response anywhere, duplicate ids,
// and signatures that are not direct children of the element that they cover.
func arranged(root *etree.Element) error {
	var err error
	assertions := 0
	ids := map[string]bool{}
	walk(root, func(e *etree.Element) bool {
		switch e.Tag {
		case "Response":
			if e != root {
				err = errors.New("must be one response")
			}
		case "Assertion", "EncryptedAssertion":
			if assertions++; assertions > 1 || e != root && (e.Parent() != root || !hasName(root, nsProtocol, "Response")) {
				err = errors.New("must have one assertion, right below the response")
			}
		case "Signature":
			p := e.Parent()
			if e == root || p != root && !hasName(p, nsAssertion, "Assertion") || len(children(p, nsSignature, "Signature")) != 1 {
				err = errors.New("must have its signatures right below the response and the assertion")
			}
		}
		for _, a := range e.Attr {
			if !strings.EqualFold(a.Key, "ID") || a.Space == "xmlns" {
				continue
			}
			if ids[a.Value] {
				err = errors.New("has an id twice")
			}
			ids[a.Value] = true
		}
		return err == nil
	})
	if err == nil && assertions != 1 {
		err = errors.New("must have one assertion, right below the response")
	}
	return err
}

// Service is the gateway as a service provider of one identity provider.
type Service struct {
	EntityID, Consumer string // the gateway's entity id, and the address for responses
	Provider           *Provider
	Key                *rsa.PrivateKey
	Certificate        []byte // DER, of Key
	SignRequests       bool
	Mapping            Mapping
}

// Mapping names the attributes of a user; empty for the common names.
type Mapping struct{ Email, FirstName, LastName string }

// Validity of the gateway's certificate, which only transports its key.
const certificateYears = 20

// NewKey returns the key of a service and its self-signed certificate.
func NewKey(name string, now time.Time) (key, certificate []byte, err error) {
	k, err := rsa.GenerateKey(rand.Reader, leastRSA)
	if err != nil {
		return nil, nil, fmt.Errorf("saml: make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("saml: make a serial number: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(certificateYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, BasicConstraintsValid: true,
	}
	if certificate, err = x509.CreateCertificate(rand.Reader, t, t, &k.PublicKey, k); err != nil {
		return nil, nil, fmt.Errorf("saml: make a certificate: %w", err)
	}
	if key, err = x509.MarshalPKCS8PrivateKey(k); err != nil {
		return nil, nil, fmt.Errorf("saml: write a key: %w", err)
	}
	return key, certificate, nil
}

// ReadKey decodes the result of NewKey.
func ReadKey(raw []byte) (*rsa.PrivateKey, error) {
	k, err := x509.ParsePKCS8PrivateKey(raw)
	if own, ok := k.(*rsa.PrivateKey); err == nil && ok {
		return own, nil
	}
	return nil, errors.New("saml: the stored key cannot be read")
}

// instantForm is the time format, in UTC.
const instantForm = "2006-01-02T15:04:05Z"

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

// RequestURL returns the address of an authentication request with the id. state is returned
// unchanged; fresh requires the user to authenticate again.
func (s *Service) RequestURL(id, state string, fresh bool, now time.Time) (string, error) {
	force := ""
	if fresh {
		force = ` ForceAuthn="true"`
	}
	doc := `<samlp:AuthnRequest xmlns:samlp="` + nsProtocol + `" xmlns:saml="` + nsAssertion + `" ID="` + escaped(id) + `" Version="2.0" IssueInstant="` + now.UTC().Format(instantForm) +
		`" Destination="` + escaped(s.Provider.SignOn) + `"` + force + ` ProtocolBinding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" AssertionConsumerServiceURL="` + escaped(s.Consumer) + `"><saml:Issuer>` +
		escaped(s.EntityID) + `</saml:Issuer><samlp:NameIDPolicy AllowCreate="true"/></samlp:AuthnRequest>`
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return "", fmt.Errorf("saml: compress: %w", err)
	}
	if _, err = w.Write([]byte(doc)); err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("saml: compress: %w", err)
	}
	u, err := url.Parse(s.Provider.SignOn)
	if err != nil {
		return "", errors.New("the identity provider's address is not valid")
	}
	query := "SAMLRequest=" + url.QueryEscape(base64.StdEncoding.EncodeToString(b.Bytes())) + "&RelayState=" + url.QueryEscape(state)
	if s.SignRequests || s.Provider.WantsSigned {
		query += "&SigAlg=" + url.QueryEscape(signatureMethods[0])
		sum := sha256.Sum256([]byte(query))
		signed, err := rsa.SignPKCS1v15(rand.Reader, s.Key, crypto.SHA256, sum[:])
		if err != nil {
			return "", fmt.Errorf("saml: sign: %w", err)
		}
		query += "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signed))
	}
	if u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	u.RawQuery, u.Fragment = query, ""
	return u.String(), nil
}

// Metadata returns the gateway's metadata for its identity provider.
func (s *Service) Metadata() []byte {
	key := ""
	for _, use := range []string{"signing", "encryption"} {
		methods := ""
		if use == "encryption" {
			methods = `<md:EncryptionMethod Algorithm="` + nsCipher11 + `aes256-gcm"/><md:EncryptionMethod Algorithm="` + nsCipher + `aes256-cbc"/><md:EncryptionMethod Algorithm="` + oaepFirst + `"/>`
		}
		key += `<md:KeyDescriptor use="` + use + `"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + base64.StdEncoding.EncodeToString(s.Certificate) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo>` + methods + `</md:KeyDescriptor>`
	}
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<md:EntityDescriptor xmlns:md="` + nsMetadata + `" xmlns:ds="` + nsSignature + `" entityID="` + escaped(s.EntityID) + `">` +
		`<md:SPSSODescriptor AuthnRequestsSigned="` + fmt.Sprint(s.SignRequests) + `" WantAssertionsSigned="true" protocolSupportEnumeration="` + nsProtocol + `">` + key +
		`<md:NameIDFormat>` + formatEmail + `</md:NameIDFormat>` +
		`<md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="` + escaped(s.Consumer) + `" index="0" isDefault="true"/></md:SPSSODescriptor></md:EntityDescriptor>` + "\n")
}
