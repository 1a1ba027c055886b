package providers

import (
	"encoding/json"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

const (
	maxNote     = 2048
	maxTags     = 50
	maxTagValue = 255
)

// fields are those that both forms have.
func fields() []admin.Field {
	return []admin.Field{
		{Name: "name", Type: admin.String, Required: true, Min: 1, Max: provider.MaxName, Column: true},
		{Name: "slug", Doc: "Unique in the workspace; made of the name when absent.", Type: admin.String, Min: 1, Max: provider.MaxSlug, Pattern: admin.SlugPattern, Column: true, CreateOnly: true},
		{Name: "note", Type: admin.String, Max: maxNote},
		{Name: "usage_limits", Doc: "Budget of dollars or tokens; reads also show current_usage and status.", Type: admin.Object, Open: true, Convert: usageLimits, Form: ledger.OnProvider.UsageSchema()},
		{Name: "rate_limits", Doc: "Requests or tokens per rpm, rph, rpd or rpw; an object or an array.", Type: admin.Any, Convert: rateLimits, Form: ledger.OnProvider.RateSchema()},
		{Name: "expires_at", Doc: "When the provider stops working; null: never.", Type: admin.Timestamp, Convert: timestamp},
		{Name: "tags", Type: admin.Map, Of: &admin.Field{Type: admin.String, Max: maxTagValue}, Max: maxTags, Column: true},
		{Name: "reset_usage", Doc: "true sets the usage of the budget back to nothing.", Type: admin.Boolean, Trigger: true, UpdateOnly: true},
	}
}

// shown are fields of reads beside those of the body.
func shown() []admin.Field {
	return []admin.Field{
		{Name: "integration_id", Type: admin.String}, {Name: "ai_provider_name", Type: admin.String},
		{Name: "model_config", Type: admin.Object, Open: true, Doc: "Configurations of the workspace's own integration, without secrets."},
		{Name: "configurations", Type: admin.Object, Open: true}, {Name: "last_reset_at", Type: admin.Timestamp},
		{Name: "reset_usage", Type: admin.Integer, Max: 1, Doc: "1 when the usage was reset once."},
	}
}

// usageLimits and rateLimits turn the client's form into the stored one.
func usageLimits(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	limits, bad := ledger.OnProvider.UsageLimits(raw, "")
	if len(bad) > 0 || len(limits) == 0 {
		return json.RawMessage("null"), bad
	}
	return stored(limits[0])
}

func rateLimits(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	limits, bad := ledger.OnProvider.RateLimits(raw, "")
	if len(bad) > 0 {
		return nil, bad
	}
	return stored(limits)
}

func timestamp(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	var s string
	if err := json.Unmarshal(raw, &s); err == nil {
		if t, err := admin.ParseTime(s); err == nil {
			return stored(t)
		}
	}
	return nil, []fault.Detail{{Message: "must be an ISO 8601 time"}}
}

func stored(v any) (json.RawMessage, []fault.Detail) {
	raw, err := encode(v)
	if err != nil {
		return nil, []fault.Detail{{Message: "cannot be stored"}}
	}
	return raw, nil
}

// States of a provider that are not stored. A disabled one belongs to an
// integration that is closed to the workspace; it works again when it opens.
const statusDisabled = "disabled"

// render is a provider as reads show it; decorate adds what others hold.
func render(object string) func(*admin.Call, *resource.Record, *provider.Instance) (map[string]any, error) {
	return func(c *admin.Call, rec *resource.Record, in *provider.Instance) (map[string]any, error) {
		o := map[string]any{
			"id": rec.ID, "object": object, "name": rec.Name, "slug": rec.Slug, "status": rec.Status, "note": orNull(in.Note),
			"organisation_id": rec.Scope.Org, "workspace_id": rec.Scope.Workspace,
			"integration_id": in.IntegrationSlug, "ai_provider_name": in.AIProviderID,
			"usage_limits": nil, "rate_limits": in.RateLimits, "reset_usage": nil, "last_reset_at": nil, "expires_at": nil,
			"created_at": admin.FormatTime(rec.Created), "last_updated_at": admin.FormatTime(rec.Updated),
			"tags": rec.Tags, "model_config": map[string]any{},
		}
		if in.LastResetAt != nil {
			o["reset_usage"], o["last_reset_at"] = 1, admin.FormatTime(*in.LastResetAt)
		}
		if in.ExpiresAt != nil {
			o["expires_at"] = admin.FormatTime(*in.ExpiresAt)
			if !in.ExpiresAt.After(c.Now) {
				o["status"] = provider.StatusExpired
			}
		}
		return o, nil
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
