// Package acceptance accepts invitations, for the routes with which invited people join an
// organization.
package acceptance

import (
	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

// Key is an API key that an invitation included.
type Key struct{ ID, Workspace, Secret string }

// Accepted is the result of an acceptance.
type Accepted struct {
	Org    store.Scope
	User   string // id of the user
	Invite *membership.Invite
	Keys   []Key // in the order of the invitation's workspaces
}

// Accept accepts an invitation by its token. The audit log names the new user as the actor.
// The result has the keys of the invitation only for a new user who cannot sign in; others
// sign in and collect them.
func Accept(c *admin.Call, token, firstName, lastName string) (*Accepted, error) {
	org, id, err := membership.OfToken(c.Context, c.Resources.Store(), token)
	if err != nil {
		return nil, err
	}
	c.Caller.Scope, c.Scope = org, org
	c.SetResource(id)
	keys := map[string]Key{}
	a := &membership.Acceptance{Org: org, ID: id, Token: token, Claim: c.RequestID, Rows: 4 + identity.RowsOfKey, FirstName: firstName, LastName: lastName}
	a.OnJoin = func(tx *resource.Tx, user *resource.Record, workspace string, i *membership.Invite) error {
		signsIn, err := CanSignIn(c, org, i.Email)
		if err != nil {
			return err
		}
		if signsIn || !a.New {
			_, _, err := membership.CreateUserKeyIfRequested(tx, c.Resources, c.Sealer, workspace, user, i)
			return err
		}
		rec, raw, err := membership.CreateUserKeyIfRequested(tx, c.Resources, nil, workspace, user, i)
		if rec != nil {
			keys[workspace] = Key{ID: rec.ID, Workspace: workspace, Secret: raw}
		}
		return err
	}
	err = admin.Rounds(c, func(tx *resource.Tx) (bool, error) {
		more, err := a.Step(tx)
		if a.User != nil {
			c.Caller.UserID = a.User.ID
		}
		return more, err
	})
	if err != nil {
		return nil, err
	}
	out := &Accepted{Org: org, User: a.User.ID, Invite: a.Invite}
	for _, to := range a.Invite.Workspaces {
		if k, ok := keys[to.ID]; ok {
			out.Keys = append(out.Keys, k)
		}
	}
	return out, nil
}

// CanSignIn reports whether a user with this email address can sign in, and so can collect a
// key. Anyone with the link of an invitation, such as its author, may accept it without proving
// to be the person named in it; only a sign-in proves that.
func CanSignIn(c *admin.Call, org store.Scope, email string) (bool, error) {
	ways, err := c.Resources.List(c.Context, org, sso.KindConnection)
	if err != nil || len(ways) == 0 {
		return false, err
	}
	_, domain := sso.DomainOf(email)
	return sso.Allows(c.Context, c.Resources, org, domain)
}
