package scim

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin/scim"
)

func (f *users) putUser(c *admin.Call) (any, error) {
	doc, err := f.sent(c)
	if err != nil {
		return nil, err
	}
	return f.changeUser(c, func(map[string]any) (map[string]any, error) { return doc, nil })
}

func (f *users) patchUser(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	schema, err := f.schema(c)
	if err != nil {
		return nil, err
	}
	return f.changeUser(c, func(now map[string]any) (map[string]any, error) {
		name, address := scim.Text(now, "userName"), scim.Primary(now, "emails")
		err := schema.Patch(now, sent)
		if to := scim.Text(now, "userName"); strings.EqualFold(name, address) && to != name && scim.Primary(now, "emails") == address {
			// The address was the name and was not changed separately. A later owner of the old
			// address must not inherit the account.
			delete(now, "emails")
		}
		return now, err
	})
}

// changeUser writes the new state of a user, and makes the changes that follow from it.
func (f *users) changeUser(c *admin.Call, become func(now map[string]any) (map[string]any, error)) (any, error) {
	id := c.Param("scimId")
	c.SetResource(id)
	if _, _, err := f.user(c, id); err != nil {
		return nil, err
	}
	var w *wanted
	err := f.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, u, ok, err := membership.FindUser(tx, c.Organisation(), id)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, missing(c)
		}
		if err := unchanged(c, &rec); err != nil {
			return false, err
		}
		names, err := f.groupNames(c, u.Groups)
		if err != nil {
			return false, err
		}
		now, err := userDoc(f.family.base(c), &rec, u, names)
		if err != nil {
			return false, err
		}
		doc, err := become(now)
		if err != nil {
			return false, err
		}
		if w, err = f.wanted(c, doc, u); err != nil {
			return false, err
		}
		if other, there, err := membership.ByLogin(c.Context, c.Resources, c.Organisation(), w.login.UserName); err != nil || there && other != id {
			if err == nil {
				err = fault.New(fault.Conflict, "userName", "another user of the organization already has this name or address")
			}
			return false, err
		}
		return false, f.write(tx, c, &rec, u, w)
	})
	if err != nil {
		return nil, err
	}
	return f.finish(c, id, w)
}

// write applies the wanted values to a user's record.
func (f *users) write(tx *resource.Tx, c *admin.Call, rec *resource.Record, u *membership.User, w *wanted) error {
	if err := mayWrite(c, u, w); err != nil {
		return err
	}
	if err := membership.SetAddress(tx, rec, u, w.email); err != nil {
		return err
	}
	membership.SetLogin(tx, rec, u, w.login)
	u.FirstName, u.LastName = w.first, w.last
	if w.role != "" && w.role != u.Role {
		if u.Stopped { // the role is counted when the user comes back
			u.Role = w.role
			return membership.Save(tx, rec, u, c.Actor())
		}
		return membership.SetRole(tx, rec, u, w.role, c.Actor())
	}
	return membership.Save(tx, rec, u, c.Actor())
}

// mayWrite checks that a token gives no role above the rank of who made it, and leaves the
// role, the names for sign-in and the state of users above that rank as they are.
func mayWrite(c *admin.Call, u *membership.User, w *wanted) error {
	by := c.Caller.Grantor()
	if w.role != "" && w.role != u.Role {
		if err := by.Grant("roles", authority.Permissions{Rank: membership.OrganisationRank(w.role)}); err != nil {
			return err
		}
	}
	same := w.email == u.Email && w.active == !u.Stopped && (w.role == "" || w.role == u.Role) && u.Provisioned != nil &&
		w.login.UserName == u.Provisioned.UserName && w.login.ExternalID == u.Provisioned.ExternalID
	if same {
		return nil
	}
	return by.Grant("id", authority.Permissions{Rank: membership.OrganisationRank(u.Role)})
}

