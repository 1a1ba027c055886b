package membership

import (
	"cmp"
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

// InviteTTL is the lifetime of an invitation.
const InviteTTL = 7 * 24 * time.Hour

// DueInvite is the kind of the due list of expiring invites.
const DueInvite = "INVITEEXPIRY"

// States of an invite. Expired is derived from the time and stored later by a worker.
const (
	Pending   = "pending"
	Cancelled = "cancelled"
	Accepted  = "accepted"
	Expired   = "expired"
)

// Invite is the stored form of an invitation. Its token is stored as a hash.
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
	Rank       identity.Rank   `json:"rank,omitempty"`    // of the inviting principal; limits the keys of the invitation
	Sponsor    string          `json:"sponsor,omitempty"` // answers for it until it is accepted; see identity.Key
	UserID     string          `json:"user_id,omitempty"` // of the user who accepted or is accepting
	// Claim identifies the call that is accepting it, if that takes several transactions.
	Claim   string    `json:"claim,omitempty"`
	ClaimAt time.Time `json:"claim_at,omitzero"`
}

// InvitedTo is a workspace of an invitation, stored by id.
type InvitedTo struct {
	ID   string `json:"id" min:"1" max:"255" doc:"Id or slug of the workspace."`
	Role string `json:"role" enum:"admin,manager,member"`
	Sent string `json:"sent,omitempty"` // the workspace as it was named, if not by its id
}

// InvitedWithKey is set if the accepting user gets a key in each workspace.
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

// DecodeInvite decodes the stored form.
func DecodeInvite(rec resource.Record) (*Invite, error) { return resource.Decode[Invite](rec) }

// credentialKind is the partition kind of the rows that are found by token.
const credentialKind = "INVITE"

// maxToken limits the input of the hash.
const maxToken = 256

// PrepareInvite prepares a new invite: it claims its address, adds it to the pending invites and returns
// its token. If the address belongs to a user or a pending invite, it returns a fault.Conflict
// at email.
func PrepareInvite(tx *resource.Tx, rec *resource.Record, form *Invite) (token string, err error) {
	address, ok := notice.Address(form.Email)
	if !ok {
		return "", fault.Invalid("email", "is not an e-mail address")
	}
	form.Email = address
	if user, there, err := tx.Get(rec.Scope, KindUser, slugOf(address)); err != nil || there {
		switch {
		case err != nil:
		case user.Archived():
			err = fault.New(fault.Conflict, "email", "is the address of a user who was deactivated by the identity provider: reactivate the user there")
		default:
			err = fault.New(fault.Conflict, "email", "must not be the address of a user of the organization")
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
			return "", fault.New(fault.Conflict, "email", "already has a pending invitation: resend or delete it")
		}
		if err := Close(tx, &old, was, Expired, old.UpdatedBy); err != nil {
			return "", err
		}
	}
	rec.Slug, rec.Name = slugOf(address), address
	return Renew(tx, rec, form)
}

// Renew gives an invite a new token and its full lifetime. The old token becomes invalid. The
// caller stores rec and form.
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
	_, _ = rand.Read(b[:]) // crypto/rand never fails
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

// Close stages the end of an invite: its token becomes invalid, and its address may be invited
// again.
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

// Expire stages the expiry of an invite: its token is invalid until the invite is renewed. due
// is false if it is not pending or not expired.
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

// Notice returns an event about an invite.
func (i *Invite) Notice(rec *resource.Record, kind, summary string) notice.Event {
	return notice.Event{
		Type: kind, Org: rec.Scope.Org, Summary: summary,
		Data: map[string]string{"invite_id": rec.ID, "email": i.Email, "role": i.Role, "expires_at": i.ExpiresAt.UTC().Format(time.RFC3339)},
	}
}

// errGone returns the fault for tokens that are unknown, used, replaced or expired.
func errGone() error {
	return fault.New(fault.NotFound, "token", "This invitation is no longer valid; ask for another")
}

// OfToken returns the organization and the id of a token's invite.
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

// PendingFor returns the pending invite of an address.
func PendingFor(tx *resource.Tx, org store.Scope, email string) (id string, ok bool, err error) {
	rec, ok, err := tx.Get(org.Organisation(), KindInvite, slugOf(email))
	if err != nil || !ok || rec.Archived() {
		return "", false, err
	}
	form, err := DecodeInvite(rec)
	if err != nil {
		return "", false, err
	}
	if form.StateAt(tx.Now()) != Pending {
		return rec.ID, false, nil
	}
	err = form.sponsored(tx, org)
	if fault.Is(err, fault.NotAllowed) { // the link reports it; signing in does without
		return rec.ID, false, nil
	}
	return rec.ID, err == nil, err
}

// claimTTL is how long a call may take to accept an invite before another may continue it.
const claimTTL = time.Minute

// Acceptance is an invite that is being accepted in several transactions. Step runs in each.
type Acceptance struct {
	Org       store.Scope
	ID, Token string
	// Verified replaces Token: the user has proved ownership of the address.
	Verified  bool
	FirstName string // of a new user
	LastName  string
	Claim     string // identifies this call
	// OnJoin is called within the transaction for each workspace that the user joins.
	OnJoin func(tx *resource.Tx, user *resource.Record, workspace string, i *Invite) error
	// Rows is the maximum number of rows for joining a workspace.
	Rows int

	User   *resource.Record // the invited user
	New    bool             // the user was created by this invitation
	Invite *Invite
}

// Step makes a part of the changes. If it fails, the completed parts stay, and the invite can
// be accepted again.
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
	if form.StateAt(at) != Pending || !a.Verified && form.TokenHash != identity.HashToken(a.Token) {
		return false, errGone()
	}
	if form.Claim != "" && form.Claim != a.Claim && at.Sub(form.ClaimAt) < claimTTL {
		return false, fault.New(fault.Conflict, "token", "this invitation is being accepted; try again in a minute")
	}
	if err := form.sponsored(tx, a.Org); err != nil {
		return false, err
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

// sponsored checks that its sponsor could still invite a user with the same rights.
func (i *Invite) sponsored(tx *resource.Tx, org store.Scope) error {
	if i.Sponsor == "" || i.Sponsor == identity.NoSponsor {
		return nil
	}
	within := func(sc store.Scope, of identity.Rank) error {
		rank, err := RankIn(tx, sc, i.Sponsor)
		if err == nil && of.IsHigherThan(cmp.Or(rank, identity.RankMember)) {
			err = fault.New(fault.NotAllowed, "token", "who invited you may no longer give the role "+of.Role()+"; ask for another invitation")
		}
		return err
	}
	if err := within(org.Organisation(), OrganisationRank(i.Role)); err != nil {
		return err
	}
	for _, to := range i.Workspaces {
		if err := within(store.Scope{Org: org.Org, Workspace: to.ID}, identity.Rank(to.Role)); err != nil {
			return err
		}
	}
	return nil
}

// user finds or creates the invited user.
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

// roomForWorkspaces is the number of rows for workspaces in a transaction.
const roomForWorkspaces = 75

// join adds the user to the workspaces of which it is not yet a member.
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
		if err := a.OnJoin(tx, user, ws.ID, form); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Names reports whether the invite includes a workspace.
func (i *Invite) Names(workspace string) bool {
	return slices.ContainsFunc(i.Workspaces, func(to InvitedTo) bool { return to.ID == workspace })
}
