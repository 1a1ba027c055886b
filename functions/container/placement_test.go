package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/placement"
	"gateway/shared/relay"
	"gateway/shared/seal"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage/segment"
)

var update = flag.Bool("update", false, "write the administration's rows into the table")

const tableFile = "../../shared/host/placement/routes.txt"

func families(t *testing.T) []admin.Family {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	core := app.New(app.Backends{Store: s, Embedded: true, Sealer: seal.New(nil, time.Now)}, app.Settings{})
	return assembly.Administration(core, segment.New(s, nil, segment.Options{}))
}

// whole is the family that serves everything below its name: an API has at most 300 resources,
// and a protocol with many paths would take a dozen.
const whole = "scim"

// served are the routes of the assembled gateway, as rows of the table.
func served(t *testing.T) (data, administration []string) {
	t.Helper()
	for _, rt := range assembly.DataPlane() {
		if rt.Path == relay.AnyPath {
			data = append(data, "* /{path+}")
			if methods := slices.Sorted(slices.Values(rt.Methods)); !slices.Equal(methods, placement.PassThroughMethods) {
				t.Errorf("pass-through takes %v, the table says %v", methods, placement.PassThroughMethods)
			}
			continue
		}
		data = append(data, rt.Method+" "+rt.Path)
	}
	for _, f := range families(t) {
		for _, rt := range f.Routes {
			for _, path := range append([]string{rt.Path}, rt.Aliases...) {
				if f.Name == whole {
					path = "/" + whole + "/{path+}"
				}
				administration = append(administration, rt.Method+" "+path+" "+f.Name)
			}
		}
	}
	slices.Sort(administration)
	return data, slices.Compact(administration)
}

func TestPlacementKnowsEveryRouteAndNoOther(t *testing.T) {
	data, administration := served(t)
	if *update {
		writeTable(t, administration)
		return
	}
	want := map[string]bool{}
	for _, row := range append(data, administration...) {
		want[row] = true
	}
	for _, r := range placement.Table() {
		row := r.Method + " " + r.Path
		switch {
		case r.Place == placement.Buffered:
			row += " " + r.Family
		case r.Family == placement.PassThrough && r.Path != "/{path+}":
			continue // a part of pass-through with a separate placement
		}
		if !want[row] {
			t.Errorf("the table has %q, which nothing serves", row)
		}
		delete(want, row)
	}
	for row := range want {
		advice := "run: go test ./functions/container -run Placement -update"
		if slices.Contains(data, row) {
			advice = "add the row with its place to shared/host/placement/routes.txt"
		}
		t.Errorf("%q is served and not in the table; %s", row, advice)
	}
}

// TestPlacementAgreesWithTheRouter compares both for the family of each route.
func TestPlacementAgreesWithTheRouter(t *testing.T) {
	endpoints := map[string]string{}
	for _, rt := range assembly.DataPlane() {
		endpoints[rt.Method+" "+rt.Path] = rt.Endpoint
	}
	m := relay.NewMux(nil, assembly.DataPlane())
	for _, r := range placement.Table() {
		if r.Place == placement.Buffered {
			continue
		}
		method, path := r.Method, strings.NewReplacer("{path+}", "some/thing").Replace(r.Path)
		if method == placement.AnyMethod {
			method = "PUT"
		}
		found := m.Find(method, relay.BasePath+path)
		if found == nil {
			t.Errorf("no route takes %s %s", method, path)
			continue
		}
		want := "proxy"
		if r.Family != placement.PassThrough {
			want = endpoints[r.Method+" "+r.Path]
		}
		if found.Endpoint != want {
			t.Errorf("%s %s goes to %s, want %s", method, path, found.Endpoint, want)
		}
	}
}

func TestEveryFamilyHasItsFunction(t *testing.T) {
	names, _ := placement.Families()
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("..", name, "lambda", "main.go")); err != nil {
			t.Errorf("family %s: %v", name, err)
		}
	}
}

func writeTable(t *testing.T, administration []string) {
	t.Helper()
	old, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	mark := []byte("\n# Administration.")
	at := bytes.Index(old, mark)
	if at < 0 {
		t.Fatal("the table has no place for the administration")
	}
	end := at + 1 + bytes.IndexByte(old[at+1:], '\n') + 1
	var out bytes.Buffer
	out.Write(old[:end])
	for _, row := range administration {
		fmt.Fprintf(&out, "%s buffered\n", row)
	}
	if err := os.WriteFile(tableFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
