package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gateway/local/declare"
	"gateway/local/document"
)

// builtIn begins the names of resources that a gateway makes itself for its mock provider.
const builtIn = "Built-in mock"

// Reference reads another gateway with the same administration API. secrets are the values
// of the secrets by the names that an export gives them; what has none there and none in the
// environment stays inactive.
func Reference(ctx context.Context, api declare.API, secrets map[string]string, getenv func(string) string) (*Result, error) {
	raw, _, err := declare.Export(ctx, api)
	if err != nil {
		return nil, err
	}
	root, err := document.Parse("the source", raw)
	if err != nil {
		return nil, err
	}
	d, err := declare.Parse(root)
	if err != nil {
		return nil, err
	}
	r := &Result{Document: d, Report: new(Report), literal: map[string]string{}, getenv: getenv}
	for n, v := range secrets {
		r.literal[n] = v
	}
	if r.Access, err = declare.ReadAccess(ctx, api); err != nil {
		return nil, err
	}
	line := func(key string, s Status, note string) {
		r.Report.Lines = append(r.Report.Lines, Line{Key: key, Status: s, Note: note})
	}
	if o := d.Organization; o != nil {
		for _, n := range sorted(o.Settings) {
			line("organization.settings."+n, Mapped, "settings of the organization")
		}
		line("organization.defaults", Mapped, "guardrails of every workspace")
		r.sections("organization", o.Sections, line)
	}
	for _, w := range d.Workspaces {
		line("workspaces."+w.Name, Mapped, "workspace "+w.Name)
		if w.Fields["usage_limits"] != nil {
			line("workspaces."+w.Name+".usage_limits", Changed, "usage starts at zero")
		}
		r.sections("workspaces."+w.Name, w.Sections, line)
	}
	for _, in := range r.Access.Invites {
		line("users."+in.Email, Changed, "is invited: an account is not portable")
	}
	for _, k := range r.Access.Keys {
		line("api-keys."+k.Workspace+"."+k.Name, Changed, "a new key: the value of the old one cannot be read; see --keys-file")
	}
	return r, nil
}

func (r *Result) sections(at string, sections map[string][]*declare.Resource, line func(string, Status, string)) {
	for _, section := range sorted(sections) {
		list := sections[section]
		filtered := list[:0:0]
		for _, res := range list {
			key := at + "." + section + "." + name(res)
			if text, _ := res.Fields["name"].(string); strings.HasPrefix(text, builtIn) {
				line(key, NotMapped, "each gateway has a mock provider of its own")
				continue
			}
			filtered = append(filtered, res)
			missing := r.unknown(res.Fields)
			switch {
			case len(missing) > 0:
				line(key, Changed, "is not active until its secrets are set: "+strings.Join(missing, ", "))
			case strings.HasPrefix(section, "usage_limit") || res.Fields["usage_limits"] != nil:
				line(key, Changed, "usage starts at zero")
			case (section == "mcp_integrations" || section == "agent_integrations") && strings.HasPrefix(fmt.Sprint(res.Fields["auth_type"]), "oauth"):
				line(key, Changed, "users sign in again")
			default:
				line(key, Mapped, strings.ReplaceAll(strings.TrimSuffix(section, "s"), "_", " ")+" "+name(res))
			}
		}
		sections[section] = filtered
	}
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
