package apikeys

import (
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/usage/lastused"
)

// maxTransition is how long two secrets of a key may both be valid, in
// milliseconds: a year.
const maxTransition = 31_536_000_000

// fields are those of a key's body.
func fields() []admin.Field {
	return []admin.Field{
		{Name: "name", Doc: "Display name.", Required: true, Min: 1, Max: identity.MaxName, Column: true},
		{Name: "description", Doc: "Purpose of the key.", Absent: ""},
		{Name: "user_id", Reference: "/admin/users", Doc: "User that a workspace/user key belongs to: the caller, or another member of the workspace.", CreateOnly: true, Fixed: true},
		{Name: "scopes", Doc: "Scopes of the key; limited to those of the caller.", Required: true, Example: []string{"configs.list"}},
		{Name: "defaults", Doc: "Defaults of requests with the key.", Merge: true, AllFields: true, Fields: []admin.Field{
			{Name: "metadata", Absent: map[string]any{}}, {Name: "config_id", Reference: "/configs"}, {Name: "allow_config_override", Default: true, Optional: true},
		}},
		{Name: "status", Type: admin.String, UpdateOnly: true, Trigger: true, Enum: []string{identity.StatusActive, identity.StatusPaused, identity.StatusExpired, ledger.Exhausted},
			Doc: "paused rejects every request with the key until active resumes it. Other values that reads show change nothing."},
		{Name: "alert_emails", Doc: "Further recipients of alerts.", Absent: []any{}},
		{Name: "expires_at", Doc: "When the key stops working."},
		{Name: "rotation_policy", Doc: "Rotation by the gateway, at 00:00 UTC.", Fields: []admin.Field{
			{Name: "rotation_period", Enum: []string{"weekly", "monthly"}},
			{Name: "rotation_period_days", Min: 1, Max: 365},
			{Name: "next_rotation_at"},
			{Name: "key_transition_period_ms", Min: identity.MinTransition.Milliseconds(), Max: maxTransition},
			{Name: "status", Type: admin.String, ReadOnly: true},
		}},
	}
}

func (f *family) limits() *admin.Limits[identity.Key] {
	return &admin.Limits[identity.Key]{
		Ledger: f.ledger, Place: ledger.OnKey, Status: true,
		Budget: func(k *identity.Key) **ledger.UsageLimit { return &k.UsageLimits },
		Reset:  func(k *identity.Key) **time.Time { return &k.LastResetAt },
		Subject: func(it item) *ledger.Subject {
			return identity.SubjectOf(it.Scope, it.ID, it.Name, it.Rev, it.Form.RateLimits, it.Form.UsageLimits)
		},
	}
}

// hidden is how users see the secrets of other users' keys.
const hidden = "*****"

// createRoute is the name of the route that creates keys.
const createRoute = "createApiKey"

// rawKey is the name under which a call stores the raw key for its response.
const rawKey = "raw key"

// shown are members of reads beside the fields.
func shown() []admin.ComputedField[identity.Key] {
	of := func(name string, t admin.Type, doc string, value func(c *admin.Call, it item) any) admin.ComputedField[identity.Key] {
		return admin.ComputedField[identity.Key]{Field: admin.Field{Name: name, Type: t, Doc: doc}, Value: value}
	}
	policy := admin.Field{Name: "rotation_policy", Type: admin.Object, Fields: []admin.Field{
		{Name: "rotation_period", Type: admin.String}, {Name: "rotation_period_days", Type: admin.Integer}, {Name: "next_rotation_at", Type: admin.String, Doc: "As it was sent, or the computed time."},
		{Name: "key_transition_period_ms", Type: admin.Integer, Optional: true}, {Name: "status", Type: admin.String},
	}}
	return []admin.ComputedField[identity.Key]{
		of("key", admin.String, "The masked key. Only the response of a create contains the complete key; it is null there if the key is another user's.", func(c *admin.Call, it item) any {
			if c.Route.Name == createRoute {
				return c.Value(rawKey)
			}
			if it.Form.UserID != "" && c.Caller.UserID != "" && !c.Caller.Is(it.Form.UserID) && it.ID != c.Caller.KeyID {
				return hidden // key of another user
			}
			return it.Form.Secret.Masked
		}),
		of("type", admin.String, "organisation-service, workspace-service or workspace-user.", func(_ *admin.Call, it item) any { return it.Form.Type }),
		of("status", admin.String, "active, paused, expired or exhausted.", func(c *admin.Call, it item) any { return identity.Live(it.Status, it.Form, c.Now) }),
		of("creation_mode", admin.String, "ui, api or auto.", func(_ *admin.Call, it item) any { return it.Form.CreationMode }),
		of("allow_config_override", admin.Integer, "0 or 1; null when never set.", func(_ *admin.Call, it item) any {
			if allow := it.Form.Defaults.AllowOverride; allow != nil {
				return admin.Flag(*allow)
			}
			return nil
		}),
		of("last_rotated_at", admin.Timestamp, "When the key was last rotated.", func(_ *admin.Call, it item) any { return timeOf(it.Form.RotatedAt) }),
		of("key_transition_expires_at", admin.Timestamp, "When the previous secret of a rotated key expires; null: there is none.", func(c *admin.Call, it item) any {
			if !it.Form.InTransition(c.Now) {
				return nil
			}
			return timeOf(it.Form.Previous.ExpiresAt)
		}),
		of("secret_to_collect", admin.Boolean, "Whether a secret can be collected: of an automatic rotation, or of a user's key that others created or rotated.", func(_ *admin.Call, it item) any { return it.HasSecret(identity.UncollectedSecret) }),
		{Field: admin.Field{Name: "last_used_at", Type: admin.Timestamp, Doc: "The minute of the last request with the key, within a minute or two; null if it was not used for 400 days. Calls of the administration do not count."}},
		{Field: policy, Value: showPolicy},
	}
}

// showLastUse adds the last use of keys to a page or a single key.
func showLastUse(c *admin.Call, items []item, objects []admin.Members) error {
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.ID
	}
	used, err := lastused.Times(c.Context, c.Resources.Store(), c.Caller.Scope.Org, ids)
	if err != nil {
		return fault.Unavailable(err)
	}
	for i, id := range ids {
		objects[i]["last_used_at"] = admin.FormatTime(used[id])
	}
	return nil
}

func showPolicy(_ *admin.Call, it item) any {
	p := it.Form.Rotation
	if p == nil {
		return nil
	}
	days := any(p.PeriodDays)
	if p.PeriodDays == 0 {
		days = nil
	}
	out := map[string]any{"rotation_period": admin.OrNull(p.Period), "rotation_period_days": days, "next_rotation_at": nextRotation(p), "status": "active"}
	if p.TransitionMS != 0 {
		out["key_transition_period_ms"] = p.TransitionMS
	}
	return out
}

// nextRotation is the date of the next rotation, in the client's own text while it is the
// date that the client sent.
func nextRotation(p *identity.RotationPolicy) any {
	if at, err := admin.ParseTime(p.NextSent); err == nil && p.NextAt != nil && identity.Midnight(at).Equal(identity.Midnight(*p.NextAt)) {
		return p.NextSent
	}
	return timeOf(p.NextAt)
}

func timeOf(t *time.Time) any {
	if t == nil {
		return nil
	}
	return admin.FormatTime(*t)
}
