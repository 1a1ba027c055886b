package saml

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/beevik/etree"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/store"
)

// Provider is the metadata of an identity provider.
type Provider struct {
	EntityID     string    `json:"entity_id"`
	SignOn       string    `json:"sign_on"`      // address for requests by redirect
	Certificates [][]byte  `json:"certificates"` // DER certificates of its signing keys
	WantsSigned  bool      `json:"wants_signed,omitempty"`
	Until        time.Time `json:"until,omitzero"` // zero if the metadata does not state it
}

// Limits of metadata.
const (
	maxKeys     = 10
	maxProvider = 1000 // entities in one document
	leastRSA    = 2048 // bits
	mostRSA     = 8192
	maxAddress  = 2048
	maxName     = 1024
)

const redirectBinding = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"

// ParseMetadata parses the metadata of an identity provider. entity selects one of several, or
// is empty. The error can be shown to users.
func ParseMetadata(raw []byte, entity string, now time.Time) (*Provider, error) {
	root, err := parse(raw, ofMetadata)
	if err != nil {
		return nil, errors.New("the metadata " + err.Error())
	}
	e, until, err := choose(root, entity)
	if err != nil {
		return nil, err
	}
	role := only(e, nsMetadata, "IDPSSODescriptor")
	if role == nil {
		return nil, errors.New("the metadata must describe an identity provider: one IDPSSODescriptor")
	}
	p := &Provider{EntityID: attribute(e, "entityID"), WantsSigned: attribute(role, "WantAuthnRequestsSigned") == "true" || attribute(role, "WantAuthnRequestsSigned") == "1"}
	for _, at := range []*etree.Element{e, role} {
		t, err := instant(attribute(at, "validUntil"))
		if err != nil {
			return nil, errors.New("the metadata has a validUntil that is not a time")
		}
		if until = earlier(until, t); !until.IsZero() && !now.Before(until) {
			return nil, errors.New("the metadata is no longer valid (validUntil)")
		}
	}
	p.Until = until
	if p.EntityID == "" || len(p.EntityID) > maxName {
		return nil, errors.New("the metadata must have an entityID of at most 1024 characters")
	}
	for _, s := range children(role, nsMetadata, "SingleSignOnService") {
		if attribute(s, "Binding") == redirectBinding && p.SignOn == "" {
			p.SignOn = attribute(s, "Location")
		}
	}
	if u, err := url.Parse(p.SignOn); err != nil || len(p.SignOn) > maxAddress || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the metadata must have a SingleSignOnService with the binding HTTP-Redirect and an address")
	}
	return p, p.keys(role)
}

// choose finds the entity and the expiry of the metadata.
func choose(root *etree.Element, entity string) (*etree.Element, time.Time, error) {
	all := []*etree.Element{root}
	var until time.Time
	if hasName(root, nsMetadata, "EntitiesDescriptor") {
		var err error
		if until, err = instant(attribute(root, "validUntil")); err != nil {
			return nil, until, errors.New("the metadata has a validUntil that is not a time")
		}
		all = children(root, nsMetadata, "EntityDescriptor")
	}
	var found []*etree.Element
	for _, e := range all {
		if hasName(e, nsMetadata, "EntityDescriptor") && (entity == "" || attribute(e, "entityID") == entity) {
			found = append(found, e)
		}
	}
	switch {
	case len(all) > maxProvider || len(found) > 1:
		return nil, until, errors.New("the metadata describes several entities: name one by issuer")
	case len(found) == 0:
		return nil, until, errors.New("the metadata does not describe the entity in issuer")
	}
	return found[0], until, nil
}

// keys reads the certificates of the provider's signing keys.
func (p *Provider) keys(role *etree.Element) error {
	for _, k := range children(role, nsMetadata, "KeyDescriptor") {
		if use := attribute(k, "use"); use != "" && use != "signing" {
			continue
		}
		for _, data := range children(only(k, nsSignature, "KeyInfo"), nsSignature, "X509Data") {
			for _, c := range children(data, nsSignature, "X509Certificate") {
				der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(textOrEmpty(c)), ""))
				if err != nil {
					return errors.New("the metadata has a certificate that cannot be read")
				}
				if _, err := usable(der); err != nil {
					return err
				}
				p.Certificates = append(p.Certificates, der)
			}
		}
	}
	if len(p.Certificates) == 0 || len(p.Certificates) > maxKeys {
		return errors.New("the metadata must have 1 to 10 certificates to sign with")
	}
	return nil
}

