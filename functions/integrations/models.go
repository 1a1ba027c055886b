package integrations

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
)

// modelRoutes are the models of an integration: those of the catalog, which
// can be disabled, and its own.
func (f *family) modelRoutes() []admin.Route {
	models := admin.FieldOf[[]provider.IntegrationModel]("models", "", maxModels)
	models.Of.Member("enabled").Required = true
	models.Of.Member("configurations").Member("custom_host").Required = true
	models.Of.Fields = append(models.Of.Fields, admin.Field{Name: "name", Type: admin.String, ReadOnly: true})
	price := models.Of.Member("pricing_config")
	price.Type, price.Open, price.Check = admin.Object, true, customPrice
	name := &admin.Field{Type: admin.String, Min: 1, Max: 255}
	routes := []admin.Route{
		{Method: "GET", Name: "listIntegrationModels", Doc: "List the models of an integration.", Response: modelsSchema, Do: f.col.WithItem("read", f.listModels)},
		{Method: "PUT", Name: "updateIntegrationModels", Doc: "Enable, disable, price and add models; other models are unchanged. Prices and base models are for admins of the workspace.", Action: audit.Manage,
			Body: []admin.Field{models, {Name: "allow_all_models", Doc: "Whether other models may be called.", Type: admin.Boolean},
				{Name: "key", Doc: "The integration's key again; required if a model's host changes, because the key is sent to it.", Type: admin.String, Max: 16_384},
				{Name: "configurations", Doc: "The integration's secret fields again, for the same reason; changes the fields that it names.", Type: admin.Object, Open: true}},
			BodyMode: admin.PartialBody, Response: admin.EmptyResponse, Do: f.col.WithItem("update", f.putModels)},
		{Method: "DELETE", Name: "deleteIntegrationModels", Doc: "Delete own models of an integration.", Action: audit.Delete,
			Query:    []admin.Field{{Name: "slugs", Doc: "Models to delete, comma-separated.", Type: admin.Array, Of: name, Min: 1, Max: maxModels}},
			Body:     []admin.Field{{Name: "models", Doc: "Models to delete, if slugs is absent.", Type: admin.Array, Of: name, Min: 1, Max: maxModels}},
			BodyMode: admin.OptionalBody, Response: admin.EmptyResponse, Do: f.col.WithItem("update", f.deleteModels)},
	}
	for i := range routes {
		routes[i].Path, routes[i].Aliases = "/integrations/{slug}/models", []string{"/integrations/{slug}/integration-models"}
	}
	return f.col.ItemRoutes(routes...)
}

var modelsSchema = admin.Closed(map[string]admin.Schema{
	"total": {"type": "integer"}, "allow_all_models": {"type": "boolean"},
	"models": {"type": "array", "items": admin.Closed(map[string]admin.Schema{
		"slug": {"type": "string"}, "name": {"type": "string"}, "enabled": {"type": "boolean"}, "is_custom": {"type": "boolean"},
		"is_finetune": {"type": "boolean"}, "base_model_slug": {"type": []string{"string", "null"}},
		"configurations": {"type": []string{"object", "null"}}, "pricing_config": {"type": []string{"object", "null"}},
	})},
})

