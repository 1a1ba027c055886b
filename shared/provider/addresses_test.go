package provider

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/seal/hostpin"
)

// whole is a change that fills every field of a provider, secrets included.
func whole(p *Provider) Change {
	ch := Change{Key: ptr("sk-saved"), Configurations: map[string]any{customHost: "https://models.example.com/v1", customHeaders: map[string]any{"X-A": "saved"}}}
	for i := range p.Fields {
		f := &p.Fields[i]
		switch {
		case f.Form == JSONObject:
			ch.Configurations[f.Name] = map[string]any{"private_key": "saved"}
		case f.Form == List:
			ch.Configurations[f.Name] = []any{map[string]any{"azure_deployment_name": "d"}}
		case f.Form == BaseURL:
			ch.Configurations[f.Name] = "https://models.example.com"
		case f.Form == Flag:
			ch.Configurations[f.Name] = true
		case len(f.Values) > 0:
			ch.Configurations[f.Name] = f.Values[0]
		default:
			ch.Configurations[f.Name] = "value"
		}
	}
	return ch
}

// TestNoAddressChangesWithoutItsSecrets enumerates the fields of all providers: those that
// move the host are rejected while a secret stays as it was saved, and no others are.
func TestNoAddressChangesWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, p := range All() {
		saved := func() (func(Change) error, *Integration) {
			rec, i := newRecord(), &Integration{AIProviderID: p.ID}
			ch := whole(p)
			if err := ch.Apply(ctx, changeStore, rec, i); err != nil {
				t.Fatalf("%s: %v", p.ID, err)
			}
			return func(ch Change) error { rec.Rev++; return ch.Apply(ctx, changeStore, rec, i) }, i
		}
		fields := []Field{{Name: customHost, Form: BaseURL}}
		for _, f := range p.Fields {
			if !f.Secret && f.Form != List && f.Form != JSONObject {
				fields = append(fields, f)
			}
		}
		for _, f := range fields {
			var other any = "other"
			switch {
			case f.Form == BaseURL:
				other = "https://attacker.example.com"
			case f.Form == Flag:
				other = false
			case len(f.Values) > 1:
				other = f.Values[1]
			case len(f.Values) == 1:
				continue
			}
			places := f.Name == customHost || f.Part()&HostField != 0
			apply, i := saved()
			err := apply(Change{Configurations: map[string]any{f.Name: other}})
			named := err != nil && slices.ContainsFunc(fault.From(err).Details, func(d fault.Detail) bool { return d.Field == configPrefix+f.Name })
			if places && !named {
				t.Errorf("%s: %s moved without its secrets: %v", p.ID, f.Name, err)
			}
			if !places && named {
				t.Errorf("%s: %s moves no host: %v", p.ID, f.Name, err)
			}
			if places && fmt.Sprint(i.Configurations[f.Name]) == fmt.Sprint(other) {
				t.Errorf("%s: the rejected %s was stored", p.ID, f.Name)
			}
			again := whole(p)
			again.Configurations[f.Name] = other
			if places && apply(again) != nil {
				t.Errorf("%s: %s did not move with all secrets: %v", p.ID, f.Name, apply(again))
			}
		}
		apply, _ := saved()
		if err := apply(Change{Configurations: map[string]any{customHost: nil}}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: the key moved from its host to the provider's own: %v", p.ID, err)
		}
		if err := apply(Change{Configurations: map[string]any{customHost: "https://models.example.com/v1/"}}); err != nil {
			t.Errorf("%s: the same host was rejected: %v", p.ID, err)
		}
		if err := apply(Change{ClearAll: true}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: clearing everything keeps the key and moves it: %v", p.ID, err)
		}
	}
}

func TestModelsAreServedAtTheirHostWithTheSecret(t *testing.T) {
	t.Parallel()
	of := func(host string) *Integration {
		return &Integration{AIProviderID: "openai", Configurations: map[string]any{customHost: "https://own.example.com/v1"}, Models: []IntegrationModel{{Slug: "m", Configurations: &ModelHost{CustomHost: host}}}}
	}
	for _, c := range []struct {
		was, now string
		moved    bool
	}{
		{"https://a.example.com", "https://a.example.com", false}, {"https://a.example.com", "https://b.example.com", true}, {"", "https://b.example.com", true},
		{"https://a.example.com", "https://own.example.com/v1/", false}, {"https://a.example.com", "", false},
	} {
		moved := slices.ContainsFunc(of(c.now).ModelHosts(of(c.was)), func(a hostpin.Address) bool { return a.Changed() })
		if moved != c.moved {
			t.Errorf("%s to %s: %v", c.was, c.now, moved)
		}
	}
}

func TestMappingsAreRestrictedUnlessTheCallerReadsReferences(t *testing.T) {
	t.Parallel()
	open := SecretMapping{TargetField: "key", SecretReferenceID: "r", SecretKey: "a"}
	restricted := open
	restricted.Restricted = true
	for _, c := range []struct {
		name             string
		sent             SecretMapping
		was              []SecretMapping
		reads            bool
		changed, bounded bool
	}{
		{"new, of somebody who may only use them", open, nil, false, true, true},
		{"new, of somebody who reads them", open, nil, true, true, false},
		{"unchanged, made by a reader", open, []SecretMapping{open}, false, false, false},
		{"unchanged, made by a user", open, []SecretMapping{restricted}, false, false, true},
		{"unchanged, approved by a reader", open, []SecretMapping{restricted}, true, false, false},
		{"sent back as it was read", restricted, []SecretMapping{restricted}, false, false, true},
		{"the mark sent by a client", restricted, []SecretMapping{open}, false, false, false},
		{"another member", SecretMapping{TargetField: "key", SecretReferenceID: "r", SecretKey: "b"}, []SecretMapping{open}, false, true, true},
	} {
		m := c.sent
		if changed := m.restrict(c.was, c.reads); changed != c.changed || m.Restricted != c.bounded {
			t.Errorf("%s: changed %v, restricted %v", c.name, changed, m.Restricted)
		}
	}
}
