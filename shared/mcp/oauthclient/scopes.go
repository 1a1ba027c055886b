package oauthclient

import (
	"slices"
	"strings"
)

// Limits of scopes in challenges.
const (
	maxScopes     = 50
	maxScopeBytes = 1024 // total size
)

// Insufficient returns the scopes that a server requires in addition (RFC 6750, step-up), or
// nil.
func Insufficient(challenges []string) []string {
	for _, c := range challenges {
		if param(c, "error") == "insufficient_scope" {
			return scopesOf(param(c, "scope"))
		}
	}
	return nil
}

// scopesOf parses a list of scopes. It returns nil if the list is invalid or too long.
func scopesOf(list string) []string {
	odd := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	scopes := strings.Fields(list)
	if len(list) > maxScopeBytes || len(scopes) > maxScopes || strings.ContainsFunc(list, odd) {
		return nil
	}
	return scopes
}

// Union returns the distinct scopes of both lists in order. It omits scopes that would make the
// list too long.
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
