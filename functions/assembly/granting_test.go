package assembly_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"path/filepath"
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

// callersUser are the uses of the caller's user, besides whether there is one, with the reason
// why a key that others may know may do so as well. Caller.Is and Caller.Personal exclude it.
var callersUser = map[string]string{
	"functions/apikeys begin":                "the new key acts for its user, who alone collects it",
	"functions/auth/browsersession describe": "shows the caller who it is",
	"functions/auth self":                    "shows the caller who it is",
	"functions/logs reporter":                "the record names whose key reported it",
	"functions/mcpservers actingUser":        "lists and ends sign-ins of the user and opens none",
	"functions/mcpservers checkUser":         "whether a user may reach a server, without what it holds there",
	"functions/mcpservers deleteConnection":  "ends a sign-in of the user and opens none",
	"functions/mcpservers deleteTokens":      "after Caller.Is",
	"functions/mcpservers setTokens":         "before Caller.Is",
	"functions/mcpservers stateOfTokens":     "whether the user has connected, not with what",
	"shared/a2a/authz Load":                  "restricts the access",
	"shared/admin Actor":                     "audit",
	"shared/admin entry":                     "audit",
	"shared/admin/acceptance Accept":         "sets it",
	"shared/mcp/authz load":                  "restricts the access",
	"shared/mcp/gate account":                "after actingUser",
	"shared/mcp/gate actingUser":             "after identity.Granted",
	"shared/relay await":                     "the record names whose key it was",
	"shared/relay createRun":                 "the record names whose key it was",
	"shared/relay describeRequest":           "the record names whose key it was",
	"shared/relay/body mergeMetadata":        "metadata names whose key it was",
}

// TestUsesOfTheCallersUserAreDecided walks the source: a new use of the caller's user must be
// decided here, or use Caller.Is or Caller.Personal, since others than the user may know a key
// of a user.
func TestUsesOfTheCallersUserAreDecided(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, root := range []string{"functions", "shared"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && usesCallersUser(fn) {
					found[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")+" "+fn.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for at := range found {
		if callersUser[at] == "" {
			t.Errorf("%s uses the caller's user: use Caller.Is or Caller.Personal, or give the reason", at)
		}
	}
	for at := range callersUser {
		if !found[at] {
			t.Errorf("%s is decided and does not use the caller's user", at)
		}
	}
}

// usesCallersUser reports whether a function uses the UserID of a caller, or of the principal of
// a request, for more than whether there is one.
func usesCallersUser(fn *ast.FuncDecl) (uses bool) {
	whether := map[ast.Node]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			for _, sides := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
				if l, ok := sides[1].(*ast.BasicLit); ok && l.Value == `""` {
					whether[sides[0]] = true
				}
			}
		case *ast.SelectorExpr:
			if n.Sel.Name != "UserID" || whether[n] {
				return true
			}
			switch of := n.X.(type) {
			case *ast.SelectorExpr:
				uses = uses || of.Sel.Name == "Caller" || of.Sel.Name == "Principal"
			case *ast.Ident:
				uses = uses || of.Name == "caller" || of.Name == "who"
			}
		}
		return true
	})
	return uses
}
