package sso

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
	"golang.org/x/oauth2"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/oidc"
	"gateway/shared/store"
)

// Kinds of stored resources. Both belong to the organization.
const (
	KindConnection = signin.KindConnection
	KindDomain     = signin.KindDomain
)

// Secrets of a connection. The gateway generates the last one.
const (
	SecretClient  = "client_secret"
	SecretKeys    = "jwks"
	SecretService = "service_key"
)

// Protocols of identity providers.
const (
	OIDC = "oidc"
	SAML = "saml"
)

// Connection is the stored form of an identity provider.
type Connection struct {
	Protocol    string   `json:"protocol,omitempty" enum:"oidc,saml"` // empty means OIDC
	Issuer      string   `json:"issuer,omitempty" max:"2048"`
	ClientID    string   `json:"client_id,omitempty" max:"255"`
	Method      string   `json:"token_endpoint_auth_method,omitempty" enum:"client_secret_basic,client_secret_post,private_key_jwt"`
	Scopes      []string `json:"scopes,omitempty" max:"20" each:"min=1 max=100"`
	InvitedOnly bool     `json:"disable_auto_provision_user,omitempty"`

	// For SAML. One of the two describes the identity provider.
	MetadataURL        string `json:"metadata_url,omitempty" max:"2048"`
	MetadataXML        string `json:"metadata_xml,omitempty" max:"100000"`
	EmailAttribute     string `json:"email_attribute,omitempty" max:"255"`
	FirstNameAttribute string `json:"first_name_attribute,omitempty" max:"255"`
	LastNameAttribute  string `json:"last_name_attribute,omitempty" max:"255"`
	SignRequests       bool   `json:"sign_requests,omitempty"`
	Unsolicited        bool   `json:"allow_idp_initiated,omitempty"`
	// Base is the gateway's address when the connection was created. The gateway's identifiers
	// at the identity provider are below it, independent of the host of later requests.
	Base        string `json:"base,omitempty"`
	Certificate []byte `json:"certificate,omitempty"` // DER certificate of the gateway's key

	// Sponsor is the owner who answers for the configuration: its creator or the last owner who
	// saved it. See membership.SetResponsible.
	Sponsor string `json:"sponsor,omitempty"`
	// Masked contains the masks of the sealed secrets.
	Masked map[string]string `json:"masked,omitempty"`
}

// IsSAML reports whether the identity provider uses SAML.
func (c *Connection) IsSAML() bool { return c.Protocol == SAML }

// Validate returns the faults of individual fields.
func (c *Connection) Validate() []fault.Detail {
	d := bound.Check(c)
	for i, s := range c.Scopes {
		if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			d = append(d, fault.Detail{Field: fmt.Sprintf("scopes[%d]", i), Message: "has a character that is not allowed in scopes"})
		}
	}
	return bound.Sorted(c, d)
}

// AuthMethod returns the client authentication method; has reports which secrets exist.
func (c *Connection) AuthMethod(has func(secret string) bool) string {
	switch {
	case c.Method != "":
		return c.Method
	case has(SecretKeys):
		return oidc.PrivateKey
	}
	return oidc.Basic
}

// DecodeConnection decodes the stored form.
func DecodeConnection(rec resource.Record) (*Connection, error) {
	return resource.Decode[Connection](rec)
}

// Domain is a verified domain of an organization.
type Domain = signin.Domain

// NormalizeDomain normalizes a domain. ok is false for anything else, and for public suffixes such as
// com or github.io.
func NormalizeDomain(s string) (domain string, ok bool) {
	s = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), ".")
	labels := strings.Split(s, ".")
	if len(s) > 253 || len(labels) < 2 {
		return s, false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return s, false
		}
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return s, false // it is an IP address
	}
	suffix, _ := publicsuffix.PublicSuffix(s)
	return s, suffix != s
}

// Root reports whether a domain is a registrable domain.
func Root(domain string) bool {
	root, err := publicsuffix.EffectiveTLDPlusOne(domain)
	return err == nil && root == domain
}

// ParentDomains returns a domain and its parent domains, the nearest first.
func ParentDomains(domain string) (out []string) {
	for {
		out = append(out, domain)
		_, rest, found := strings.Cut(domain, ".")
		if !found || Root(domain) {
			return out
		}
		domain = rest
	}
}

// ownerKind is the partition kind of the rows with the owner of a verified domain. A domain
// belongs to one organization.
const ownerKind = "DOMAIN"

func ownerKey(domain string) store.Key {
	return store.Credential(ownerKind, identity.HashToken(domain))
}

// LookUp queries DNS for TXT records.
type LookUp func(ctx context.Context, name string) ([]string, error)

// NewChallenge returns the required content of a domain's TXT record.
func NewChallenge() string { return secret() }

// Claim stages that a verified domain belongs to an organization.
func Claim(tx *resource.Tx, d *Domain) error {
	key := ownerKey(d.Domain)
	return tx.PutCredential(store.Row{Key: key, Item: store.Item{"org": tx.Scope().Org}})
}

