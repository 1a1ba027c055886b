package membership

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// InviteTTL is how long an invitation can be accepted.
const InviteTTL = 7 * 24 * time.Hour

// DueInvite is the kind of the due list of invites that expire.
const DueInvite = "INVITEEXPIRY"

// States of an invite. Expired is derived from the time; a worker stores it later.
const (
	Pending   = "pending"
	Cancelled = "cancelled"
	Accepted  = "accepted"
	Expired   = "expired"
)

// Invite is the stored form of an invitation. Only the invited person knows its token; the
// store has a hash.
type Invite struct {
	Email      string          `json:"email" min:"3" max:"254"`
	Role       string          `json:"role" enum:"admin,member"`
	Workspaces []InvitedTo     `json:"workspaces,omitempty" max:"100"`
	Keys       *InvitedWithKey `json:"workspace_api_key_details,omitempty"`
	TokenHash  string          `json:"token_hash"`
	State      string          `json:"state"`
	ExpiresAt  time.Time       `json:"expires_at"`
	AcceptedAt *time.Time      `json:"accepted_at,omitempty"`
	InvitedBy  string          `json:"invited_by,omitempty"`
	Rank       identity.Rank   `json:"rank,omitempty"`    // of who invites: bounds the keys that come with it
	UserID     string          `json:"user_id,omitempty"` // of who accepted, or is accepting as a new user
	// Claim tells which call is accepting it, if that takes several changes.
	Claim   string    `json:"claim,omitempty"`
	ClaimAt time.Time `json:"claim_at,omitzero"`
}

// InvitedTo is a workspace that an invitation includes. The stored form names it by id.
type InvitedTo struct {
	ID   string `json:"id" min:"1" max:"255" doc:"Id or slug of the workspace."`
	Role string `json:"role" enum:"admin,manager,member"`
}

// InvitedWithKey says that the accepting user gets a key in each workspace.
type InvitedWithKey struct {
	Scopes []string `json:"scopes" min:"1" max:"500" each:"max=255"`
}

// StateAt returns the state of the invite at a time.
func (i *Invite) StateAt(now time.Time) string {
	if i.State == Pending && !now.Before(i.ExpiresAt) {
		return Expired
	}
	return i.State
}

// DecodeInvite reads the stored form.
func DecodeInvite(rec resource.Record) (*Invite, error) { return resource.Decode[Invite](rec) }

// credentialKind is the partition kind of the rows by which tokens are found.
const credentialKind = "INVITE"

// maxToken limits what is hashed.
const maxToken = 256

// Ask returns a new invite ready to be stored: its address, its place among the pending ones,
// and its token, which it returns. If the address belongs to a user or a pending invite, that
// is a fault.Conflict at email.
func Ask(tx *resource.Tx, rec *resource.Record, form *Invite) (token string, err error) {
	address, ok := notice.Address(form.Email)
	if !ok {
		return "", fault.Invalid("email", "is not an e-mail address")
	}
	form.Email = address
	if user, there, err := tx.Get(rec.Scope, KindUser, slugOf(address)); err != nil || there {
		switch {
		case err != nil:
		case user.Archived():
			err = fault.New(fault.Conflict, "email", "is the address of a user whom the identity provider has stopped: it comes back by the identity provider")
		default:
			err = fault.New(fault.Conflict, "email", "is the address of a user of the organisation")
		}
		return "", err
	}
	old, ok, err := tx.Get(rec.Scope, KindInvite, slugOf(address))
	if err != nil {
		return "", err
	}
	if ok && !old.Archived() {
		was, err := DecodeInvite(old)
		if err != nil {
			return "", err
		}
		if was.StateAt(tx.Now()) == Pending {
			return "", fault.New(fault.Conflict, "email", "has a pending invitation already: resend or delete that one")
		}
		if err := Close(tx, &old, was, Expired, old.UpdatedBy); err != nil {
			return "", err
		}
	}
	rec.Slug, rec.Name = slugOf(address), address
	return Renew(tx, rec, form)
}

