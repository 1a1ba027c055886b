package admintest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// Call is one request of Golden.
type Call struct{ key, method, path, body string }

// As is a call made with a key. An empty body sends none.
func As(key, method, path, body string) Call { return Call{key, method, path, body} }

// changing is what differs from run to run: ids and times, and slugs that were
// made of names.
var changing = regexp.MustCompile(`(?:pp|pg|col|default)-(?:[a-z0-9-]*-)?[0-9a-f]{6}\b|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// Golden makes the calls, which must all be answered with 200, and holds the
// answers against testdata/file, with ID, SLUG and TIME in place of what changes;
// update writes the file first.
func (h *House) Golden(update bool, file string, calls ...Call) {
	h.t.Helper()
	var out bytes.Buffer
	for _, c := range calls {
		fmt.Fprintf(&out, "%s %s\n", c.method, settled(c.path))
		var body any
		if c.body != "" {
			body = c.body
		}
		got := settled(string(h.Do(c.method, c.path, c.key, body).OK().Body))
		if err := json.Indent(&out, []byte(got), "", "  "); err != nil {
			h.t.Fatal(err)
		}
		out.WriteString("\n\n")
	}
	path := filepath.Join("testdata", file)
	if update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		h.t.Errorf("the answers changed (-want +got):\n%s", diff)
	}
}

// settled is a text with what changes from run to run by its name.
func settled(text string) string {
	return changing.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasSuffix(s, "Z"):
			return "TIME"
		case len(s) != len("00000000-0000-0000-0000-000000000000"):
			return "SLUG"
		}
		return "ID"
	})
}
