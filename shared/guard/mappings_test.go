package guard

import (
	"encoding/json"
	"strings"
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
		opening := credentialsParam(c.ID)
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
			if !a.Changed() {
				t.Errorf("%s: %s of a new check is where it was", c.ID, a.Field)
			}
			open++
		}
		if open < sites {
			t.Errorf("%s has %d addresses of %d", c.ID, open, sites)
		}
		for _, a := range addresses(&check, "checks[0].parameters.", []Applied{check}) {
			if a.Changed() {
				t.Errorf("%s: an unchanged %s moved", c.ID, a.Field)
			}
		}
	}
}

// TestEveryURLOfACheckWithMappingsIsAnAddress enumerates the parameters of all checks whose
// credentials can be mapped, those beside the credentials too.
func TestEveryURLOfACheckWithMappingsIsAnAddress(t *testing.T) {
	t.Parallel()
	const value = `"https://attacker.example.com"`
	const mapping = `[{"target_field":"credentials.awsSessionToken","secret_reference_id":"r"}]`
	beside := 0
	for _, c := range Table() {
		opening := credentialsParam(c.ID)
		if len(mappableFields(&opening, opening.Name)) == 0 {
			continue
		}
		var walk func(params []Param, path string)
		walk = func(params []Param, path string) {
			for i := range params {
				p := &params[i]
				if at := path + p.Name; p.Type == Object {
					walk(p.Members, at+".")
				} else if p.Type == URL {
					if path == "" {
						beside++
					}
					parameters := map[string]json.RawMessage{MappingsParameter: json.RawMessage(mapping)}
					top, rest, nested := strings.Cut(at, ".")
					raw := value
					for nested {
						var last string
						if rest, last, nested = cutLast(rest); last != "" {
							raw = `{"` + last + `":` + raw + `}`
						}
					}
					parameters[top] = json.RawMessage(raw)
					got := addresses(&Applied{ID: c.ID, Parameters: parameters}, "", []Applied{{ID: c.ID, Parameters: map[string]json.RawMessage{MappingsParameter: json.RawMessage(mapping)}}})
					if len(got) != 1 || got[0].Field != at || !got[0].Open || !got[0].Changed() {
						t.Errorf("%s: %s is no address that moves: %+v", c.ID, at, got)
					}
				}
			}
		}
		walk(c.Parameters(), "")
	}
	if beside == 0 {
		t.Error("no check has an address beside its credentials")
	}
}

// cutLast cuts a path before its last dot; more is false if there was none.
func cutLast(path string) (before, last string, more bool) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:], true
	}
	return "", path, false
}

func TestLinkSecretsStoresMarkedMappings(t *testing.T) {
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
