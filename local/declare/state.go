package declare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// item is a live resource.
type item struct {
	kind      *kind
	workspace string // slug; "" for the organization, or for the workspace of a workspace key
	id        string // how paths name it
	slug      string
	builtIn   bool
	fields    map[string]any // in the document's form, secrets as masks
}

// name identifies the resource among those of its kind and place.
func (it *item) name() string { return identity(it.kind, it.fields) }

// identity is the slug or name of a resource. A policy without a name is known by what it
// counts.
func identity(k *kind, fields map[string]any) string {
	if s, _ := fields["slug"].(string); k.bySlug && s != "" {
		return s
	}
	if s, _ := fields["name"].(string); s != "" {
		return s
	}
	return fmt.Sprint("unnamed ", fields["type"], " ", fields["conditions"], " ", fields["group_by"])
}

// space is a live workspace.
type space struct {
	slug, name string
	fields     map[string]any // name, description, icon, defaults, limits
	settings   map[string]any // the values that are its own
	items      []*item
	isDefault  bool // of the organization: it cannot be deleted
}

// state is what a gateway has.
type state struct {
	settings, defaults map[string]any // of the organization
	items              []*item        // of the organization
	spaces             []*space
}

// scope specifies what to read.
type scope struct {
	organization bool
	sections     func(level, string) bool // whether a section is read
	workspace    func(slug, name string) bool
	own          bool // one workspace: that of the key
}

// everything reads all that a document can contain.
var everything = scope{organization: true, sections: func(level, string) bool { return true }, workspace: func(_, _ string) bool { return true }}

// readState reads the live state.
func readState(ctx context.Context, api API, sc scope) (*state, error) {
	s := new(state)
	if sc.own {
		sp := &space{fields: map[string]any{}}
		s.spaces = []*space{sp}
		return s, readSections(ctx, api, sc, inWorkspace, "", nil, &sp.items)
	}
	rows, err := list(ctx, api, "/admin/workspaces", url.Values{"name_format": {"plain"}})
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows) // oldest first
	ids := map[string]string{}
	for _, row := range rows {
		slug, _ := row["slug"].(string)
		name, _ := row["name"].(string)
		wanted := sc.workspace(slug, name)
		if !wanted && !sc.organization || row["status"] == "archived" {
			continue
		}
		sp := &space{slug: slug, name: name, fields: pick(row, "name", "description", "icon", "defaults", "usage_limits", "rate_limits")}
		sp.isDefault = flagNumber(row["is_default"]) == "1"
		stripAll(sp.fields["usage_limits"], limitState)
		stripAll(sp.fields["defaults"], []string{"is_default", "object"})
		id := ""
		if id, sp.settings, err = ownSettings(ctx, api, slug); err != nil {
			return nil, err
		}
		if ids[id] = slug; !wanted {
			continue
		}
		if err := readSections(ctx, api, sc, inWorkspace, slug, nil, &sp.items); err != nil {
			return nil, err
		}
		s.spaces = append(s.spaces, sp)
	}
	if !sc.organization {
		return s, nil
	}
	return s, s.readOrganization(ctx, api, sc, ids)
}

func (s *state) readOrganization(ctx context.Context, api API, sc scope, workspaces map[string]string) error {
	out, err := call(ctx, api, "GET", "/admin/organisation/settings", nil)
	if err != nil {
		return err
	}
	s.settings = out
	for _, n := range []string{"object", "organisation_id", "last_updated_at"} {
		delete(s.settings, n)
	}
	if out, err = call(ctx, api, "GET", "/admin/organisation/defaults", nil); err != nil {
		return err
	}
	s.defaults = pick(out, "input_guardrails", "output_guardrails")
	for k, v := range s.defaults {
		s.defaults[k] = slugsOf(v)
	}
	return readSections(ctx, api, sc, inOrganization, "", workspaces, &s.items)
}

// slugsOf turns a list of objects with a slug into a list of their slugs.
func slugsOf(v any) any {
	rows, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(rows))
	for i, row := range rows {
		if out[i] = row; true {
			if m, ok := row.(map[string]any); ok {
				out[i] = m["slug"]
			}
		}
	}
	return out
}

