package shared_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatRunsWithoutTheRaceDetectorStartsNoGoroutine holds scripts/unraced.txt
// against the source: a package that has come to start goroutines, by itself or in
// its tests, goes back under the detector.
func TestWhatRunsWithoutTheRaceDetectorStartsNoGoroutine(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../scripts/unraced.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		dir := sc.Text()
		if strings.HasPrefix(dir, "#") {
			continue
		}
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Errorf("scripts/unraced.txt: %q is no package", dir)
		}
		for _, file := range files {
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if starts(n) {
					t.Errorf("%s starts a goroutine: take %s off scripts/unraced.txt", set.Position(n.Pos()), dir)
				}
				return true
			})
		}
	}
}

// starts tells whether a node starts a goroutine: by a statement, a group, a timer
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
