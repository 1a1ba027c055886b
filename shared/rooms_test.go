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

// readRooms gives each room's floor: 0 is the top.
func readRooms(t *testing.T) map[string]int {
	t.Helper()
	f, err := os.Open("rooms.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	floors := make(map[string]int)
	floor := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, room := range strings.Fields(line) {
			if _, twice := floors[room]; twice {
				t.Fatalf("rooms.txt: %s stands twice", room)
			}
			floors[room] = floor
		}
		floor++
	}
	return floors
}

// roomOf names the room of a package path relative to the module.
func roomOf(pkg string) string {
	parts := strings.Split(pkg, "/")
	if parts[0] == "shared" && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

// TestImportsGoDownOnly reads every Go file's imports and holds them against
// rooms.txt.
func TestImportsGoDownOnly(t *testing.T) {
	floors := readRooms(t)
	seen := 0
	walkGo(t, func(pkg, file string) {
		room := roomOf(pkg)
		own, known := floors[room]
		if !known {
			if room != "scripts" && pkg != "shared" {
				t.Errorf("%s: %s is not a room of rooms.txt", file, pkg)
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
			checkImport(t, floors, file, pkg, own, target)
		}
	})
	if seen < 20 {
		t.Fatalf("only %d imports between rooms seen: the walk is broken", seen)
	}
}

func checkImport(t *testing.T, floors map[string]int, file, pkg string, own int, target string) {
	t.Helper()
	from, to := roomOf(pkg), roomOf(target)
	floor, known := floors[to]
	switch {
	case !known:
		t.Errorf("%s imports %s, which is not in a room", file, target)
	case from == to && from != "functions":
		return // inside one room
	case from == "functions" && to == "functions":
		// A function's main and the long-running container assemble families.
		if !strings.HasSuffix(pkg, "/lambda") && pkg != "functions/container" && !strings.HasPrefix(pkg, "functions/assembly") && !sameFamily(pkg, target) {
			t.Errorf("%s: family %s imports family %s", file, pkg, target)
		}
	case own == 0 && to == "functions" && (from == "local" || from == "infra"):
		return
	case floor <= own:
		t.Errorf("%s: %s may not import %s: imports go down only", file, from, to)
	}
}

func sameFamily(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	return len(as) > 1 && len(bs) > 1 && as[1] == bs[1]
}

// TestNoUtilityDrawers keeps packages named after what they are.
func TestNoUtilityDrawers(t *testing.T) {
	forbidden := map[string]bool{"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true, "types": true, "models": true, "lib": true}
	walkGo(t, func(pkg, file string) {
		base := filepath.Base(pkg)
		if forbidden[base] && pkg != "functions/models" {
			t.Errorf("%s: package %s is a drawer; name it after the thing", file, base)
		}
	})
}

// TestEveryPackageSaysWhatItIs wants a package comment somewhere in each package.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
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
