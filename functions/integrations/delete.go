package integrations

import (
	"slices"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

// perChange is how many providers one change makes or archives beside the
// integration, so that their rows fit into a transaction.
const perChange = 14

// maxRounds bounds how often an integration is emptied of providers that are
// added meanwhile.
const maxRounds = 100

// delete archives the integration and the providers that call it: what fits into
// one change. Of more providers the first are archived in changes of their own;
// when one fails, the integration is still there and the call can be repeated.
func (f *family) delete(c *admin.Call) (any, error) {
	for range maxRounds {
		left, err := f.archive(c)
		if err != nil || left == 0 {
			return nil, err
		}
	}
	return nil, fault.New(fault.Conflict, "", "The integration gets providers faster than it is emptied; try again")
}

// archive runs one change and tells how many providers are left.
func (f *family) archive(c *admin.Call) (left int, err error) {
	it, err := f.col.Find(c)
	if err != nil {
		return 0, err
	}
	users, err := providersOf(c, it.Ref())
	if err != nil {
		return 0, err
	}
	if len(users) > perChange {
		part := users[:perChange]
		return len(users) - perChange, c.Resources.Change(c.Context, c.Organisation(), func(tx *resource.Tx) error { return retire(tx, it.Ref(), part) })
	}
	return 0, c.Change(func(tx *resource.Tx) error {
		it, err := f.col.FindIn(c, tx)
		if err != nil {
			return err
		}
		users, err := c.Resources.Users(c.Context, it.Ref())
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(users, func(u resource.Ref) bool { return u.Kind != provider.KindProvider }); i >= 0 {
			return tx.RefuseIfUsed(it.Ref())
		}
		if err := retire(tx, it.Ref(), users); err != nil {
			return err
		}
		it.UpdatedBy = c.Actor()
		return tx.ArchiveAndFreeSlug(it.Record)
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
