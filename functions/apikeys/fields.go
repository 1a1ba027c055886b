package apikeys

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/route"
)

const kindConfig = route.KindConfig

func itoa(i int) string { return strconv.Itoa(i) }

// fields are those of a key's body.
func fields() []admin.Field {
	text := &admin.Field{Type: admin.String, Max: 255}
	return []admin.Field{
		{Name: "name", Doc: "Name for people.", Type: admin.String, Required: true, Min: 1, Max: identity.MaxName, Column: true},
		{Name: "description", Doc: "What the key is for.", Type: admin.String, Max: identity.MaxDescription},
		{Name: "user_id", Doc: "User that a workspace/user key belongs to: the caller, a user that has a key in the workspace, or with an organisation key any UUID.", Type: admin.String, Max: 64, CreateOnly: true, Fixed: true},
		{Name: "scopes", Doc: "What the key may do; within the rights of the key that asks.", Type: admin.Array, Of: text, Required: true, Min: 1, Max: 500},
		{Name: "rate_limits", Doc: "Requests or tokens per rps, rpm, rph, rpd or rpw.", Type: admin.Any, Convert: rateLimits, Form: ledger.OnKey.RateSchema()},
		{Name: "usage_limits", Doc: "Budget of dollars or tokens; reads also show current_usage and status.", Type: admin.Any, Convert: usageLimits, Form: ledger.OnKey.UsageSchema()},
		{Name: "defaults", Doc: "What requests with the key start from.", Type: admin.Object, Merge: true, Fields: []admin.Field{
			{Name: "metadata", Doc: "Pairs added to the metadata of every request.", Type: admin.Map, Of: &admin.Field{Type: admin.String, Max: identity.MaxMetaValue}, Max: identity.MaxKeyMetadata},
			{Name: "config_id", Doc: "Id or slug of the config that routes requests; null unbinds.", Type: admin.String, Max: 255},
			{Name: "allow_config_override", Doc: "Whether a request may bring another config.", Type: admin.Boolean, Default: true},
		}},
		{Name: "alert_emails", Doc: "Further recipients of alerts.", Type: admin.Array, Of: &admin.Field{Type: admin.String, Max: 254}, Max: identity.MaxAlertEmails},
		{Name: "expires_at", Doc: "When the key stops working.", Type: admin.Timestamp, Convert: timestamp},
		{Name: "rotation_policy", Doc: "Rotation by the gateway, at 00:00 UTC.", Type: admin.Object, Fields: []admin.Field{
			{Name: "rotation_period", Doc: "weekly (Monday) or monthly (the 1st).", Type: admin.String, Enum: []string{"weekly", "monthly"}},
			{Name: "rotation_period_days", Doc: "1 to 365; excludes rotation_period.", Type: admin.Integer, Min: 1, Max: 365},
			{Name: "next_rotation_at", Doc: "The next rotation.", Type: admin.Timestamp},
			{Name: "key_transition_period_ms", Doc: "How long old and new key are both valid.", Type: admin.Integer, Min: identity.MinTransition.Milliseconds(), Max: 31_536_000_000},
		}, Convert: rotation},
		{Name: "reset_usage", Doc: "true sets the usage of the budget back to nothing.", Type: admin.Boolean, Trigger: true, UpdateOnly: true},
	}
}

// rateLimits and usageLimits turn the client's form into the stored one.
func rateLimits(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	limits, bad := ledger.OnKey.RateLimits(raw, "")
	if len(bad) > 0 {
		return nil, bad
	}
	return encode(limits)
}

func usageLimits(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	limits, bad := ledger.OnKey.UsageLimits(raw, "")
	if len(bad) > 0 {
		return nil, bad
	}
	if len(limits) == 0 {
		return json.RawMessage("null"), nil
	}
	return encode(limits[0])
}

func timestamp(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, []fault.Detail{{Message: "must be an ISO 8601 time"}}
	}
	t, err := admin.ParseTime(s)
	if err != nil {
		return nil, []fault.Detail{{Message: "must be an ISO 8601 time"}}
	}
	return encode(t)
}

// rotation brings the dates of a policy into their stored form.
func rotation(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, []fault.Detail{{Message: "must be an object"}}
	}
	if at, ok := members["next_rotation_at"]; ok && string(at) != "null" {
		t, bad := timestamp(at)
		if len(bad) > 0 {
			return nil, []fault.Detail{{Field: "next_rotation_at", Message: bad[0].Message}}
		}
		members["next_rotation_at"] = t
	}
	return encode(members)
}

