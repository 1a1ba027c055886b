package sso

import (
	"fmt"
	"strings"

	"golang.org/x/net/publicsuffix"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/oidc"
)

// Kinds of stored resources. Both belong to the organisation.
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
			d = append(d, fault.Detail{Field: fmt.Sprintf("scopes[%d]", i), Message: "has a character that no scope has"})
		}
	}
	return bound.Sorted(c, d)
}

// Way returns the client authentication method; has reports which secrets exist.
func (c *Connection) Way(has func(secret string) bool) string {
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

// Spelled normalizes a domain. ok is false for anything else, and for public suffixes such as
// com or github.io.
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

// Above returns a domain and its parent domains, the nearest first.
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
