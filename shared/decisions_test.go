package shared

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDecisionsAreComplete requires that every decision record has a status with a date,
// measurements and an exit rule, and that CONTRIBUTING links to it.
func TestDecisionsAreComplete(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../.github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "DECISION.md" {
			return err
		}
		found++
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range []string{"# ", "**Status:** accepted, 20", "**Decision", "**Measurements.**", "xit rule"} {
			if !strings.Contains(string(raw), part) {
				t.Errorf("%s has no %q", path, part)
			}
		}
		if !strings.Contains(string(index), "(../shared/"+filepath.ToSlash(path)+")") {
			t.Errorf("CONTRIBUTING does not link to %s", path)
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Fatalf("%d records: %v", found, err)
	}
}

// TestPromisesNameTests requires that every test that SECURITY.md names exists.
func TestPromisesNameTests(t *testing.T) {
	t.Parallel()
	promises, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, root := range []string{".", "../functions", "../local"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(raw, -1) {
				there[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(promises, -1)
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("SECURITY.md names %s, which does not exist", m[1])
		}
	}
	if len(named) < 100 {
		t.Errorf("SECURITY.md names only %d tests", len(named))
	}
}
