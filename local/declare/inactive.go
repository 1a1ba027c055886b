package declare

import "fmt"

// unset takes the place of a secret that is not known.
const unset = "to-do-set-this-secret"

// inactive returns the fields of a resource that is created although secrets of it are not
// known, so that it cannot be used: an integration has no models, a check is disabled, and a
// telemetry destination has no headers.
func inactive(k *kind, want map[string]any) map[string]any {
	switch k.section {
	case "integrations":
		want["allow_all_models"] = false
		delete(want, "models")
		fillCredentials(want)
	case "telemetry_destinations":
		delete(want, "headers")
	case "guardrails":
		checks, _ := want["checks"].([]any)
		for _, c := range checks {
			if m, ok := c.(map[string]any); ok && !known(m) {
				m["is_enabled"] = false
			}
		}
	}
	out, _ := fill(want).(map[string]any)
	return out
}

// fillCredentials replaces the unknown keys of an integration with several credentials, no
// two of which may be equal.
func fillCredentials(want map[string]any) {
	list, _ := want["credentials"].([]any)
	for n, c := range list {
		m, _ := c.(map[string]any)
		if key, ok := m["key"].(secret); ok && !key.known {
			m["key"] = fmt.Sprintf("%s-%d", unset, n+1)
		}
	}
}

// fill replaces unknown secrets.
func fill(v any) any {
	switch v := v.(type) {
	case secret:
		if !v.known {
			return unset
		}
	case []any:
		for i := range v {
			v[i] = fill(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = fill(v[k])
		}
	}
	return v
}

// passive are fields that stay as they are while secrets of a live resource are not known:
// they say whether it can be used.
var passive = map[string][]string{"integrations": {"allow_all_models", "models"}, "guardrails": {"checks"}, "telemetry_destinations": {"headers"}}
