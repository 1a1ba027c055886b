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

const (
	maxDescription = 2048
	maxTags        = 50
	maxTagValue    = 255
	maxMappings    = 100
	maxModels      = 1000 // named in one call
	maxWorkspaces  = 1000 // named in one call
	maxHeaders     = 100
)

// fields are those of an integration's body.
func fields() []admin.Field {
	slug := admin.Field{Type: admin.String, Min: 1, Max: provider.MaxSlug, Pattern: admin.SlugPattern, CreateOnly: true}
	own, others := slug, slug
	own.Name, own.Column, own.Doc = "slug", true, "Made of the name when absent."
	others.Name, others.Trigger, others.Doc = "default_provider_slug", true, "Slug of the default provider."
	return []admin.Field{
		{Name: "name", Type: admin.String, Required: true, Min: 1, Max: provider.MaxName, Column: true},
		{Name: "ai_provider_id", Doc: "Provider of the catalogue, such as openai.", Type: admin.String, Required: true, Min: 1, Max: 64, Fixed: true, Convert: knownProvider},
		own,
		{Name: "key", Doc: "API key; sealed, never read back.", Type: admin.String, Max: 16_384, Trigger: true},
		{Name: "description", Type: admin.String, Max: maxDescription},
		{Name: "configurations", Doc: "Fields of the provider, custom_host and custom_headers. An update changes the fields that it names; null removes one.", Type: admin.Object, Open: true, Trigger: true},
		{Name: "secret_mappings", Doc: "Fields that a secret manager fills: key or configurations.<field>.", Type: admin.Array, Max: maxMappings, Trigger: true, Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
			{Name: "target_field", Type: admin.String, Required: true, Min: 1, Max: 255},
			{Name: "secret_reference_id", Type: admin.String, Required: true, Min: 1, Max: 255},
			{Name: "secret_key", Type: admin.String, Max: 255},
			{Name: "value_format", Type: admin.String, Enum: []string{"string", "json"}},
		}}},
		{Name: "pricing_adjustments", Doc: "Multipliers on prices; null clears.", Type: admin.Object, Open: true, Check: adjustments},
		{Name: "tags", Type: admin.Map, Of: &admin.Field{Type: admin.String, Max: maxTagValue}, Max: maxTags, Column: true},
		{Name: "create_default_provider", Doc: "Whether the workspace of the integration gets a provider of it.", Type: admin.Boolean, Default: true, Trigger: true, CreateOnly: true},
		others,
	}
}

// shown are fields of reads beside those of the body.
func shown() []admin.Field {
	return []admin.Field{
		{Name: "type", Type: admin.String, Enum: []string{typeOrganisation, typeWorkspace}},
		{Name: "masked_key", Type: admin.String}, {Name: "configurations", Type: admin.Object, Open: true, Doc: "Secrets are masked_<field>."},
		{Name: "secret_mappings", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}},
		{Name: "allow_all_models", Type: admin.Boolean}, {Name: "workspace_count", Type: admin.Integer},
		{Name: "global_workspace_access_settings", Type: admin.Object, Open: true}, {Name: "last_reset_at", Type: admin.Timestamp},
	}
}

// knownProvider gives the catalogue's name of a provider.
func knownProvider(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	var id string
	if err := json.Unmarshal(raw, &id); err == nil {
		if p, ok := provider.ByID(id); ok {
			out, err := json.Marshal(p.ID)
			return out, asDetails(err)
		}
	}
	return nil, []fault.Detail{{Message: "is not a provider of this gateway"}}
}

func asDetails(err error) []fault.Detail {
	if err == nil {
		return nil
	}
	return []fault.Detail{{Message: "cannot be stored"}}
}

func adjustments(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseAdjustments(raw, root)
	return below(bad)
}

func customPrice(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseCustom(raw, root)
	return below(bad)
}

// root is the name under which a value is checked that stands below another.
const root = "value"

func below(bad []fault.Detail) []fault.Detail {
	for i := range bad {
		bad[i].Field = strings.TrimPrefix(strings.TrimPrefix(bad[i].Field, root), ".")
	}
	return bad
}

func usageLimits(raw json.RawMessage) []fault.Detail {
	_, bad := ledger.OnIntegration.UsageLimits(raw, "")
	return bad
}

func rateLimits(raw json.RawMessage) []fault.Detail {
	_, bad := ledger.OnIntegration.RateLimits(raw, "")
	return bad
}
