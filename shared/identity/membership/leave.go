package membership

import (
	"context"
	"slices"

	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// keysPerRound is the number of keys that a transaction retires in addition to the membership.
const keysPerRound = 80 / identity.RowsOfKey

// retireKeys retires as many keys of a user in a workspace as fit into a transaction; left is
// set if there are more. The caller must write a record that every new key of the user touches
// (the member's or the user's), so that a concurrently created key causes a conflict.
func retireKeys(tx *resource.Tx, r *resource.Resources, sc store.Scope, user string, most int) (done int, left bool, err error) {
	return endKeys(tx, r, sc, user, most, identity.Retire)
}

// endKeys ends the keys with the function end.
func endKeys(tx *resource.Tx, r *resource.Resources, sc store.Scope, user string, most int, end func(*resource.Tx, *resource.Record) error) (done int, left bool, err error) {
	rows, err := r.List(tx.Context(), sc, identity.KindKey)
	if err != nil {
		return 0, false, err
	}
	for i := range rows {
		if rows[i].Fields["user"] != user {
			continue
		}
		rec, ok, err := tx.Get(sc, identity.KindKey, rows[i].ID)
		if err != nil {
			return done, false, err
		}
		if !ok || rec.Archived() {
			continue
		}
		if done == most {
			return done, true, nil
		}
		if err := end(tx, &rec); err != nil {
			return done, false, err
		}
		done++
	}
	return done, false, nil
}

// EndMembership ends a membership and retires the user's keys in the workspace, in several transactions
// until more is false. member is the record of the membership, read in this transaction.
func EndMembership(tx *resource.Tx, r *resource.Resources, member *resource.Record, actor string) (more bool, err error) {
	if _, more, err = retireKeys(tx, r, member.Scope, member.ID, keysPerRound); err != nil || more {
		return more, err
	}
	user, u, ok, err := stored(tx, member.Scope, member.ID)
	if err != nil {
		return false, err
	}
	if ok {
		drop := func(id string) bool { return id == member.Scope.Workspace }
		u.Workspaces, u.GroupWorkspaces = slices.DeleteFunc(u.Workspaces, drop), slices.DeleteFunc(u.GroupWorkspaces, drop)
		if err := Save(tx, &user, u, actor); err != nil {
			return false, err
		}
	}
	return false, tx.Delete(member)
}

// Remove removes a user with its memberships and keys, in several transactions until more is
// false. The first one decides whether the user may be removed. user was read in this
// transaction.
func Remove(tx *resource.Tx, r *resource.Resources, user *resource.Record, u *User, actor string) (more bool, err error) {
	switch {
	case !u.Leaving:
		if u.Role == Owner {
			countOwners(tx, user.Scope, -1)
			u.Role = Admin
		}
		u.Leaving = true
		return true, Save(tx, user, u, actor)
	case len(u.Workspaces) > 0:
		_, err := leaveFirst(tx, r, user, u, actor)
		return true, err
	case len(u.Groups) > 0:
		for _, g := range u.Groups[:min(len(u.Groups), rowsPerRound/2)] {
			if err := Exit(tx, user, u, g); err != nil {
				return false, err
			}
		}
		return true, Save(tx, user, u, actor)
	}
	if more, err = Sweep(tx, r, user, u); err != nil || more {
		return more, err
	}
	if p := u.Provisioned; p != nil {
		dropLogin(tx, user.Scope, p.UserName)
	}
	return false, tx.Delete(user)
}

// leaveFirst ends the first of a user's memberships.
func leaveFirst(tx *resource.Tx, r *resource.Resources, user *resource.Record, u *User, actor string) (more bool, err error) {
	sc := store.Scope{Org: user.Scope.Org, Workspace: u.Workspaces[0]}
	member, ok, err := tx.Get(sc, KindMember, user.ID)
	if err != nil {
		return false, err
	}
	if ok {
		return EndMembership(tx, r, &member, actor)
	}
	u.Workspaces = u.Workspaces[1:]
	return true, Save(tx, user, u, actor)
}

// Sweep retires a user's keys in workspaces where it is not a member: owners and admins may
// have such keys, and lose them with the role. It takes several transactions until more is
// false. The caller writes the user's record.
func Sweep(tx *resource.Tx, r *resource.Resources, user *resource.Record, u *User) (more bool, err error) {
	return sweep(tx, r, user, u, identity.Retire)
}

func sweep(tx *resource.Tx, r *resource.Resources, user *resource.Record, u *User, end func(*resource.Tx, *resource.Record) error) (more bool, err error) {
	scopes, err := otherWorkspaces(tx.Context(), r, user.Scope, u)
	if err != nil {
		return false, err
	}
	lists, err := r.ListMany(tx.Context(), scopes, identity.KindKey, false)
	if err != nil {
		return false, err
	}
	most := keysPerRound
	for n, rows := range lists {
		if !slices.ContainsFunc(rows, func(row resource.Row) bool { return row.Fields["user"] == user.ID }) {
			continue
		}
		done, left, err := endKeys(tx, r, scopes[n], user.ID, most, end)
		if err != nil || left {
			return left, err
		}
		if most -= done; most == 0 {
			return true, nil
		}
	}
	return false, nil
}

func otherWorkspaces(ctx context.Context, r *resource.Resources, org store.Scope, u *User) ([]store.Scope, error) {
	rows, err := r.List(ctx, org, tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	var out []store.Scope
	for i := range rows {
		if !u.MemberOf(rows[i].ID) {
			out = append(out, store.Scope{Org: org.Org, Workspace: rows[i].ID})
		}
	}
	return out, nil
}
