package providers

import (
	"encoding/json"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
)

// item and change are a provider and what happens to it.
type (
	item   = admin.Item[provider.Instance]
	change = admin.Change[provider.Instance]
	// instances are one of the two forms of providers.
	instances = admin.Collection[provider.Instance]
)

// fields are those that both forms have.
func fields(more ...admin.Field) []admin.Field {
	slug := admin.SlugField(provider.MaxSlug)
	slug.Doc = "Unique in the workspace; default: generated from the name."
	slug.Check = reservedSlug
	return append([]admin.Field{
		admin.NameField(provider.MaxName), slug, {Name: "note"},
		{Name: "expires_at", Doc: "When the provider stops working; null: never."},
		admin.TagsField(),
	}, more...)
}

// reservedSlug rejects the slugs of other routes below /providers.
func reservedSlug(raw json.RawMessage) []fault.Detail {
	switch string(raw) {
	case `"` + catalogSlug + `"`, `"health"`:
		return []fault.Detail{{Message: "is the name of a route; choose another"}}
	}
	return nil
}

func (f *family) limits() *admin.Limits[provider.Instance] {
	return &admin.Limits[provider.Instance]{
		Ledger: f.Ledger, Place: ledger.OnProvider, Status: true,
		Budget: func(in *provider.Instance) **ledger.UsageLimit { return &in.UsageLimits },
		Reset:  func(in *provider.Instance) **time.Time { return &in.LastResetAt },
		Subject: func(it item) *ledger.Subject {
			return provider.InstanceSubject(it.Scope, it.ID, it.Slug, it.Rev, it.Form)
		},
	}
}

// shown are members of reads beside the fields; decorate fills what the
// integration says.
func shown(more ...admin.Shown[provider.Instance]) []admin.Shown[provider.Instance] {
	of := func(name string, t admin.Type, value func(c *admin.Call, it item) any) admin.Shown[provider.Instance] {
		return admin.Shown[provider.Instance]{Field: admin.Field{Name: name, Type: t, Required: true}, Value: value}
	}
	config := admin.Field{Name: "model_config", Type: admin.Object, Open: true, Absent: map[string]any{}, Doc: "Configurations of the workspace's own integration, without secrets."}
	return append([]admin.Shown[provider.Instance]{
		of("integration_id", admin.String, func(_ *admin.Call, it item) any { return it.Form.IntegrationSlug }),
		of("ai_provider_name", admin.String, func(_ *admin.Call, it item) any { return it.Form.AIProviderID }),
		of("status", admin.String, func(c *admin.Call, it item) any {
			if it.Form.ExpiresAt != nil && !it.Form.ExpiresAt.After(c.Now) {
				return provider.StatusExpired
			}
			return it.Status
		}),
		{Field: config},
		{Field: admin.Field{Name: "configurations", Type: admin.Object, Open: true, Optional: true}},
	}, more...)
}

// statusDisabled is the status of a provider with an integration that is not open to the
// workspace; it works again once it is.
const statusDisabled = "disabled"
