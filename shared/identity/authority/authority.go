// Package authority implements the rule for granting permissions: role rank and scopes never
// exceed those of the granting principal.
//
// It is called wherever a principal, a role, a scope or a mapping to one is created, changed or
// shown. It must not read the store: callers pass values.
package authority

import (
	"fmt"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
)

// Grantor is the principal that creates or changes another.
type Grantor struct {
	Rank   identity.Rank
	Type   identity.KeyType // of its credential; a session has none of the known types
	Scopes interface{ Has(scope string) bool }
}

// Permissions are the permissions that a call grants, or those of a secret that it shows.
type Permissions struct {
	Rank   identity.Rank
	Scopes []string
}

// holds reports whether the grantor may grant a scope. A scope that no credential of the
// grantor's type can hold, such as completions.write for organization keys, is limited by rank
// only.
func (g Grantor) holds(scope string) bool {
	if g.Scopes != nil && (g.Scopes.Has(scope) || g.Scopes.Has(identity.IncludedIn(scope))) {
		return true
	}
	return slices.Contains(identity.KeyTypes, g.Type) && !g.Type.Grantable(scope)
}

// maxNamed is the number of missing scopes in an error.
const maxNamed = 5

// Grant returns a *fault.Fault (403) at field unless the rights are within those of the
// grantor.
func (g Grantor) Grant(field string, r Permissions) error {
	if r.Rank.IsHigherThan(g.Rank) {
		return fault.New(fault.NotAllowed, field, "You do not have enough permissions to execute this request: it concerns the role "+r.Rank.Role()+", which is above the caller's own. Use a credential with that role")
	}
	var missing []string
	for _, s := range r.Scopes {
		if s = identity.NormalScope(s); !g.holds(s) {
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if n := len(missing) - maxNamed; n > 0 {
		missing, more = missing[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fault.New(fault.NotAllowed, field, "exceeds the permissions of the caller, which lacks "+strings.Join(missing, ", ")+more+". Use a key with these scopes, or sign in as a user with a role that includes them")
}

// GrantScopes is Grant for a list of scopes at field, with a fault for each entry. Scopes in
// had were granted before and are allowed.
func (g Grantor) GrantScopes(field string, scopes, had []string) error {
	before := identity.NewScopeSet(had...)
	var bad []fault.Detail
	for i, s := range scopes {
		if s = identity.NormalScope(s); !before.Has(s) && !g.holds(s) {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("%s[%d]", field, i), Message: "exceeds the permissions of the caller, which needs " + s + " to grant it"})
		}
	}
	if f := fault.Invalids(bad); f != nil {
		f.Code = fault.NotAllowed
		return f
	}
	return nil
}
