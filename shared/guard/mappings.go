package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
)

// MappingsParameter is the parameter of a check that lists its secret mappings.
const MappingsParameter = "secret_mappings"

// mappings is the parameter for credentials from an external secret manager.
var mappings = Param{Name: MappingsParameter, Type: Mapped}

// Mappings returns the secret mappings in a check's parameters.
func Mappings(params map[string]json.RawMessage) (list []provider.SecretMapping) {
	if json.Unmarshal(params[mappings.Name], &list) != nil {
		return nil
	}
	return list
}

// LinkSecrets stages the references of a guardrail to the secrets of its checks, in place of
// those of its earlier checks. The error names invalid mappings, and addresses that they cannot
// be combined with, by their paths relative to the record. The mappings in now are stored as
// link marks them.
func LinkSecrets(link func(provider.Links) error, was, now []Applied) error {
	var l provider.Links
	for i := range was {
		l.Was = append(l.Was, Mappings(was[i].Parameters)...)
	}
	var paths []string // of the mappings
	for i := range now {
		list := Mappings(now[i].Parameters)
		for n := range list {
			paths = append(paths, fmt.Sprintf("checks[%d].parameters.secret_mappings[%d]", i, n))
		}
		if l.Now = append(l.Now, list...); len(list) > 0 {
			l.Addresses = append(l.Addresses, addresses(&now[i], fmt.Sprintf("checks[%d].parameters.", i), was)...)
		}
	}
	if len(l.Was)+len(l.Now) == 0 {
		return nil
	}
	if err := link(l); err != nil {
		return atPaths(err, paths)
	}
	return storeMappings(now, l.Now)
}

// atPaths replaces secret_mappings[n] in the fields of an error by the n-th path.
func atPaths(err error, paths []string) error {
	if fault.From(err).Status() >= 500 {
		return err
	}
	bad := slices.Clone(fault.From(err).Details)
	for i := range bad {
		for n := range paths {
			flat := fmt.Sprintf("secret_mappings[%d]", n)
			if rest, found := strings.CutPrefix(bad[i].Field, flat); found {
				bad[i].Field = paths[n] + rest
			}
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return err
}

// storeMappings writes mappings back into the parameters of their checks.
func storeMappings(checks []Applied, all []provider.SecretMapping) error {
	for i := range checks {
		was := Mappings(checks[i].Parameters)
		own := all[:len(was)]
		all = all[len(was):]
		if slices.Equal(was, own) {
			continue
		}
		raw, err := json.Marshal(own)
		if err != nil {
			return fmt.Errorf("guard: encode mappings: %w", err)
		}
		checks[i].Parameters[MappingsParameter] = raw
	}
	return nil
}

// addresses returns the parameters of a check that determine where its mapped secrets are sent,
// most of which are among its credentials. An address is unchanged if an earlier check of the
// same kind had the same one with the same mappings.
func addresses(c *Applied, path string, was []Applied) (out []hostpin.Address) {
	for name, m := range sites(c) {
		a := hostpin.Address{Field: path + name, Now: m.value, Open: m.open}
		for i := range was {
			old := &was[i]
			if old.ID == c.ID && sites(old)[name] == m && sameMappings(old, c) {
				a.Was = a.Now
			}
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b hostpin.Address) int { return strings.Compare(a.Field, b.Field) })
	return out
}

func sameMappings(a, b *Applied) bool {
	return slices.EqualFunc(Mappings(a.Parameters), Mappings(b.Parameters), func(x, y provider.SecretMapping) bool {
		x.Restricted, y.Restricted = false, false
		return x == y
	})
}

// site is the value of a credential that contains a host name or a part of one.
type site struct {
	value string
	open  bool // it can name any host
}

// sites returns the parameters of a check that name a host, by path.
func sites(c *Applied) map[string]site {
	opening := credentialsParam(c.ID)
	out := hostCredentials(&opening, opening.Name, c.Parameters[opening.Name])
	row, ok := Find(c.ID)
	if !ok {
		return out
	}
	for i := range row.Params { // outside the credentials, names such as domain have another meaning
		var value string
		if p := &row.Params[i]; p.Type == URL && json.Unmarshal(c.Parameters[p.Name], &value) == nil && value != "" {
			out[p.Name] = site{value, true}
		}
	}
	return out
}

// hostCredentials returns the credentials below p that name a host, by path.
func hostCredentials(p *Param, path string, raw json.RawMessage) map[string]site {
	out := map[string]site{}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return out
	}
	for i := range p.Members {
		m := &p.Members[i]
		at := path + "." + m.Name
		if m.Type == Object {
			maps.Copy(out, hostCredentials(m, at, members[m.Name]))
			continue
		}
		var value string
		if m.Type != URL && !slices.Contains(addressFields, m.Name) || json.Unmarshal(members[m.Name], &value) != nil || value == "" {
			continue
		}
		out[at] = site{value, m.Type == URL || strings.HasSuffix(strings.ToLower(m.Name), "domain")}
	}
	return out
}

// addressFields are credentials that determine the address of a vendor. They cannot be secrets: no
// secret may be sent to an address that another secret names.
var addressFields = words("domain apiDomain resourceName awsRegion regionId azureAuthMode awsAuthType")

// mappableFields returns the credential fields that a secret may set, such as credentials.apiKey.
func mappableFields(p *Param, path string) (out []string) {
	for i := range p.Members {
		switch m := &p.Members[i]; {
		case m.Type == Object:
			out = append(out, mappableFields(m, path+"."+m.Name)...)
		case m.Type == Text && !slices.Contains(addressFields, m.Name):
			out = append(out, path+"."+m.Name)
		}
	}
	return out
}

// mappings validates the secret mappings of a check.
func (r *reader) mappings(row *Check, raw json.RawMessage, path string) {
	if r.inline {
		r.add(path, "are only allowed in saved guardrails: a config contains its credentials, or names a guardrail")
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) > MaxChecks {
		r.add(path, "must be a list of at most %d mappings", MaxChecks)
		return
	}
	opening := credentialsParam(row.ID)
	fields := mappableFields(&opening, opening.Name)
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
			r.add(at+".target_field", "has two mappings")
		}
		seen = append(seen, m.TargetField)
	}
}

