package admintest

import (
	"context"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Govern stores settings of Org and lets the roles of users go by them from here on,
// as in an installation.
func (h *House) Govern(s tenant.Settings) {
	h.t.Helper()
	h.governed.Store(true)
	sc := store.Scope{Org: Org}
	err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
		return tenant.AmendOrganisation(tx, sc, "", func(o *tenant.Organisation) error { o.Settings = s; return nil })
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// rights is what the stored settings say about a caller's role.
func (h *House) rights(ctx context.Context, c *admin.Caller, scope string) (allowed, decided bool, err error) {
	if !h.governed.Load() {
		return false, false, nil
	}
	err = h.Resources.Change(ctx, c.Scope.Organisation(), func(tx *resource.Tx) error {
		o, err := tenant.ReadSettings(tx, c.Scope)
		if err == nil {
			allowed, decided = o.Settings.Rule(string(c.Role), scope)
		}
		return err
	})
	return allowed, decided, err
}

// lenient reports whether the stored settings ignore unknown members.
func (h *House) lenient(ctx context.Context, org string) (lenient bool, err error) {
	if !h.governed.Load() {
		return false, nil
	}
	sc := store.Scope{Org: org}
	err = h.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
		o, err := tenant.ReadSettings(tx, sc)
		if err == nil {
			lenient = o.Settings.Lenient
		}
		return err
	})
	return lenient, err
}
