package provider

import (
	"fmt"
	"strings"

	"gateway/shared/seal/hostpin"
)

// Addresses returns the fields that decide which host an integration calls, with their
// values before and after a change. was is the zero Integration for a new one.
func (i *Integration) Addresses(was *Integration) []hostpin.Address {
	p, ok := ByID(i.AIProviderID)
	if !ok {
		return nil
	}
	return addresses(p, was, i)
}

// addresses includes fields that a secret mapping sets: their value is the mapping
// itself. It omits fields that are also secrets, such as a key file, because they are
// always replaced completely.
func addresses(p *Provider, was, now *Integration) []hostpin.Address {
	out := []hostpin.Address{{Field: configPrefix + customHost, Was: was.placeOf(customHost), Now: now.placeOf(customHost), Open: true}}
	for n := range p.Fields {
		f := &p.Fields[n]
		if f.Part()&Places == 0 || f.Secret {
			continue
		}
		out = append(out, hostpin.Address{Field: configPrefix + f.Name, Was: was.placeOf(f.Name), Now: now.placeOf(f.Name), Open: f.Form == BaseURL})
	}
	return append(out, now.ModelHosts(was)...)
}

// placeOf returns the value of a field as text; empty if it has none.
func (i *Integration) placeOf(name string) string {
	for _, m := range i.SecretMappings {
		if m.TargetField == configPrefix+name {
			return fmt.Sprintf("secret reference %s, %s", m.SecretReferenceID, m.SecretKey)
		}
	}
	if v := i.Configurations[name]; v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// ModelHosts returns the hosts of single models, before and after a change. A model that
// loses its host, or that is served at the integration's own host, moves no credential to a
// new address.
func (i *Integration) ModelHosts(was *Integration) (out []hostpin.Address) {
	before := make(map[string]string, len(was.Models))
	for _, m := range was.Models {
		if m.Configurations != nil {
			before[m.Slug] = m.Configurations.CustomHost
		}
	}
	own := strings.TrimRight(was.placeOf(customHost), "/")
	for _, m := range i.Models {
		if m.Configurations == nil || m.Configurations.CustomHost == "" {
			continue
		}
		a := hostpin.Address{Field: "models." + m.Slug + ".configurations.custom_host", Was: before[m.Slug], Now: m.Configurations.CustomHost, Open: true}
		if own != "" && strings.TrimRight(a.Now, "/") == own {
			a.Was = a.Now
		}
		out = append(out, a)
	}
	return out
}

// kept returns the stored secrets that the change neither replaces nor removes.
func (e *edit) kept() (names []string) {
	for _, name := range append(e.p.SecretFields(), customHeaders, SecretKey) {
		if _, given := e.secret[name]; given || !e.rec.HasSecret(name) {
			continue
		}
		if name != SecretKey {
			name = configPrefix + name
		}
		names = append(names, name)
	}
	return names
}
