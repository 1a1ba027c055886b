package app

import (
	"context"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// RecoverAdminKey creates an admin key for an organization that has lost its keys. It returns
// the raw key, which is stored nowhere, and its id. The audit log records it.
func RecoverAdminKey(ctx context.Context, c *Core, organization string) (key, id string, err error) {
	sc := store.Scope{Org: organization}
	if organization == "" || strings.ContainsAny(organization, "/#\x00") {
		return "", "", fault.Invalid("organization", "must be the id of an organization")
	}
	_, ok, err := c.Resources.Get(ctx, sc, tenant.KindOrganisation, organization)
	if err != nil {
		return "", "", err
	}
	if !ok {
		return "", "", fault.Invalid("organization", "%.100q does not exist", organization)
	}
	raw, _ := identity.NewSecret()
	k := identity.Key{Type: identity.OrganisationService, CreationMode: "auto", Rank: identity.RankOwner, Scopes: identity.ScopesFor(identity.OrganisationService), Secret: identity.SecretOf(raw)}
	rec := resource.Record{Scope: sc, Kind: identity.KindKey, ID: resource.NewID(), Name: "recovered admin key", Status: identity.StatusActive, Fields: map[string]string{"type": string(k.Type)}}
	err = c.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
		if err := create(tx, &rec, k); err != nil {
			return err
		}
		if err := identity.Stage(tx, &rec, &k, ""); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			ResourceType: k.Type.ScopeFamily(), ResourceID: rec.ID, Action: audit.Create, StatusCode: 200,
			Details: map[string]string{"event": "recovery", "key_masked": identity.Mask(raw)},
		})
	})
	if err != nil {
		return "", "", err
	}
	return raw, rec.ID, nil
}
