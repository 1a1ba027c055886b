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

// changing is what differs from run to run: ids and times.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// Golden makes the calls, which must all be answered with 200, and holds the
// answers against testdata/file, with ID and TIME in place of ids and times;
// update writes the file first.
func (h *House) Golden(update bool, file string, calls ...Call) {
	h.t.Helper()
	var out bytes.Buffer
	for _, c := range calls {
		fmt.Fprintf(&out, "%s %s\n", c.method, c.path)
		var body any
		if c.body != "" {
			body = c.body
		}
		got := changing.ReplaceAllStringFunc(string(h.Do(c.method, c.path, c.key, body).OK().Body), func(s string) string {
			if strings.HasSuffix(s, "Z") {
				return "TIME"
			}
			return "ID"
		})
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
