package relay

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// describers fill the record; nobody else writes it. What a stage learned it returns
// or keeps in its own type.
var describers = map[string]bool{
	"describeRequest": true, "describeWalk": true, "describeAnswer": true, "describeCall": true, "describeMoney": true,
	"writeBooks": true, "hideInRecord": true, "sealBodies": true,
}

// each calls f for every function of the package that is no test.
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

// ofRecord tells whether an expression is a part of the request's record.
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

// A type with more methods than these has become a room of its own.
const maxMethods = 25

// TestNoTypeHasDozensOfMethods looks at every package of the walk. A part of a type that is
// embedded in it counts as its own, where both are of one package; what it sees of a stage
// before it, by a pointer, does not. The call is all stages of the walk.
func TestNoTypeHasDozensOfMethods(t *testing.T) {
	t.Parallel()
	types := map[string]map[string]*declared{} // by folder and name
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		in := types[filepath.Dir(path)]
		if in == nil {
			in = map[string]*declared{}
			types[filepath.Dir(path)] = in
		}
		declare(in, parsed)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(types) < 2 || types["."]["call"] == nil || types["inbound"]["Body"] == nil {
		t.Fatalf("%d packages were read", len(types))
	}
	types["."]["call"].embeds = nil
	for folder, in := range types {
		for name := range in {
			if n := methodsOf(in, name, map[string]bool{}); n > maxMethods {
				t.Errorf("%s.%s has %d methods", folder, name, n)
			}
		}
	}
}

// declared is what a package declares of a type of its own.
type declared struct {
	methods int
	embeds  []string // types of the same package
}

// declare adds what a file declares.
func declare(in map[string]*declared, file *ast.File) {
	of := func(name string) *declared {
		if in[name] == nil {
			in[name] = new(declared)
		}
		return in[name]
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				of(named(d.Recv.List[0].Type)).methods++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				s, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				switch made := s.Type.(type) {
				case *ast.StructType:
					for _, f := range made.Fields.List {
						if part, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 {
							of(s.Name.Name).embeds = append(of(s.Name.Name).embeds, part.Name)
						}
					}
				case *ast.InterfaceType:
					for _, f := range made.Methods.List {
						if len(f.Names) > 0 {
							of(s.Name.Name).methods += len(f.Names)
						} else if part, ok := f.Type.(*ast.Ident); ok {
							of(s.Name.Name).embeds = append(of(s.Name.Name).embeds, part.Name)
						}
					}
				}
			}
		}
	}
}

// named is the name of a type of the same package; "" for others.
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return named(e.X)
	case *ast.IndexExpr:
		return named(e.X)
	case *ast.IndexListExpr:
		return named(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// methodsOf counts a type's methods and those of what it embeds, each once.
func methodsOf(in map[string]*declared, name string, seen map[string]bool) int {
	d := in[name]
	if d == nil || seen[name] {
		return 0
	}
	seen[name] = true
	n := d.methods
	for _, of := range d.embeds {
		n += methodsOf(in, of, seen)
	}
	return n
}
