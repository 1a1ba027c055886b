package apikeys

import (
	"fmt"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

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
	if _, err := membership.Holds(tx, sc, k.UserID, "user_id"); err != nil {
		return err
	}
	full, err := membership.Full(tx, c.Resources, sc, s)
	if err != nil {
		return err
	}
	if full {
		return fault.Newf(fault.NotAllowed, workspaceID, "The workspace has the %d keys of users that it may have; delete one first", s.MaxKeys)
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

// expiry gives a key its time to end, and refuses one that is too late.
func expiry(c *admin.Call, ch *change, s *tenant.Settings) []fault.Detail {
	k := ch.Form
	if !ch.Creates() && !c.Body.Has("expires_at") {
		return nil
	}
	at, ok := s.Expiry(k.ExpiresAt, c.Body.Has("expires_at") && !(ch.Creates() && c.Body.Null("expires_at")), c.Now)
	if k.ExpiresAt = at; !ok {
		return []fault.Detail{{Field: "expires_at", Message: fmt.Sprintf("must be at most %s away, by the settings of the workspace", time.Duration(s.MaxTTL)*time.Second)}}
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
			return []fault.Detail{{Field: "rotation_policy", Message: "cannot be removed: the settings of the workspace ask for a rotation every " + s.RotationPeriod.String()}}
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
		return []fault.Detail{{Field: "rotation_policy.rotation_period_days", Message: "must be " + s.RotationPeriod.String() + ", by the settings of the workspace"}}
	case sent.Given("next_rotation_at") && (ch.Was.Rotation == nil || ch.Was.Rotation.NextAt == nil || !sent.Time("next_rotation_at").Equal(*ch.Was.Rotation.NextAt)):
		return []fault.Detail{{Field: "rotation_policy.next_rotation_at", Message: "cannot be set: the settings of the workspace say when keys are rotated"}}
	}
	p.Period, p.PeriodDays = "", int(s.RotationPeriod)
	return nil
}
