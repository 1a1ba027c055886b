package providers

import (
	"gateway/shared/admin"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// decorate adds what the integrations and the counters hold.
func (f *family) decorate(c *admin.Call, recs []resource.Record, objects []map[string]any) error {
	if c.Query.Bool("include_configurations") && c.Caller.UserID != "" {
		return admin.Denied()
	}
	insts := make([]*provider.Instance, len(recs))
	for n := range recs {
		var err error
		if insts[n], err = provider.DecodeInstance(recs[n]); err != nil {
			return err
		}
	}
	found, err := integrationsOf(c, recs, insts)
	if err != nil {
		return err
	}
	for n, in := range insts {
		showIntegration(c, &recs[n], in, found[in.IntegrationID], objects[n])
	}
	return f.showBudgets(c, recs, insts, objects)
}

// integration is a record with its form.
type integration struct {
	rec  resource.Record
	form *provider.Integration
}

// integrationsOf reads the integrations of a page of providers, by id.
func integrationsOf(c *admin.Call, recs []resource.Record, insts []*provider.Instance) (map[string]integration, error) {
	ids := make(map[store.Scope][]string, 2)
	seen := make(map[string]bool, len(insts))
	for n, in := range insts {
		if !seen[in.IntegrationID] {
			seen[in.IntegrationID] = true
			sc := in.IntegrationScope(recs[n].Scope)
			ids[sc] = append(ids[sc], in.IntegrationID)
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

// showIntegration shows what the integration says of the provider. Of one that
// belongs to the organisation the workspace sees the configurations only when
// it asks for them.
func showIntegration(c *admin.Call, rec *resource.Record, in *provider.Instance, of integration, o map[string]any) {
	if of.form == nil || !of.form.OpenTo(&of.rec, rec.Scope.Workspace) {
		if o["status"] == provider.StatusActive {
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
		if mask, ok := of.form.Masked[provider.SecretKey]; ok && in.VirtualKey {
			o["masked_key"] = mask
		}
	}
	if c.Query.Bool("include_configurations") {
		o["configurations"] = of.form.Shown()
	}
}

// showBudgets shows each budget with what is used of it.
func (f *family) showBudgets(c *admin.Call, recs []resource.Record, insts []*provider.Instance, objects []map[string]any) error {
	var subjects []*ledger.Subject
	var at []map[string]any
	for n, in := range insts {
		if in.UsageLimits != nil {
			subjects = append(subjects, provider.InstanceSubject(recs[n].Scope, recs[n].ID, recs[n].Slug, recs[n].Rev, in))
			at = append(at, objects[n])
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	states, err := f.Ledger.States(c.Context, subjects)
	if err != nil {
		return err
	}
	for n, o := range at {
		s := states[n][0]
		o["usage_limits"] = s
		if !s.LastResetAt.IsZero() {
			o["last_reset_at"] = admin.FormatTime(s.LastResetAt)
		}
		if o["status"] == provider.StatusActive && s.Status == ledger.Exhausted {
			o["status"] = ledger.Exhausted
		}
	}
	return nil
}
