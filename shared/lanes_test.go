package shared_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLanesAreThoseOfTheMakefile holds the directives //lane:NAME of tests against the lanes
// that the Makefile runs: a lane that nobody runs, or a directive that is not the end of the
// comment of a test, would leave the test out.
func TestLanesAreThoseOfTheMakefile(t *testing.T) {
	t.Parallel()
	lanes := map[string]string{"property": "shared functions", "exhaustive": "local", "standard": "local scripts/clients"}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for lane, trees := range lanes {
		for tree := range strings.FieldsSeq(trees) {
			run := regexp.MustCompile(`-run "\$\$\(scripts/lane\.sh ` + lane + ` ([^)]* )?` + tree + `[ )/]`)
			if !run.Match(makefile) {
				t.Errorf("the Makefile does not run the lane %s of %s", lane, tree)
			}
		}
	}
	walkGo(t, func(pkg, file string) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ofTests := map[*ast.CommentGroup]bool{}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Doc != nil && strings.HasPrefix(d.Name.Name, "Test") {
				ofTests[d.Doc] = true
			}
		}
		for _, group := range f.Comments {
			directives := 0
			for i, c := range group.List {
				lane, found := strings.CutPrefix(c.Text, "//lane:")
				if !found {
					if directives > 0 {
						t.Errorf("%s: //lane: stands before %q, and not at the end of its comment", file, c.Text)
					}
					continue
				}
				directives++
				tree, _, _ := strings.Cut(pkg, "/")
				if !ofTests[group] || !slices.ContainsFunc(strings.Fields(lanes[lane]), func(p string) bool { return p == pkg || p == tree && p != "local" }) {
					t.Errorf("%s: comment %d is //lane:%s, which is not a lane of tests of %s", file, i, lane, pkg)
				}
			}
		}
	})
}
