package host_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyHostsKnowLambda ensures that work is in steps that any host can run: only this
// package, the functions' main packages, the function that reads CloudWatch's deliveries, and
// the Lambda emulator depend on Lambda's events and its loop.
func TestOnlyHostsKnowLambda(t *testing.T) {
	t.Parallel()
	const root = "../.."
	known, seen := 0, 0
	for _, top := range []string{"shared", "functions", "local"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			seen++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
			for _, i := range file.Imports {
				if !strings.HasPrefix(i.Path.Value, `"github.com/aws/aws-lambda-go`) {
					continue
				}
				known++
				main := strings.HasPrefix(name, "functions/") && strings.Contains(name, "/lambda/")
				if !main && !strings.HasPrefix(name, "shared/host/") && !strings.HasPrefix(name, "functions/requeue/") && !strings.HasPrefix(name, "local/onlambda/") {
					t.Errorf("%s imports %s", name, i.Path.Value)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if known < 5 || seen < 100 {
		t.Errorf("%d imports in %d files", known, seen)
	}
}