// ownSettings returns the id of a workspace, and its settings that do not come from the
// organization.
func ownSettings(ctx context.Context, api API, slug string) (id string, own map[string]any, err error) {
	out, err := call(ctx, api, "GET", "/admin/workspaces/"+url.PathEscape(slug)+"/settings", nil)
	if err != nil {
		return "", nil, err
	}
	id, _ = out["workspace_id"].(string)
	own = map[string]any{}
	origins, _ := out["origins"].(map[string]any)
	for at, origin := range origins {
		section, name, ok := strings.Cut(at, ".")
		values, _ := out[section].(map[string]any)
		if !ok || origin != "workspace" || values == nil {
			continue
		}
		in, _ := own[section].(map[string]any)
		if in == nil {
			in = map[string]any{}
			own[section] = in
		}
		in[name] = values[name]
	}
	return id, own, nil
}

func readSections(ctx context.Context, api API, sc scope, at level, workspace string, known map[string]string, into *[]*item) error {
	slugs := maps.Clone(known) // by id
	if slugs == nil {
		slugs = map[string]string{}
	}
	for _, k := range kinds {
		wanted := sc.sections(at, k.section)
		for _, section := range k.referredBy {
			wanted = wanted || sc.sections(at, section)
		}
		if k.levels&at == 0 || !wanted {
			continue
		}
		items, err := readKind(ctx, api, k, at, workspace, slugs)
		if err != nil {
			return fmt.Errorf("reading %s: %w", k.section, err)
		}
		*into = append(*into, items...)
	}
	for _, it := range *into {
		it.fields, _ = named(it.fields, slugs).(map[string]any)
	}
	return nil
}

// named replaces ids by slugs: ids are those of one gateway.
func named(v any, slugs map[string]string) any {
	switch v := v.(type) {
	case string:
		if s, ok := slugs[v]; ok {
			return s
		}
	case []any:
		for i := range v {
			v[i] = named(v[i], slugs)
		}
	case map[string]any:
		for k := range v {
			v[k] = named(v[k], slugs)
		}
	}
	return v
}

func readKind(ctx context.Context, api API, k *kind, at level, workspace string, slugs map[string]string) ([]*item, error) {
	q := url.Values{}
	if workspace != "" {
		q.Set("workspace_id", workspace)
	}
	rows, err := list(ctx, api, k.path, q)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == 404 {
		return nil, nil // a gateway without this kind
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows)
	var items []*item
	for _, row := range rows {
		if id, _ := row["id"].(string); id != "" && !empty(row["slug"]) {
			slugs[id], _ = row["slug"].(string)
		}
		builtIn := k.builtIn != nil && k.builtIn(row)
		if (empty(row["workspace_id"]) != (at == inOrganization)) && !builtIn && k.levels == inOrganization|inWorkspace {
			continue
		}
		if s, _ := row["status"].(string); s == "archived" {
			continue
		}
		it := &item{kind: k, workspace: workspace, builtIn: builtIn}
		it.slug, _ = row["slug"].(string)
		if it.id = it.slug; it.id == "" || strings.HasPrefix(k.path, "/policies") {
			it.id, _ = row["id"].(string)
		}
		if k.detail {
			if row, err = call(ctx, api, "GET", it.path(""), nil); err != nil {
				return nil, err
			}
			if inner, ok := row["data"].(map[string]any); ok {
				row = inner
			}
		}
		it.take(row)
		for i := range k.extras {
			if k.extras[i].at&at != 0 && !builtIn {
				if err := k.extras[i].read(ctx, api, it); err != nil {
					return nil, err
				}
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// take sets the fields of an item from its record.
func (it *item) take(row map[string]any) {
	if it.kind.secrets {
		row, _ = masked(row).(map[string]any)
	}
	it.fields = map[string]any{}
	for i := range it.kind.fields {
		f := &it.kind.fields[i]
		v, there := row[f.name]
		if !there {
			continue
		}
		stripAll(v, f.strip)
		it.fields[f.name] = v
	}
	if it.slug != "" {
		it.fields["slug"] = it.slug
	}
}

func pick(m map[string]any, names ...string) map[string]any {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(k string, _ any) bool { return !slices.Contains(names, k) })
	return out
}
