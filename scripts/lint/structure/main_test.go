package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

func TestExcessCountsPromotedMethods(t *testing.T) {
	const source = `package p
type A struct{}
func (A) One() {}
func (*A) Two() {}
type B struct{ *A }
func (B) Three() {}
type C struct{ a A }
type D interface{ One(); Two(); Three() }
`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&types.Config{Importer: importer.Default()}).Check("p", set, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, checked := excess([]*packages.Package{{PkgPath: "p", Types: p}}, 2)
	if want := []string{"p.B has 3 methods"}; !slices.Equal(found, want) || checked != 3 {
		t.Errorf("found %q of %d types, want %q of 3", found, checked, want)
	}
}
