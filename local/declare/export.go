package declare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gateway/local/document"
)

// Export reads everything that a document can contain and returns it as YAML, secrets as
// ${NAME}. It also returns the names of the secrets, in their order.
func Export(ctx context.Context, api API) ([]byte, []string, error) {
	s, err := readState(ctx, api, everything)
	if err != nil {
		return nil, nil, err
	}
	w := &writer{taken: map[string]bool{}}
	org := document.Ordered{{Name: "settings", Value: w.value(s.settings, "ORGANIZATION_SETTINGS")}, {Name: "defaults", Value: w.value(s.defaults, "ORGANIZATION_DEFAULTS")}}
	org = append(org, w.sections(s.items, inOrganization, "ORGANIZATION")...)
	spaces := []any{}
	for _, sp := range s.spaces {
		o := document.Ordered{{Name: "slug", Value: Escape(sp.slug)}, {Name: "name", Value: Escape(sp.name)}}
		for _, name := range spaceFields {
			if v := w.value(sp.fields[name], ""); !empty(v) {
				o = append(o, document.Entry{Name: name, Value: v})
			}
		}
		if len(sp.settings) > 0 {
			o = append(o, document.Entry{Name: "settings", Value: w.value(sp.settings, "")})
		}
		spaces = append(spaces, append(o, w.sections(sp.items, inWorkspace, sp.name)...))
	}
	raw, err := document.Write(document.Ordered{{Name: "version", Value: 1}, {Name: "organization", Value: org}, {Name: "workspaces", Value: spaces}})
	return raw, w.names, err
}

// writer turns live values into those of a document.
type writer struct {
	taken map[string]bool
	names []string
}

func (w *writer) sections(items []*item, at level, prefix string) (out document.Ordered) {
	for _, k := range kinds {
		if k.levels&at == 0 {
			continue
		}
		list := []any{}
		for _, it := range inNameOrder(items, k) {
			list = append(list, w.resource(it, prefix))
		}
		out = append(out, document.Entry{Name: k.section, Value: list})
	}
	return out
}

func (w *writer) resource(it *item, prefix string) (out document.Ordered) {
	name := prefix + "_" + it.kind.noun + "_" + it.name()
	add := func(field string) {
		if slices.ContainsFunc(out, func(e document.Entry) bool { return e.Name == field }) {
			return
		}
		if v := w.value(it.fields[field], name+"_"+field); !empty(v) || v == false {
			out = append(out, document.Entry{Name: field, Value: v})
		}
	}
	add("slug")
	for _, f := range it.kind.fields {
		add(f.name)
	}
	for _, e := range it.kind.extras {
		for _, n := range e.names {
			add(n)
		}
	}
	return out
}

// value returns a live value with masks as named secrets. Null members are left out.
func (w *writer) value(v any, name string) any {
	switch v := v.(type) {
	case mask:
		return "${" + w.secret(name) + "}"
	case string:
		return Escape(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.value(v[i], fmt.Sprint(name, "_", i+1))
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if v[k] != nil {
				out[k] = w.value(v[k], name+"_"+k)
			}
		}
		return out
	}
	return v
}

// secret returns a free name for a secret.
func (w *writer) secret(name string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(name) {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	base := strings.Trim(b.String(), "_")
	if base == "" || base[0] <= '9' {
		base = "SECRET_" + base
	}
	name = base
	for n := 2; w.taken[name]; n++ {
		name = fmt.Sprint(base, "_", n)
	}
	w.taken[name] = true
	w.names = append(w.names, name)
	return name
}