// usable parses a certificate with a sufficiently strong key.
func usable(der []byte) (*x509.Certificate, error) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.New("the metadata has a certificate that cannot be read")
	}
	if k, ok := c.PublicKey.(*rsa.PublicKey); !ok || k.N.BitLen() < leastRSA || k.N.BitLen() > mostRSA {
		return nil, errors.New("the metadata has a key that is not an RSA key of 2048 to 8192 bits")
	}
	return c, nil
}

// certificates returns the parsed certificates that are valid at this time.
func (p *Provider) certificates(now time.Time) (out []*x509.Certificate, err error) {
	for _, der := range p.Certificates {
		if c, err := usable(der); err == nil && !now.Before(c.NotBefore) && !now.After(c.NotAfter) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, errExpired
	}
	return out, nil
}

var errExpired = errors.New("the identity provider's certificates have expired: the identity provider must publish new ones")

// instant parses an XML time; "" is the zero time.
func instant(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, s)
}

// earlier returns the earlier of two times; the zero time means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Partition kinds of rows that are keyed by a hash.
const (
	usedKind     = "SAMLUSED"
	metadataKind = "SAMLMETA"
)

// ErrUsed is returned for an assertion that was used before.
var ErrUsed = errors.New("the assertion was used before")

// Use marks an assertion as used. It returns ErrUsed for a second use.
func Use(ctx context.Context, s store.Store, org string, p *User) error {
	key := store.Credential(usedKind, identity.HashToken(org+"\x00"+p.Issuer+"\x00"+p.Assertion))
	err := s.Table(store.Keys).Put(ctx, store.Row{Key: key, Expires: p.NotAfter, Item: store.Item{"org": org}}, store.IfAbsent())
	if _, there := store.AsCondition(err); there {
		return ErrUsed
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Times for fetched metadata: when they are fetched again, how long they are used if that
// fails, and how soon an unknown key causes another fetch.
const (
	freshFor    = time.Hour
	metadataTTL = 24 * time.Hour
	againFrom   = time.Minute
	fetchTime   = 10 * time.Second
)

// Source fetches the published metadata of an identity provider. They are cached in the store
// for every process.
type Source struct {
	Store     store.Store
	Transport http.RoundTripper // guarded
	Org, ID   string            // of the configuration
	URL       string
	Entity    string // the selected entity; empty for the only one
}

func (s *Source) key() store.Key {
	return store.Credential(metadataKind, identity.HashToken(s.Org+"\x00"+s.ID+"\x00"+s.URL+"\x00"+s.Entity))
}

// Get returns the published metadata. renew requests newer metadata because a copy lacks the
// key; if the copy is too recent, Get returns the copy.
func (s *Source) Get(ctx context.Context, now time.Time, renew bool) (*Provider, error) {
	copied, at, err := s.stored(ctx, now)
	if err != nil {
		return nil, err
	}
	age := now.Sub(at)
	if copied != nil && (age < againFrom || age < freshFor && !renew) {
		return copied, nil
	}
	got, err := s.fetch(ctx, now)
	if err != nil && copied != nil {
		return copied, nil // it is valid for a day
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(got)
	if err != nil {
		return nil, err
	}
	row := store.Row{Key: s.key(), Expires: now.Add(metadataTTL), Item: store.Item{"provider": string(raw), "at": now.UnixMilli()}}
	if err := s.Store.Table(store.Keys).Put(ctx, row); err != nil {
		return nil, fault.Unavailable(err)
	}
	return got, nil
}

func (s *Source) stored(ctx context.Context, now time.Time) (*Provider, time.Time, error) {
	it, ok, err := s.Store.Table(store.Keys).Get(ctx, s.key(), true)
	if err != nil {
		return nil, time.Time{}, fault.Unavailable(err)
	}
	at := time.UnixMilli(it.Int("at"))
	p := &Provider{}
	if !ok || now.Sub(at) >= metadataTTL || json.Unmarshal([]byte(it.String("provider")), p) != nil || !p.Until.IsZero() && !now.Before(p.Until) {
		return nil, time.Time{}, nil
	}
	return p, at, nil
}

// fetch fetches the metadata without following redirects.
func (s *Source) fetch(ctx context.Context, now time.Time) (*Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, errors.New("the metadata cannot be fetched: the address is not valid")
	}
	req.Header.Set("Accept", "application/samlmetadata+xml, application/xml, text/xml")
	resp, err := s.Transport.RoundTrip(req)
	if err != nil {
		return nil, errors.New("the metadata cannot be fetched: the host does not respond")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("the metadata cannot be fetched: the response is " + http.StatusText(resp.StatusCode))
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxMetadata+1))
	if err != nil {
		return nil, errors.New("the metadata cannot be fetched: the response ended early")
	}
	return ParseMetadata(raw, s.Entity, now)
}
