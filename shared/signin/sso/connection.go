package sso

import (
	"fmt"
	"strings"

	"golang.org/x/net/publicsuffix"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
	"gateway/shared/signin/oidc"
)

// Kinds of the stored resources. Both are the organisation's.
const (
	KindConnection resource.Kind = "SSO"
	KindDomain     resource.Kind = "SSODOMAIN"
)

// Secrets of a connection. The last one is the gateway's own, which nobody gives.
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
	Protocol    string   `json:"protocol,omitempty" enum:"oidc,saml"` // "": OIDC
	Issuer      string   `json:"issuer,omitempty" max:"2048"`
	ClientID    string   `json:"client_id,omitempty" max:"255"`
	Method      string   `json:"token_endpoint_auth_method,omitempty" enum:"client_secret_basic,client_secret_post,private_key_jwt"`
	Scopes      []string `json:"scopes,omitempty" max:"20" each:"min=1 max=100"`
	InvitedOnly bool     `json:"disable_auto_provision_user,omitempty"`

	// Of SAML. One of the two says who the identity provider is.
	MetadataURL        string `json:"metadata_url,omitempty" max:"2048"`
	MetadataXML        string `json:"metadata_xml,omitempty" max:"100000"`
	EmailAttribute     string `json:"email_attribute,omitempty" max:"255"`
	FirstNameAttribute string `json:"first_name_attribute,omitempty" max:"255"`
	LastNameAttribute  string `json:"last_name_attribute,omitempty" max:"255"`
	SignRequests       bool   `json:"sign_requests,omitempty"`
	Unsolicited        bool   `json:"allow_idp_initiated,omitempty"`
	// Base is where the gateway was reached when the connection was made: its names at
	// the identity provider are below it, whatever host a later request names.
	Base        string `json:"base,omitempty"`
	Certificate []byte `json:"certificate,omitempty"` // DER, of the gateway's own key

	// Masked has the masks of the sealed secrets.
	Masked map[string]string `json:"masked,omitempty"`
}

// IsSAML tells whether the identity provider speaks SAML.
func (c *Connection) IsSAML() bool { return c.Protocol == SAML }

// Validate gives what is wrong by itself.
func (c *Connection) Validate() []fault.Detail {
	d := bound.Check(c)
	for i, s := range c.Scopes {
		if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			d = append(d, fault.Detail{Field: fmt.Sprintf("scopes[%d]", i), Message: "has a character that no scope has"})
		}
	}
	return bound.Sorted(c, d)
}

// Way is how the client shows who it is; has tells which secrets it has.
func (c *Connection) Way(has func(secret string) bool) string {
	switch {
	case c.Method != "":
		return c.Method
	case has(SecretKeys):
		return oidc.PrivateKey
	}
	return oidc.Basic
}

// DecodeConnection reads the stored form.
func DecodeConnection(rec resource.Record) (*Connection, error) {
	return resource.Decode[Connection](rec)
}

// Domain is the stored form of a domain; its record has the name.
type Domain struct {
	Domain     string `json:"domain" min:"3" max:"253"`
	Subdomains bool   `json:"allow_subdomains,omitempty"`
	Challenge  string `json:"challenge"` // what the TXT record has to say
	VerifiedAt string `json:"verified_at,omitempty"`
}

// challengePrefix begins what a TXT record says; challengeLabel is where it stands.
const (
	challengePrefix = "gateway-domain-verification="
	challengeLabel  = "_gateway-challenge."
)

// Record is the TXT record that shows whose the domain is.
func (d *Domain) Record() (name, value string) {
	return challengeLabel + d.Domain, challengePrefix + d.Challenge
}

// Spelled is a domain in its one spelling; ok is false for what is none, and for one
// that belongs to everybody, such as com or github.io.
func Spelled(s string) (domain string, ok bool) {
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
		return s, false // an address
	}
	suffix, _ := publicsuffix.PublicSuffix(s)
	return s, suffix != s
}

// Root tells whether a domain is one that is registered by itself.
func Root(domain string) bool {
	root, err := publicsuffix.EffectiveTLDPlusOne(domain)
	return err == nil && root == domain
}

// Above are a domain and those that it is below of, the nearest first.
func Above(domain string) (out []string) {
	for {
		out = append(out, domain)
		_, rest, found := strings.Cut(domain, ".")
		if !found || Root(domain) {
			return out
		}
		domain = rest
	}
}
