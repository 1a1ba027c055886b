// Package membership manages the users of an organization, their roles in it and in its
// workspaces, groups and invitations. A user belongs to the organisation. Its memberships are
// stored in the workspaces and, as a list, with the user.
//
// Every change of a membership goes through this package, so that a user's keys end with it.
package membership

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Kinds of stored resources. Users and invites belong to the organization, members to their
// workspace; the id of a member is the user's.
const (
	KindUser   resource.Kind = "USER"
	KindMember resource.Kind = "MEMBER"
	KindInvite resource.Kind = "INVITE"
)

// Roles. Owner is only a role of the organization, Manager only of a workspace.
const (
	Owner   = "owner"
	Admin   = "admin"
	Manager = "manager"
	Member  = "member"
)

var rank = map[string]int{Member: 1, Manager: 2, Admin: 3, Owner: 4}

// IsHigher reports whether a role is higher than another.
func IsHigher(role, other string) bool { return rank[role] > rank[other] }

// User is the stored form of a user.
type User struct {
	Email      string   `json:"email" min:"3" max:"254"` // normalized by Address
	FirstName  string   `json:"first_name,omitempty" max:"255"`
	LastName   string   `json:"last_name,omitempty" max:"255"`
	Role       string   `json:"role" enum:"owner,admin,member"`
	Workspaces []string `json:"workspaces,omitempty"` // sorted ids of the user's workspaces
	// Leaving marks a user without permissions: its removal has begun, or an identity provider
	// has deactivated it.
	Leaving bool `json:"leaving,omitempty"`
	// Provisioned contains the identity provider's data about the user, or nil.
	Provisioned *Provisioned `json:"provisioned,omitempty"`
	// Groups are the sorted ids of the user's groups; Given are the sorted workspaces of these
	// groups.
	Groups          []string `json:"groups,omitempty"`
	GroupWorkspaces []string `json:"given,omitempty"`
	// Stopped marks a user that an identity provider has deactivated, Returning one with a
	// reactivation in progress. The record of a deactivated user is archived.
	Stopped   bool `json:"stopped,omitempty"`
	Returning bool `json:"returning,omitempty"`
	// StoppedAt is the time in milliseconds of the last deactivation. Everything that the user
	// authorized before stays invalid.
	StoppedAt int64 `json:"stopped_at,omitempty"`
}

// MaxWorkspaces is the number of workspaces of one user.
const MaxWorkspaces = 2000

// IsOrganisationAdmin reports whether the user is an admin of every workspace without being a
// member.
func (u *User) IsOrganisationAdmin() bool { return !u.Leaving && (u.Role == Owner || u.Role == Admin) }

// MemberOf reports whether the user is a member of a workspace.
func (u *User) MemberOf(workspace string) bool {
	_, in := slices.BinarySearch(u.Workspaces, workspace)
	return in
}

// RoleIn returns the user's role in a workspace, or "". member is the role of its membership
// there, or "".
func (u *User) RoleIn(member string) string {
	switch {
	case u.Leaving:
		return ""
	case u.IsOrganisationAdmin():
		return u.Role
	}
	return member
}

// Membership is the stored form of a member of a workspace.
type Membership struct {
	Email string `json:"email"` // of the user, for lists
	Role  string `json:"role" enum:"admin,manager,member"`
	// Groups are the groups that grant the membership; Own is the role that the user would have
	// without them, or "".
	Groups []string `json:"groups,omitempty"`
	Own    string   `json:"own_role,omitempty"`
}

// slugOf returns the slug of an address, a hash, because addresses contain characters that
// slugs do not allow.
func slugOf(email string) string {
	sum := sha256.Sum256([]byte(email))
	return "mail-" + hex.EncodeToString(sum[:])
}

// ByID finds a user by its id.
func ByID(tx *resource.Tx, org store.Scope, id string) (rec resource.Record, u *User, ok bool, err error) {
	return find(tx, org.Organisation(), id)
}

