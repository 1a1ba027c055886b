package declare

import (
	"slices"
	"strconv"
	"strings"

	"gateway/local/document"
)

// version is the form of documents that this package reads and writes.
const version = "1"

// Document is a declared state. A section that is nil is not declared: its live resources are
// unchanged.
type Document struct {
	Organization *Organization
	Workspaces   []*Workspace
	// complete reports whether workspaces are listed at all.
	listsWorkspaces bool
}

// Organization is the declared state of the organization.
type Organization struct {
	Settings, Defaults map[string]any
	Sections           map[string][]*Resource
}

// Workspace is the declared state of one workspace. Slug and Name both empty is the workspace
// of a workspace key.
type Workspace struct {
	Slug, Name string
	Fields     map[string]any // description, icon, defaults, usage_limits, rate_limits
	Settings   map[string]any
	Sections   map[string][]*Resource
}

// Resource is one declared resource. Its fields are named as in the API. Slug is a label by
// which other resources refer to it; the gateway may give it another one.
type Resource struct {
	At     document.Position
	Fields map[string]any
}

// Parse reads a document.
func Parse(n *document.Node) (*Document, error) {
	if n.Kind() != document.Map {
		return nil, document.Errorf(n.At, "", "must be a mapping with version, organization and workspaces")
	}
	d := new(Document)
	if v := n.Get("version"); v.Scalar() != version {
		at := n.At
		if v != nil {
			at = v.At
		}
		return nil, document.Errorf(at, "version", "must be %s", version)
	}
	for _, f := range n.Fields() {
		var err error
		switch f.Name {
		case "version":
		case "organization":
			d.Organization, err = parseOrganization(f.Value)
		case "workspaces":
			d.listsWorkspaces = true
			d.Workspaces, err = parseWorkspaces(f.Value)
		default:
			err = document.Errorf(f.At, f.Name, "is not known; use version, organization and workspaces")
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

func parseOrganization(n *document.Node) (*Organization, error) {
	if err := n.Expect("organization", document.Map); err != nil {
		return nil, err
	}
	o := &Organization{Sections: map[string][]*Resource{}}
	for _, f := range n.Fields() {
		at := "organization." + f.Name
		var err error
		switch f.Name {
		case "settings":
			o.Settings, err = object(f.Value, at)
		case "defaults":
			o.Defaults, err = object(f.Value, at)
		default:
			err = parseSection(f, at, inOrganization, o.Sections, "settings, defaults")
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

// spaceFields are the fields of a workspace itself.
var spaceFields = []string{"description", "icon", "defaults", "usage_limits", "rate_limits"}

func parseWorkspaces(n *document.Node) ([]*Workspace, error) {
	if err := n.Expect("workspaces", document.List); err != nil {
		return nil, err
	}
	var all []*Workspace
	for i, item := range n.Items() {
		at := path("workspaces", i)
		if item.Kind() != document.Map {
			return nil, document.Errorf(item.At, at, "must be a mapping")
		}
		w := &Workspace{Fields: map[string]any{}, Sections: map[string][]*Resource{}}
		for _, f := range item.Fields() {
			at := at + "." + f.Name
			var err error
			switch {
			case f.Name == "slug" || f.Name == "name":
				if err = f.Value.Expect(at, document.Text); err != nil {
					break
				}
				if f.Name == "slug" {
					w.Slug = f.Value.Scalar()
				} else {
					w.Name = f.Value.Scalar()
				}
			case f.Name == "settings":
				w.Settings, err = object(f.Value, at)
			case slices.Contains(spaceFields, f.Name):
				w.Fields[f.Name] = f.Value.Value()
			default:
				err = parseSection(f, at, inWorkspace, w.Sections, "slug, name, settings, "+strings.Join(spaceFields, ", "))
			}
			if err != nil {
				return nil, err
			}
		}
		if w.Slug == "" && w.Name == "" {
			return nil, document.Errorf(item.At, at, "must have a slug or a name")
		}
		if slices.ContainsFunc(all, func(o *Workspace) bool { return o.Slug != "" && o.Slug == w.Slug || o.Name != "" && o.Name == w.Name }) {
			return nil, document.Errorf(item.At, at, "is declared twice")
		}
		all = append(all, w)
	}
	return all, nil
}

func parseSection(f document.Field, at string, in level, into map[string][]*Resource, also string) error {
	k := kindOf(f.Name)
	if k == nil || k.levels&in == 0 {
		var known []string
		for _, k := range kinds {
			if k.levels&in != 0 {
				known = append(known, k.section)
			}
		}
		return document.Errorf(f.At, at, "is not known; use %s, %s", also, strings.Join(known, ", "))
	}
	if err := f.Value.Expect(at, document.List); err != nil {
		return err
	}
	list := []*Resource{}
	seen := map[string]bool{}
	for i, item := range f.Value.Items() {
		at := path(at, i)
		if item.Kind() != document.Map {
			return document.Errorf(item.At, at, "must be a mapping")
		}
		for _, m := range item.Fields() {
			extra := k.extra(m.Name)
			if m.Name != "slug" && k.field(m.Name) == nil && (extra == nil || extra.at&in == 0) {
				return document.Errorf(m.At, at+"."+m.Name, "is not known; use %s", k.names())
			}
		}
		r := &Resource{At: item.At, Fields: item.Value().(map[string]any)}
		id := identity(k, r.Fields)
		if k.bySlug && r.Fields["slug"] == nil {
			return document.Errorf(item.At, at+".slug", "is required")
		}
		if seen[id] {
			return document.Errorf(item.At, at, "%q is declared twice", id)
		}
		seen[id] = true
		list = append(list, r)
	}
	into[f.Name] = list
	return nil
}

func object(n *document.Node, at string) (map[string]any, error) {
	if err := n.Expect(at, document.Map); err != nil {
		return nil, err
	}
	m, _ := n.Value().(map[string]any)
	return m, nil
}

func path(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }
