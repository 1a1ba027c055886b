package membership

import (
	"context"
	"encoding/json"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Provisioned contains the identity provider's additional data about a user.
type Provisioned struct {
	UserName   string          `json:"user_name"`
	ExternalID string          `json:"external_id,omitempty"`
	Profile    json.RawMessage `json:"profile,omitempty"` // attributes that the gateway does not use
}

// FieldExternal is the list row field with the external id of a user or group.
const FieldExternal = "external_id"

// rowsPerRound is the number of rows in one transaction.
const rowsPerRound = 40

// FindUser finds a user by id, including deactivated users.
func FindUser(tx *resource.Tx, org store.Scope, id string) (rec resource.Record, u *User, ok bool, err error) {
	rec, u, ok, err = stored(tx, org, id)
	return rec, u, ok && (!u.Leaving || u.Stopped), err
}

// stored is like FindUser, but also finds a user with a removal in progress.
func stored(tx *resource.Tx, org store.Scope, id string) (rec resource.Record, u *User, ok bool, err error) {
	rec, ok, err = tx.Get(org.Organisation(), KindUser, id)
	if err != nil || !ok || rec.ID != id {
		return rec, nil, false, err
	}
	u, err = DecodeUser(rec)
	return rec, u, err == nil, err
}

// loginKey returns the key of the row of a login name, which is unique.
func loginKey(org store.Scope, name string) store.Key {
	return org.Organisation().Partition().Key("SCIMLOGIN", identity.HashToken(NormalizeEmail(name)))
}

func dropLogin(tx *resource.Tx, org store.Scope, name string) {
	tx.Do(store.Action{Table: store.Control, Delete: &store.Delete{Key: loginKey(org, name)}}, nil)
}

// errTaken returns the fault for a name that another user has.
func errTaken() error {
	return fault.New(fault.Conflict, "userName", "another user of the organization already has this name or address")
}

// ByLogin finds the id of the user with a name: its name at the identity provider, or the
// address of a user that no identity provider manages.
func ByLogin(ctx context.Context, r *resource.Resources, org store.Scope, name string) (id string, ok bool, err error) {
	it, ok, err := r.Store().Table(store.Control).Get(ctx, loginKey(org, name), true)
	if err != nil {
		return "", false, fault.Unavailable(err)
	}
	if ok {
		return it.String("id"), true, nil
	}
	address, ok := notice.Address(name)
	if !ok {
		return "", false, nil
	}
	rec, ok, err := r.Get(ctx, org.Organisation(), KindUser, slugOf(address))
	if err != nil || !ok {
		return "", false, err
	}
	u, err := DecodeUser(rec)
	return rec.ID, err == nil && u.Provisioned == nil && !u.Leaving, err
}

// SetLogin stages the identity provider's name for a user. The caller saves the user.
func SetLogin(tx *resource.Tx, rec *resource.Record, u *User, p *Provisioned) {
	if old := u.Provisioned; old == nil || NormalizeEmail(old.UserName) != NormalizeEmail(p.UserName) {
		if old != nil {
			dropLogin(tx, rec.Scope, old.UserName)
		}
		row := store.Row{Key: loginKey(rec.Scope, p.UserName), Item: store.Item{"id": rec.ID}}
		tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}}, errTaken())
	}
	u.Provisioned = p
}

// SetAddress stages another address of a user, which must be free. The caller saves the user;
// Readdress updates its memberships.
func SetAddress(tx *resource.Tx, rec *resource.Record, u *User, address string) error {
	if address == u.Email {
		return nil
	}
	other, ok, err := tx.Get(rec.Scope, KindUser, slugOf(address))
	if err != nil {
		return err
	}
	if ok && other.ID != rec.ID {
		return errTaken()
	}
	u.Email, rec.Slug, rec.Name, rec.Looked = address, slugOf(address), address, true
	return nil
}

