package app

import (
	"context"

	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage"
)

// RetentionDays returns the log retention of the workspaces of an organization by their present
// settings. A scope with a workspace covers only that workspace.
func (c *Core) RetentionDays(ctx context.Context, sc store.Scope) (usage.WorkspaceRetention, error) {
	of, err := tenant.FetchSettings(ctx, c.Resources, sc)
	if err != nil {
		return usage.WorkspaceRetention{}, err
	}
	kept := usage.WorkspaceRetention{Standard: int(of.Settings.LogDays)}
	if sc.Workspace != "" || !of.Settings.Open.LoggingMode {
		return kept, nil
	}
	view, err := c.Loader.Fresh(ctx, sc.Org)
	if err != nil {
		return kept, err
	}
	workspaces, err := c.Workspaces(ctx, sc.Org)
	if err != nil {
		return kept, err
	}
	for _, ws := range workspaces {
		own, err := tenant.LoadSettings(ctx, view, store.Scope{Org: sc.Org, Workspace: ws})
		if err != nil {
			return kept, err
		}
		if days := int(own.Settings.LogDays); days != kept.Standard {
			if kept.Of == nil {
				kept.Of = make(map[string]int)
			}
			kept.Of[ws] = days
		}
	}
	return kept, nil
}

// Workspaces gives the ids of an organisation's workspaces, archived ones too.
func (c *Core) Workspaces(ctx context.Context, org string) (ids []string, err error) {
	for _, list := range []func(context.Context, store.Scope, resource.Kind) ([]resource.Row, error){c.Resources.List, c.Resources.ListArchived} {
		rows, err := list(ctx, store.Scope{Org: org}, tenant.KindWorkspace)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			ids = append(ids, rows[i].ID)
		}
	}
	return ids, nil
}
