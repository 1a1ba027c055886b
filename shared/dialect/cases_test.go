package dialect_test

import (
	"os"
	"path/filepath"
	"testing"

	"gateway/shared/testkit/golden"
)

// TestEveryCaseIsRun: the folders of cases are those that golden.RunPairs and
// golden.Operations look into, and each dialect that has some has its tests.
func TestEveryCaseIsRun(t *testing.T) {
	t.Parallel()
	pairs, operations := golden.Cases("*-*"), golden.Cases("operations/*")
	if len(pairs) < 900 || len(operations) < 170 {
		t.Errorf("%d cases of pairs and %d of operations", len(pairs), len(operations))
	}
	known := map[string]bool{}
	for _, c := range carriers {
		known[c.Name()] = true
	}
	all := 0
	for _, pattern := range []string{"*/testdata/*/*.txtar", "*/testdata/*/*/*.txtar", "*/testdata/*.txtar", "testdata"} {
		found, _ := filepath.Glob(pattern)
		all += len(found)
	}
	answers := golden.Cases("answers")
	if all != len(pairs)+len(operations)+len(answers) {
		t.Errorf("%d archives, %d of them cases", all, len(pairs)+len(operations))
	}
	for _, path := range answers { // two dialects have some
		if dialect := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path)))); dialect != "openai" && dialect != "gemini" {
			t.Errorf("%s is not run", path)
		}
	}
	for _, path := range operations {
		if name := filepath.Base(filepath.Dir(path)); !known[name] {
			t.Errorf("%s: no translator %s", path, name)
		}
	}
	folders, _ := filepath.Glob("*/testdata")
	for _, folder := range folders {
		dialect := filepath.Dir(folder)
		if cases, _ := filepath.Glob(filepath.Join(folder, "*-*", "*.txtar")); len(cases) == 0 {
			continue
		}
		if _, err := os.Stat(filepath.Join(dialect, "golden_test.go")); err != nil {
			t.Errorf("the cases of %s are not run", dialect)
		}
	}
}
