package providers

import (
	"gateway/shared/admin"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// decorate adds what the integrations hold, which are read together.
func decorate(c *admin.Call, items []item, objects []admin.Members) error {
	if c.Query.Bool("include_configurations") && c.Caller.UserID != "" {
		return admin.Denied()
	}
	found, err := integrationsOf(c, items)
	if err != nil {
		return err
	}
	for n, it := range items {
		showIntegration(c, it, found[it.Form.IntegrationID], objects[n])
	}
	return nil
}

// integration is a record with its form.
type integration struct {
	rec  resource.Record
	form *provider.Integration
}

// integrationsOf reads the integrations of a page of providers, by id.
func integrationsOf(c *admin.Call, items []item) (map[string]integration, error) {
	ids := make(map[store.Scope][]string, 2)
	seen := make(map[string]bool, len(items))
	for _, it := range items {
		if id := it.Form.IntegrationID; !seen[id] {
			seen[id] = true
			sc := it.Form.IntegrationScope(it.Scope)
			ids[sc] = append(ids[sc], id)
		}
	}
	out := make(map[string]integration, len(seen))
	for sc, of := range ids {
		found, err := c.Resources.GetMany(c.Context, sc, provider.KindIntegration, of)
		if err != nil {
			return nil, err
		}
		for _, rec := range found {
			form, err := provider.DecodeIntegration(rec)
			if err != nil {
				return nil, err
			}
			out[rec.ID] = integration{rec, form}
		}
	}
	return out, nil
}

// showIntegration adds the integration's data to the provider. A workspace sees the
// configurations of an organization's integration only on request.
func showIntegration(c *admin.Call, it item, of integration, o admin.Members) {
	in := it.Form
	if of.form == nil || !of.form.OpenTo(&of.rec, it.Scope.Workspace) {
		if o["status"] == provider.StatusActive || o["status"] == ledger.Exhausted {
			o["status"] = statusDisabled
		}
	}
	if of.form == nil {
		return
	}
	o["integration_id"] = of.rec.Slug
	if !in.IntegrationOrg {
		o["model_config"] = legacyConfig(of.form)
	}
	if o["object"] == objectKey {
		o["secret_mappings"] = []provider.SecretMapping{}
		if !in.IntegrationOrg {
			o["secret_mappings"] = legacyMappings(of.form.SecretMappings)
		}
		o["credentials"] = []provider.CredentialShown{}
		if in.VirtualKey {
			o["credentials"] = of.form.ShownCredentials()
			if mask, ok := of.form.Masked[provider.SecretKey]; ok {
				o["masked_key"] = mask
			}
		}
	}
	if c.Query.Bool("include_configurations") {
		o["configurations"] = of.form.Shown()
	}
}
