package relay

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// describers are the only functions that fill the record. A stage returns its results or stores
// them in its own type.
var describers = map[string]bool{
	"describeRequest": true, "describeWalk": true, "describeResponse": true, "describeCall": true, "describeMoney": true,
	"describe": true, "writeRecord": true, "hideInRecord": true, "sealBodies": true,
}

// each calls f for every function of the package outside of tests.
func each(t *testing.T, f func(file string, d *ast.FuncDecl)) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				f(name, d)
			}
		}
	}
}

// ofRecord reports whether an expression is a part of the request's record.
func ofRecord(e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			if x.Sel.Name == "rec" {
				return true
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return false
		}
	}
}

func TestTheRecordIsFilledInOnePlace(t *testing.T) {
	t.Parallel()
	found := 0
	each(t, func(file string, d *ast.FuncDecl) {
		ast.Inspect(d, func(n ast.Node) bool {
			var written []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				written = n.Lhs
			case *ast.IncDecStmt:
				written = []ast.Expr{n.X}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					written = []ast.Expr{n.X}
				}
			}
			for _, e := range written {
				if !ofRecord(e) {
					continue
				}
				if found++; !describers[d.Name.Name] {
					t.Errorf("%s: %s writes the record", file, d.Name.Name)
				}
			}
			return true
		})
	})
	if found == 0 {
		t.Error("nobody fills the record")
	}
}
