package oauthclient

import (
	"slices"
	"strings"
)

// Bounds of what servers want in challenges.
const (
	maxScopes     = 50
	maxScopeBytes = 1024 // of all together
)

// Insufficient are the scopes that a server wants in addition of a user whose token lacks
// them (RFC 6750, step-up); nil where its challenges name none.
func Insufficient(challenges []string) []string {
	for _, c := range challenges {
		if param(c, "error") == "insufficient_scope" {
			return scopesOf(param(c, "scope"))
		}
	}
	return nil
}

// scopesOf reads a list of scopes; nil for one that is none, or too long.
func scopesOf(list string) []string {
	odd := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	scopes := strings.Fields(list)
	if len(list) > maxScopeBytes || len(scopes) > maxScopes || strings.ContainsFunc(list, odd) {
		return nil
	}
	return scopes
}

// Union are the scopes of both lists, each once, in their order. What would make it too
// long to be sent is left out.
func Union(one, other []string) []string {
	out := slices.Clone(one)
	size := len(strings.Join(one, " "))
	for _, s := range other {
		if size += len(s) + 1; !slices.Contains(out, s) && size <= 2*maxScopeBytes {
			out = append(out, s)
		}
	}
	return out
}
