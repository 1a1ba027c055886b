package people

import (
	"context"
	"slices"
	"strings"

	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
)

// LoadRole gives a user's role in a workspace, for requests; ok is false if it has none
// there, or is no longer a user.
func LoadRole(ctx context.Context, v *resource.View, sc store.Scope, user string) (role string, ok bool, err error) {
	u, ok, err := resource.Load(ctx, v, sc.Organisation(), KindUser, user, DecodeUser)
	if err != nil || !ok {
		return "", false, err
	}
	if role = u.RoleIn(""); role == "" && u.MemberOf(sc.Workspace) {
		m, there, err := resource.Load(ctx, v, sc, KindMember, user, DecodeMembership)
		if err != nil {
			return "", false, err
		}
		if there {
			role = u.RoleIn(m.Role)
		}
	}
	return role, role != "", nil
}

// ScopesOf returns the scopes that a role of a workspace allows, sorted. Admins have all
// that workspace keys may hold, managers all but those that change the workspace itself, and
// members those that read or call models. No role of a workspace uses secret references,
// which belong to the organization: its admins grant that to a key.
func ScopesOf(role string) []string {
	all := identity.NewScopeSet(append(identity.ScopesFor(identity.WorkspaceService), identity.ScopesFor(identity.WorkspaceUser)...)...).Sorted()
	all = slices.DeleteFunc(all, func(s string) bool { return s == hostpin.ScopeUse })
	switch role {
	case Owner, Admin:
		return all
	case Manager:
		return slices.DeleteFunc(all, func(s string) bool { return s == "workspaces.update" })
	}
	return slices.DeleteFunc(all, func(s string) bool {
		family, action, _ := strings.Cut(s, ".")
		reads := action == "list" || action == "read" || action == "view" || action == "invoke" || action == "render"
		return !reads && s != "completions.write" && family != "feedbacks" || family == "workspace_service_api_keys"
	})
}

// Spelled is an address in the one spelling that is stored, for comparing it.
func Spelled(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
