package integrations

import (
	"encoding/json"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
)

// Most entries that one call names.
const (
	maxMappings   = 100
	maxModels     = 1000
	maxWorkspaces = 1000
)

// fields are those of an integration's body.
func fields() []admin.Field {
	slug := admin.SlugField(provider.MaxSlug)
	others := slug
	others.Name, others.Column, others.Trigger, others.Doc = "default_provider_slug", false, true, "Slug of the default provider."
	return []admin.Field{
		admin.NameField(provider.MaxName),
		{Name: "ai_provider_id", Doc: "Provider of the catalog, such as openai.", Required: true, Min: 1, Max: 64, Fixed: true, Convert: knownProvider},
		slug,
		{Name: "key", Doc: "API key; sealed, never read back.", Type: admin.String, Max: 16_384, Trigger: true},
		admin.FieldOf[[]provider.CredentialInput]("credentials", provider.CredentialsDoc, provider.MaxCredentials),
		{Name: "description", Absent: ""},
		{Name: "configurations", Doc: "Fields of the provider, custom_host and custom_headers. An update changes the fields that it names; null removes one.", Type: admin.Object, Open: true, Trigger: true},
		admin.FieldOf[[]provider.SecretMapping]("secret_mappings", "Fields from a secret manager: key or configurations.<field>.", maxMappings),
		{Name: "pricing_adjustments", Doc: "Multipliers on prices; null clears. For admins of the workspace.", Type: admin.Object, Open: true, Check: adjustments, Single: true},
		admin.TagsField(),
		{Name: "create_default_provider", Doc: "Whether the workspace of the integration gets a provider of it.", Type: admin.Boolean, Default: true, Trigger: true, CreateOnly: true},
		others,
	}
}

// shown are members of reads beside the fields.
func shown() []admin.Shown[provider.Integration] {
	of := func(f admin.Field, value func(c *admin.Call, it item) any) admin.Shown[provider.Integration] {
		return admin.Shown[provider.Integration]{Field: f, Value: value}
	}
	access := admin.Field{Name: "global_workspace_access_settings", Type: admin.Object, Single: true, Required: true, Form: accessSchema}
	return []admin.Shown[provider.Integration]{
		of(admin.Field{Name: "type", Type: admin.String, Enum: []string{"organisation", "workspace"}, Required: true}, func(_ *admin.Call, it item) any { return admin.LevelOf(it.Record) }),
		of(admin.Field{Name: "masked_key", Type: admin.String, Single: true, Optional: true}, func(_ *admin.Call, it item) any { return admin.OrNull(it.Form.Masked[provider.SecretKey]) }),
		of(admin.Field{Name: "credentials", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}, Single: true, Required: true, Doc: "label, weight and masked_key of each; empty with one key."}, func(_ *admin.Call, it item) any { return it.Form.ShownCredentials() }),
		of(admin.Field{Name: "configurations", Type: admin.Object, Open: true, Single: true, Required: true, Doc: "Secrets are masked_<field>."}, func(_ *admin.Call, it item) any { return it.Form.Shown() }),
		of(admin.Field{Name: "secret_mappings", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}, Single: true, Required: true}, func(_ *admin.Call, it item) any { return admin.OrEmpty(it.Form.SecretMappings) }),
		of(admin.Field{Name: "allow_all_models", Type: admin.Boolean, Single: true, Required: true}, func(_ *admin.Call, it item) any { return it.Form.AllowAllModels }),
		of(admin.Field{Name: "workspace_count", Type: admin.Integer, Single: true, Required: true, Absent: 1}, nil),
		of(access, func(c *admin.Call, it item) any { return showGlobal(it.Form.Global, c.Now) }),
		of(admin.Field{Name: "last_reset_at", Type: admin.Timestamp}, func(_ *admin.Call, it item) any {
			if it.Form.LastResetAt == nil {
				return nil
			}
			return admin.FormatTime(*it.Form.LastResetAt)
		}),
	}
}

var accessSchema = admin.Closed(map[string]admin.Schema{
	"enabled": {"type": "boolean"}, "usage_limits": ledger.OnIntegration.UsageSchema(), "rate_limits": ledger.OnIntegration.RateSchema(),
})

// knownProvider gives the catalogue's name of a provider.
func knownProvider(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	var id string
	if err := json.Unmarshal(raw, &id); err == nil {
		if p, ok := provider.ByID(id); ok {
			out, _ := json.Marshal(p.ID) // a text
			return out, nil
		}
	}
	return nil, []fault.Detail{{Message: provider.NotKnown(id)}}
}

func adjustments(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseAdjustments(raw, root)
	return below(bad)
}

func customPrice(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseCustom(raw, root)
	return below(bad)
}

// root is the name for a value with faults that are reported below another field.
const root = "value"

func below(bad []fault.Detail) []fault.Detail {
	for i := range bad {
		bad[i].Field = strings.TrimPrefix(strings.TrimPrefix(bad[i].Field, root), ".")
	}
	return bad
}
