package sso

import (
	"context"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/store"
)

// ownerKind is the partition kind of the rows with the owner of a verified domain. A domain
// belongs to one organisation.
const ownerKind = "DOMAIN"

func ownerKey(domain string) store.Key {
	return store.Credential(ownerKind, identity.HashToken(domain))
}

// LookUp queries DNS for TXT records.
type LookUp func(ctx context.Context, name string) ([]string, error)

// NewChallenge returns the required content of a domain's TXT record.
func NewChallenge() string { return secret() }

// Claim stages that a verified domain belongs to an organisation.
func Claim(tx *resource.Tx, d *Domain) error {
	key := ownerKey(d.Domain)
	return tx.PutCredential(store.Row{Key: key, Item: store.Item{"org": tx.Scope().Org}})
}

// Unclaim stages the end of the ownership.
func Unclaim(tx *resource.Tx, d *Domain) {
	if d.VerifiedAt != "" {
		tx.DeleteCredential(ownerKey(d.Domain))
	}
}

// OwnerOf returns the organisation that owns a domain or one of its parents.
func OwnerOf(ctx context.Context, s store.Store, domain string) (org string, ok bool, err error) {
	for _, name := range Above(domain) {
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

// Slug returns the slug of a domain of an organisation.
func Slug(domain string) string { return signin.DomainSlug(domain) }

// Allows reports whether addresses of a domain may sign in to an organisation: the domain is
// verified, or a verified parent domain includes it.
func Allows(ctx context.Context, r *resource.Resources, org store.Scope, domain string) (bool, error) {
	for _, name := range Above(domain) {
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
