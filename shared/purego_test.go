package shared_test

import (
	"bufio"
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPuregoLeavesAllAssemblyOut: with the build tag nothing of the project is in assembly,
// on any architecture. That the same works without it is what make standard shows.
func TestPuregoLeavesAllAssemblyOut(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".s":
			return nil
		}
		found++
		expr, err := constraintOf(path)
		if err != nil {
			return err
		}
		for _, arch := range []string{"amd64", "arm64"} {
			if expr == nil || expr.Eval(func(tag string) bool { return tag == arch || tag == "linux" || tag == "purego" }) {
				t.Errorf("%s is built for %s with the tag purego, too", path, arch)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("there is no assembly: the tag and this test can go")
	}
}

// constraintOf is the build constraint of a file; nil: there is none.
func constraintOf(path string) (constraint.Expr, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); constraint.IsGoBuild(line) {
			return constraint.Parse(line)
		} else if line != "" && !strings.HasPrefix(line, "//") {
			break // constraints stand before everything but comments
		}
	}
	return nil, lines.Err()
}
