package declare

import (
	"cmp"
	"slices"
	"strings"
)

// inNameOrder returns the items of a kind that an export contains, by name. The order in which
// a gateway lists them depends on when they were created, so two gateways with the same state
// would have different exports.
func inNameOrder(items []*item, k *kind) []*item {
	var out []*item
	for _, it := range items {
		if it.kind == k && !it.builtIn {
			out = append(out, it)
		}
	}
	slices.SortStableFunc(out, func(a, b *item) int { return cmp.Compare(a.name(), b.name()) })
	return out
}

// dependenciesFirst orders resources of one kind so that each comes after those that it
// mentions: a collection after its parent, a partial after those that it includes. A cycle is
// left in its order; the gateway rejects it.
func dependenciesFirst(list []*Resource) []*Resource {
	out := make([]*Resource, 0, len(list))
	seen := map[*Resource]bool{}
	var visit func(r *Resource)
	visit = func(r *Resource) {
		if seen[r] {
			return
		}
		seen[r] = true
		for _, o := range list {
			if slug, _ := o.Fields["slug"].(string); o != r && slug != "" && mentions(r.Fields, slug) {
				visit(o)
			}
		}
		out = append(out, r)
	}
	for _, r := range list {
		visit(r)
	}
	return out
}

// mentions reports whether a value is the slug or, if the gateway generated the slug, contains
// it. Other slugs may be ordinary words of a text.
func mentions(v any, slug string) bool {
	switch v := v.(type) {
	case string:
		return v == slug || generated.MatchString(slug) && strings.Contains(v, slug)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return mentions(e, slug) })
	case map[string]any:
		for _, e := range v {
			if mentions(e, slug) {
				return true
			}
		}
	}
	return false
}
