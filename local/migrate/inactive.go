package migrate

import (
	"slices"
	"strings"

	"gateway/local/declare"
)

// AddSecretTodos adds a to-do for everything that lacks a secret, which an import that leaves it
// inactive creates nevertheless.
func (r *Result) AddSecretTodos() {
	remind := func(section string, list []*declare.Resource) {
		for _, res := range list {
			if names := r.unknown(res.Fields); len(names) > 0 {
				r.Report.Todo = append(r.Report.Todo, "set "+strings.Join(names, ", ")+" and import again: "+strings.TrimSuffix(strings.ReplaceAll(section, "_", " "), "s")+" "+name(res)+" is not active until then")
			}
		}
	}
	for _, w := range r.Document.Workspaces {
		for _, section := range sorted(w.Sections) {
			remind(section, w.Sections[section])
		}
	}
	if o := r.Document.Organization; o != nil {
		for _, section := range sorted(o.Sections) {
			remind(section, o.Sections[section])
		}
	}
}

func name(res *declare.Resource) string {
	for _, n := range []string{"slug", "name"} {
		if s, ok := res.Fields[n].(string); ok && s != "" {
			return s
		}
	}
	return "without a name"
}

// unknown returns the names of the secrets in v that have no value.
func (r *Result) unknown(v any) (names []string) {
	switch v := v.(type) {
	case string:
		n, ok := strings.CutPrefix(v, "${")
		if !ok || !strings.HasSuffix(n, "}") {
			return nil
		}
		n = strings.TrimSuffix(n, "}")
		if _, known := r.Secrets(n); !known {
			return []string{n}
		}
	case map[string]any:
		for _, e := range v {
			names = append(names, r.unknown(e)...)
		}
	case []any:
		for _, e := range v {
			names = append(names, r.unknown(e)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
