// Command platforms checks that the project compiles for platforms on which no test runs.
// It parses and type-checks each package and everything that the package imports, as the
// compiler does before it generates code. That finds what differs between platforms (files
// that are omitted, names that one system lacks) in a tenth of the time that compiling
// takes.
//
//	go run ./scripts/platforms [-test] darwin/arm64,windows/amd64 ./shared/... ./local
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	tests := flag.Bool("test", false, "check the tests of the packages too")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "platforms needs a list of platforms, and packages")
		os.Exit(2)
	}
	for platform := range strings.SplitSeq(flag.Arg(0), ",") {
		n, err := check(".", platform, *tests, flag.Args()[1:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", platform, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages\n", platform, n)
	}
}

// source is what go list says of a package.
type source struct {
	Dir, ImportPath string
	GoFiles, SFiles []string
	ImportMap       map[string]string // imports with a package path that differs from the import
	Standard        bool
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

// check checks the packages of the module in a folder for a platform. It returns how many
// packages of that module it has seen.
func check(dir, platform string, tests bool, packages []string) (n int, err error) {
	system, arch, _ := strings.Cut(platform, "/")
	sizes := types.SizesFor("gc", arch)
	if sizes == nil {
		return 0, errors.New("no such platform: it is a system and an architecture, as in darwin/arm64")
	}
	args := []string{"list", "-e", "-deps", "-json=Dir,ImportPath,GoFiles,SFiles,ImportMap,Standard,Module,Error"}
	if tests {
		args = append(args, "-test")
	}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	c := checker{sizes: sizes, done: map[string]*types.Package{"unsafe": types.Unsafe}}
	// go list prints the imports of a package before the package itself.
	for list := json.NewDecoder(out); ; {
		var s source
		if err := list.Decode(&s); err == io.EOF {
			break
		} else if err != nil {
			return 0, err
		}
		own, err := c.check(&s)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.ImportPath, err)
		}
		if own {
			n++
		}
	}
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, errors.New("no package of this project was checked")
	}
	return n, nil
}

type checker struct {
	sizes types.Sizes
	done  map[string]*types.Package
}

// check checks one package. Own is true for a package of this project. Other packages do
// compile, so only their declarations are read.
func (c *checker) check(s *source) (own bool, err error) {
	own = !s.Standard && s.Module != nil && s.Module.Main
	switch {
	case s.Error != nil:
		return own, errors.New(s.Error.Err)
	case s.ImportPath == "unsafe", strings.HasSuffix(s.ImportPath, ".test"):
		return false, nil
	}
	set, files := token.NewFileSet(), make([]*ast.File, 0, len(s.GoFiles))
	for _, name := range s.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.Dir, name)
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return own, err
		}
		if own && len(s.SFiles) == 0 {
			if err := bodies(set, f); err != nil {
				return own, err
			}
		}
		files = append(files, f)
	}
	var found []error
	config := types.Config{
		Importer: importer{c, s.ImportMap}, Sizes: c.sizes, IgnoreFuncBodies: !own, FakeImportC: true,
		Error: func(err error) { found = append(found, err) },
	}
	path, _, _ := strings.Cut(s.ImportPath, " ") // "p [p.test]" is p together with its tests
	p, _ := config.Check(path, set, files, nil)
	c.done[s.ImportPath] = p
	if own {
		return own, errors.Join(found...)
	}
	return own, nil
}

// bodies reports functions without a body in a package without assembly.
func bodies(set *token.FileSet, f *ast.File) error {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil {
			return fmt.Errorf("%s: %s has no body on this platform", set.Position(fn.Pos()), fn.Name)
		}
	}
	return nil
}

// importer finds what a package imports among those that were checked before it.
type importer struct {
	*checker
	other map[string]string
}

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) {
	if at, ok := i.other[path]; ok {
		path = at
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not listed", path)
}
