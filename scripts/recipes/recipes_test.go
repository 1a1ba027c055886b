// Package recipes executes the recipes of CONTRIBUTING in a copy of the repository, so that they
// stay complete and touch no more files than they say.
package recipes

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// insertion is a change by hand: text goes after the first line of the file that contains the
// anchor. Without an anchor it is a new file.
type insertion struct{ file, anchor, text string }

// recipe is a section of CONTRIBUTING with an example of its changes.
type recipe struct {
	section string
	most    int // files changed by hand
	changes []insertion
	written []string  // files that the section's commands write besides
	proof   insertion // a test of the new behavior, which is not part of the recipe
}

var recipes = []recipe{
	{
		section: "Add a provider", most: 3,
		changes: []insertion{
			{"shared/provider/catalog.go", `{ID: "novita-ai"`, `	{ID: "example-ai", Name: "Example AI", Dialect: OpenAIChat, Base: "https://api.example.com", Prefix: "/v1", Auth: bearer, Key: always, Routes: chatOnly, Quirks: plain},`},
			{"shared/pricing/data/prices.txt", "ember-cloud\tminimax-m2.5\t", "example-ai\texample-1\tinput=0.5 output=1.5"},
			{"shared/pricing/data/SOURCES.md", "|---|", "| 2026-11-29 | `example-ai/example-1` | added | example.com/pricing |"},
		},
		written: []string{"shared/pricing/data/prices.packed", "shared/provider/testdata/catalog.txt"},
		proof: insertion{"shared/provider/recipe_test.go", "", `package provider

import "testing"

func TestRecipe(t *testing.T) {
	if p, ok := ByID("example-ai"); !ok || p.Name != "Example AI" {
		t.Fatal("the provider is not in the catalog")
	}
}
`},
	},
	{
		section: "Add a guardrail", most: 4,
		changes: []insertion{
			{"shared/guard/table_default.go", `ID: "default.wordCount"`, `	{ID: "default.lineCount", Phase: Both, Category: Basic, Params: countLimits("minLines", "maxLines", 99_999), validate: checkOrder("minLines", "maxLines"), Doc: "The text has a number of lines."},`},
			{"shared/guard/basic/basic.go", `"default.wordCount":`, `		"default.lineCount":                lineCount,`},
			{"shared/guard/chain/quotes_test.go", `"default.wordCount":`, "\t\"default.lineCount\":                {`{\"maxLines\":1}`},"},
			{"shared/guard/basic/lines.go", "", `package basic

import (
	"encoding/json"
	"strings"

	"gateway/shared/guard/judge"
)

func lineCount(raw map[string]json.RawMessage) judge.Func {
	return between{"minLines", "maxLines", 99_999, "lineCount", "lines", false, true, func(text string) int { return strings.Count(text, "\n") + 1 }}.make(raw)
}
`},
		},
		written: []string{"functions/docs/guides/guardrails.md"},
		proof: insertion{"shared/guard/basic/recipe_test.go", "", `package basic

import (
	"encoding/json"
	"testing"

	"gateway/shared/guard/judge"
)

func TestRecipe(t *testing.T) {
	check := Makers()["default.lineCount"](map[string]json.RawMessage{"maxLines": json.RawMessage("1")})
	if v := check(t.Context(), &judge.Subject{Texts: []string{"one\ntwo"}}); v.Pass {
		t.Fatal("two lines pass a limit of one")
	}
}
`},
	},
	{
		section: "Add an administration field", most: 3,
		changes: []insertion{
			{"shared/prompt/partial.go", `ParentID  string`, "\tPurpose   string `json:\"purpose,omitempty\" max:\"255\" doc:\"What the prompts are for.\"`"},
			{"functions/collections/collections.go", `admin.NameField(prompt.MaxName), admin.SlugField(255),`, "\t\t\t{Name: \"purpose\", In: \"purpose\"},"},
		},
		written: []string{"functions/docs/document/openapi.json", "shared/prompt/testdata/collection.txt"},
		proof: insertion{"functions/collections/recipe_test.go", "", `package collections

import (
	"testing"

	"gateway/shared/testkit/admintest"
)

func TestRecipe(t *testing.T) {
	h := admintest.New(t, New())
	made := h.Do("POST", "/collections", admintest.WorkspaceA, ` + "`" + `{"name":"a","purpose":"reviews"}` + "`" + `).OK()
	if read := h.Do("GET", "/collections/"+made.Text("id"), admintest.WorkspaceA, "").OK(); read.At("purpose") != "reviews" {
		t.Fatalf("read %s", read.Body)
	}
}
`},
	},
	{
		section: "Add an endpoint", most: 6,
		changes: []insertion{
			{"shared/provider/operation.go", `Moderations         Operation = "moderations"`, `	Classify            Operation = "classify"`},
			{"shared/provider/catalog.go", `{Op: Moderations, Path: "/moderations"},`, `		{Op: Classify, Path: "/classify"},`},
			{"functions/moderations/moderations.go", `return []relay.Route{{`, `		Method: "POST", Path: "/classify", Endpoint: "classify", BodyMode: relay.Unified, Scope: "completions.write",
		Operation: provider.Classify, Check: openai.CheckModeration, Meter: openai.MeterModeration, NoOutput: true, UnitsOf: demand, CustomHost: true,
	}, {`},
			{"functions/docs/bodies_jobs.go", `var jobBodies = `, `	"classify": {
		doc:      "Classify text.",
		request:  request([]string{"input"}, map[string]admin.Schema{"model": model, "input": text}),
		response: object([]string{"results"}, map[string]admin.Schema{"results": list(open)}),
	},`},
			{"local/mockprovider/openai_operations.go", `{"POST", "/moderations", moderation},`, `		{"POST", "/classify", moderation},`},
		},
		written: []string{"functions/docs/document/openapi.json", "shared/provider/testdata/catalog.txt", "shared/host/placement/routes.txt"},
		proof: insertion{"local/recipe_test.go", "", `package main

import (
	"strings"
	"testing"
)

func TestRecipe(t *testing.T) {
	t.Parallel()
	r := start(t)
	if got := r.call("POST", "/classify", ` + "`" + `{"model":"omni-moderation-latest","input":"a text"}` + "`" + `, "x-gateway-provider", "@mock"); got.status != 200 || !strings.Contains(got.body, "results") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := r.call("POST", "/classify", ` + "`" + `{"model":"omni-moderation-latest"}` + "`" + `, "x-gateway-provider", "@mock"); got.status != 400 || !strings.Contains(got.body, "input") {
		t.Fatalf("a body without input: %d %s", got.status, got.body)
	}
}
`},
	},
}

