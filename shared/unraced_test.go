package shared_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatRunsWithoutTheRaceDetectorSharesNothing compares scripts/unraced.txt with the
// source: a package that now starts goroutines, itself or in its tests, or shares data that
// can change, must be tested with the race detector again.
func TestWhatRunsWithoutTheRaceDetectorSharesNothing(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../scripts/unraced.txt")
	if err != nil {
		t.Fatal(err)
	}
	for dir := range strings.SplitSeq(strings.TrimSpace(string(list)), "\n") {
		if strings.HasPrefix(dir, "#") {
			continue
		}
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Errorf("scripts/unraced.txt: %q is no package", dir)
		}
		p := unraced{set: token.NewFileSet(), names: map[string]bool{}, specs: map[any]bool{}}
		for _, file := range files {
			if err := p.read(file); err != nil {
				t.Fatal(err)
			}
		}
		for at, why := range p.shares() {
			t.Errorf("%s %s: take %s off scripts/unraced.txt", p.set.Position(at), why, dir)
		}
	}
}

// TestSharingIsSeen shows what the rule finds, and what it lets pass.
func TestSharingIsSeen(t *testing.T) {
	t.Parallel()
	for source, found := range map[string]int{
		`import "net/http/httptest"; func f() { go f(); httptest.NewServer(nil) }`:                       2,
		`import "gateway/shared/testkit/queuetest"; var _ = queuetest.Run`:                               1,
		`import "gateway/shared/testkit/admintest"; var _ = admintest.New`:                               0,
		`import "sync"; var mu sync.Mutex`:                                                               1,
		`import "sync/atomic"; var n atomic.Int64`:                                                       1,
		`import "sync"; var table = sync.OnceValue(func() int { return 1 })`:                             0,
		`var held map[string]int; func f() { held["a"] = 1; held = nil; n++ }; var n int`:                3,
		`var a, b struct{ c []int }; func init() { a.c = nil }; func f() { b.c[0], _ = 1, 2 }`:           1,
		`var a int; func f() { a := 1; a++; { var b int; b = a; _ = b } }; func g(a []int) { a[0] = 1 }`: 0,
	} {
		p := unraced{set: token.NewFileSet(), names: map[string]bool{}, specs: map[any]bool{}}
		name := filepath.Join(t.TempDir(), "p.go")
		if err := os.WriteFile(name, []byte("package p; "+source), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.read(name); err != nil {
			t.Fatal(err)
		}
		if got := p.shares(); len(got) != found {
			t.Errorf("%s\n%d found, want %d: %v", source, len(got), found, got)
		}
	}
}

// unraced is a package that runs without the race detector.
type unraced struct {
	set   *token.FileSet
	files []*ast.File
	names map[string]bool // of its variables
	specs map[any]bool    // where they are declared
}

// read reads a file and takes down the variables of the package.
func (p *unraced) read(name string) error {
	file, err := parser.ParseFile(p.set, name, nil, 0)
	if err != nil {
		return err
	}
	p.files = append(p.files, file)
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			p.specs[s] = true
			for _, name := range s.(*ast.ValueSpec).Names {
				p.names[name.Name] = name.Name != "_"
			}
		}
	}
	return nil
}

// shares tells where something is shared, and why.
func (p *unraced) shares() map[token.Pos]string {
	found := map[token.Pos]string{}
	for _, file := range p.files {
		test := strings.HasSuffix(p.set.Position(file.Pos()).Filename, "_test.go")
		for _, i := range file.Imports {
			if suite, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "gateway/"); ok && strings.HasSuffix(suite, "test") && concurrent("../"+suite) {
				found[i.Pos()] = "is tested by what starts goroutines"
			}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				continue // runs before everything else
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if starts(n) {
					found[n.Pos()] = "starts a goroutine"
				}
				if !test && synchronises(n) {
					found[n.Pos()] = "synchronises"
				}
				for _, to := range written(n) {
					if p.own(to) {
						found[to.Pos()] = "writes a variable of the package"
					}
				}
				return true
			})
		}
	}
	return found
}

// concurrent reports whether a package of tests starts goroutines.
func concurrent(dir string) (found bool) {
	files, _ := filepath.Glob(dir + "/*.go")
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return true // the compiler tells why
		}
		ast.Inspect(file, func(n ast.Node) bool {
			found = found || starts(n)
			return !found
		})
	}
	return found
}

// starts reports whether a node starts a goroutine: by a statement, a group, a timer
// or a server.
func starts(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.SelectorExpr:
		switch n.Sel.Name {
		case "Go", "AfterFunc", "NewServer", "NewTLSServer", "NewUnstartedServer", "Listen", "ListenAndServe", "Serve", "RunParallel":
			return true
		}
	}
	return false
}

// synchronises reports whether a node is of sync or sync/atomic. What is computed once
// does not count: it never changes.
func synchronises(n ast.Node) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Obj == nil && (of.Name == "atomic" || of.Name == "sync" && !strings.HasPrefix(s.Sel.Name, "Once"))
}

// written is what a statement assigns to.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	}
	return nil
}

// own reports whether an expression is a variable of the package, or lies in one.
func (p *unraced) own(e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			return p.names[x.Name] && (x.Obj == nil || p.specs[x.Obj.Decl])
		default:
			return false
		}
	}
}