// KindGuardrail is the kind of saved guardrails of an organization or a workspace.
const KindGuardrail resource.Kind = "GUARDRAIL"

// SealedChecks is the name under which the checks of a guardrail are sealed together if they
// contain secrets. The record's body then shows them masked.
const SealedChecks = "checks"

// MaxChecks is the number of checks of one guardrail.
const MaxChecks = 50

// Guardrail is the stored form of a guardrail: the body of its record, and of each
// of its versions.
type Guardrail struct {
	Checks  []Applied `json:"checks,omitempty"`
	Actions Actions   `json:"actions"`
	// Sent are checks and actions as the client wrote them, for reads; secrets are masked.
	// Empty in guardrails from before they were stored.
	Sent RawJSON `json:"sent,omitzero"`
}

// RawJSON is JSON as a client wrote it.
type RawJSON struct {
	Checks  json.RawMessage `json:"checks,omitempty"`
	Actions json.RawMessage `json:"actions,omitempty"`
}

// checkMembers are the fields of a check that reads repeat.
var checkMembers = []string{"id", "name", "is_enabled", "forward_headers"}

// Echo returns the checks that a client sent, with the fields that it sent and the
// parameters of the masked ones. raw has passed ParseChecks.
func Echo(raw json.RawMessage, masked []Applied) (json.RawMessage, error) {
	var sent []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(sent))
	for i, one := range sent {
		out[i] = make(map[string]any, len(one))
		for _, name := range checkMembers {
			if v, ok := one[name]; ok {
				out[i][name] = v
			}
		}
		if p, ok := one["parameters"]; ok {
			out[i]["parameters"] = masked[i].Parameters
			if string(p) == "null" {
				out[i]["parameters"] = nil
			}
		}
	}
	return json.Marshal(out)
}

// Applied is a check of a guardrail with its parameters.
type Applied struct {
	ID         string                     `json:"id"`
	Name       string                     `json:"name,omitempty"`
	Enabled    bool                       `json:"is_enabled"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Forward    []string                   `json:"forward_headers,omitempty"`
}

// Actions configure the reaction to each outcome.
type Actions struct {
	Deny       bool   `json:"deny"`
	Async      bool   `json:"async"`
	Sequential bool   `json:"sequential"`
	Soft       bool   `json:"soft_deny_200"` // a denial has status 200
	OnSuccess  Branch `json:"on_success"`
	OnFail     Branch `json:"on_fail"`
	// Stream sets when an output guardrail judges a stream: after, hold or window. Window is
	// its width in characters.
	Stream When `json:"stream,omitempty"`
	Window int  `json:"stream_window,omitempty"`
	// Unread names the routes that are allowed although the guardrail denies and their bodies
	// cannot be read: request types, or path prefixes below the base URL.
	Unread []string `json:"allow_unread,omitempty"`
}

// Branch is the reaction to one outcome.
type Branch struct {
	Feedback Feedback `json:"feedback"`
}

// Feedback is recorded on the request's trace.
type Feedback struct {
	Value    int64           `json:"value"`
	Weight   float64         `json:"weight"`
	Metadata json.RawMessage `json:"metadata"`
}

// StandardActions returns the default actions.
func StandardActions() Actions {
	none := json.RawMessage(`""`)
	return Actions{OnSuccess: Branch{Feedback{5, 1, none}}, OnFail: Branch{Feedback{-5, 1, none}}}
}

// ErrSealed is returned for checks with secrets that have not been opened.
var ErrSealed = errors.New("guard: the checks are sealed")

// Saved is a version of a guardrail in the form that requests use. It is immutable and shared.
type Saved struct {
	ID, Slug, Name, Status, VersionID string
	Guardrail
}

// Decode decodes a record or one of its versions. opened are its secrets, see
// resource.Record.OpenSecrets; they are required if the checks are sealed.
func Decode(rec resource.Record, opened map[string][]byte) (*Saved, error) {
	s := &Saved{ID: rec.ID, Slug: rec.Slug, Name: rec.Name, Status: rec.Status, VersionID: rec.VersionID}
	if err := json.Unmarshal(rec.Body, &s.Guardrail); err != nil {
		return nil, fmt.Errorf("guard: stored guardrail %s: %w", rec.ID, err)
	}
	if !rec.HasSecret(SealedChecks) {
		return s, nil
	}
	whole, ok := opened[SealedChecks]
	if !ok {
		return nil, ErrSealed
	}
	s.Checks = nil
	if err := json.Unmarshal(whole, &s.Checks); err != nil {
		return nil, fmt.Errorf("guard: sealed checks of guardrail %s: %w", rec.ID, err)
	}
	return s, nil
}
