package shared_test

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// readLayers returns the layer of each package tree; 0 is the top.
func readLayers(t *testing.T) map[string]int {
	t.Helper()
	f, err := os.Open("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	layers := make(map[string]int)
	layer := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, name := range strings.Fields(line) {
			if _, duplicate := layers[name]; duplicate {
				t.Fatalf("layers.txt: %s is listed twice", name)
			}
			layers[name] = layer
		}
		layer++
	}
	return layers
}

// treeOf returns the entry of layers.txt for a package path relative to the module.
func treeOf(pkg string) string {
	parts := strings.Split(pkg, "/")
	if parts[0] == "shared" && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

// testkit contains what only tests use. The packages of emulates run the product on the
// emulators of AWS in it: `go run ./local -store aws`, and the load test of the functions.
const testkit = "testkit"

var emulates = map[string]bool{"local/cloud": true, "local/onlambda/load": true}

// TestImportsGoDownOnly compares the imports of every Go file with layers.txt.
func TestImportsGoDownOnly(t *testing.T) {
	layers := readLayers(t)
	seen := 0
	walkGo(t, func(pkg, file string) {
		tree := treeOf(pkg)
		own, known := layers[tree]
		if !known {
			if tree != "scripts" && pkg != "shared" {
				t.Errorf("%s: %s is not in layers.txt", file, pkg)
			}
			return
		}
		ast, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return
		}
		for _, imp := range ast.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			target, ours := strings.CutPrefix(path, "gateway/")
			if !ours {
				continue
			}
			seen++
			if treeOf(target) == testkit {
				if from := treeOf(pkg); from != testkit && !strings.HasSuffix(file, "_test.go") && !emulates[pkg] && from != "scripts" {
					t.Errorf("%s imports %s, which is for tests", file, target)
				}
				continue
			}
			checkImport(t, layers, file, pkg, own, target)
		}
	})
	if seen < 20 {
		t.Fatalf("found only %d imports: the traversal is broken", seen)
	}
}

func checkImport(t *testing.T, layers map[string]int, file, pkg string, own int, target string) {
	t.Helper()
	from, to := treeOf(pkg), treeOf(target)
	layer, known := layers[to]
	switch {
	case !known:
		t.Errorf("%s imports %s, which is not in layers.txt", file, target)
	case from == to && from != "functions":
		return // within one tree
	case from == "functions" && to == "functions":
		// A function's main and the long-running container assemble the functions.
		if !strings.HasSuffix(pkg, "/lambda") && pkg != "functions/container" && !strings.HasPrefix(pkg, "functions/assembly") && !sameFunction(pkg, target) {
			t.Errorf("%s: function %s imports function %s", file, pkg, target)
		}
	case own == 0 && to == "functions" && (from == "local" || from == "infra"):
		return
	case layer <= own:
		t.Errorf("%s: %s must not import %s: imports go down only", file, from, to)
	}
}

func sameFunction(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	return len(as) > 1 && len(bs) > 1 && as[1] == bs[1]
}

// TestNoUtilityPackages rejects package names that do not describe the contents.
func TestNoUtilityPackages(t *testing.T) {
	forbidden := map[string]bool{"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true, "types": true, "models": true, "lib": true}
	walkGo(t, func(pkg, file string) {
		base := filepath.Base(pkg)
		if forbidden[base] && pkg != "functions/models" {
			t.Errorf("%s: package name %s does not describe its contents", file, base)
		}
	})
}

// TestEveryPackageIsDocumented requires a package comment in each package.
func TestEveryPackageIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	walkGo(t, func(pkg, file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(src)
		documented[pkg] = documented[pkg] || strings.Contains(text, "// Package ") || strings.Contains(text, "// Command ")
	})
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", pkg)
		}
	}
}

// walkGo visits the module's Go files with their package path.
func walkGo(t *testing.T, visit func(pkg, file string)) {
	t.Helper()
	root := ".."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "cdk.out" || name == "bin" || name == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") {
			rel, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			visit(filepath.ToSlash(rel), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
