package guard

import (
	"encoding/json"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/seal/hostpin"
)

// TestMappedCredentialsHaveAddresses enumerates the credentials of all checks: each that
// names a host is an address of the mapped secrets beside it.
func TestMappedCredentialsHaveAddresses(t *testing.T) {
	t.Parallel()
	const mapping = `[{"target_field":"credentials.apiKey","secret_reference_id":"r"}]`
	for _, c := range Table() {
		opening := opening(c.ID)
		var walk func(p *Param) (out map[string]any, sites int)
		walk = func(p *Param) (map[string]any, int) {
			out, sites := map[string]any{}, 0
			for i := range p.Members {
				m := &p.Members[i]
				if m.Type == Object {
					below, n := walk(m)
					out[m.Name], sites = below, sites+n
					continue
				}
				out[m.Name] = "https://host.example.com"
				if m.Type == URL || len(m.Enum) == 0 && (m.Name == "domain" || m.Name == "apiDomain" || m.Name == "resourceName" || m.Name == "awsRegion" || m.Name == "regionId") {
					sites++
				}
			}
			return out, sites
		}
		members, sites := walk(&opening)
		raw, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		check := Applied{ID: c.ID, Parameters: map[string]json.RawMessage{opening.Name: raw, MappingsParameter: json.RawMessage(mapping)}}
		open := 0
		for _, a := range addresses(&check, "checks[0].parameters.", nil) {
			if !a.Moved() {
				t.Errorf("%s: %s of a new check is where it was", c.ID, a.Field)
			}
			open++
		}
		if open < sites {
			t.Errorf("%s has %d addresses of %d", c.ID, open, sites)
		}
		for _, a := range addresses(&check, "checks[0].parameters.", []Applied{check}) {
			if a.Moved() {
				t.Errorf("%s: an unchanged %s moved", c.ID, a.Field)
			}
		}
	}
}

func TestMappingsAreStoredAsTheyAreMarked(t *testing.T) {
	t.Parallel()
	of := func(list string) Applied {
		return Applied{ID: "azure.pii", Parameters: map[string]json.RawMessage{MappingsParameter: json.RawMessage(list), "credentials": json.RawMessage(`{"pii":{"resourceName":"mine","customHost":"https://attacker.example.com"}}`)}}
	}
	const list = `[{"target_field":"credentials.pii.apiKey","secret_reference_id":"r"}]`
	now := []Applied{{ID: "default.regexMatch"}, of(list)}
	var seen provider.Links
	err := LinkSecrets(func(l provider.Links) error {
		seen = l
		l.Now[0].Restricted = true
		return nil
	}, nil, now)
	if err != nil || len(seen.Addresses) != 2 || seen.Addresses[0].Field != "checks[1].parameters.credentials.pii.customHost" || !seen.Addresses[0].Open || seen.Addresses[1].Open {
		t.Errorf("%v: %+v", err, seen.Addresses)
	}
	if m := Mappings(now[1].Parameters); len(m) != 1 || !m[0].Restricted {
		t.Errorf("stored %s", now[1].Parameters[MappingsParameter])
	}
	refused := LinkSecrets(func(l provider.Links) error {
		ch := hostpin.Change{Addresses: l.Addresses, By: hostpin.Caller{Uses: true}}
		ch.Mappings = []hostpin.Mapping{{Field: "secret_mappings[0]", Target: "credentials.pii.apiKey", Changed: true, Key: "other", ReferenceKey: "own"}}
		return ch.Check()
	}, nil, now)
	if refused == nil {
		t.Fatal("a mapped secret goes to an address of its own")
	}
	if want := "checks[1].parameters.secret_mappings[0].secret_key"; !mentions(refused, want) {
		t.Errorf("%v does not name %s", refused, want)
	}
}

func mentions(err error, field string) bool {
	for _, d := range fault.From(err).Details {
		if d.Field == field {
			return true
		}
	}
	return false
}
