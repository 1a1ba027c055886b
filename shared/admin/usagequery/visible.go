package usagequery

import (
	"slices"

	"gateway/shared/admin"
	"gateway/shared/tenant"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// Restrict limits a filter to what the caller may see. Users without the permission to see
// others' requests see those of their keys, and service keys with such a rank, and keys of users
// that others may know, see their own. Requests of service keys and of signed tokens belong to no user.
func Restrict(c *admin.Call, f *report.Filter) error {
	all, err := c.AllowsView(tenant.SeeOthers)
	user := c.Caller.Personal()
	if err == nil && !all && user == "" {
		f.Nothing = f.Nothing || len(f.Keys) > 0 && !slices.Contains(f.Keys, c.Caller.KeyID)
		f.Keys = []string{c.Caller.KeyID}
		return nil
	}
	if err == nil && !all {
		f.Nothing = f.Nothing || len(f.UserIDs) > 0 && !slices.Contains(f.UserIDs, user)
		f.UserIDs = []string{user}
	}
	return err
}

// MayView reports whether the caller may see a record, by the same rule.
func MayView(c *admin.Call, r *usage.Record) (bool, error) {
	all, err := c.AllowsView(tenant.SeeOthers)
	user := c.Caller.Personal()
	if user == "" {
		return all || r.KeyID != "" && r.KeyID == c.Caller.KeyID, err
	}
	return all || r.UserID == user, err
}
