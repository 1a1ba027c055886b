package target

import (
	"testing"

	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/plan"
)

// TestOnlyCustomHostsAreTrusted: every provider of the catalog is called by the
// way of the trusted hosts when a person has set its address, and only then.
func TestOnlyCustomHostsAreTrusted(t *testing.T) {
	t.Parallel()
	c := newTarget(&Deps{})
	for _, p := range provider.All() {
		fields := map[string]string{}
		for _, f := range p.Fields {
			if f.Form != provider.BaseURL {
				fields[f.Name] = "x"
			}
		}
		c.Choice.Target = provider.Target{Provider: p, Credential: provider.Credential{Key: "k", Fields: fields}}
		if c.Choice.AtOwnHost() || c.Choice.OwnHost("https://10.1.2.3:8000/x") {
			t.Errorf("%s is trusted at its own address", p.ID)
		}
		for _, target := range []provider.Target{
			{Provider: p, CustomHost: "https://10.1.2.3:8000/v1"}, {Provider: p, Credential: provider.Credential{CustomHost: "https://10.1.2.3:8000/v1"}},
		} {
			c.Choice.Target = target
			if !c.Choice.AtOwnHost() {
				t.Errorf("%s is not trusted at a custom host", p.ID)
			}
			for address, own := range map[string]bool{
				"https://10.1.2.3:8000/files/1": true, "HTTPS://10.1.2.3:8000": true, "https://10.1.2.3:8001/x": false, "http://10.1.2.3:8000/x": false,
				"https://10.1.2.4:8000/": false, "https://user@10.1.2.3:8000/": false, "//10.1.2.3:8000/": false, "": false, "%zz": false,
			} {
				if c.Choice.OwnHost(address) != own {
					t.Errorf("%s is at the custom host: %t", address, !own)
				}
			}
		}
		for _, f := range p.Fields {
			if f.Form == provider.BaseURL {
				c.Choice.Target = provider.Target{Provider: p, Credential: provider.Credential{Fields: map[string]string{f.Name: "https://10.1.2.3"}}}
				if !c.Choice.AtOwnHost() {
					t.Errorf("%s is not trusted at its %s", p.ID, f.Name)
				}
			}
		}
	}
}

func newTarget(m *Deps) *Target {
	q := new(admission.Request)
	b := &body.Body{}
	b.Req = q
	t := &Target{Deps: m, Req: q, Body: b, Plan: &plan.Plan{Req: q, Body: b}}
	return t
}