// Renew returns an invite a new token and its full time again. The old token is no longer
// valid. The caller stores rec and form.
func Renew(tx *resource.Tx, rec *resource.Record, form *Invite) (token string, err error) {
	if form.TokenHash != "" {
		tx.DeleteCredential(store.Credential(credentialKind, form.TokenHash))
	}
	if !form.ExpiresAt.IsZero() {
		if err := resource.Unschedule(tx, DueInvite, form.ExpiresAt, rec.Ref()); err != nil {
			return "", err
		}
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	token = base64.RawURLEncoding.EncodeToString(b[:])
	form.TokenHash, form.ExpiresAt = identity.HashToken(token), now(tx).Add(InviteTTL)
	form.State = Pending
	rec.Fields = form.fields()
	if err := resource.Schedule(tx, DueInvite, form.ExpiresAt, rec.Ref()); err != nil {
		return "", err
	}
	return token, tx.CreateCredential(store.Row{
		Key:  store.Credential(credentialKind, form.TokenHash),
		Item: store.Item{"org": rec.Scope.Org, "id": rec.ID},
	})
}

func (i *Invite) fields() map[string]string {
	return map[string]string{"email": i.Email, "role": i.Role, "state": i.State, "until": i.ExpiresAt.UTC().Format(time.RFC3339Nano)}
}

// StateOf returns the state of an invite at a time, from its row in a list.
func StateOf(row *resource.Row, now time.Time) string {
	until, _ := time.Parse(time.RFC3339Nano, row.Fields["until"])
	i := Invite{State: row.Fields["state"], ExpiresAt: until}
	return i.StateAt(now)
}

// Close stages the end of an invite that was read: its token is no longer valid, and its
// address may be invited again.
func Close(tx *resource.Tx, rec *resource.Record, form *Invite, state, actor string) error {
	tx.DeleteCredential(store.Credential(credentialKind, form.TokenHash))
	if err := resource.Unschedule(tx, DueInvite, form.ExpiresAt, rec.Ref()); err != nil {
		return err
	}
	form.State, form.TokenHash, form.Claim = state, "", ""
	rec.UpdatedBy, rec.Fields = actor, form.fields()
	if err := encode(rec, form); err != nil {
		return err
	}
	return tx.ArchiveAndFreeSlug(rec)
}

// Expire stages the expiry of an invite that was read: its token is not valid until the
// invite is renewed. due is false when it is not pending or has time left.
func Expire(tx *resource.Tx, rec *resource.Record, form *Invite) (due bool, err error) {
	if form.State != Pending || form.StateAt(tx.Now()) != Expired {
		return false, nil
	}
	tx.DeleteCredential(store.Credential(credentialKind, form.TokenHash))
	form.State, form.Claim = Expired, ""
	rec.Fields = form.fields()
	if err := encode(rec, form); err != nil {
		return false, err
	}
	return true, tx.Update(rec)
}

// Notice returns an event about an invite that is stored in a record.
func (i *Invite) Notice(rec *resource.Record, kind, summary string) notice.Event {
	return notice.Event{
		Type: kind, Org: rec.Scope.Org, Summary: summary,
		Data: map[string]string{"invite_id": rec.ID, "email": i.Email, "role": i.Role, "expires_at": i.ExpiresAt.UTC().Format(time.RFC3339)},
	}
}

// errGone returns the one response for tokens that are unknown, used, replaced or too old.
func errGone() error {
	return fault.New(fault.NotFound, "token", "This invitation is not valid any more; ask for another")
}

// OfToken finds the invite of a token: its organisation and its id.
func OfToken(ctx context.Context, s store.Store, token string) (org store.Scope, id string, err error) {
	if token == "" || len(token) > maxToken {
		return org, "", errGone()
	}
	it, ok, err := s.Table(store.Keys).Get(ctx, store.Credential(credentialKind, identity.HashToken(token)), true)
	if err != nil {
		return org, "", fault.Unavailable(err)
	}
	if !ok {
		return org, "", errGone()
	}
	return store.Scope{Org: it.String("org")}, it.String("id"), nil
}

// PendingFor finds the invite of an address that can be accepted.
func PendingFor(tx *resource.Tx, org store.Scope, email string) (id string, ok bool, err error) {
	rec, ok, err := tx.Get(org.Organisation(), KindInvite, slugOf(email))
	if err != nil || !ok || rec.Archived() {
		return "", false, err
	}
	form, err := DecodeInvite(rec)
	if err != nil {
		return "", false, err
	}
	return rec.ID, form.StateAt(tx.Now()) == Pending, nil
}

// claimTTL is how long one call may take to accept an invite before another may continue
// it.
const claimTTL = time.Minute

// Acceptance is an invite that is being accepted, in as many changes as that takes. Step
// runs in each.
type Acceptance struct {
	Org       store.Scope
	ID, Token string
	// Shown replaces Token: the person has proved that the address is its own.
	Shown     bool
	FirstName string // of a new user
	LastName  string
	Claim     string // identifies this call
	// Joined is called for each workspace that the user joins, in the change.
	Joined func(tx *resource.Tx, user *resource.Record, workspace string, i *Invite) error
	// Rows is the most rows that joining a workspace takes.
	Rows int

	User   *resource.Record // who it is
	New    bool             // the user was made by this invitation
	Invite *Invite
}

// Step does a part. If it fails, the parts that were done stay, and the invite can be
// accepted again.
func (a *Acceptance) Step(tx *resource.Tx) (more bool, err error) {
	rec, ok, err := tx.Get(a.Org, KindInvite, a.ID)
	if err != nil {
		return false, err
	}
	if !ok || rec.Archived() {
		return false, errGone()
	}
	form, err := DecodeInvite(rec)
	if err != nil {
		return false, err
	}
	at := now(tx)
	if form.StateAt(at) != Pending || !a.Shown && form.TokenHash != identity.HashToken(a.Token) {
		return false, errGone()
	}
	if form.Claim != "" && form.Claim != a.Claim && at.Sub(form.ClaimAt) < claimTTL {
		return false, fault.New(fault.Conflict, "token", "this invitation is being accepted; try again in a minute")
	}
	a.Invite = form
	user, u, err := a.user(tx, form)
	if err != nil {
		return false, err
	}
	a.User = user
	if more, err = a.join(tx, user, u, form); err != nil {
		return false, err
	}
	if more {
		form.Claim, form.ClaimAt = a.Claim, at
		if a.New {
			form.UserID = user.ID
		}
		if err := encode(&rec, form); err != nil {
			return false, err
		}
		return true, tx.Update(&rec)
	}
	form.AcceptedAt, form.UserID = &at, user.ID
	return false, Close(tx, &rec, form, Accepted, user.ID)
}

// user finds or makes the invited user.
func (a *Acceptance) user(tx *resource.Tx, form *Invite) (*resource.Record, *User, error) {
	user, u, ok, err := find(tx, a.Org, slugOf(form.Email))
	if err != nil {
		return nil, nil, err
	}
	if ok {
		if u.Leaving {
			return nil, nil, errGone()
		}
		a.New = a.New || form.UserID == user.ID
		return &user, u, nil
	}
	u = &User{Email: form.Email, FirstName: a.FirstName, LastName: a.LastName, Role: form.Role}
	rec, err := Create(tx, a.Org, u, form.InvitedBy)
	a.New = err == nil
	return rec, u, err
}

// roomForWorkspaces is how many rows a change has for them.
const roomForWorkspaces = 75

// join returns the user a member of the workspaces that it is not yet in.
func (a *Acceptance) join(tx *resource.Tx, user *resource.Record, u *User, form *Invite) (more bool, err error) {
	most := max(1, roomForWorkspaces/max(a.Rows, 1))
	for _, to := range form.Workspaces {
		if u.MemberOf(to.ID) {
			continue
		}
		ws, ok, err := tx.Get(a.Org, tenant.KindWorkspace, to.ID)
		if err != nil {
			return false, err
		}
		if !ok || ws.Archived() {
			continue // it was deleted after the invitation was sent
		}
		if most == 0 {
			return true, nil
		}
		most--
		if _, err := Join(tx, user, u, ws.ID, to.Role, form.InvitedBy); err != nil {
			return false, err
		}
		if err := a.Joined(tx, user, ws.ID, form); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Names reports whether the invite includes a workspace.
func (i *Invite) Names(workspace string) bool {
	return slices.ContainsFunc(i.Workspaces, func(to InvitedTo) bool { return to.ID == workspace })
}
