package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"gateway/shared/chat"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// files are those of a case, in their order within the archive.
var files = []string{
	"case.json", "request.json", "upstream_request.json", "loss.txt", "refused.json", "upstream_response.json",
	"upstream_response.sse", "upstream_response.txt", "response.json", "response.sse", "meter.txt",
}

// goldenFiles are the files of a case that a run writes.
var goldenFiles = []string{"upstream_request.json", "loss.txt", "refused.json", "response.json", "response.sse", "meter.txt"}

// unended is added to the name of a file that does not end with a line feed, because the
// format adds one to every file.
const unended = " without last newline"

// options are case.json: what a case needs beside its bodies.
type options struct {
	Lenient     bool        // the client switched strict compliance off
	StrictLoss  bool        // reject any loss
	StrictReply bool        // reject losses that the client sees in the response
	Traits      chat.Traits // of host and model
	Status      int         // of the provider's response, when it is an error
	Headers     map[string]string
	Injected    bool                   // usage was requested on the client's behalf
	Recall      map[string][]chat.Part // stored parts by tool call id
	Model       string                 // of an operation, as the provider takes it
	Continues   string                 // the response that the request continues
	Stores      int                    // bytes of output up to which the response is stored
}

// run is one run of a case.
type run struct {
	t    *testing.T
	path string
	in   map[string][]byte // the files of the archive
	out  map[string][]byte // the golden files as they are now
	c    options
}

// open reads the archive of a case.
func open(t *testing.T, path string) *run {
	t.Helper()
	in := Read(path)
	g := &run{t: t, path: path, in: in, out: map[string][]byte{}}
	g.options()
	for name := range in {
		if !slices.Contains(files, name) {
			t.Errorf("%s: no case has a file %q", path, name)
		}
	}
	return g
}

// options reads case.json, if there is one.
func (g *run) options() {
	g.t.Helper()
	if raw := g.in["case.json"]; len(raw) > 0 {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&g.c); err != nil {
			g.t.Fatal(err)
		}
	}
}

// Read returns the files of an archive. An empty file is not nil.
func Read(path string) map[string][]byte {
	raw, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	in := map[string][]byte{}
	for _, f := range txtar.Parse(raw).Files {
		name, cut := strings.CutSuffix(f.Name, unended)
		if cut {
			f.Data = bytes.TrimSuffix(f.Data, []byte("\n"))
		}
		in[name] = append([]byte{}, f.Data...)
	}
	return in
}

// compare holds the outputs against the golden files, or writes them.
func (g *run) compare() {
	g.t.Helper()
	if !*update {
		for _, name := range goldenFiles {
			if diff := cmp.Diff(string(g.in[name]), string(g.out[name])); diff != "" {
				g.t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		return
	}
	var a txtar.Archive
	for _, name := range files {
		data := g.in[name]
		if slices.Contains(goldenFiles, name) {
			data = g.out[name]
		}
		if data == nil {
			continue
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			name += unended
		}
		a.Files = append(a.Files, txtar.File{Name: name, Data: data})
	}
	if err := os.WriteFile(g.path, txtar.Format(&a), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// Cases are the archives of all dialects with a matching folder below testdata, e.g.
// openai-* or operations/*.
func Cases(pattern string) []string {
	var all []string
	for _, root := range []string{".", ".."} { // from the package, and from a dialect
		if _, err := os.Stat(filepath.Join(root, "openai", "testdata")); err == nil {
			found, _ := filepath.Glob(filepath.Join(root, "*", "testdata", pattern, "*.txtar"))
			all = append(all, found...)
		}
	}
	return all
}

// Seeds adds the files that match file of the cases that match pattern.
func Seeds(f *testing.F, pattern, file string) {
	found := false
	for _, path := range Cases(pattern) {
		for name, raw := range Read(path) {
			if ok, _ := filepath.Match(file, name); ok {
				f.Add(raw)
				found = true
			}
		}
	}
	if !found {
		f.Fatalf("no seeds: %s in %s", file, pattern)
	}
}

// File is one file of a case, e.g. openai-cohere/stream-text.
func File(t *testing.T, name, file string) []byte {
	t.Helper()
	dir, base := filepath.Split(name)
	for _, path := range Cases(dir) {
		if filepath.Base(path) == base+".txtar" {
			if raw := Read(path)[file]; raw != nil {
				return raw
			}
		}
	}
	t.Fatalf("no %s in %s", file, name)
	return nil
}