// UpdateAddress writes the address of a user into its memberships, in several transactions until
// more is false.
func UpdateAddress(tx *resource.Tx, rec *resource.Record, u *User, actor string) (more bool, err error) {
	n := 0
	for _, ws := range u.Workspaces {
		member, ok, err := tx.Get(store.Scope{Org: rec.Scope.Org, Workspace: ws}, KindMember, rec.ID)
		if err != nil {
			return false, err
		}
		if !ok || member.Name == u.Email {
			continue
		}
		if n++; n > rowsPerRound/2 {
			return true, nil
		}
		form, err := DecodeMembership(member)
		if err != nil {
			return false, err
		}
		form.Email, member.Name = u.Email, u.Email
		if err := saveMember(tx, &member, form, actor); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Stop deactivates a user: it ends the user's permissions, memberships and keys so that Revive
// can restore them. The first transaction deactivates; further ones complete it, until more is
// false. rec is the result of FindUser.
func Stop(tx *resource.Tx, r *resource.Resources, rec *resource.Record, u *User, actor string) (more bool, err error) {
	if !u.Stopped {
		if u.Role == Owner {
			countOwners(tx, rec.Scope, -1)
		}
		u.Stopped, u.Leaving, u.Returning, rec.Status = true, true, false, resource.StatusArchived
		u.StoppedAt = now(tx).UnixMilli()
		return true, Save(tx, rec, u, actor)
	}
	most := keysPerRound
	for _, ws := range u.Workspaces {
		sc := store.Scope{Org: rec.Scope.Org, Workspace: ws}
		done, left, err := endKeys(tx, r, sc, rec.ID, most, identity.Suspend)
		if err != nil || left {
			return left, err
		}
		member, ok, err := tx.Get(sc, KindMember, rec.ID)
		if err != nil {
			return false, err
		}
		if !ok || member.Archived() {
			continue
		}
		member.UpdatedBy = actor
		if err := tx.Archive(&member); err != nil {
			return false, err
		}
		if most -= max(done, 1); most <= 0 {
			return true, nil
		}
	}
	if most < keysPerRound {
		return true, nil // the rest goes into a separate transaction
	}
	return sweep(tx, r, rec, u, identity.Suspend)
}

// Revive restores what Stop ended, and nothing else. The first transaction reactivates; further
// ones complete it, until more is false.
func Revive(tx *resource.Tx, r *resource.Resources, rec *resource.Record, u *User, actor string) (more bool, err error) {
	switch {
	case u.Stopped:
		if u.Role == Owner {
			countOwners(tx, rec.Scope, 1)
		}
		u.Stopped, u.Leaving, u.Returning, rec.Status = false, false, true, "active"
		return true, Save(tx, rec, u, actor)
	case !u.Returning:
		return false, nil
	}
	most := keysPerRound
	for _, ws := range u.Workspaces {
		sc := store.Scope{Org: rec.Scope.Org, Workspace: ws}
		n, err := reviveIn(tx, r, sc, rec, most, actor)
		if err != nil {
			return false, err
		}
		if most -= n; most <= 0 {
			return true, nil
		}
	}
	others, err := otherWorkspaces(tx.Context(), r, rec.Scope, u)
	if err != nil {
		return false, err
	}
	lists, err := r.ListMany(tx.Context(), others, identity.KindKey, true)
	if err != nil {
		return false, err
	}
	for i, rows := range lists {
		n, err := restoreKeys(tx, others[i], rows, rec.ID, most)
		if err != nil {
			return false, err
		}
		if most -= n; most <= 0 {
			return true, nil
		}
	}
	if most < keysPerRound {
		return true, nil
	}
	u.Returning = false
	return false, Save(tx, rec, u, actor)
}

// reviveIn restores a membership and its keys, and returns the number of rows used. What ended
// with its workspace is not restored.
func reviveIn(tx *resource.Tx, r *resource.Resources, sc store.Scope, user *resource.Record, most int, actor string) (n int, err error) {
	member, ok, err := tx.Get(sc, KindMember, user.ID)
	if err != nil || !ok {
		return 0, err
	}
	ws, live, err := tx.Get(sc.Organisation(), tenant.KindWorkspace, sc.Workspace)
	if err != nil || !live || ws.Archived() {
		return 0, err
	}
	if member.Archived() {
		member.Status, member.UpdatedBy = "active", actor
		if err := tx.Update(&member); err != nil {
			return 0, err
		}
		n++
	}
	rows, err := r.ListArchived(tx.Context(), sc, identity.KindKey)
	if err != nil {
		return n, err
	}
	done, err := restoreKeys(tx, sc, rows, user.ID, most-n)
	return n + done, err
}

func restoreKeys(tx *resource.Tx, sc store.Scope, rows []resource.Row, user string, most int) (n int, err error) {
	for i := range rows {
		if n >= most {
			break
		}
		if identity.Suspended(&rows[i]) != user {
			continue
		}
		rec, ok, err := tx.Get(sc, identity.KindKey, rows[i].ID)
		if err != nil {
			return n, err
		}
		ws, there, err := tx.Get(sc.Organisation(), tenant.KindWorkspace, sc.Workspace)
		if err != nil {
			return n, err
		}
		if !ok || !rec.Archived() || rec.Fields["user"] != user || !there || ws.Archived() {
			continue
		}
		row := rec.Row()
		if identity.Suspended(&row) != user {
			continue
		}
		if err := identity.Restore(tx, &rec, ws.Slug); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// inGroup reports whether a user is in a group.
func (u *User) inGroup(group string) bool {
	_, in := slices.BinarySearch(u.Groups, group)
	return in
}
