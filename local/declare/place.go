package declare

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Place is the workspace that an import writes to.
type Place struct {
	Slug, Name string // Slug is empty if the workspace does not exist yet
	Own        bool   // it is that of a workspace key
}

// FindWorkspace returns the workspace with a slug or name. Without one, it is that of a
// workspace key, else the default one of the organization.
func FindWorkspace(ctx context.Context, api API, want string) (Place, error) {
	rows, err := list(ctx, api, "/admin/workspaces", url.Values{"name_format": {"plain"}})
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound) && want == "" {
		return Place{Own: true}, nil
	}
	if err != nil {
		return Place{}, err
	}
	for _, row := range rows {
		slug, _ := row["slug"].(string)
		name, _ := row["name"].(string)
		if row["status"] != "archived" && (want == "" && flagNumber(row["is_default"]) == "1" || want != "" && (want == slug || want == name)) {
			return Place{Slug: slug, Name: name}, nil
		}
	}
	return Place{Name: want, Own: want == ""}, nil
}

// DefaultConfig returns the name of the default config of a workspace; "" if there is none,
// or no such workspace. An empty slug is the workspace of a workspace key.
func DefaultConfig(ctx context.Context, api API, slug string) (string, error) {
	it := item{kind: kindOf("configs"), workspace: slug}
	rows, err := list(ctx, api, it.kind.path, it.query())
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound) && slug != "" {
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
