package declare

import (
	"fmt"
	"regexp"
	"strings"
)

// secret is a value that the document names as ${NAME}.
type secret struct {
	name, value string
	known       bool
}

// mask is a live secret as the API shows it.
type mask string

// placeholder matches a text that is a named secret. Any other text of this form is written
// with a second $ before it.
var placeholder = regexp.MustCompile(`^(\$+)\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// maskForm is what the API shows in place of a secret.
var maskForm = regexp.MustCompile(`^[^*]{0,4}\*{4,}[^*]{0,4}$`)

// Secrets returns the value of a named secret.
type Secrets func(name string) (value string, known bool)

// resolve returns v with named secrets as secret values and escaped texts plain.
func (s Secrets) resolve(v any) any {
	switch v := v.(type) {
	case string:
		m := placeholder.FindStringSubmatch(v)
		switch {
		case m == nil:
			return v
		case len(m[1]) > 1:
			return v[1:]
		}
		value, known := s(m[2])
		return secret{m[2], value, known && value != ""}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.resolve(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = s.resolve(v[k])
		}
		return out
	}
	return v
}

// Escape returns a text in the form of a document, in which ${NAME} names a secret.
func Escape(text string) string {
	if placeholder.MatchString(text) {
		return "$" + text
	}
	return text
}

// fits reports whether a value can be the secret that a mask shows.
func (m mask) fits(value string) bool {
	begin := strings.Index(string(m), "*")
	end := strings.LastIndex(string(m), "*")
	if begin < 0 {
		return false
	}
	head, tail := string(m)[:begin], string(m)[end+1:]
	return len(value) >= len(head)+len(tail) && strings.HasPrefix(value, head) && strings.HasSuffix(value, tail)
}

// masked returns a live value with the secrets in it as masks.
func masked(v any) any {
	switch v := v.(type) {
	case string:
		if maskForm.MatchString(v) {
			return mask(v)
		}
	case []any:
		for i := range v {
			v[i] = masked(v[i])
		}
	case map[string]any:
		for k, e := range v {
			v[k] = masked(e)
			if name, ok := strings.CutPrefix(k, "masked_"); ok {
				delete(v, k)
				v[name] = allMasked(e)
			}
		}
	}
	return v
}

// allMasked returns a live value with every string masked.
func allMasked(v any) any {
	switch v := v.(type) {
	case string:
		return mask(v)
	case map[string]any:
		for k := range v {
			v[k] = allMasked(v[k])
		}
	case []any:
		for i := range v {
			v[i] = allMasked(v[i])
		}
	}
	return v
}

// reveal returns v as it is sent, with the names of the unknown secrets. With drop these are
// omitted from the mappings that contain them: the API retains its values.
func reveal(v any, drop bool) (sent any, missing []string) {
	switch v := v.(type) {
	case secret:
		if !v.known {
			return nil, []string{v.name}
		}
		return v.value, nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var m []string
			out[i], m = reveal(v[i], drop)
			missing = append(missing, m...)
		}
		return out, missing
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			one, m := reveal(v[k], drop)
			if drop && len(m) > 0 {
				continue
			}
			out[k] = one
			missing = append(missing, m...)
		}
		return out, missing
	}
	return v, nil
}

// hasSecret reports whether v contains a named secret.
func hasSecret(v any) bool {
	switch v := v.(type) {
	case secret:
		return true
	case []any:
		for _, e := range v {
			if hasSecret(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if hasSecret(e) {
				return true
			}
		}
	}
	return false
}

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
// they report whether it can be used.
var passive = map[string][]string{"integrations": {"allow_all_models", "models"}, "guardrails": {"checks"}, "telemetry_destinations": {"headers"}}
