package membership

import (
	"context"
	"maps"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// memberRows is the kind of the rows with the members of a group.
const memberRows = "GROUPMEMBER"

// maxGroups is the number of groups of a user.
const maxGroups = 500

func groupMemberKey(org store.Scope, group, user string) store.Key {
	return org.Organisation().Partition().Key(memberRows, group, user)
}

// JoinGroup stages that a user joins a group. The caller saves the user, and settles it.
func JoinGroup(tx *resource.Tx, user *resource.Record, u *User, group string) error {
	return enter(tx, user, u, group, store.Item{"id": user.ID})
}

// Fields of the rows with a group's members. They mark users who joined or left and have not
// been settled. A call that ends early leaves the marks for the next call about the group.
const (
	openMark = "open"
	leftMark = "left"
)

// EnterOpen is JoinGroup with a mark that the user must be settled.
func EnterOpen(tx *resource.Tx, user *resource.Record, u *User, group string) error {
	return enter(tx, user, u, group, store.Item{"id": user.ID, openMark: resource.NewID()})
}

// ExitOpen is Exit with such a mark.
func ExitOpen(tx *resource.Tx, user *resource.Record, u *User, group string) error {
	leave(u, group)
	row := store.Row{Key: groupMemberKey(user.Scope, group, user.ID), Item: store.Item{"id": user.ID, openMark: resource.NewID(), leftMark: true}}
	tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: row}}, nil)
	return tx.MarkChanged(groupRef(user.Scope, group))
}

func groupRef(org store.Scope, id string) resource.Ref {
	return resource.Ref{Scope: org.Organisation(), Kind: KindGroup, ID: id}
}

func leave(u *User, group string) {
	u.Groups = slices.DeleteFunc(slices.Clone(u.Groups), func(id string) bool { return id == group })
}

func enter(tx *resource.Tx, user *resource.Record, u *User, group string, it store.Item) error {
	if u.inGroup(group) {
		return nil
	}
	if len(u.Groups) >= maxGroups {
		return fault.Newf(fault.QuotaReached, "", "a user is in at most %d groups", maxGroups)
	}
	u.Groups = append(u.Groups, group)
	slices.Sort(u.Groups)
	row := store.Row{Key: groupMemberKey(user.Scope, group, user.ID), Item: it}
	tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: row}}, nil)
	if err := tx.MarkChanged(groupRef(user.Scope, group)); err != nil {
		return err
	}
	return tx.Require(groupRef(user.Scope, group)) // also if there was no mark
}

// Exit stages that a user leaves a group. The caller saves the user.
func Exit(tx *resource.Tx, user *resource.Record, u *User, group string) error {
	leave(u, group)
	tx.Do(store.Action{Table: store.Control, Delete: &store.Delete{Key: groupMemberKey(user.Scope, group, user.ID)}}, nil)
	return tx.MarkChanged(groupRef(user.Scope, group))
}

// InGroup returns the sorted ids of the users in a group.
func InGroup(ctx context.Context, r *resource.Resources, org store.Scope, group string) (out []string, err error) {
	err = eachMember(ctx, r, org, group, func(it store.Item) {
		if !it.Bool(leftMark) {
			out = append(out, it.String("id"))
		}
	})
	return out, err
}

// UnsettledUsers are the users who joined or left a group and must be settled, with the data for ClearMarks.
type UnsettledUsers map[string]store.Item

// OpenIn lists these users of a group.
func OpenIn(ctx context.Context, r *resource.Resources, org store.Scope, group string) (UnsettledUsers, error) {
	out := UnsettledUsers{}
	err := eachMember(ctx, r, org, group, func(it store.Item) {
		if it.String(openMark) != "" {
			out[it.String("id")] = it
		}
	})
	return out, err
}

