package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatAPlatformLacksIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files    map[string]string
		platform string
		found    string // "" where it compiles
	}{
		"a name of the system": {map[string]string{"a.go": "import \"syscall\"\nvar _ = syscall.Kill"}, "windows/amd64", "undefined: syscall.Kill"},
		"there it is":          {map[string]string{"a.go": "import \"syscall\"\nvar _ = syscall.Kill"}, "darwin/arm64", ""},
		"a file that is left out": {
			map[string]string{"a.go": "var _ = own()", "own_linux.go": "func own() int { return 1 }"}, "darwin/arm64", "undefined: own",
		},
		"a number that does not fit":       {map[string]string{"a.go": "var n int = 1 << 40"}, "linux/arm", "overflow"},
		"assembly for another":             {map[string]string{"a.go": "func f()", "a_amd64.s": ""}, "darwin/arm64", "f has no body"},
		"an error in a body":               {map[string]string{"a.go": "func f() { var unused int }"}, "linux/riscv64", "declared and not used"},
		"a test, which was not asked for":  {map[string]string{"a.go": "", "a_test.go": "var _ = nothing"}, "linux/riscv64", ""},
		"no such platform":                 {map[string]string{"a.go": ""}, "linux/abacus", "no such platform"},
		"nothing to check on the platform": {map[string]string{"a_linux.go": ""}, "windows/amd64", "exclude all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.files["go.mod"] = "odd\n\ngo 1.26\n"
			for file, text := range c.files {
				head := "package p\n"
				if file == "go.mod" {
					head = "module "
				} else if strings.HasSuffix(file, ".s") {
					head = ""
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(head+text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			n, err := check(dir, c.platform, false, []string{"."})
			switch {
			case c.found == "" && (err != nil || n != 1):
				t.Errorf("%d packages, %v", n, err)
			case c.found != "" && (err == nil || !strings.Contains(err.Error(), c.found)):
				t.Errorf("%v, want %q", err, c.found)
			}
		})
	}
}
