package declare

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// DefaultWorkspace returns the workspace that an import writes to if none is named: that of
// a workspace key (own), else the default one of the organization.
func DefaultWorkspace(ctx context.Context, api API) (slug string, own bool, err error) {
	rows, err := list(ctx, api, "/admin/workspaces", url.Values{"name_format": {"plain"}})
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	for _, row := range rows {
		if flagNumber(row["is_default"]) == "1" {
			slug, _ = row["slug"].(string)
			return slug, false, nil
		}
	}
	return "", true, nil
}

// DefaultConfig returns the name of the default config of a workspace; "" if there is none,
// or no such workspace. An empty slug is the workspace of a workspace key.
func DefaultConfig(ctx context.Context, api API, slug string) (string, error) {
	it := item{kind: kindOf("configs"), workspace: slug}
	rows, err := list(ctx, api, it.kind.path, it.query())
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden && slug != "" {
		return "", nil // no such workspace
	}
	for _, row := range rows {
		if flagNumber(row["is_default"]) == "1" {
			name, _ := row["name"].(string)
			return name, nil
		}
	}
	return "", err
}
