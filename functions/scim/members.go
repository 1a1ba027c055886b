package scim

import (
	"maps"
	"net/http"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// fills states the wanted members, sorted. If partly is set, only into and out are changed, and
// other members stay.
type fills struct {
	all       []string
	partly    bool
	into, out []string
}

// lacking are the entries of a sorted list that another sorted list does not have.
func lacking(of, in []string) (out []string) {
	for _, id := range of {
		if _, there := slices.BinarySearch(in, id); !there {
			out = append(out, id)
		}
	}
	return out
}

// fill makes the members of a group those that are wanted, and gives them what the group
// gives. Where groups are written with users, the members stay.
func (f *groups) fill(c *admin.Call, id string, want fills) (any, error) {
	org, err := tenant.FetchSettings(c.Context, c.Resources, c.Organisation())
	if err != nil {
		return nil, err
	}
	have, err := membership.InGroup(c.Context, c.Resources, c.Organisation(), id)
	if err != nil {
		return nil, err
	}
	_, g, err := f.groupByID(c, id)
	if err != nil {
		return nil, err
	}
	var touched []string
	if g.Remapped {
		touched = slices.Clone(have)
	}
	if !org.Settings.UserGroups {
		if !want.partly {
			want.into, want.out = lacking(want.all, have), lacking(have, want.all)
		}
		if err := f.move(c, id, want.into, membership.EnterOpen); err != nil {
			return nil, err
		}
		if err := f.move(c, id, want.out, membership.ExitOpen); err != nil {
			return nil, err
		}
		if org.Settings.GroupProvisions {
			if err := f.bringBack(c, want.all); err != nil {
				return nil, err
			}
			touched = append(touched, want.all...)
		}
	}
	if c.Request.Method == http.MethodPost {
		touched = append(touched, have...)
	}
	if err := f.settleOpen(c, id, g.EndedOf(id), true, touched); err != nil {
		return nil, err
	}
	if g.Remapped {
		if err := f.users.family.membersSettled(c, id); err != nil {
			return nil, err
		}
	}
	rec, g, err := f.groupByID(c, id)
	if err != nil {
		return nil, err
	}
	return f.shownGroup(c, rec, g)
}

// membersSettled notes that all members of a group have what its mappings give.
func (f *family) membersSettled(c *admin.Call, id string) error {
	return f.rounds(c, func(tx *resource.Tx) (bool, error) {
		return false, membership.MembersSettled(tx, c.Organisation(), id, c.Actor())
	})
}

// settleOpen settles the users that are given and everybody who entered or left the group,
// including those of an earlier call that ended too soon.
func (f *groups) settleOpen(c *admin.Call, group string, ended map[[2]string]bool, last bool, ids []string) error {
	open, err := membership.OpenIn(c.Context, c.Resources, c.Organisation(), group)
	if err != nil {
		return err
	}
	ids = slices.AppendSeq(ids, maps.Keys(open))
	slices.Sort(ids)
	if err := f.users.family.settle(c, ended, last, slices.Compact(ids)...); err != nil {
		return err
	}
	return open.ClearMarks(c.Context, c.Resources, c.Organisation(), group)
}

func (f *groups) groupByID(c *admin.Call, id string) (*resource.Record, *membership.Group, error) {
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), membership.KindGroup, id)
	if err != nil || !ok {
		return nil, nil, orMissing(c, err)
	}
	g, err := membership.DecodeGroup(rec)
	return &rec, g, err
}

// movedAtOnce is how many users enter or leave a group in one change.
const movedAtOnce = 15

// move puts users into a group, or takes them out.
func (f *groups) move(c *admin.Call, group string, ids []string, do func(tx *resource.Tx, rec *resource.Record, u *membership.User, group string) error) error {
	for part := range slices.Chunk(ids, movedAtOnce) {
		err := f.users.family.rounds(c, func(tx *resource.Tx) (bool, error) {
			for _, id := range part {
				rec, u, ok, err := membership.FindUser(tx, c.Organisation(), id)
				if err != nil {
					return false, err
				}
				if !ok {
					continue // it was removed meanwhile
				}
				if err := do(tx, &rec, u, group); err != nil {
					return false, err
				}
				if err := membership.Save(tx, &rec, u, c.Actor()); err != nil {
					return false, err
				}
			}
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bringBack reactivates users who were stopped.
func (f *groups) bringBack(c *admin.Call, ids []string) error {
	for part := range slices.Chunk(ids, readAtOnce) {
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), membership.KindUser, part)
		if err != nil {
			return err
		}
		for i := range recs {
			u, err := membership.DecodeUser(recs[i])
			if err != nil {
				return err
			}
			if !u.Stopped && !u.Returning {
				continue
			}
			if err := f.users.family.rounds(c, func(tx *resource.Tx) (bool, error) {
				rec, u, ok, err := membership.FindUser(tx, c.Organisation(), recs[i].ID)
				if err != nil || !ok {
					return false, err
				}
				return membership.Revive(tx, c.Resources, &rec, u, c.Actor())
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
