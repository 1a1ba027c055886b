package app

import (
	"context"

	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage"
)

// KeptDays tells for how many days the workspaces of an organisation keep their logs,
// as they are set now; of a scope with a workspace, for how many that one does.
func (c *Core) KeptDays(ctx context.Context, sc store.Scope) (usage.KeptDays, error) {
	of, err := tenant.FetchSettings(ctx, c.Resources, sc)
	if err != nil {
		return usage.KeptDays{}, err
	}
	kept := usage.KeptDays{Standard: int(of.Settings.LogDays)}
	if sc.Workspace != "" || !of.Settings.Open.LoggingMode {
		return kept, nil
	}
	view, err := c.Loader.Fresh(ctx, sc.Org)
	if err != nil {
		return kept, err
	}
	for _, list := range []func(context.Context, store.Scope, resource.Kind) ([]resource.Row, error){c.Resources.List, c.Resources.ListArchived} {
		workspaces, err := list(ctx, sc.Organisation(), tenant.KindWorkspace)
		if err != nil {
			return kept, err
		}
		for i := range workspaces {
			own, err := tenant.LoadSettings(ctx, view, store.Scope{Org: sc.Org, Workspace: workspaces[i].ID})
			if err != nil {
				return kept, err
			}
			if days := int(own.Settings.LogDays); days != kept.Standard {
				if kept.Of == nil {
					kept.Of = make(map[string]int)
				}
				kept.Of[workspaces[i].ID] = days
			}
		}
	}
	return kept, nil
}
