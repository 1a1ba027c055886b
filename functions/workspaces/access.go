package workspaces

import (
	"gateway/shared/admin"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

// maxDefaults bounds the default providers of a new workspace: each takes a few
// rows of the one transaction.
const maxDefaults = 14

// openDefaults gives a new workspace a provider for each of the organisation's
// integrations that is open to every workspace. Beyond maxDefaults the access
// is there all the same; providers are then made by hand.
func openDefaults(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	rows, err := c.Resources.List(c.Context, c.Organisation(), provider.KindIntegration)
	if err != nil {
		return err
	}
	made := len(c.Body.Texts("users")) // which take rows as well
	for _, row := range rows {
		of, ok, err := tx.Get(c.Organisation(), provider.KindIntegration, row.ID)
		if err != nil {
			return err
		}
		if !ok || of.Archived() || made >= maxDefaults {
			continue
		}
		in, err := provider.DecodeIntegration(of)
		if err != nil {
			return err
		}
		if !in.Global.Enabled {
			continue
		}
		made++
		if err := (&provider.Default{Workspace: rec.ID, Actor: rec.CreatedBy}).Stage(tx, &of, in); err != nil {
			return err
		}
	}
	return nil
}
