package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/provider"
)

// mappings are credentials that are filled from an external secret manager.
var mappings = Param{Name: "secret_mappings", Type: Mapped}

// Mappings are the secret mappings in a check's parameters; nil if there are none.
func Mappings(params map[string]json.RawMessage) (list []provider.SecretMapping) {
	if json.Unmarshal(params[mappings.Name], &list) != nil {
		return nil
	}
	return list
}

// LinkSecrets stages that a guardrail uses the secret references of its checks, and no
// longer those of its earlier checks. The error names mappings whose reference cannot be
// used, with their paths below the record.
func LinkSecrets(link func(was, now []provider.SecretMapping) error, was, now []Applied) error {
	all := func(checks []Applied) (list []provider.SecretMapping, paths []string) {
		for i := range checks {
			for n, m := range Mappings(checks[i].Parameters) {
				list, paths = append(list, m), append(paths, fmt.Sprintf("checks[%d].parameters.secret_mappings[%d].secret_reference_id", i, n))
			}
		}
		return list, paths
	}
	before, _ := all(was)
	after, paths := all(now)
	if len(before)+len(after) == 0 {
		return nil
	}
	err := link(before, after)
	if err == nil || fault.From(err).StatusCode >= 500 {
		return err
	}
	bad := slices.Clone(fault.From(err).Details)
	for i := range bad {
		for n := range paths {
			if bad[i].Field == fmt.Sprintf("secret_mappings[%d].secret_reference_id", n) {
				bad[i].Field = paths[n]
				break
			}
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return err
}

// places are credentials that tell where a vendor is, not who is calling. They cannot be
// secrets: no secret may be sent to an address that another secret names.
var places = words("domain apiDomain resourceName awsRegion regionId azureAuthMode awsAuthType")

// mapped are the fields of credentials that a secret may fill, such as credentials.apiKey.
func mapped(p *Param, path string) (out []string) {
	for i := range p.Members {
		switch m := &p.Members[i]; {
		case m.Type == Object:
			out = append(out, mapped(m, path+"."+m.Name)...)
		case m.Type == Text && !slices.Contains(places, m.Name):
			out = append(out, path+"."+m.Name)
		}
	}
	return out
}

// mappings checks the secret mappings of a check.
func (r *reader) mappings(row *Check, raw json.RawMessage, path string) {
	if r.inline {
		r.add(path, "are for saved guardrails: a config writes its credentials out, or names a guardrail")
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) > MaxChecks {
		r.add(path, "must be a list of at most %d mappings", MaxChecks)
		return
	}
	opening := opening(row.ID)
	fields := mapped(&opening, opening.Name)
	var seen []string
	for n, one := range list {
		at := fmt.Sprintf("%s[%d]", path, n)
		var m provider.SecretMapping
		d := json.NewDecoder(bytes.NewReader(one))
		d.DisallowUnknownFields()
		if d.Decode(&m) != nil {
			r.add(at, "must be an object with target_field, secret_reference_id, secret_key and value_format")
			continue
		}
		for _, b := range bound.Check(&m) {
			r.add(at+"."+b.Field, "%s", b.Message)
		}
		switch {
		case m.TargetField == "":
		case !slices.Contains(fields, m.TargetField):
			r.add(at+".target_field", "must be one of %v", fields)
		case slices.Contains(seen, m.TargetField):
			r.add(at+".target_field", "is filled twice")
		}
		seen = append(seen, m.TargetField)
	}
}
