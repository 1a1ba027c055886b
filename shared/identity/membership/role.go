package membership

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	if u.IsOrganisationAdmin() {
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
func OrganisationRights(role string) authority.Permissions {
	if role == Member {
		return authority.Permissions{Rank: identity.RankMember}
	}
	return PermissionsOf(OrganisationRank(role))
}

// RankIn returns a user's rank in a workspace within a transaction.
func RankIn(tx *resource.Tx, sc store.Scope, user string) (identity.Rank, error) {
	_, u, ok, err := ByID(tx, sc, user)
	switch {
	case err != nil || !ok:
		return "", err
	case u.IsOrganisationAdmin():
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

// AllPermissions contains the scopes of organization admins: all that keys may hold.
var AllPermissions = identity.NewScopeSet(append(identity.ScopesFor(identity.OrganisationService), ScopesOf(Admin)...)...)

// PermissionsOf returns the permissions of a rank in a workspace, or in the entire organization for its
// admins.
func PermissionsOf(rank identity.Rank) authority.Permissions {
	scopes := ScopesOf(rank.Role())
	if rank.IsHigherThan(identity.RankWorkspaceAdmin) {
		scopes = AllPermissions.Sorted()
	}
	return authority.Permissions{Rank: rank, Scopes: scopes}
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

// NormalizeEmail returns the normalized form of an address.
func NormalizeEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// Limited is what a service key, or another principal that is no user, may do at present.
type Limited struct {
	Rank    identity.Rank
	Scopes  identity.ScopeSet
	Sponsor string // empty if no user answers for it
	Reduced bool   // it was granted more
}

// sponsor is who answers for a stored principal; created if that is known from its record alone,
// where it may be a key.
type sponsor struct {
	id      string
	created bool
}

// LoadLimited limits what a principal was granted, by the record of its kind, to the present
// rights of its sponsor in the scope. A sponsor who left, or has no role there, still answers for
// what every member may do, so that applications go on; everything above that waits for a user
// who takes the principal over.
func LoadLimited(ctx context.Context, v *resource.View, sc store.Scope, kind resource.Kind, id string, rank identity.Rank, scopes identity.ScopeSet) (Limited, error) {
	got := Limited{Rank: rank, Scopes: scopes}
	by, ok, err := resource.Load(ctx, v, sc, kind, id, func(rec resource.Record) (sponsor, error) {
		var body struct {
			Sponsor string `json:"sponsor"`
		}
		if err := json.Unmarshal(rec.Body, &body); err != nil {
			return sponsor{}, fmt.Errorf("membership: decode %s: %w", kind, err)
		}
		return sponsor{cmp.Or(body.Sponsor, rec.CreatedBy), body.Sponsor == ""}, nil
	})
	if err != nil || !ok || by.id == "" || by.id == identity.NoSponsor {
		return got, err
	}
	present, there, err := LoadRank(ctx, v, sc, by.id)
	if err == nil && !there && by.created {
		_, there, err = resource.Load(ctx, v, sc.Organisation(), KindUser, by.id, DecodeUser)
		if err == nil && !there {
			return got, nil // a key created it, or a user who left before sponsors were stored
		}
	}
	if err != nil {
		return got, err
	}
	if present = cmp.Or(present, identity.RankMember); !rank.IsHigherThan(present) {
		got.Sponsor = by.id
		return got, nil
	}
	within := identity.NewScopeSet(PermissionsOf(present).Scopes...)
	got = Limited{Rank: present, Scopes: identity.ScopeSet{}, Sponsor: by.id, Reduced: true}
	for s := range scopes {
		if within.Has(s) {
			got.Scopes[s] = struct{}{}
		}
	}
	return got, nil
}
