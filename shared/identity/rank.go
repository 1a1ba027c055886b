package identity

import "strings"

// Rank orders principals by their role. Organization admins rank above admins of a
// workspace, although both have the role admin inside the workspace.
type Rank string

// The ranks, from the lowest. The empty rank is below all of them.
const (
	RankMember            Rank = "member"
	RankManager           Rank = "manager"
	RankWorkspaceAdmin    Rank = "admin"
	RankOrganisationAdmin Rank = "organisation-admin"
	RankOwner             Rank = "owner"
)

var rankLevel = map[Rank]int{RankMember: 1, RankManager: 2, RankWorkspaceAdmin: 3, RankOrganisationAdmin: 4, RankOwner: 5}

// Above reports whether r is higher than other.
func (r Rank) Above(other Rank) bool { return rankLevel[r] > rankLevel[other] }

// Min returns the lower of two ranks.
func (r Rank) Min(other Rank) Rank {
	if r.Above(other) {
		return other
	}
	return r
}

// Role returns the role of the rank: organization admins have the role admin.
func (r Rank) Role() string { return strings.TrimPrefix(string(r), "organisation-") }

// Granted returns the highest rank of a key, and whether only its own user can know its secret.
// createdBy is the author of the key's record.
//
// Keys store the rank of their creator, and their user collects the secret. Keys from before
// ranks were stored get a safe one: a bootstrap key, which has no author, the rank of an owner,
// or of an admin in its workspace; a key that a user created for itself, or got on joining a
// workspace, the user's rank; an organization key that of an organization admin; and every
// other key that of the lowest role with its scopes, but not less than a manager's.
func (k *Key) Granted(createdBy string) (rank Rank, personal bool) {
	own := k.UserID != "" && (createdBy == k.UserID || k.CreationMode == "auto")
	switch {
	case k.Rank != "":
		return k.Rank, true
	case own:
		return RankOwner, true
	case k.Type == OrganisationService && createdBy == "":
		return RankOwner, false
	case k.Type == OrganisationService:
		return RankOrganisationAdmin, false
	case createdBy == "", NewScopeSet(k.Scopes...).Has("workspaces.update"): // the scope that managers lack
		return RankWorkspaceAdmin, false
	}
	return RankManager, false
}