// StageRelease stages the end of the ownership.
func StageRelease(tx *resource.Tx, d *Domain) {
	if d.VerifiedAt != "" {
		tx.DeleteCredential(ownerKey(d.Domain))
	}
}

// OwnerOf returns the organization that owns a domain or one of its parents.
func OwnerOf(ctx context.Context, s store.Store, domain string) (org string, ok bool, err error) {
	for _, name := range ParentDomains(domain) {
		it, ok, err := s.Table(store.Keys).Get(ctx, ownerKey(name), true)
		if err != nil {
			return "", false, fault.Unavailable(err)
		}
		if ok {
			return it.String("org"), true, nil
		}
	}
	return "", false, nil
}

// Slug returns the slug of a domain of an organization.
func Slug(domain string) string { return signin.DomainSlug(domain) }

// Allows reports whether addresses of a domain may sign in to an organization: the domain is
// verified, or a verified parent domain includes it.
func Allows(ctx context.Context, r *resource.Resources, org store.Scope, domain string) (bool, error) {
	for _, name := range ParentDomains(domain) {
		rec, ok, err := r.Get(ctx, org, KindDomain, Slug(name))
		if err != nil {
			return false, err
		}
		if !ok || rec.Archived() {
			continue
		}
		d, err := resource.Decode[Domain](rec)
		if err != nil {
			return false, err
		}
		if d.VerifiedAt != "" && (name == domain || d.Subdomains) {
			return true, nil
		}
	}
	return false, nil
}

// pendingKind is the partition kind of pending sign-ins.
const pendingKind = "SIGNIN"

// PendingFor is the time limit of a sign-in.
const PendingFor = 10 * time.Minute

// Pending is a pending sign-in with the data to check its end. It is stored under the hash of
// its state and can be taken once. The browser that began it has Binding.
type Pending struct {
	oidc.Pending
	Org, Connection string
	ReturnTo        string
	Binding         string
}

// Start creates the secrets of a sign-in and stores it.
func Start(ctx context.Context, s store.Store, p *Pending, now time.Time) error {
	p.State, p.Nonce, p.Verifier, p.Binding, p.Since = secret(), secret(), oauth2.GenerateVerifier(), secret(), now
	err := s.Table(store.Keys).Put(ctx, store.Row{
		Key: store.Credential(pendingKind, identity.HashToken(p.State)), Expires: now.Add(PendingFor),
		Item: store.Item{
			"org": p.Org, "connection": p.Connection, "nonce": p.Nonce, "verifier": p.Verifier, "return": p.ReturnTo,
			"binding": identity.HashToken(p.Binding), "fresh": p.Fresh, "since": now.UnixMilli(), "until": now.Add(PendingFor).UnixMilli(),
		},
	})
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// NoPending returns the fault for a response without a pending sign-in.
func NoPending() error {
	return fault.New(fault.Unauthorized, "state", "This sign-in was started in another browser, has expired, or was already completed; start again")
}

// maxState limits the input of the hash.
const maxState = 256

// ConsumeState returns the sign-in of a state and ends it, so that a second response finds none.
// binding is the browser's value. If another browser has begun the sign-in, it returns its
// organization and connection with the fault.
func ConsumeState(ctx context.Context, s store.Store, state, binding string, now time.Time) (*Pending, error) {
	if state == "" || len(state) > maxState {
		return nil, NoPending()
	}
	key := store.Credential(pendingKind, identity.HashToken(state))
	it, ok, err := s.Table(store.Keys).Get(ctx, key, true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok || now.UnixMilli() >= it.Int("until") {
		return nil, NoPending()
	}
	if subtle.ConstantTimeCompare([]byte(identity.HashToken(binding)), []byte(it.String("binding"))) != 1 {
		return &Pending{Org: it.String("org"), Connection: it.String("connection")}, NoPending() // the browser that began it may continue
	}
	if err := s.Table(store.Keys).Delete(ctx, key, store.IfPresent()); err != nil {
		if _, taken := store.AsCondition(err); taken {
			return nil, NoPending()
		}
		return nil, fault.Unavailable(err)
	}
	return &Pending{
		Pending: oidc.Pending{State: state, Nonce: it.String("nonce"), Verifier: it.String("verifier"), Fresh: it.Bool("fresh"), Since: time.UnixMilli(it.Int("since"))},
		Org:     it.String("org"), Connection: it.String("connection"), ReturnTo: it.String("return"),
	}, nil
}

func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// maxReturn is the length limit of a return path.
const maxReturn = 8192

// ReturnTo validates a path of this host for a redirect. ok is false for anything that could
// lead elsewhere.
func ReturnTo(s string) (path string, ok bool) {
	if s == "" {
		return "/", true
	}
	if len(s) > maxReturn || s[0] != '/' || strings.HasPrefix(s, "//") || strings.ContainsAny(s, `\"<>`) {
		return "", false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "", false
		}
	}
	return s, true
}
