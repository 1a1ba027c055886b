package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestTestsRunSideBySide: each test of this package begins with t.Parallel(), or
// says "In a row:" and why. 280 tests that mostly wait for others took seven
// minutes one after the other.
func TestTestsRunSideBySide(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files of tests: %v", len(files), err)
	}
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			if !sideBySide(f) && !strings.Contains(f.Doc.Text(), "In a row:") {
				t.Errorf("%s: %s does not begin with t.Parallel(), and its comment does not say \"In a row:\" and why", set.Position(f.Pos()), f.Name.Name)
			}
		}
	}
}

// sideBySide reports whether a test's first statement is t.Parallel().
func sideBySide(f *ast.FuncDecl) bool {
	if len(f.Body.List) == 0 {
		return false
	}
	s, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Parallel"
}
