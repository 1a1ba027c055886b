package apikeys

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/tenant"
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

// sponsor makes the user who creates, changes or rotates a service key responsible for it, unless
// the key ranks above them.
func sponsor(c *admin.Call, k *identity.Key) {
	if k.UserID != "" || k.Rank == "" || k.Rank.IsHigherThan(c.Caller.Rank) {
		return
	}
	k.Sponsor = cmp.Or(c.Caller.ResponsibleUser(), identity.NoSponsor)
}

// owns reports whether the caller is the user of the key, beyond doubt: a credential that others
// may know receives no secret of its user, with which they could act for the user.
func owns(c *admin.Call, k *identity.Key) bool { return c.Caller.Is(k.UserID) }

// rights returns what a key allows: its scopes, with the lower of its creator's rank and the
// present rank of its user.
func rights(tx *resource.Tx, rec *resource.Record, k *identity.Key) (authority.Permissions, error) {
	rank, _ := k.Granted(rec.CreatedBy)
	if k.UserID == "" {
		return authority.Permissions{Rank: rank, Scopes: k.Scopes}, nil
	}
	own, err := membership.RankIn(tx, rec.Scope, k.UserID)
	return authority.Permissions{Rank: own.Min(rank), Scopes: k.Scopes}, err
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
			if err := by.Grant("user_id", authority.Permissions{Rank: own}); err != nil {
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
	had, field := ch.OldForm.Scopes, "scopes"
	if lasts {
		field = "expires_at"
	} else if resumes {
		field = "status"
	}
	if (lasts || resumes) && !owns(c, k) {
		had = nil
	}
	if err := by.Grant(field, authority.Permissions{Rank: all.Rank}); err != nil {
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
	was, now := ch.OldForm.ExpiresAt, ch.Form.ExpiresAt
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
		return fault.New(fault.NotAllowed, "id", "only the user of this key can collect its secret, after signing in")
	}
	return mayRotate(c, tx, ch)
}

func addsScopes(ch *change) bool {
	had := identity.NewScopeSet(ch.OldForm.Scopes...)
	return slices.ContainsFunc(ch.Form.Scopes, func(s string) bool { return !had.Has(identity.NormalScope(s)) })
}

// byTheRules checks a key against the settings of its workspace: metadata for all keys;
// owner, number, expiry and rotation for those of users.
func byTheRules(c *admin.Call, tx *resource.Tx, ch *change) error {
	org, err := tenant.ReadSettings(tx, ch.Rec.Scope)
	if err != nil {
		return err
	}
	s, k := &org.Settings, ch.Form
	if ch.Creates() {
		k.Defaults.Metadata = s.KeyMetadata.Complete(k.Defaults.Metadata)
	}
	var bad []fault.Detail
	if sent, _ := c.Body.Object("defaults"); ch.Creates() || sent.Has("metadata") || c.Body.Null("defaults") {
		bad = s.KeyMetadata.Check("defaults.metadata", k.Defaults.Metadata)
	}
	if k.Type == identity.WorkspaceUser {
		if err := ownerOf(c, tx, ch, s); err != nil {
			return err
		}
		bad = append(bad, expiry(c, ch, s)...)
		bad = append(bad, rotation(c, ch, s)...)
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return nil
}

// ownerOf checks that a new key's user is a member of the workspace, and that the workspace's
// limit on keys is not reached. A key that names no config gets the workspace's default.
func ownerOf(c *admin.Call, tx *resource.Tx, ch *change, s *tenant.Settings) error {
	if !ch.Creates() {
		return nil
	}
	k, sc := ch.Form, ch.Rec.Scope
	if !owns(c, k) && !c.Caller.AtLeast(admin.Manager) {
		return admin.Denied()
	}
	if !admin.IsUUID(k.UserID) {
		return fault.Invalid("user_id", "must be the UUID of a user")
	}
	if _, err := membership.CheckKeyOwner(tx, sc, k.UserID, "user_id"); err != nil {
		return err
	}
	full, err := membership.KeyLimitReached(tx, c.Resources, sc, s)
	if err != nil {
		return err
	}
	if full {
		return fault.Newf(fault.NotAllowed, workspaceID, "The workspace has %d user keys, which is the maximum; delete one first", s.MaxKeys)
	}
	defaults, _ := c.Body.Object("defaults")
	if defaults.Has("config_id") {
		return nil
	}
	ws, ok, err := tx.Get(c.Organisation(), tenant.KindWorkspace, sc.Workspace)
	if err != nil || !ok {
		return err
	}
	form, err := tenant.ReadWorkspace(ws)
	if err == nil {
		k.Defaults.ConfigID = form.Defaults.UserAPIKeyConfig
	}
	return err
}

// expiry gives a key its time to end, and rejects one that is too late.
func expiry(c *admin.Call, ch *change, s *tenant.Settings) []fault.Detail {
	k := ch.Form
	if !ch.Creates() && !c.Body.Has("expires_at") {
		return nil
	}
	at, ok := s.Expiry(k.ExpiresAt, c.Body.Has("expires_at") && !(ch.Creates() && c.Body.Null("expires_at")), c.Now)
	if k.ExpiresAt = at; !ok {
		return []fault.Detail{{Field: "expires_at", Message: fmt.Sprintf("must be at most %s from now, as the workspace settings require", time.Duration(s.MaxTTL)*time.Second)}}
	}
	return nil
}

// rotation sets the rotation period that the settings require, and rejects any other.
func rotation(c *admin.Call, ch *change, s *tenant.Settings) []fault.Detail {
	if s.RotationPeriod == 0 || !ch.Creates() && !c.Body.Has("rotation_policy") {
		return nil
	}
	p := ch.Form.Rotation
	if p == nil {
		if !ch.Creates() && c.Body.Null("rotation_policy") {
			return []fault.Detail{{Field: "rotation_policy", Message: "cannot be removed: the workspace settings require a rotation every " + s.RotationPeriod.String()}}
		}
		membership.Rotating(ch.Form, s, c.Now)
		return nil
	}
	sent, _ := c.Body.Object("rotation_policy")
	days := p.PeriodDays
	switch p.Period {
	case "weekly":
		days = 7
	case "monthly":
		days = 30
	}
	switch {
	case days != 0 && days != int(s.RotationPeriod):
		return []fault.Detail{{Field: "rotation_policy.rotation_period_days", Message: "must be " + s.RotationPeriod.String() + ", as the workspace settings require"}}
	case sent.HasValue("next_rotation_at") && (ch.OldForm.Rotation == nil || ch.OldForm.Rotation.NextAt == nil || !sent.Time("next_rotation_at").Equal(*ch.OldForm.Rotation.NextAt)):
		return []fault.Detail{{Field: "rotation_policy.next_rotation_at", Message: "cannot be set: the workspace settings define when keys are rotated"}}
	}
	p.Period, p.PeriodDays = "", int(s.RotationPeriod)
	return nil
}