// finish does what follows from a change, in parts, and shows the user. Each part can be
// done again.
func (f *users) finish(c *admin.Call, id string, w *wanted) (any, error) {
	with := func(step func(tx *resource.Tx, rec *resource.Record, u *membership.User) (bool, error)) error {
		return f.family.rounds(c, func(tx *resource.Tx) (bool, error) {
			rec, u, ok, err := membership.FindUser(tx, c.Organisation(), id)
			if err != nil || !ok {
				return false, err
			}
			return step(tx, &rec, u)
		})
	}
	steps := []func(tx *resource.Tx, rec *resource.Record, u *membership.User) (bool, error){
		func(tx *resource.Tx, rec *resource.Record, u *membership.User) (bool, error) {
			return membership.UpdateAddress(tx, rec, u, c.Actor())
		},
	}
	if w.demoted {
		steps = append(steps, func(tx *resource.Tx, rec *resource.Record, u *membership.User) (bool, error) {
			if u.IsOrganisationAdmin() || u.Stopped {
				return false, nil
			}
			more, err := membership.Sweep(tx, c.Resources, rec, u)
			if err != nil {
				return false, err
			}
			return more, membership.Save(tx, rec, u, c.Actor()) // saved, so that a key that is made meanwhile is noticed
		})
	}
	if w.active {
		steps = append(steps, func(tx *resource.Tx, rec *resource.Record, u *membership.User) (bool, error) {
			return membership.Revive(tx, c.Resources, rec, u, c.Actor())
		})
	} else {
		steps = append(steps, func(tx *resource.Tx, rec *resource.Record, u *membership.User) (bool, error) {
			return membership.Stop(tx, c.Resources, rec, u, c.Actor())
		}, func(tx *resource.Tx, _ *resource.Record, _ *membership.User) (bool, error) {
			return f.family.Sessions.EndAll(tx, c.Organisation().Org, id, "")
		})
	}
	for _, step := range steps {
		if err := with(step); err != nil {
			return nil, err
		}
	}
	if w.groups != nil {
		if err := f.putInto(c, id, w.groups); err != nil {
			return nil, err
		}
	}
	if err := f.family.settle(c, nil, true, id); err != nil {
		return nil, err
	}
	rec, u, err := f.user(c, id)
	if err != nil {
		return nil, err
	}
	return f.shownUser(c, rec, u)
}

// putInto puts a user into the groups that were written with it, and into no others.
func (f *users) putInto(c *admin.Call, id string, groups []string) error {
	return f.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, u, ok, err := membership.FindUser(tx, c.Organisation(), id)
		if err != nil || !ok {
			return false, err
		}
		n := 0
		for _, g := range slices.Clone(u.Groups) {
			if !slices.Contains(groups, g) && n < readAtOnce/4 {
				if err := membership.Exit(tx, &rec, u, g); err != nil {
					return false, err
				}
				n++
			}
		}
		for _, g := range groups {
			if slices.Contains(u.Groups, g) || n >= readAtOnce/4 {
				continue
			}
			if err := membership.JoinGroup(tx, &rec, u, g); err != nil {
				return false, err
			}
			n++
		}
		if n == 0 {
			return false, nil
		}
		return true, membership.Save(tx, &rec, u, c.Actor())
	})
}

// settle gives users the workspaces of their groups. ended are mappings that the call
// removes. last puts the call into the audit log.
func (f *family) settle(c *admin.Call, ended map[[2]string]bool, last bool, ids ...string) error {
	done := 0 // users that are settled by committed transactions
	for {
		next, more := done, false
		change := func(tx *resource.Tx) (bool, error) {
			next, more = done, false
			s := &membership.GroupSync{Resources: c.Resources, Sealer: c.Sealer, Actor: c.Actor(), Rank: c.Caller.Rank, Ended: ended, RowsLeft: membership.RowsToSettle}
			for next < len(ids) {
				rec, u, ok, err := membership.FindUser(tx, c.Organisation(), ids[next])
				if err != nil {
					return false, err
				}
				if ok {
					if more, err = s.Sync(tx, &rec, u); err != nil {
						return false, err
					}
				}
				if more {
					return false, nil
				}
				next++
			}
			return false, nil
		}
		if err := f.rounds(c, change); err != nil {
			return err
		}
		if done = next; done == len(ids) && !more {
			break
		}
	}
	if !last {
		return nil
	}
	return c.Change(func(*resource.Tx) error { return nil })
}

func (f *users) deleteUser(c *admin.Call) (any, error) {
	id := c.Param("scimId")
	c.SetResource(id)
	rec, u, err := f.user(c, id)
	if err != nil {
		return nil, err
	}
	if err := unchanged(c, rec); err != nil {
		return nil, err
	}
	if err := c.Caller.Grantor().Grant("id", authority.Permissions{Rank: membership.OrganisationRank(u.Role)}); err != nil {
		return nil, err
	}
	seen := rec.Rev
	err = admin.Rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, ok, err := tx.Get(c.Organisation(), membership.KindUser, id)
		if err != nil || !ok {
			return false, err
		}
		u, err := membership.DecodeUser(rec)
		if err != nil {
			return false, err
		}
		if rec.Rev != seen && !u.Leaving { // another call was faster than the first round
			if err := unchanged(c, &rec); err != nil {
				return false, err
			}
		}
		more, err := f.family.Sessions.EndAll(tx, c.Organisation().Org, id, "")
		if err != nil || more {
			return more, err
		}
		return membership.Remove(tx, c.Resources, &rec, u, c.Actor())
	})
	return admin.Response{Status: http.StatusNoContent}, err
}
