package declare

import (
	"context"
	"fmt"
	"net/url"
)

// extra is a part of a resource that the API serves at a separate address.
type extra struct {
	names []string // fields of the document
	at    level    // where resources have it
	read  func(ctx context.Context, api API, it *item) error
	// equal reports whether the live value of one field is as wanted.
	equal func(name string, want any, live map[string]any) bool
	write func(ctx context.Context, api API, it *item, fields map[string]any) error
}

// integrationModels are the models of an integration: its own ones, and those of the
// catalog that are priced, or not as allow_all_models says.
var integrationModels = extra{
	names: []string{"allow_all_models", "models"}, at: inOrganization | inWorkspace,
	read: func(ctx context.Context, api API, it *item) error {
		out, err := call(ctx, api, "GET", it.path("/models"), nil)
		if err != nil {
			return err
		}
		all, _ := out["allow_all_models"].(bool)
		own := []any{}
		rows, _ := out["models"].([]any)
		for _, row := range rows {
			m, ok := row.(map[string]any)
			if !ok {
				continue
			}
			delete(m, "name")
			enabled, _ := m["enabled"].(bool)
			if enabled != all || m["is_custom"] == true || m["is_finetune"] == true || !empty(m["base_model_slug"]) || !empty(m["configurations"]) || !empty(m["pricing_config"]) {
				own = append(own, masked(m))
			}
		}
		it.fields["allow_all_models"], it.fields["models"] = all, own
		return nil
	},
	equal: func(name string, want any, live map[string]any) bool {
		if name != "models" {
			return equal(want, live[name], false)
		}
		return byKey("slug", want, live[name], map[string]any{"enabled": live["allow_all_models"]})
	},
	write: func(ctx context.Context, api API, it *item, fields map[string]any) error {
		if empty(fields["models"]) {
			delete(fields, "models")
		}
		_, err := call(ctx, api, "PUT", it.path("/models"), it.body(fields))
		return err
	},
}

// workspaceAccess is to which workspaces an integration of the organization is open.
var workspaceAccess = extra{
	names: []string{"global_workspace_access", "workspaces"}, at: inOrganization,
	read: func(ctx context.Context, api API, it *item) error {
		out, err := call(ctx, api, "GET", it.path("/workspaces"), nil)
		if err != nil {
			return err
		}
		all, _ := out["workspaces"].([]any)
		rows := []any{}
		for _, row := range all {
			if m, ok := row.(map[string]any); ok {
				m = pick(m, "id", "enabled", "usage_limits", "rate_limits")
				stripAll(m["usage_limits"], limitState)
				rows = append(rows, m)
			}
		}
		it.fields["workspaces"], it.fields["global_workspace_access"] = rows, out["global_workspace_access"]
		stripAll(it.fields["global_workspace_access"], limitState)
		return nil
	},
	equal: func(name string, want any, live map[string]any) bool {
		if name != "workspaces" {
			return equal(want, live[name], false)
		}
		return byKey("id", want, live[name], map[string]any{"enabled": false})
	},
	write: func(ctx context.Context, api API, it *item, fields map[string]any) error {
		if empty(fields["workspaces"]) {
			fields["workspaces"], fields["override_existing_workspace_access"] = []any{}, true
		}
		if it.kind.section == "integrations" {
			fields["create_default_provider"] = false // providers are declared
		}
		_, err := call(ctx, api, "PUT", it.path("/workspaces"), it.body(fields))
		return err
	},
}

// stripAll removes members from every mapping in v.
func stripAll(v any, names []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, n := range names {
			delete(v, n)
		}
		for _, e := range v {
			stripAll(e, names)
		}
	case []any:
		for _, e := range v {
			stripAll(e, names)
		}
	}
}

// path is the address of a resource or of a part of it, with its workspace.
func (it *item) path(more string) string {
	p := it.kind.path + "/" + url.PathEscape(it.id) + more
	if it.workspace != "" {
		p += "?workspace_id=" + url.QueryEscape(it.workspace)
	}
	return p
}

// body adds the workspace to a body.
func (it *item) body(fields map[string]any) map[string]any {
	if it.workspace != "" {
		fields["workspace_id"] = it.workspace
	}
	return fields
}

// publish makes the version of a prompt or partial that a change created the one in force.
func publish(ctx context.Context, api API, it *item) error {
	if it.kind.section != "prompts" && it.kind.section != "partials" {
		return nil
	}
	rows, err := list(ctx, api, it.kind.path+"/"+url.PathEscape(it.id)+"/versions", it.query())
	if err != nil {
		return err
	}
	for _, row := range rows { // newest first
		for _, name := range []string{"prompt_version", "version"} {
			if v, ok := row[name]; ok && v != nil {
				_, err := call(ctx, api, "PUT", it.kind.path+"/"+url.PathEscape(it.id)+"/makeDefault", it.body(map[string]any{"version": v}))
				return err
			}
		}
	}
	return fmt.Errorf("%s %s: no version can be published", it.kind.noun, it.id)
}

func (it *item) query() url.Values {
	if it.workspace == "" {
		return nil
	}
	return url.Values{"workspace_id": {it.workspace}}
}
