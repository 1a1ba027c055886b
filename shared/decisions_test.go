package shared

import (
	"io/fs"
	"os"
	"path/filepath"
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
