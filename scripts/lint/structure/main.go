// Command structure lists the types with method sets that are too large to understand. It
// counts as Go does: methods that embedded fields promote belong to the type that embeds them.
package main

import (
	"flag"
	"fmt"
	"go/types"
	"os"
	"slices"

	"golang.org/x/tools/go/packages"
)

func main() {
	limit := flag.Int("max", 30, "largest method set of a struct type")
	flag.Parse()
	// NeedSyntax: export data has only what other packages can reach, so most unexported types
	// would not be counted.
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile}, flag.Args()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(2)
	}
	if packages.PrintErrors(pkgs) > 0 {
		os.Exit(2)
	}
	found, checked := excess(pkgs, *limit)
	if checked == 0 {
		fmt.Fprintln(os.Stderr, "structure: no struct types in the packages")
		os.Exit(2)
	}
	for _, line := range found {
		fmt.Println(line)
	}
	if len(found) > 0 {
		fmt.Printf("Make methods functions that take what they need, or name embedded fields; at most %d methods.\n", *limit)
		os.Exit(1)
	}
}

// excess describes the struct types of the packages that have more than limit methods, and
// returns how many struct types there are.
func excess(pkgs []*packages.Package, limit int) (found []string, checked int) {
	for _, p := range pkgs {
		for _, name := range p.Types.Scope().Names() {
			t, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok || t.IsAlias() {
				continue
			}
			if _, ok := t.Type().Underlying().(*types.Struct); !ok {
				continue
			}
			checked++
			if n := types.NewMethodSet(types.NewPointer(t.Type())).Len(); n > limit {
				found = append(found, fmt.Sprintf("%s.%s has %d methods", p.PkgPath, name, n))
			}
		}
	}
	slices.Sort(found)
	return found, checked
}
