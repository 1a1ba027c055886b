package assembly_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Decisions about a route in testdata/granting.txt.
const (
	whole = "whole" // gives a fixed set of permissions, all of which the caller must hold
	parts = "parts" // gives what the body names, all of which the caller must hold
	self  = "self"  // grants a user what it already has
	none  = "none"  // gives no permissions
)

// grantingRoutes reads the routes with a decision from testdata/granting.txt.
func grantingRoutes(t *testing.T, decision string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile("testdata/granting.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for l := range strings.Lines(string(raw)) {
		f := strings.Fields(l)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) < 3 || !slices.Contains([]string{whole, parts, self, none}, f[0]) || f[0] != none && len(f) < 4 {
			t.Fatalf("testdata/granting.txt: %q must be a decision, a method, a path and, unless the decision is none, a reason", l)
		}
		if decision == "" || f[0] == decision {
			if at := f[1] + " " + f[2]; out[at] {
				t.Errorf("testdata/granting.txt: %s is decided twice", at)
			} else {
				out[at] = true
			}
		}
	}
	return out
}

// TestEveryRouteThatChangesSomethingIsDecided compares the routes of the administration with
// testdata/granting.txt, so that a new one requires a decision whether it grants permissions.
// The access matrix covers routes that grant entirely, and TestNoActorGainsPermissions those
// that grant in part.
func TestEveryRouteThatChangesSomethingIsDecided(t *testing.T) {
	t.Parallel()
	in, decided := install(t, nil), grantingRoutes(t, "")
	seen := map[string]bool{}
	for _, family := range in.families {
		for _, r := range family.Routes {
			if r.Method == "GET" || r.Method == "HEAD" {
				continue
			}
			at := r.Method + " " + r.Path
			if seen[at] = true; !decided[at] {
				t.Errorf("%s: decide in testdata/granting.txt whether it gives permissions", at)
			}
		}
	}
	for at := range decided {
		if !seen[at] {
			t.Errorf("testdata/granting.txt: there is no route %s", at)
		}
	}
}

// writtenByReaders are the routes that keys with scopes for reading may call although they change
// something, each with the reason.
var writtenByReaders = map[string]string{
	"POST /views": "a saved view is a filter of what the key reads", "PUT /views/{id}": "as above", "DELETE /views/{id}": "as above",
	"POST /simulations": "replays what the key reads, and saves nothing", "POST /reconciliations": "compares what the key reads, and saves nothing",
	"POST /oauth/introspect": "describes a token", "POST /auth/sso-configurations/{configurationId}/verify": "reads the provider's metadata",
	"POST /secret-references/{secretReferenceId}/verify": "reads the secret without showing it",
}

// TestScopesForReadingChangeNothing: a route that changes something is admitted by no scope for
// reading, or is listed with the reason.
func TestScopesForReadingChangeNothing(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, family := range install(t, nil).families {
		for _, r := range family.Routes {
			if r.Method == "GET" || r.Method == "HEAD" || r.Public {
				continue
			}
			at := r.Method + " " + r.Path
			for _, scope := range r.Scopes {
				_, action, _ := strings.Cut(scope, ".")
				if action != "read" && action != "list" && action != "view" {
					continue
				}
				if used[at] = true; writtenByReaders[at] == "" {
					t.Errorf("%s is admitted by %s: name a scope for changes, or give the reason here", at, scope)
				}
			}
		}
	}
	for at := range writtenByReaders {
		if !used[at] {
			t.Errorf("%s is not admitted by a scope for reading", at)
		}
	}
}
