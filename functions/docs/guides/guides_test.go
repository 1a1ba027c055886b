package guides

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every script of findings/ is in its index, and the index names no other.
func TestFindingsAreListed(t *testing.T) {
	t.Parallel()
	const at = "../../../findings"
	index, err := os.ReadFile(filepath.Join(at, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(at, "*.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, s := range scripts {
		if !strings.Contains(string(index), "]("+filepath.Base(s)+")") {
			t.Errorf("%s is not in findings/README.md", filepath.Base(s))
		}
	}
	if listed := strings.Count(string(index), ".sh) |"); listed != len(scripts) {
		t.Errorf("findings/README.md lists %d scripts, there are %d", listed, len(scripts))
	}
}

// Every file is a guide in the order, with text, and its tables have names of columns.
func TestEveryFileIsAGuide(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.Contains(order, strings.TrimSuffix(name, ".md")) {
			t.Errorf("%s is not in the order of the guides", name)
		}
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(names) {
		t.Errorf("%d guides, %d files", len(all), len(names))
	}
	for _, g := range all {
		if len(g.HTML) < 300 {
			t.Errorf("%s has %d bytes", g.Name, len(g.HTML))
		}
		if strings.Contains(string(g.HTML), "<th></th>") {
			t.Errorf("%s has a column without a name, which screen readers cannot announce", g.Name)
		}
	}
}

// Links of guides lead to guides, sections and files that exist; links of pages stay within
// the pages.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, g := range all {
		ids[g.Name] = true
		for _, m := range regexp.MustCompile(`<h[1-6] id="([^"]+)"`).FindAllStringSubmatch(string(g.HTML), -1) {
			ids[g.Name+"#"+m[1]] = true
		}
	}
	for _, g := range all {
		for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(string(g.HTML), -1) {
			to := m[1]
			if strings.HasPrefix(to, "#") {
				to = g.Name + to
			}
			if !strings.HasPrefix(to, "https://") && !ids[to] {
				t.Errorf("%s leads to %q", g.Name, m[1])
			}
		}
		source, err := files.ReadFile(g.Name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\((\.\./[^)#]*)`).FindAllStringSubmatch(string(source), -1) {
			if _, err := os.Stat(filepath.FromSlash(path.Clean(m[1]))); err != nil {
				t.Errorf("%s leads to %s: %v", g.Name, m[1], err)
			}
		}
	}
}

// Raw HTML of a guide, such as the marks of generated tables, is not rendered.
func TestRawHTMLIsDropped(t *testing.T) {
	t.Parallel()
	g, err := render("x", []byte("# T\n\n<script>1</script>\n\n## A `b`\n\n[x](../y.go) and [z](z.md#q)\n"))
	if err != nil {
		t.Fatal(err)
	}
	html := string(g.HTML)
	if g.Title != "T" || len(g.Sections) != 2 || g.Sections[1] != (Section{ID: "a-b", Title: "A b", Level: 2, Text: "x and z"}) {
		t.Errorf("%+v", g)
	}
	if strings.Contains(html, "script") || strings.Contains(html, "y.go") || !strings.Contains(html, `x and <a href="z#q">z</a>`) {
		t.Error(html)
	}
	for _, bad := range []string{"no heading", "# a\n\n# b\n"} {
		if _, err := render("x", []byte(bad)); err == nil {
			t.Errorf("%q is a guide", bad)
		}
	}
}
