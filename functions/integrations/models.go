package integrations

import (
	"fmt"
	"maps"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
)

// modelRoutes are the models of an integration: those of the catalogue, which
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
		{Method: "GET", Name: "listIntegrationModels", Doc: "List the models of an integration.", Answer: modelsSchema, Do: f.col.At("read", f.listModels)},
		{Method: "PUT", Name: "updateIntegrationModels", Doc: "Enable, disable, price and add models; other models are unchanged. Prices and base models are for admins of the workspace.", Action: audit.Manage,
			Body: []admin.Field{models, {Name: "allow_all_models", Doc: "Whether other models may be called.", Type: admin.Boolean},
				{Name: "key", Doc: "The integration's key again; required if a model's host changes, because the key is sent to it.", Type: admin.String, Max: 16_384},
				{Name: "configurations", Doc: "The integration's secret fields again, for the same reason; changes the fields that it names.", Type: admin.Object, Open: true}},
			BodyMode: admin.PartialBody, Answer: admin.Nothing, Do: f.col.At("update", f.putModels)},
		{Method: "DELETE", Name: "deleteIntegrationModels", Doc: "Delete own models of an integration.", Action: audit.Delete,
			Query:    []admin.Field{{Name: "slugs", Doc: "Models to delete, comma-separated.", Type: admin.Array, Of: name, Min: 1, Max: maxModels}},
			Body:     []admin.Field{{Name: "models", Doc: "Models to delete, if slugs is absent.", Type: admin.Array, Of: name, Min: 1, Max: maxModels}},
			BodyMode: admin.OptionalBody, Answer: admin.Nothing, Do: f.col.At("update", f.deleteModels)},
	}
	for i := range routes {
		routes[i].Path, routes[i].Aliases = "/integrations/{slug}/models", []string{"/integrations/{slug}/integration-models"}
	}
	return f.col.Below(routes...)
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
	if len(c.Body.Objects("models")) == 0 && c.Body.Has("models") && !c.Body.Given("allow_all_models") {
		return nil, fault.Invalid("models", "must have 1 to %d entries, unless allow_all_models is sent", maxModels)
	}
	return nil, f.col.Edit(c, func(tx *resource.Tx, ch *change) error {
		if c.Body.Given("allow_all_models") {
			ch.Form.AllowAllModels = c.Body.Bool("allow_all_models")
		}
		if err := f.mergeModels(ch.Form, c.Body.Objects("models")); err != nil {
			return err
		}
		if err := mayPrice(c, ch.Was, ch.Form); err != nil {
			return err
		}
		if err := ch.Form.SealModels(c.Context, c.Sealer, ch.Rec); err != nil {
			return err
		}
		set := provider.Change{}
		if hosts := ch.Form.ModelHosts(ch.Was); slices.ContainsFunc(hosts, func(a hostpin.Address) bool { return a.Moved() }) {
			set.Hosts = hosts
		}
		if c.Body.Given("key") {
			key := c.Body.Text("key")
			set.Key = &key
		}
		if err := c.Body.Into("configurations", &set.Configurations); err != nil {
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
	catalogue := pricing.Default().Models(i.AIProviderID)
	named := make(map[string]bool, len(sent))
	i.ModelHeaders = maps.Clone(i.ModelHeaders)
	var bad []fault.Detail
	for n, in := range sent {
		at, slug := fmt.Sprintf("models[%d]", n), in.Text("slug")
		if named[slug] {
			bad = append(bad, fault.Detail{Field: at + ".slug", Message: "is named twice"})
			continue
		}
		named[slug] = true
		k := slices.IndexFunc(i.Models, func(m provider.IntegrationModel) bool { return m.Slug == slug })
		if k < 0 {
			k, i.Models = len(i.Models), append(i.Models, provider.IntegrationModel{Custom: !slices.Contains(catalogue, slug)})
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
			bad = append(bad, m.Configurations.Check(provider.Keeper{CheckURL: f.CheckURL}, at+".configurations")...)
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
		return nil, fault.Invalid("slugs", "is required: the models to delete, with commas")
	}
	return nil, f.col.Edit(c, func(_ *resource.Tx, ch *change) error {
		i := ch.Form
		catalogue := pricing.Default().Models(i.AIProviderID)
		for _, name := range names {
			n := slices.IndexFunc(i.Models, func(m provider.IntegrationModel) bool { return m.Slug == name })
			if (n >= 0 && !i.Models[n].Custom) || (n < 0 && slices.Contains(catalogue, name)) {
				return fault.Invalid("slugs", "names a model of the catalogue, which can only be disabled; own models can be deleted")
			}
		}
		i.Models = slices.DeleteFunc(i.Models, func(m provider.IntegrationModel) bool { return slices.Contains(names, m.Slug) })
		if err := mayPrice(c, ch.Was, i); err != nil {
			return err
		}
		return i.SealModels(c.Context, c.Sealer, ch.Rec)
	})
}
