package membership

import (
	"context"
	"slices"
	"strings"

	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
)

// LoadRole returns a user's role in a workspace for requests. ok is false if it has none there
// or no longer exists.
func LoadRole(ctx context.Context, v *resource.View, sc store.Scope, user string) (role string, ok bool, err error) {
	rank, ok, err := LoadRank(ctx, v, sc, user)
	return rank.Role(), ok, err
}

// LoadRank is LoadRole for the user's rank in a workspace.
func LoadRank(ctx context.Context, v *resource.View, sc store.Scope, user string) (rank identity.Rank, ok bool, err error) {
	u, ok, err := resource.Load(ctx, v, sc.Organisation(), KindUser, user, DecodeUser)
	if err != nil || !ok {
		return "", false, err
	}
	if u.RunsOrganisation() {
		return OrganisationRank(u.Role), true, nil
	}
	if u.MemberOf(sc.Workspace) {
		m, there, err := resource.Load(ctx, v, sc, KindMember, user, DecodeMembership)
		if err != nil {
			return "", false, err
		}
		if there {
			rank = identity.Rank(u.RoleIn(m.Role))
		}
	}
	return rank, rank != "", nil
}

// OrganisationRank returns the rank of a role of the organization.
func OrganisationRank(role string) identity.Rank {
	if role == Admin {
		return identity.RankOrganisationAdmin
	}
	return identity.Rank(role)
}

// OrganisationRights returns the permissions of a role of the organization. The role member has
// permissions only in workspaces, by membership.
func OrganisationRights(role string) authority.Rights {
	if role == Member {
		return authority.Rights{Rank: identity.RankMember}
	}
	return Rights(OrganisationRank(role))
}

// RankIn returns a user's rank in a workspace within a transaction.
func RankIn(tx *resource.Tx, sc store.Scope, user string) (identity.Rank, error) {
	_, u, ok, err := ByID(tx, sc, user)
	switch {
	case err != nil || !ok:
		return "", err
	case u.RunsOrganisation():
		return OrganisationRank(u.Role), nil
	case !u.MemberOf(sc.Workspace):
		return "", nil
	}
	rec, ok, err := tx.Get(sc, KindMember, user)
	if err != nil || !ok {
		return "", err
	}
	m, err := DecodeMembership(rec)
	if err != nil {
		return "", err
	}
	return identity.Rank(u.RoleIn(m.Role)), nil
}

// Everything contains the scopes of organization admins: all that keys may hold.
var Everything = identity.NewScopeSet(append(identity.ScopesFor(identity.OrganisationService), ScopesOf(Admin)...)...)

// Rights returns the permissions of a rank in a workspace, or in the entire organization for its
// admins.
func Rights(rank identity.Rank) authority.Rights {
	scopes := ScopesOf(rank.Role())
	if rank.Above(identity.RankWorkspaceAdmin) {
		scopes = Everything.Sorted()
	}
	return authority.Rights{Rank: rank, Scopes: scopes}
}

// ScopesOf returns the sorted scopes of a role of a workspace. Admins have all that workspace
// keys may hold, managers all but those that change the workspace itself, and members those
// that read or call models, or rotate their own keys. No role of a workspace uses secret
// references, which belong to the organization: its admins grant that to a key.
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
		own := s == identity.WorkspaceUser.ScopeFamily()+".rotate" // of their own keys, which they also collect
		return !reads && !own && s != "completions.write" && family != "feedbacks" || family == "workspace_service_api_keys"
	})
}

// Spelled returns the normalized form of an address.
func Spelled(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