// TestRecipes makes the changes of all recipes in one copy, so that what depends on them is
// compiled once, runs the commands of each section, and compares which files changed.
func TestRecipes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: compiles a copy of the repository, which -short leaves out")
	}
	guide, err := os.ReadFile(filepath.Join(root, ".github/CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := copied(t)
	expected := map[string]bool{}
	var commands, proofs [][]string
	for _, r := range recipes {
		edited := map[string]bool{}
		for _, c := range r.changes {
			edit(t, dir, c)
			edited[c.file], expected[c.file] = true, true
		}
		if n := len(edited); n > r.most {
			t.Errorf("%s: %d files are changed by hand, more than %d", r.section, n, r.most)
		}
		for _, file := range r.written {
			expected[file] = true
		}
		edit(t, dir, r.proof)
		expected[r.proof.file] = true
		for _, c := range commandsOf(t, string(guide), r.section) {
			if !slices.ContainsFunc(commands, func(o []string) bool { return slices.Equal(o, c) }) {
				commands = append(commands, c)
			}
		}
		proofs = append(proofs, []string{"test", "./" + filepath.Dir(r.proof.file), "-run", "TestRecipe"})
	}
	for _, c := range append(commands, proofs...) {
		run(t, dir, c...)
	}
	for _, file := range changed(t, dir) {
		if !expected[file] {
			t.Errorf("%s changed as well: no recipe says so", file)
		}
	}
}

var command = regexp.MustCompile("`go (test [^`]+)`")

// commandsOf returns the arguments of the go commands of a section, in order.
func commandsOf(t *testing.T, guide, section string) [][]string {
	t.Helper()
	_, text, found := strings.Cut(guide, "\n## "+section+"\n")
	if !found {
		t.Fatalf("CONTRIBUTING has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var all [][]string
	for _, m := range command.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.Fields(m[1]))
	}
	if len(all) == 0 {
		t.Fatalf("section %q has no go command", section)
	}
	return all
}

// skipped are folders that no recipe needs.
var skipped = []string{".git", "node_modules", "bin", "dist", "infra", "findings", "cdk.out", "scripts"}

// copied copies the repository and returns its folder.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, filepath.ToSlash(rel)) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, rel), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func edit(t *testing.T, dir string, c insertion) {
	t.Helper()
	path := filepath.Join(dir, c.file)
	text := c.text
	if c.anchor != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(content), "\n")
		at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, c.anchor) })
		if at < 0 {
			t.Fatalf("%s has no line with %q", c.file, c.anchor)
		}
		text = strings.Join(slices.Insert(lines, at+1, c.text+"\n"), "")
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs the go command as the tests of this repository are built, so that packages without
// changes are compiled once.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// changed lists the files of a copy that differ from the repository.
func changed(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		is, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if was, err := os.ReadFile(filepath.Join(root, rel)); err != nil || string(was) != string(is) {
			all = append(all, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
