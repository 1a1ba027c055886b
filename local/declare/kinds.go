package declare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gateway/local/document"
)

// kind is a kind of resources: how a document names it and how the API serves it.
type kind struct {
	section string // of the document
	noun    string
	path    string
	levels  level
	bySlug  bool // the document gives the slug; otherwise the name identifies a resource
	detail  bool // lists leave fields out
	secrets bool // reads may contain masks
	fields  []field
	// builtIn reports whether a live resource comes with the gateway: it can be referred to
	// but is neither exported nor deleted. Nil means none does.
	builtIn func(m map[string]any) bool
	extras  []extra
	// referredBy are sections with references to resources of this kind that reads return as
	// ids.
	referredBy []string
}

// level specifies where resources of a kind are.
type level uint8

const (
	inOrganization level = 1 << iota
	inWorkspace
)

// field is a field of the body that creates or changes a resource.
type field struct {
	name    string // in reads and in the document
	write   string // in bodies, if that differs
	fixed   bool   // cannot be changed
	exact   bool   // a change replaces the entire value
	partial bool   // a change leaves the members that it does not name
	strip   []string
}

func plain(names ...string) []field {
	out := make([]field, len(names))
	for i, n := range names {
		out[i] = field{name: n}
	}
	return out
}

func fixed(name string) field { return field{name: name, fixed: true} }

// Members of limits that only reads have.
var limitState = []string{"current_usage", "reserved_usage", "available", "status", "next_usage_reset_at", "last_reset_at", "is_threshold_alerts_sent", "is_exhausted_alerts_sent"}

func limits() []field {
	return []field{{name: "usage_limits", strip: limitState}, {name: "rate_limits"}}
}

// kinds are in the order in which resources are created; they are deleted in the reverse
// order.
var kinds = []*kind{
	{section: "secret_references", noun: "secret reference", path: "/secret-references", levels: inOrganization, bySlug: true, detail: true, secrets: true,
		fields: join(plain("name"), []field{fixed("slug"), fixed("manager_type"), {name: "auth_config", partial: true}}, plain("description", "secret_path", "secret_key", "allow_all_workspaces", "allowed_workspaces", "tags"))},
	{section: "integrations", noun: "integration", path: "/integrations", levels: inOrganization | inWorkspace, bySlug: true, detail: true, secrets: true,
		fields: join(plain("name"), []field{fixed("slug"), fixed("ai_provider_id")}, plain("description", "key", "credentials"), []field{{name: "configurations", partial: true}}, plain("secret_mappings", "pricing_adjustments", "tags")),
		extras: []extra{integrationModels, workspaceAccess}},
	{section: "providers", noun: "provider", path: "/providers", levels: inWorkspace, bySlug: true,
		fields: join(plain("name"), []field{fixed("slug"), fixed("integration_id")}, plain("note", "expires_at", "tags"), limits())},
	{section: "guardrails", noun: "guardrail", path: "/guardrails", levels: inOrganization | inWorkspace, detail: true, secrets: true, fields: plain("name", "checks", "actions")},
	{section: "mcp_integrations", noun: "MCP integration", path: "/mcp-integrations", levels: inOrganization | inWorkspace, bySlug: true, detail: true, secrets: true,
		fields: join(plain("name"), []field{fixed("slug")}, plain("url", "auth_type", "transport", "description"), []field{{name: "configurations", partial: true}}, plain("secret_mappings")),
		extras: []extra{workspaceAccess}, referredBy: []string{"mcp_servers"}},
	{section: "mcp_servers", noun: "MCP server", path: "/mcp-servers", levels: inWorkspace, bySlug: true, detail: true,
		fields: join(plain("name"), []field{fixed("slug"), fixed("mcp_integration_id")}, plain("description", "members", "search", "search_threshold"))},
	{section: "agent_integrations", noun: "agent integration", path: "/agent-integrations", levels: inOrganization | inWorkspace, bySlug: true, detail: true, secrets: true,
		fields: join(plain("name"), []field{fixed("slug")}, plain("url", "auth_type", "description"), []field{{name: "configurations", partial: true}}, plain("secret_mappings")),
		extras: []extra{workspaceAccess}, referredBy: []string{"agent_servers"}},
	{section: "agent_servers", noun: "agent server", path: "/agent-servers", levels: inWorkspace, bySlug: true, detail: true,
		fields: join(plain("name"), []field{fixed("slug"), fixed("agent_integration_id")}, plain("description"))},
	{section: "collections", noun: "collection", path: "/collections", levels: inWorkspace, builtIn: flagged("is_default"), referredBy: []string{"prompts"},
		fields: []field{{name: "name"}, fixed("parent_collection_id")}},
	{section: "labels", noun: "label", path: "/labels", levels: inWorkspace, builtIn: flagged("is_universal"), fields: plain("name", "description", "color_code")},
	{section: "partials", noun: "partial", path: "/prompts/partials", levels: inWorkspace, detail: true, fields: plain("name", "string")},
	{section: "prompts", noun: "prompt", path: "/prompts", levels: inWorkspace, detail: true, fields: join(plain("name", "collection_id", "string"), []field{{name: "parameters", exact: true}},
		plain("virtual_key", "model", "functions", "tools", "tool_choice", "template_metadata", "is_raw_template", "require_tests", "tests"))},
	{section: "configs", noun: "config", path: "/configs", levels: inWorkspace, detail: true, secrets: true,
		fields: []field{{name: "name"}, {name: "config", exact: true}, {name: "is_default", write: "isDefault"}}},
	{section: "telemetry_destinations", noun: "telemetry destination", path: "/telemetry-destinations", levels: inOrganization | inWorkspace, detail: true, secrets: true,
		fields: plain("name", "endpoint", "headers", "signals", "resource_attributes", "include_content", "metrics_temporality", "semconv_stability_opt_in")},
	{section: "usage_limit_policies", noun: "usage limit policy", path: "/policies/usage-limits", levels: inWorkspace,
		fields: join(plain("name", "description", "conditions"), []field{fixed("group_by"), fixed("type")}, plain("credit_limit", "alert_threshold", "periodic_reset", "periodic_reset_days", "on_exceeded", "fallback_model"))},
	{section: "rate_limit_policies", noun: "rate limit policy", path: "/policies/rate-limits", levels: inWorkspace,
		fields: join(plain("name", "description", "conditions"), []field{fixed("group_by"), fixed("type"), fixed("target")}, plain("unit", "value"))},
}

func join(lists ...[]field) (all []field) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func flagged(name string) func(map[string]any) bool {
	return func(m map[string]any) bool { return flagNumber(m[name]) == "1" }
}

func kindOf(section string) *kind {
	for _, k := range kinds {
		if k.section == section {
			return k
		}
	}
	return nil
}

// field returns a field of the document's form.
func (k *kind) field(name string) *field {
	for i := range k.fields {
		if k.fields[i].name == name {
			return &k.fields[i]
		}
	}
	return nil
}

func (k *kind) extra(name string) *extra {
	for i := range k.extras {
		for _, n := range k.extras[i].names {
			if n == name {
				return &k.extras[i]
			}
		}
	}
	return nil
}

// names are the fields that a document may give, for messages.
func (k *kind) names() string {
	names := []string{"slug"}
	for _, f := range k.fields {
		if f.name != "slug" {
			names = append(names, f.name)
		}
	}
	for _, e := range k.extras {
		names = append(names, e.names...)
	}
	return strings.Join(names, ", ")
}

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

// value returns a live value with masks as named secrets. Null members are omitted.
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
