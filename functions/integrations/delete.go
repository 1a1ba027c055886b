package integrations

import (
	"slices"

	"gateway/shared/admin"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

// perChange is how many providers one change makes or archives beside the
// integration, so that their rows fit into a transaction.
const perChange = 14

// delete archives the integration and the providers that call it. If there are more than
// fit into one change, the first ones are archived before; when one fails, the integration
// is still there, and the call can be repeated.
func (f *family) delete(c *admin.Call) (any, error) {
	return nil, admin.Rounds(c, func(tx *resource.Tx) (more bool, err error) {
		it, err := f.col.FindIn(c, tx)
		if err != nil {
			return false, err
		}
		users, err := c.Resources.Users(c.Context, it.Ref())
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(users, func(u resource.Ref) bool { return u.Kind != provider.KindProvider }) {
			return false, tx.RefuseIfUsed(it.Ref())
		}
		more = len(users) > perChange
		if err := retire(tx, it.Ref(), users[:min(perChange, len(users))]); err != nil || more {
			return more, err
		}
		it.UpdatedBy = c.Actor()
		return false, tx.ArchiveAndFreeSlug(it.Record)
	})
}

func retire(tx *resource.Tx, of resource.Ref, providers []resource.Ref) error {
	for _, ref := range providers {
		rec, ok, err := tx.Get(ref.Scope, ref.Kind, ref.ID)
		if err != nil {
			return err
		}
		if !ok || rec.Archived() {
			if err := tx.Unuse(of, ref); err != nil {
				return err
			}
			continue
		}
		if err := provider.Retire(tx, &rec); err != nil {
			return err
		}
	}
	return nil
}

// providersOf lists the providers that call an integration.
func providersOf(c *admin.Call, of resource.Ref) ([]resource.Ref, error) {
	users, err := c.Resources.Users(c.Context, of)
	return slices.DeleteFunc(users, func(u resource.Ref) bool { return u.Kind != provider.KindProvider }), err
}
