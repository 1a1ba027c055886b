package workspaces

import (
	"gateway/shared/admin"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

// openDefaults gives a new workspace its providers.
func openDefaults(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	return provider.OpenDefaults(tx, c.Resources, rec, len(c.Body.Texts("users"))) // members of the new workspace take rows as well
}