// ByEmail finds a user by its address, in any spelling.
func ByEmail(tx *resource.Tx, org store.Scope, email string) (rec resource.Record, u *User, ok bool, err error) {
	address, ok := notice.Address(email)
	if !ok {
		return rec, nil, false, nil
	}
	return find(tx, org.Organisation(), slugOf(address))
}

// StoppedByEmail reports whether the user of an address was deactivated by an identity
// provider.
func StoppedByEmail(tx *resource.Tx, org store.Scope, email string) (bool, error) {
	address, ok := notice.Address(email)
	if !ok {
		return false, nil
	}
	rec, ok, err := tx.Get(org.Organisation(), KindUser, slugOf(address))
	return ok && rec.Archived(), err
}

func find(tx *resource.Tx, org store.Scope, name string) (resource.Record, *User, bool, error) {
	rec, ok, err := tx.Get(org, KindUser, name)
	if err != nil || !ok || rec.Archived() {
		return rec, nil, false, err
	}
	u, err := DecodeUser(rec)
	return rec, u, err == nil, err
}

// DecodeUser decodes the stored form.
func DecodeUser(rec resource.Record) (*User, error) { return resource.Decode[User](rec) }

func DecodeMembership(rec resource.Record) (*Membership, error) {
	return resource.Decode[Membership](rec)
}

func encode(rec *resource.Record, form any) error {
	var err error
	if rec.Body, err = json.Marshal(form); err != nil {
		return fmt.Errorf("people: encode %s: %w", rec.Kind, err)
	}
	return nil
}

// Create stages a new user and normalizes Email. If the address is taken, it returns a
// fault.Conflict at email.
func Create(tx *resource.Tx, org store.Scope, u *User, actor string) (*resource.Record, error) {
	address, ok := notice.Address(u.Email)
	if !ok {
		return nil, fault.Invalid("email", "is not an e-mail address")
	}
	u.Email = address
	// A deactivated user retains its address.
	if _, taken, err := tx.Get(org.Organisation(), KindUser, slugOf(address)); err != nil || taken {
		if err == nil {
			err = fault.New(fault.Conflict, "email", "a user of the organization already has this address")
		}
		return nil, err
	}
	rec := &resource.Record{
		Looked: true,
		Scope:  org.Organisation(), Kind: KindUser, ID: resource.NewID(), Slug: slugOf(address), Name: address, Status: "active",
		CreatedBy: actor, UpdatedBy: actor, Fields: u.fields(),
	}
	if err := encode(rec, u); err != nil {
		return nil, err
	}
	if u.Role == Owner {
		countOwners(tx, org, 1)
	}
	return rec, tx.Create(rec)
}

// Save stages a changed user.
func Save(tx *resource.Tx, rec *resource.Record, u *User, actor string) error {
	rec.UpdatedBy = actor
	rec.Fields = u.fields()
	if err := encode(rec, u); err != nil {
		return err
	}
	return tx.Update(rec)
}

func (u *User) fields() map[string]string {
	out := map[string]string{"role": u.Role, "email": u.Email}
	if p := u.Provisioned; p != nil && p.ExternalID != "" {
		out[FieldExternal] = p.ExternalID
	}
	return out
}

// countOwners counts an organization's owners. The count never falls to zero, even if two
// owners leave concurrently.
func countOwners(tx *resource.Tx, org store.Scope, delta int64) {
	u := &store.Update{Key: org.Organisation().Partition().Key("OWNERS"), Add: []store.Increment{{Path: store.At("n"), By: delta}}}
	var last error
	if delta < 0 {
		u.If = []store.Cond{store.IfAtLeast(store.At("n"), 1-delta)}
		last = ErrLastOwner()
	}
	tx.Do(store.Action{Table: store.Control, Update: u}, last)
}

// ErrLastOwner returns the fault for a change that would leave an organization without owners.
func ErrLastOwner() error {
	return fault.New(fault.NotAllowed, "", "The last owner of the organization cannot be removed or demoted; make another user an owner first")
}

