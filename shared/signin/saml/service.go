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
	"strings"
	"time"
)

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
