package configs

import (
	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/tenant"
)

// isDefault is the list field of the workspace's default config. Requests find
// it through the workspace, which names it too.
const isDefault = "is_default"

// defaultFlag is 1 for the default config of its workspace, else 0.
func defaultFlag(rec *resource.Record) int { return admin.Flag(rec.Fields[isDefault] == "1") }

// setDefault sets or clears the config as the workspace's default. An archived config cannot be
// the default.
func setDefault(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	wanted := c.Body.Given("isDefault") && c.Body.Int("isDefault") == 1
	switch {
	case wanted && rec.Archived():
		return fault.Invalid("isDefault", "cannot be 1 for an archived config")
	case wanted:
		return becomeDefault(c, tx, rec)
	case c.Body.Has("isDefault") || rec.Archived():
		return leaveDefault(c, tx, rec)
	}
	return nil
}

// becomeDefault puts the config in the place of the default before it.
func becomeDefault(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	was := ""
	err := ofWorkspace(c, tx, func(w *tenant.Workspace) { was, w.DefaultConfig = w.DefaultConfig, rec.ID })
	if err != nil {
		return err
	}
	if was != "" && was != rec.ID {
		old, ok, err := tx.Get(c.Scope, route.KindConfig, was)
		if err != nil {
			return err
		}
		if ok {
			delete(old.Fields, isDefault)
			if err := tx.Update(&old); err != nil {
				return err
			}
		}
	}
	if rec.Fields == nil {
		rec.Fields = make(map[string]string, 1)
	}
	rec.Fields[isDefault] = "1"
	return nil
}

// leaveDefault leaves the workspace without a default, where it was the config.
func leaveDefault(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	if defaultFlag(rec) == 0 {
		return nil
	}
	delete(rec.Fields, isDefault)
	return ofWorkspace(c, tx, func(w *tenant.Workspace) {
		if w.DefaultConfig == rec.ID {
			w.DefaultConfig = ""
		}
	})
}

// ofWorkspace changes the workspace of the call in the transaction.
func ofWorkspace(c *admin.Call, tx *resource.Tx, change func(w *tenant.Workspace)) error {
	ok, err := admin.Amend(tx, c.Organisation(), tenant.KindWorkspace, c.Scope.Workspace, change)
	if err == nil && !ok {
		return admin.Denied()
	}
	return err
}