// SetRole stages another role of a user in the organisation. Sweep removes the keys that the
// old role allowed.
func SetRole(tx *resource.Tx, rec *resource.Record, u *User, role, actor string) error {
	switch {
	case u.Role == Owner && role != Owner:
		countOwners(tx, rec.Scope, -1)
	case u.Role != Owner && role == Owner:
		countOwners(tx, rec.Scope, 1)
	}
	u.Role = role
	return Save(tx, rec, u, actor)
}

// Join stages the membership of a user in a workspace, or its role if it is a member. joined
// reports whether the membership is new.
func Join(tx *resource.Tx, user *resource.Record, u *User, workspace, role, actor string) (joined bool, err error) {
	sc := store.Scope{Org: user.Scope.Org, Workspace: workspace}
	rec, ok, err := tx.Get(sc, KindMember, user.ID)
	if err != nil {
		return false, err
	}
	form := Membership{Email: u.Email, Role: role}
	if ok {
		was, err := DecodeMembership(rec)
		if err != nil {
			return false, err
		}
		if form.Groups = was.Groups; len(form.Groups) > 0 {
			form.Own = role // it stays when no group grants the membership
		}
		return false, saveMember(tx, &rec, &form, actor)
	}
	if len(u.Workspaces) >= MaxWorkspaces {
		return false, fault.Newf(fault.QuotaReached, "", "a user is a member of at most %d workspaces", MaxWorkspaces)
	}
	rec = resource.Record{Scope: sc, Kind: KindMember, ID: user.ID, Name: u.Email, Status: "active", CreatedBy: actor, UpdatedBy: actor, Looked: true}
	rec.Fields = form.fields()
	if err := encode(&rec, &form); err != nil {
		return false, err
	}
	if err := tx.Create(&rec); err != nil {
		return false, err
	}
	u.Workspaces = append(u.Workspaces, workspace)
	slices.Sort(u.Workspaces)
	u.Workspaces = slices.Compact(u.Workspaces)
	return true, Save(tx, user, u, actor)
}

func (m *Membership) fields() map[string]string {
	return map[string]string{"role": m.Role, "email": m.Email}
}

func saveMember(tx *resource.Tx, rec *resource.Record, form *Membership, actor string) error {
	rec.UpdatedBy, rec.Fields = actor, form.fields()
	if err := encode(rec, form); err != nil {
		return err
	}
	return tx.Update(rec)
}

// SetMemberRole stages another role of a member.
func SetMemberRole(tx *resource.Tx, rec *resource.Record, role, actor string) error {
	form, err := DecodeMembership(*rec)
	if err != nil {
		return err
	}
	form.Role = role
	return saveMember(tx, rec, form, actor)
}

// now returns the time in the stored precision.
func now(tx *resource.Tx) time.Time { return tx.Now().UTC().Truncate(time.Millisecond) }

// Named finds the users of signed tokens; it implements jwt.Users.
type Named struct{}

// named is a user with its id.
type named struct {
	id            string
	live, stopped bool
}

// Member finds a user by email address; id is empty if there is none. member reports whether
// the user has a role in the workspace.
func (Named) Member(ctx context.Context, v *resource.View, workspace store.Scope, email string) (id string, member bool, err error) {
	address, ok := notice.Address(email)
	if !ok {
		return "", false, nil
	}
	u, ok, err := resource.Load(ctx, v, workspace.Organisation(), KindUser, slugOf(address), func(rec resource.Record) (named, error) {
		form, err := DecodeUser(rec)
		if err != nil {
			return named{}, err
		}
		return named{rec.ID, !rec.Archived(), form.Stopped}, nil
	})
	if err == nil && ok && u.stopped {
		return u.id, false, nil // tokens cannot act for a deactivated user
	}
	if err != nil || !ok || !u.live {
		return "", false, err
	}
	_, member, err = LoadRole(ctx, v, workspace, u.id)
	return u.id, member, err
}
