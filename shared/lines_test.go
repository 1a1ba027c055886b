package shared_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateLines = flag.Bool("update-lines", false, "write the table of lines in CONTRIBUTING")

// lineGroups are the groups of packages of the table, by the beginnings of their folders.
var lineGroups = []string{"shared/relay", "shared/dialect", "shared/mcp", "shared/a2a", "shared/guard", "shared/usage", "shared/provider", "shared/signin", "shared/admin", "shared/store", "shared/host", "shared/testkit", "shared", "functions", "local/mockprovider", "local", "infra", "scripts"}

// goLines counts the lines and files of a group, without and with tests.
type goLines struct{ code, files, tests int }

// countLines counts the Go files below the repository by group: each file belongs to the first
// group that matches.
func countLines(t *testing.T) map[string]*goLines {
	t.Helper()
	count := map[string]*goLines{}
	for _, g := range lineGroups {
		count[g] = new(goLines)
	}
	for _, root := range []string{"shared", "functions", "local", "infra", "scripts"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			below := strings.TrimPrefix(filepath.ToSlash(path), "../")
			for _, g := range lineGroups {
				if !strings.HasPrefix(below, g+"/") {
					continue
				}
				if n := bytes.Count(b, []byte("\n")); strings.HasSuffix(path, "_test.go") {
					count[g].tests += n
				} else {
					count[g].code += n
					count[g].files++
				}
				break
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return count
}

// The table says how large each part is, so that growth is seen in a review. It may be 5 % off,
// so that not every change touches it.
func TestLinesAreWrittenDown(t *testing.T) {
	const page = "../.github/CONTRIBUTING.md"
	count := countLines(t)
	var table strings.Builder
	table.WriteString("| Go files below | lines | files | lines of tests |\n|---|--:|--:|--:|\n")
	var sum goLines
	for _, g := range lineGroups {
		c := count[g]
		name := "`" + g + "`"
		if g == "shared" || g == "local" {
			name = "the rest of " + name
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d |\n", name, c.code, c.files, c.tests)
		sum.code, sum.files, sum.tests = sum.code+c.code, sum.files+c.files, sum.tests+c.tests
	}
	fmt.Fprintf(&table, "| all | %d | %d | %d |\n", sum.code, sum.files, sum.tests)
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?m)^\| Go files below .*\n(\|.*\n)+`)
	written := pattern.Find(b)
	if written == nil {
		t.Fatalf("%s has no table of lines", page)
	}
	if *updateLines {
		if err := os.WriteFile(page, pattern.ReplaceAllLiteral(b, []byte(table.String())), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	number := regexp.MustCompile(`\d+ `)
	want, got := number.FindAllString(table.String(), -1), number.FindAllString(string(written), -1)
	off := len(want) != len(got)
	for i := 0; i < len(want) && !off; i++ {
		var w, g int
		_, _ = fmt.Sscan(want[i], &w)
		_, _ = fmt.Sscan(got[i], &g)
		off = max(w-g, g-w)*20 > w+200
	}
	if off {
		t.Errorf("the table of lines in %s is more than 5 %% off; write it with go test ./shared -run LinesAreWrittenDown -args -update-lines. It is\n%s\nand should be\n%s", page, written, table.String())
	}
}