func encode(v any) (json.RawMessage, []fault.Detail) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, []fault.Detail{{Message: "cannot be stored"}}
	}
	return raw, nil
}

// render is a key as reads show it: masked, with the state of its budget.
func (f *family) render(c *admin.Call, rec *resource.Record, k *identity.Key) (map[string]any, error) {
	obj := map[string]any{
		"id": rec.ID, "object": "api-key", "key": k.Secret.Masked, "name": rec.Name, "description": k.Description,
		"type": k.Type, "organisation_id": rec.Scope.Org, "workspace_id": orNil(rec.Scope.Workspace), "user_id": orNil(k.UserID),
		"status": identity.Live(rec.Status, k, c.Now), "creation_mode": k.CreationMode, "scopes": k.Scopes,
		"rate_limits": k.RateLimits, "usage_limits": nil, "reset_usage": nil,
		"defaults":              map[string]any{"metadata": k.Defaults.Metadata, "config_id": orNil(k.Defaults.ConfigID)},
		"allow_config_override": override(k.Defaults.AllowOverride),
		"alert_emails":          k.AlertEmails, "expires_at": timeOf(k.ExpiresAt), "last_reset_at": timeOf(k.LastResetAt),
		"last_rotated_at": timeOf(k.RotatedAt), "rotation_policy": policy(k.Rotation), "secret_to_collect": rec.HasSecret(identity.UncollectedSecret),
		"created_at": admin.FormatTime(rec.Created), "last_updated_at": admin.FormatTime(rec.Updated),
	}
	if k.LastResetAt != nil {
		obj["reset_usage"] = 1
	}
	if err := f.showBudget(c.Context, obj, rec, k); err != nil {
		return nil, err
	}
	return obj, nil
}

func (f *family) showBudget(ctx context.Context, obj map[string]any, rec *resource.Record, k *identity.Key) error {
	if k.UsageLimits == nil {
		return nil
	}
	s := identity.SubjectOf(rec.Scope, rec.ID, rec.Name, rec.Rev, k.RateLimits, k.UsageLimits)
	states, err := f.ledger.State(ctx, s)
	if err != nil || len(states) == 0 {
		return err
	}
	obj["usage_limits"] = states[0]
	if !states[0].LastResetAt.IsZero() {
		obj["last_reset_at"] = admin.FormatTime(states[0].LastResetAt)
	}
	if obj["status"] == identity.StatusActive && states[0].Status == ledger.Exhausted {
		obj["status"] = ledger.Exhausted
	}
	return nil
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func timeOf(t *time.Time) any {
	if t == nil {
		return nil
	}
	return admin.FormatTime(*t)
}

// override is the number form that reads use: null when it was never set.
func override(allow *bool) any {
	switch {
	case allow == nil:
		return nil
	case *allow:
		return 1
	}
	return 0
}

func policy(p *identity.RotationPolicy) any {
	if p == nil {
		return nil
	}
	return map[string]any{
		"rotation_period": orNil(p.Period), "rotation_period_days": orZero(p.PeriodDays), "next_rotation_at": timeOf(p.NextAt),
		"key_transition_period_ms": p.Transition().Milliseconds(), "status": "active",
	}
}

func orZero(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// createdSchema documents the answer of a create.
var createdSchema = admin.Schema{"type": "object", "required": []string{"id", "key", "object"}, "properties": map[string]any{
	"id": map[string]any{"type": "string"}, "key": map[string]any{"type": "string", "description": "The raw key, shown this once."}, "object": map[string]any{"const": "api-key"},
}}

// shown are fields of reads beside those of the body.
func shown() []admin.Field {
	return []admin.Field{
		{Name: "key", Type: admin.String, Doc: "The key, masked."}, {Name: "type", Type: admin.String, Doc: "organisation-service, workspace-service or workspace-user."},
		{Name: "creation_mode", Type: admin.String, Doc: "ui, api or auto."}, {Name: "allow_config_override", Type: admin.Integer, Doc: "0 or 1; null when never set."},
		{Name: "last_reset_at", Type: admin.Timestamp, Doc: "When the usage was last reset."}, {Name: "last_rotated_at", Type: admin.Timestamp, Doc: "When the key was last rotated."},
		{Name: "secret_to_collect", Type: admin.Boolean, Doc: "Whether the secret of an automatic rotation waits to be collected."},
	}
}