func eachMember(ctx context.Context, r *resource.Resources, org store.Scope, group string, see func(store.Item)) error {
	q := store.Query{Partition: org.Organisation().Partition(), Prefix: memberRows + "#" + group + "#"}
	for row, err := range store.Rows(ctx, r.Store().Table(store.Control), q) {
		if err != nil {
			return fault.Unavailable(err)
		}
		see(row.Item)
	}
	return nil
}

// ClearMarks removes the marks of settled users. A mark that was renewed in the meantime stays.
func (o UnsettledUsers) ClearMarks(ctx context.Context, r *resource.Resources, org store.Scope, group string) error {
	table := r.Store().Table(store.Control)
	for id, it := range o {
		key, same := groupMemberKey(org, group, id), store.IfEqual(store.At(openMark), it.String(openMark))
		var err error
		if it.Bool(leftMark) {
			err = table.Delete(ctx, key, same)
		} else {
			_, _, err = table.Update(ctx, store.Update{Key: key, Remove: []store.Path{store.At(openMark)}, If: []store.Cond{same}})
		}
		if _, other := store.AsCondition(err); err != nil && !other {
			return fault.Unavailable(err)
		}
	}
	return nil
}

// groupGrant is what groups grant a user in a workspace.
type groupGrant struct {
	role   string
	groups []string
}

// GroupSync adds users to the workspaces of their groups, and removes them from those that their
// groups no longer grant. Manual memberships stay.
type GroupSync struct {
	Resources *resource.Resources
	Sealer    seal.Sealer // seals created keys until their users collect them
	Actor     string
	Rank      identity.Rank // of the actor; limits the created keys
	// Ended are the mappings, as group and workspace, that this call removes together with
	// their memberships.
	Ended map[[2]string]bool
	// RowsLeft is the number of rows left in the transaction; Sync reduces it.
	RowsLeft int
}

// Numbers of rows: those for settling in a transaction that does nothing else, and those for
// joining a workspace.
const (
	RowsToSettle = 84
	rowsOfJoin   = 7
)

// Sync changes a part of a user's memberships in each transaction, until more is false. user
// is the result of FindUser. Deactivated users are settled when they are reactivated.
func (s *GroupSync) Sync(tx *resource.Tx, user *resource.Record, u *User) (more bool, err error) {
	if u.Stopped || u.Leaving {
		return false, nil
	}
	want, mapped, err := s.wanted(tx, user.Scope, u)
	if err != nil {
		return false, err
	}
	for _, ws := range slices.Sorted(maps.Keys(want)) {
		if s.RowsLeft < rowsOfJoin+identity.RowsOfKey {
			return true, nil
		}
		if err := s.grant(tx, user, u, ws, want[ws]); err != nil {
			return false, err
		}
	}
	for _, ws := range slices.Clone(u.GroupWorkspaces) {
		if _, stays := want[ws]; stays {
			continue
		}
		if s.RowsLeft < RowsToSettle {
			return true, nil // each removal has a separate transaction
		}
		s.RowsLeft = 0
		return true, s.revoke(tx, user, u, ws, mapped)
	}
	return false, nil
}

// wanted returns what the groups of a user grant, by workspace; mapped contains all mappings,
// as group and workspace.
func (s *GroupSync) wanted(tx *resource.Tx, org store.Scope, u *User) (want map[string]groupGrant, mapped map[[2]string]bool, err error) {
	rows, err := s.Resources.List(tx.Context(), org, KindMapping)
	if err != nil {
		return nil, nil, err
	}
	want, mapped = map[string]groupGrant{}, map[[2]string]bool{}
	for i := range rows {
		f := rows[i].Fields
		group, ws, role := f[FieldGroup], f[FieldWorkspace], f[FieldRole]
		mapped[[2]string{group, ws}] = true
		if !u.inGroup(group) {
			continue
		}
		g := want[ws]
		if IsHigher(role, g.role) {
			g.role = role
		}
		g.groups = append(g.groups, group)
		want[ws] = g
	}
	for ws, g := range want {
		rec, ok, err := tx.Get(org, tenant.KindWorkspace, ws)
		if err != nil {
			return nil, nil, err
		}
		if !ok || rec.Archived() {
			delete(want, ws)
			continue
		}
		slices.Sort(g.groups)
		want[ws] = g
	}
	return want, mapped, nil
}

