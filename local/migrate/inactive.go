package migrate

import (
	"slices"
	"strings"

	"gateway/local/declare"
)

// unset takes the place of a secret that is not known.
const unset = "to-do-set-this-secret"

// Deactivate lets what lacks a secret be imported without it. An integration gets no models
// until the secret is set, a check is disabled. Each one is a to-do of the report.
func (r *Result) Deactivate() {
	for _, w := range r.Document.Workspaces {
		for section, list := range w.Sections {
			for _, res := range list {
				r.deactivate(section, res)
			}
		}
	}
	if o := r.Document.Organization; o != nil {
		for section, list := range o.Sections {
			for _, res := range list {
				r.deactivate(section, res)
			}
		}
	}
	slices.Sort(r.Report.Todo)
}

func (r *Result) deactivate(section string, res *declare.Resource) {
	if section == "guardrails" {
		checks, _ := res.Fields["checks"].([]any)
		for _, c := range checks {
			m, _ := c.(map[string]any)
			if names := r.unknown(m, true); len(names) > 0 {
				m["is_enabled"] = false
				r.Report.Todo = append(r.Report.Todo, "set "+strings.Join(names, ", ")+" and import again: a check of the guardrail "+name(res)+" is disabled")
			}
		}
		return
	}
	names := r.unknown(res.Fields, true)
	if len(names) == 0 {
		return
	}
	if section == "integrations" {
		res.Fields["allow_all_models"] = false
		delete(res.Fields, "models")
	}
	r.Report.Todo = append(r.Report.Todo, "set "+strings.Join(names, ", ")+" and import again: "+strings.TrimSuffix(strings.ReplaceAll(section, "_", " "), "s")+" "+name(res)+" is not active")
}

func name(res *declare.Resource) string {
	for _, n := range []string{"slug", "name"} {
		if s, ok := res.Fields[n].(string); ok && s != "" {
			return s
		}
	}
	return "without a name"
}

// unknown returns the names of the secrets in v that have no value. With replace they are
// replaced.
func (r *Result) unknown(v any, replace bool) (names []string) {
	put := func(e any, set func(any)) {
		if text, ok := e.(string); ok {
			if n, ok := strings.CutPrefix(text, "${"); ok && strings.HasSuffix(n, "}") {
				n = strings.TrimSuffix(n, "}")
				if _, known := r.Secrets(n); !known {
					names = append(names, n)
					if replace {
						set(unset)
					}
				}
			}
			return
		}
		names = append(names, r.unknown(e, replace)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			put(e, func(to any) { v[k] = to })
		}
	case []any:
		for i, e := range v {
			put(e, func(to any) { v[i] = to })
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
