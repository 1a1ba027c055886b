package signin

import (
	"context"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Kinds of resources that admit users: identity providers and verified domains of an
// organization. Package sso manages them.
const (
	KindConnection resource.Kind = "SSO"
	KindDomain     resource.Kind = "SSODOMAIN"
)

// Domain is the stored form of a domain; its name is in the record.
type Domain struct {
	Domain     string `json:"domain" min:"3" max:"253"`
	Subdomains bool   `json:"allow_subdomains,omitempty"`
	Challenge  string `json:"challenge"` // required content of the TXT record
	VerifiedAt string `json:"verified_at,omitempty"`
}

// DomainSlug returns the slug of a domain of an organization.
func DomainSlug(domain string) string { return "domain-" + identity.HashToken(domain) }

// challengePrefix is the prefix of a TXT record's content; challengeLabel is the label of its
// name.
const (
	challengePrefix = "gateway-domain-verification="
	challengeLabel  = "_gateway-challenge."
)

// Limits of a DNS lookup.
const (
	lookUpTime = 5 * time.Second
	maxRecords = 100
)

// Record returns the TXT record that proves the ownership of the domain.
func (d *Domain) Record() (name, value string) {
	return challengeLabel + d.Domain, challengePrefix + d.Challenge
}

// CheckRecord checks whether the TXT record exists. The error can be shown to users.
func (d *Domain) CheckRecord(ctx context.Context, lookup func(ctx context.Context, name string) ([]string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	name, want := d.Record()
	found, err := lookup(ctx, name)
	if err != nil || len(found) > maxRecords {
		return fault.New(fault.Conflict, "domain", "there is no TXT record at "+name+" yet")
	}
	if !slices.ContainsFunc(found, func(s string) bool { return strings.TrimSpace(s) == want }) {
		return fault.New(fault.Conflict, "domain", "no TXT record at "+name+" says "+want)
	}
	return nil
}

// admitted reports whether the configuration that admitted a session still admits its user: the
// identity provider is configured, and a verified domain covers the user's address. A session
// without a configuration was begun by the gateway.
func admitted(ctx context.Context, v *resource.View, of *Session) (bool, error) {
	if of.Via == "" {
		return true, nil
	}
	org := store.Scope{Org: of.Org}
	as := func(rec resource.Record) (*resource.Record, error) { return &rec, nil }
	connection, ok, err := resource.Load(ctx, v, org, KindConnection, of.Via, as)
	if err != nil || !ok || connection.Archived() {
		return false, err
	}
	u, ok, err := resource.Load(ctx, v, org, membership.KindUser, of.User, membership.DecodeUser)
	if err != nil || !ok {
		return false, err
	}
	_, domain, _ := strings.Cut(u.Email, "@")
	for name := domain; name != ""; _, name, _ = strings.Cut(name, ".") {
		d, ok, err := resource.Load(ctx, v, org, KindDomain, DomainSlug(name), decodeDomain)
		if err != nil {
			return false, err
		}
		if ok && d.VerifiedAt != "" && (name == domain || d.Subdomains) {
			return true, nil
		}
	}
	return false, nil
}

// decodeDomain returns an unverified domain for an archived record.
func decodeDomain(rec resource.Record) (*Domain, error) {
	if rec.Archived() {
		return new(Domain), nil
	}
	return resource.Decode[Domain](rec)
}
