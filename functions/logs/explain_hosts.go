package logs

import (
	"gateway/shared/admin"
	"gateway/shared/provider"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// nameHosts adds the addresses of saved providers that did not answer, as they are saved now,
// for callers that may read providers. Records do not contain addresses, because others read
// them, too.
func nameHosts(c *admin.Call, r *usage.Record, all []step) error {
	if !c.Caller.HasAny([]string{"providers.read", "virtual_keys.read"}) {
		return nil
	}
	hosts := map[string]string{}
	for i, calls := 0, 0; i < len(all); i++ {
		if all[i].Step != "attempt" {
			continue
		}
		a := &r.Attempts[calls]
		if calls++; a.Status != 0 || a.ProviderSlug == "" {
			continue
		}
		host, known := hosts[a.ProviderSlug]
		if !known {
			var err error
			if host, err = hostOf(c, store.Scope{Org: r.Org, Workspace: r.Workspace}, a.ProviderSlug); err != nil {
				return err
			}
			hosts[a.ProviderSlug] = host
		}
		if host != "" {
			all[i].Text += "; its address is " + host
		}
	}
	return nil
}

// hostOf returns the address of a saved provider: that of its integration, or the one of the
// catalog. It is empty if the provider is gone or has no single address.
func hostOf(c *admin.Call, sc store.Scope, slug string) (string, error) {
	rec, ok, err := c.Resources.Get(c.Context, sc, provider.KindProvider, slug)
	if err != nil || !ok {
		return "", err
	}
	in, err := provider.DecodeInstance(rec)
	if err != nil {
		return "", err
	}
	rec, ok, err = c.Resources.Get(c.Context, in.IntegrationScope(sc), provider.KindIntegration, in.IntegrationID)
	if err != nil || !ok {
		return "", err
	}
	of, err := provider.DecodeIntegration(rec)
	if err != nil || of.MapsAddress() {
		return "", err
	}
	if host, _ := of.Configurations["custom_host"].(string); host != "" {
		return host, nil
	}
	if p, ok := provider.ByID(of.AIProviderID); ok {
		return p.Base, nil
	}
	return "", nil
}