// grant sets a membership to what the groups grant, in addition to manual roles.
func (s *GroupSync) grant(tx *resource.Tx, user *resource.Record, u *User, ws string, g groupGrant) error {
	sc := store.Scope{Org: user.Scope.Org, Workspace: ws}
	rec, there, err := tx.Get(sc, KindMember, user.ID)
	if err != nil {
		return err
	}
	if there {
		form, err := DecodeMembership(rec)
		if err != nil {
			return err
		}
		if len(form.Groups) == 0 {
			form.Own = form.Role
		}
		role := g.role
		if IsHigher(form.Own, role) {
			role = form.Own
		}
		if slices.Equal(form.Groups, g.groups) && form.Role == role && slices.Contains(u.GroupWorkspaces, ws) {
			return nil
		}
		s.RowsLeft -= rowsOfJoin
		form.Groups, form.Role = g.groups, role
		if err := saveMember(tx, &rec, form, s.Actor); err != nil {
			return err
		}
		return s.mark(tx, user, u, ws)
	}
	s.RowsLeft -= rowsOfJoin
	if _, err := Join(tx, user, u, ws, g.role, s.Actor); err != nil {
		return err
	}
	if rec, _, err = tx.Get(sc, KindMember, user.ID); err != nil {
		return err
	}
	if err := saveMember(tx, &rec, &Membership{Email: u.Email, Role: g.role, Groups: g.groups}, s.Actor); err != nil {
		return err
	}
	creates, err := Creates(tx, sc)
	if err != nil {
		return err
	}
	if creates {
		s.RowsLeft -= identity.RowsOfKey
		if _, _, err := CreateUserKey(tx, s.Resources, s.Sealer, sc, user, nil, s.Rank, s.Actor); err != nil {
			return err
		}
	}
	return s.mark(tx, user, u, ws)
}

func (s *GroupSync) mark(tx *resource.Tx, user *resource.Record, u *User, ws string) error {
	if slices.Contains(u.GroupWorkspaces, ws) {
		return nil
	}
	u.GroupWorkspaces = append(u.GroupWorkspaces, ws)
	slices.Sort(u.GroupWorkspaces)
	return Save(tx, user, u, s.Actor)
}

// revoke ends a membership that came only from groups which the user has left. If instead the
// mapping was removed while the user was in the group, the membership becomes manual.
func (s *GroupSync) revoke(tx *resource.Tx, user *resource.Record, u *User, ws string, mapped map[[2]string]bool) error {
	sc := store.Scope{Org: user.Scope.Org, Workspace: ws}
	rec, there, err := tx.Get(sc, KindMember, user.ID)
	if err != nil {
		return err
	}
	if !there {
		u.GroupWorkspaces = slices.DeleteFunc(u.GroupWorkspaces, func(id string) bool { return id == ws })
		return Save(tx, user, u, s.Actor)
	}
	form, err := DecodeMembership(rec)
	if err != nil {
		return err
	}
	for _, g := range form.Groups {
		if at := [2]string{g, ws}; !mapped[at] && !s.Ended[at] && form.Own == "" {
			form.Own = form.Role
		}
	}
	if form.Own == "" {
		_, err := EndMembership(tx, s.Resources, &rec, s.Actor)
		return err
	}
	form.Role, form.Groups, form.Own = form.Own, nil, ""
	if err := saveMember(tx, &rec, form, s.Actor); err != nil {
		return err
	}
	u.GroupWorkspaces = slices.DeleteFunc(u.GroupWorkspaces, func(id string) bool { return id == ws })
	return Save(tx, user, u, s.Actor)
}