func (f *family) listModels(c *admin.Call) (any, error) {
	it, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	i := it.Form
	own := make(map[string]provider.IntegrationModel, len(i.Models))
	names := slices.Clone(pricing.Default().Models(i.AIProviderID))
	for _, m := range i.Models {
		own[m.Slug] = m
		names = append(names, m.Slug)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	models := make([]any, len(names))
	for n, name := range names {
		models[n] = showModel(i, own[name], name)
	}
	return map[string]any{"total": len(models), "allow_all_models": i.AllowAllModels, "models": models}, nil
}

func showModel(i *provider.Integration, m provider.IntegrationModel, name string) map[string]any {
	o := map[string]any{
		"slug": name, "name": name, "enabled": i.Allows(name), "is_custom": m.Custom, "is_finetune": m.FineTuned,
		"base_model_slug": admin.OrNull(m.BaseModelSlug), "configurations": nil, "pricing_config": nil,
	}
	if len(m.Pricing) > 0 {
		o["pricing_config"] = m.Pricing
	}
	if h := m.Configurations; h != nil {
		shown := map[string]any{"custom_host": h.CustomHost}
		if masked := i.MaskedHeaders(&m); len(masked) > 0 {
			shown["masked_custom_headers"] = masked
		}
		o["configurations"] = shown
	}
	return o
}

func (f *family) putModels(c *admin.Call) (any, error) {
	if len(c.Body.Objects("models")) == 0 && c.Body.Has("models") && !c.Body.HasValue("allow_all_models") {
		return nil, fault.Invalid("models", "must have 1 to %d entries, unless allow_all_models is sent", maxModels)
	}
	return nil, f.col.Edit(c, func(tx *resource.Tx, ch *change) error {
		if c.Body.HasValue("allow_all_models") {
			ch.Form.AllowAllModels = c.Body.Bool("allow_all_models")
		}
		if err := f.mergeModels(ch.Form, c.Body.Objects("models")); err != nil {
			return err
		}
		if err := mayPrice(c, ch.OldForm, ch.Form); err != nil {
			return err
		}
		if err := ch.Form.SealModels(c.Context, c.Sealer, ch.Rec); err != nil {
			return err
		}
		set := provider.Change{}
		if hosts := ch.Form.ModelHosts(ch.OldForm); slices.ContainsFunc(hosts, func(a hostpin.Address) bool { return a.Changed() }) {
			set.Hosts = hosts
		}
		if c.Body.HasValue("key") {
			key := c.Body.Text("key")
			set.Key = &key
		}
		if err := c.Body.Decode("configurations", &set.Configurations); err != nil {
			return err
		}
		if set.Empty() {
			return nil
		}
		return f.apply(c, tx, ch, &set)
	})
}

// mergeModels merges the sent models into the stored ones, by model and field.
func (f *family) mergeModels(i *provider.Integration, sent []admin.Values) error {
	catalog := pricing.Default().Models(i.AIProviderID)
	named := make(map[string]bool, len(sent))
	i.ModelHeaders = maps.Clone(i.ModelHeaders)
	var bad []fault.Detail
	for n, in := range sent {
		at, slug := fmt.Sprintf("models[%d]", n), in.Text("slug")
		if named[slug] {
			bad = append(bad, fault.Detail{Field: at + ".slug", Message: "must not be listed twice"})
			continue
		}
		named[slug] = true
		k := slices.IndexFunc(i.Models, func(m provider.IntegrationModel) bool { return m.Slug == slug })
		if k < 0 {
			k, i.Models = len(i.Models), append(i.Models, provider.IntegrationModel{Custom: !slices.Contains(catalog, slug)})
		}
		m, err := admin.Merge(i.Models[k], in)
		if err != nil {
			bad = append(bad, fault.Detail{Field: at, Message: "does not have the expected form"})
			continue
		}
		if in.Has("configurations") { // replaced with its headers, or removed
			delete(i.ModelHeaders, slug)
		}
		if i.Models[k] = m; m.Configurations != nil {
			bad = append(bad, m.Configurations.Check(provider.ChangeStore{CheckURL: f.CheckURL}, at+".configurations")...)
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return nil
}

func (f *family) deleteModels(c *admin.Call) (any, error) {
	names := append(c.Query.Texts("slugs"), c.Body.Texts("models")...)
	if len(names) == 0 {
		return nil, fault.Invalid("slugs", "is required: the models to delete, comma-separated")
	}
	return nil, f.col.Edit(c, func(_ *resource.Tx, ch *change) error {
		i := ch.Form
		catalog := pricing.Default().Models(i.AIProviderID)
		for _, name := range names {
			n := slices.IndexFunc(i.Models, func(m provider.IntegrationModel) bool { return m.Slug == name })
			if (n >= 0 && !i.Models[n].Custom) || (n < 0 && slices.Contains(catalog, name)) {
				return fault.Invalid("slugs", "names a model of the catalog, which can only be disabled; only custom models can be deleted")
			}
		}
		i.Models = slices.DeleteFunc(i.Models, func(m provider.IntegrationModel) bool { return slices.Contains(names, m.Slug) })
		if err := mayPrice(c, ch.OldForm, i); err != nil {
			return err
		}
		return i.SealModels(c.Context, c.Sealer, ch.Rec)
	})
}

// mayPrice rejects a change of prices by a caller below an admin of the workspace. Budgets count
// what requests cost: who may not raise the limits of a workspace may not set its prices to zero
// either.
func mayPrice(c *admin.Call, was, now *provider.Integration) error {
	field := ""
	if !sameJSON(was.PricingAdjustments, now.PricingAdjustments) {
		field = "pricing_adjustments"
	} else if pricedOtherwise(was, now) {
		field = "models"
	}
	if field == "" || c.Caller.AtLeast(admin.Admin) {
		return nil
	}
	return fault.New(fault.NotAllowed, field, "Only admins of the workspace can change pricing_adjustments, and pricing_config and base_model_slug of models, because budgets count by these prices")
}

// pricedOtherwise reports whether a model has another price, or the price of another model.
func pricedOtherwise(was, now *provider.Integration) bool {
	priced := func(all []provider.IntegrationModel) (out []provider.IntegrationModel) {
		for _, m := range all {
			if len(m.Pricing) > 0 || m.BaseModelSlug != "" {
				out = append(out, m)
			}
		}
		slices.SortFunc(out, func(a, b provider.IntegrationModel) int { return strings.Compare(a.Slug, b.Slug) })
		return out
	}
	return !slices.EqualFunc(priced(was.Models), priced(now.Models), func(a, b provider.IntegrationModel) bool {
		return a.Slug == b.Slug && a.BaseModelSlug == b.BaseModelSlug && sameJSON(a.Pricing, b.Pricing)
	})
}

// sameJSON reports whether two values are equal in any notation. A client may send back what it
// has read.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

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
func shown() []admin.ComputedField[provider.Integration] {
	of := func(f admin.Field, value func(c *admin.Call, it item) any) admin.ComputedField[provider.Integration] {
		return admin.ComputedField[provider.Integration]{Field: f, Value: value}
	}
	access := admin.Field{Name: "global_workspace_access_settings", Type: admin.Object, Single: true, Required: true, Form: accessSchema}
	return []admin.ComputedField[provider.Integration]{
		of(admin.Field{Name: "type", Type: admin.String, Enum: []string{"organisation", "workspace"}, Required: true}, func(_ *admin.Call, it item) any { return admin.LevelOf(it.Record) }),
		of(admin.Field{Name: "masked_key", Type: admin.String, Single: true, Optional: true}, func(_ *admin.Call, it item) any { return admin.OrNull(it.Form.Masked[provider.SecretKey]) }),
		of(admin.Field{Name: "credentials", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}, Single: true, Required: true, Doc: "label, weight and masked_key of each; empty with one key."}, func(_ *admin.Call, it item) any { return it.Form.MaskedCredentials() }),
		of(admin.Field{Name: "configurations", Type: admin.Object, Open: true, Single: true, Required: true, Doc: "Secrets are masked_<field>."}, func(_ *admin.Call, it item) any { return it.Form.MaskedConfigurations() }),
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

// knownProvider gives the catalog's name of a provider.
func knownProvider(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	var id string
	if err := json.Unmarshal(raw, &id); err == nil {
		if p, ok := provider.ByID(id); ok {
			out, _ := json.Marshal(p.ID) // a text
			return out, nil
		}
	}
	return nil, []fault.Detail{{Message: provider.UnknownProviderMessage(id)}}
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
