package apikeys

import (
	"slices"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
)

// rankOfNew returns the rank that a new key stores: the caller's. A key that a signed-in
// user creates for itself is bounded by the user's present role alone.
func rankOfNew(c *admin.Call, k *identity.Key) identity.Rank {
	if owns(c, k) && c.Caller.KeyID == "" {
		return identity.RankOwner
	}
	if c.Caller.Rank == identity.RankOwner && k.Type == identity.WorkspaceService {
		return identity.RankWorkspaceAdmin // nothing in a workspace needs more
	}
	return c.Caller.Rank
}

// owns reports whether the caller is the user of the key, beyond doubt: a credential that others
// may know receives no secret of its user, with which they could act for the user.
func owns(c *admin.Call, k *identity.Key) bool { return c.Caller.Is(k.UserID) }

// rights returns what a key allows: its scopes, with the lower of its creator's rank and the
// present rank of its user.
func rights(tx *resource.Tx, rec *resource.Record, k *identity.Key) (authority.Rights, error) {
	rank, _ := k.Granted(rec.CreatedBy)
	if k.UserID == "" {
		return authority.Rights{Rank: rank, Scopes: k.Scopes}, nil
	}
	own, err := membership.RankIn(tx, rec.Scope, k.UserID)
	return authority.Rights{Rank: own.Min(rank), Scopes: k.Scopes}, err
}

// grants checks that a new key, or an extension of a key, is within the caller's permissions.
// Scopes that the key had before may remain; a longer lifetime, and the end of a pause, are
// checked like a new key.
func grants(c *admin.Call, tx *resource.Tx, ch *change) error {
	k, by := ch.Form, c.Caller.Grantor()
	if ch.Creates() {
		if k.UserID != "" && !owns(c, k) {
			own, err := membership.RankIn(tx, ch.Rec.Scope, k.UserID)
			if err != nil {
				return err
			}
			if err := by.Grant("user_id", authority.Rights{Rank: own}); err != nil {
				return err
			}
		}
		return by.GrantScopes("scopes", k.Scopes, nil)
	}
	adds, lasts, resumes := addsScopes(ch), lastsLonger(ch), resumes(c, ch)
	if !adds && !lasts && !resumes {
		return nil
	}
	all, err := rights(tx, ch.Rec, k)
	if err != nil {
		return err
	}
	had, field := ch.Was.Scopes, "scopes"
	if lasts {
		field = "expires_at"
	} else if resumes {
		field = "status"
	}
	if (lasts || resumes) && !owns(c, k) {
		had = nil
	}
	if err := by.Grant(field, authority.Rights{Rank: all.Rank}); err != nil {
		return err
	}
	return by.GrantScopes("scopes", k.Scopes, had)
}

// resumes reports whether a change makes a paused key valid again.
func resumes(c *admin.Call, ch *change) bool {
	return ch.Old.Status == identity.StatusPaused && c.Body.Text("status") == identity.StatusActive
}

// lastsLonger reports whether a change moves the end of a key to a later time, or removes
// it.
func lastsLonger(ch *change) bool {
	was, now := ch.Was.ExpiresAt, ch.Form.ExpiresAt
	return was != nil && (now == nil || now.After(*was))
}

// deliver returns the raw key for the response, or nil after sealing it with the record
// until the user of the key collects it.
func deliver(c *admin.Call, rec *resource.Record, k *identity.Key, raw string) (show any, err error) {
	if k.UserID == "" || owns(c, k) {
		return raw, rec.SetSecret(c.Context, c.Sealer, identity.UncollectedSecret, nil)
	}
	if err := rec.SetSecret(c.Context, c.Sealer, identity.UncollectedSecret, []byte(raw)); err != nil {
		return nil, fault.Unavailable(err)
	}
	return nil, nil
}

// mayRotate checks that the caller may give a key a new secret. The secret of a service key
// is shown to the caller, so that all of its rights count; that of another user's key is
// not, so that its rank alone does.
func mayRotate(c *admin.Call, tx *resource.Tx, ch *change) error {
	if c.Caller.KeyID == ch.Rec.ID || owns(c, ch.Form) && c.Caller.KeyID == "" {
		return nil
	}
	all, err := rights(tx, ch.Rec, ch.Form)
	if err != nil {
		return err
	}
	if ch.Form.UserID != "" && !owns(c, ch.Form) {
		all.Scopes = nil
	}
	return c.Caller.Grantor().Grant("id", all)
}

// mayCollect checks that the caller may see the secret that waits: that of a user's key is
// for its user alone.
func mayCollect(c *admin.Call, tx *resource.Tx, ch *change) error {
	if k := ch.Form; k.UserID != "" && !owns(c, k) {
		return fault.New(fault.NotAllowed, "id", "the secret of a user's key is collected by that user, who signs in for it")
	}
	return mayRotate(c, tx, ch)
}

func addsScopes(ch *change) bool {
	had := identity.NewScopeSet(ch.Was.Scopes...)
	return slices.ContainsFunc(ch.Form.Scopes, func(s string) bool { return !had.Has(identity.NormalScope(s)) })
}
