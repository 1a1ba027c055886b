package sso

import (
	"errors"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Admission admits an authenticated user of an identity provider: an existing one, an invited
// one, or a new member.
type Admission struct {
	Org         store.Scope
	Email       string
	FirstName   string
	LastName    string
	InvitedOnly bool
	Claim       string // identifies this call

	Resources *resource.Resources
	Sealer    seal.Sealer // seals created keys until they are collected

	User *resource.Record
	New  bool // the user was created, or accepted an invitation

	acceptance *membership.Acceptance
}

// DomainOf returns the domain of an address, or "" for an invalid address.
func DomainOf(email string) (address, domain string) {
	address, ok := notice.Address(email)
	if !ok {
		return "", ""
	}
	return address, address[strings.LastIndexByte(address, '@')+1:]
}

// ErrStopped is returned for a user whom an identity provider has deactivated, or who is being
// removed.
var ErrStopped = errors.New("the user is deactivated")

// ErrUninvited is returned for someone who is neither a user nor invited.
var ErrUninvited = errors.New("the person is not a user of the organization and has no invitation")

// Step makes a part of the changes in a transaction, until more is false. Completed parts stay.
// A fault.Conflict comes from a concurrent sign-in of the same user: Step may be called again.
func (a *Admission) Step(tx *resource.Tx) (more bool, err error) {
	if a.acceptance == nil {
		rec, u, ok, err := membership.ByEmail(tx, a.Org, a.Email)
		if err != nil {
			return false, err
		}
		if ok {
			if u.Leaving {
				return false, ErrStopped
			}
			a.User, a.New = &rec, false
			return false, nil
		}
		stopped, err := membership.StoppedByEmail(tx, a.Org, a.Email)
		if err == nil && stopped {
			err = ErrStopped
		}
		if err != nil {
			return false, err
		}
	}
	if a.acceptance == nil {
		id, pending, err := membership.PendingFor(tx, a.Org, a.Email)
		if err != nil {
			return false, err
		}
		if pending {
			a.acceptance = &membership.Acceptance{
				Org: a.Org, ID: id, Verified: true, Claim: a.Claim, Rows: 4 + identity.RowsOfKey, FirstName: a.FirstName, LastName: a.LastName, OnJoin: a.joined,
			}
		}
	}
	if a.acceptance != nil {
		more, err := a.acceptance.Step(tx)
		if err != nil {
			// Another sign-in may have accepted the invitation since it was found: start again.
			a.acceptance = nil
			if f := fault.From(err); f.Status() < 500 {
				err = fault.New(fault.Conflict, f.Field, f.Message)
			}
			return false, err
		}
		a.User, a.New = a.acceptance.User, true
		return more, nil
	}
	org, err := tenant.ReadSettings(tx, a.Org)
	if err != nil {
		return false, err
	}
	if a.InvitedOnly || org.Settings.ScimOnly {
		return false, ErrUninvited
	}
	u := &membership.User{Email: a.Email, FirstName: a.FirstName, LastName: a.LastName, Role: membership.Member}
	a.User, err = membership.Create(tx, a.Org, u, "")
	a.New = true
	if fault.Is(err, fault.Conflict) {
		return true, nil // another sign-in has just created it
	}
	return false, err
}

// joined creates the key of a user who joins a workspace, if the invitation or the settings
// require it. Its user collects it.
func (a *Admission) joined(tx *resource.Tx, user *resource.Record, workspace string, i *membership.Invite) error {
	_, _, err := membership.CreateUserKeyIfRequested(tx, a.Resources, a.Sealer, workspace, user, i)
	return err
}
