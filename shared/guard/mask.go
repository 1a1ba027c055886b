package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/audit"
	"gateway/shared/fault"
)

// MaskChecks returns a copy of checks with their secrets masked, for storing and showing, and
// whether they have any. Secrets are credentials, headers for a customer's host, and every
// field with the name of a secret. A value that is already masked is rejected, because it would
// be stored as the secret.
func MaskChecks(checks []Applied) (masked []Applied, found bool, bad []fault.Detail) {
	m := &masker{}
	masked = slices.Clone(checks)
	for i := range masked {
		out := make(map[string]json.RawMessage, len(checks[i].Parameters))
		for name, raw := range checks[i].Parameters {
			out[name] = m.member(checks[i].ID, name, raw, fmt.Sprintf("[%d].parameters.%s", i, name))
		}
		masked[i].Parameters = out
	}
	return masked, m.Found, m.Bad
}

type masker struct {
	audit.Texts
}

// secretParams are parameters that are secret entirely.
var secretParams = []string{"credentials", "headers", "secret"}

// isDocumented reports whether the table describes a parameter: then it is not a secret, whatever its
// name.
func isDocumented(check, name string) bool {
	c, ok := Find(check)
	return ok && slices.ContainsFunc(c.Parameters(), func(p Param) bool { return p.Name == name })
}

func (m *masker) member(check, name string, raw json.RawMessage, path string) json.RawMessage {
	all := slices.Contains(secretParams, name)
	if !all && isDocumented(check, name) {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	had := m.Found
	m.Found = false
	if all || audit.SecretName(name) {
		v = m.Hide(v, path)
	} else {
		v = m.maskValue(v, path)
	}
	changed := m.Found
	m.Found = had || changed
	if !changed {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

// maskValue masks every field with the name of a secret.
func (m *masker) maskValue(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if audit.SecretName(k) {
				v[k] = m.Hide(e, path+"."+k)
			} else {
				v[k] = m.maskValue(e, path+"."+k)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = m.maskValue(e, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	return v
}
