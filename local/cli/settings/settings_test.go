package settings

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSetJSONChangesOneMember(t *testing.T) {
	for _, c := range []struct{ src, path, want string }{
		{"", "env.A", "{\n  \"env\": {\n    \"A\": \"v\"\n  }\n}\n"},
		{"{}", "a", "{\n  \"a\": \"v\"\n}"},
		{"{\n  \"b\": 1\n}\n", "a", "{\n  \"a\": \"v\",\n  \"b\": 1\n}\n"},
		{"{\n    \"b\": 1 // why\n}\n", "a", "{\n    \"a\": \"v\",\n    \"b\": 1 // why\n}\n"},
		{"{\"b\": 1}", "a", "{\n  \"a\": \"v\",\n  \"b\": 1}"},
		{"{\n  \"a\": {\"x\": [1, 2,], /* c */ },\n}", "a.x", "{\n  \"a\": {\"x\": \"v\", /* c */ },\n}"},
		{"{\n  \"a\": {\n    \"y\": true\n  }\n}", "a.x", "{\n  \"a\": {\n    \"x\": \"v\",\n    \"y\": true\n  }\n}"},
		{"\ufeff{\"a\": null}", "a", "\ufeff{\"a\": \"v\"}"},
		{"// head\n{\"a\": \"}\\\"\"}", "a", "// head\n{\"a\": \"v\"}"},
	} {
		got, err := SetJSON([]byte(c.src), "v", strings.Split(c.path, ".")...)
		if err != nil || string(got) != c.want {
			t.Errorf("%q at %s: %v\n%s\nwant\n%s", c.src, c.path, err, got, c.want)
		}
		if raw, err := GetJSON(got, strings.Split(c.path, ".")...); err != nil || string(raw) != `"v"` {
			t.Errorf("%q at %s reads %s %v", c.src, c.path, raw, err)
		}
	}
}

func TestDeleteJSONRemovesOneMember(t *testing.T) {
	for _, c := range []struct{ src, path, want string }{
		{"", "a", ""},
		{`{"a": 1}`, "a", `{}`},
		{`{"a": 1,}`, "a", `{}`},
		{`{"a": 1, "b": 2}`, "a", `{"b": 2}`},
		{`{"a": 1, "b": 2}`, "b", `{"a": 1}`},
		{`{"a": 1, "b": 2,}`, "b", `{"a": 1,}`},
		{`{"a": {"x": 1}}`, "a.x", `{"a": {}}`},
		{`{"a": 5}`, "a.x", `{"a": 5}`},
		{`{"a": 5}`, "b", `{"a": 5}`},
	} {
		got, err := DeleteJSON([]byte(c.src), strings.Split(c.path, ".")...)
		if err != nil || string(got) != c.want {
			t.Errorf("%q without %s: %v %q", c.src, c.path, err, got)
		}
	}
}

func TestJSONRejectsWhatItCannotEdit(t *testing.T) {
	for src, message := range map[string]string{
		"[]":                                "line 1: must be an object",
		"{\n\"env\": 5}":                    "line 2: must be an object",
		"{\n\n\"a\" 1}":                     "line 3: a colon is missing",
		"{\"a\": 1 \"b\": 2}":               "a comma is missing",
		"{\"a\": 1} x":                      "unexpected text",
		"{\"a\": tru}":                      "not a value",
		"{\"a\": \"x}":                      "is not closed",
		"{\"a\": [1 2]}":                    "a comma is missing",
		"{/* ":                              "comment is not closed",
		"{":                                 "a name in quotes is missing",
		"{\"a\":1,\"a\":2}":                 "occurs twice",
		strings.Repeat(`{"a":`, 200) + "1":  "nested too deep",
		strings.Repeat(" ", MaxSize) + "{}": "larger than",
	} {
		if got, err := SetJSON([]byte(src), "v", "env", "X"); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%.40q: %v %.100q", src, err, got)
		}
	}
}

func FuzzSetJSON(f *testing.F) {
	f.Add(`{"a": [1, {"b": "c"}], // x` + "\n" + `"env": {},}`)
	f.Add(`{"env":{"A":"1"}}`)
	f.Fuzz(func(t *testing.T, src string) {
		got, err := SetJSON([]byte(src), "v", "env", "A")
		if err != nil {
			return
		}
		if raw, err := GetJSON(got, "env", "A"); err != nil || string(raw) != `"v"` {
			t.Fatalf("%q became %q: %s %v", src, got, raw, err)
		}
		if json.Valid([]byte(src)) && !json.Valid(got) {
			t.Fatalf("%q became %q", src, got)
		}
	})
}

func TestSetTOMLChangesTheRootTableOnly(t *testing.T) {
	const v = `x = "v"` + "\n"
	for _, c := range []struct{ src, want string }{
		{"", v},
		{"# c\ny = 1\n", v + "# c\ny = 1\n"},
		{"x = 'old'\ny = 1\n", v + "y = 1\n"},
		{"y = [\n  [1],\n]\nx = 5 # old\n[t]\nx = 1\n", v + "y = [\n  [1],\n]\n[t]\nx = 1\n"},
		{"y = \"\"\"\nx = 1\n[t]\n\"\"\"\nx = '''\n'''\n", v + "y = \"\"\"\nx = 1\n[t]\n\"\"\"\n"},
		{"[t]\nx = 1", v + "[t]\nx = 1"},
		{"\"x\" = 1\r\ny = 2\r\n", v + "y = 2\r\n"},
	} {
		if got, err := SetTOML([]byte(c.src), "x", `"v"`); err != nil || string(got) != c.want {
			t.Errorf("%q: %v\n%s", c.src, err, got)
		}
	}
}

func TestSetTableTOMLReplacesTheTable(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", "[a.b]\nk = 1\n"},
		{"x = 1\n", "x = 1\n\n[a.b]\nk = 1\n"},
		{"[a.b]\nold = 1\n[a.b.c]\nold = 2\n[a.bc]\nz = 1\n", "[a.bc]\nz = 1\n\n[a.b]\nk = 1\n"},
		{"[ a . \"b\" ]\nold = 1\n\n[other]\nz = 1", "[other]\nz = 1\n\n[a.b]\nk = 1\n"},
		{"[a]\nz = 1\n", "[a]\nz = 1\n\n[a.b]\nk = 1\n"},
	} {
		if got, err := SetTableTOML([]byte(c.src), "a.b", "k = 1"); err != nil || string(got) != c.want {
			t.Errorf("%q: %v\n%s", c.src, err, got)
		}
	}
	for _, src := range []string{"a = { b = 1 }\n", "a.b.c = 1\n", "[a]\nb.c = 1\n", "x = [1\n", "x = \"open\n", "= 1\n", "[t\n", "x = '''\n", "x 1\n"} {
		if got, err := SetTableTOML([]byte(src), "a.b", "k = 1"); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q became %q: %v", src, got, err)
		}
	}
}

func TestQuoteTOMLEscapes(t *testing.T) {
	if got := QuoteTOML("a\"b\\c\n\x7fé"); got != `"a\"b\\c\u000A\u007Fé"` {
		t.Error(got)
	}
}

// The program patch applies what Diff returns, and the result is the second text.
func TestDiffIsAPatch(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("SKIPPED: patch is not installed")
	}
	long := strings.Repeat("same\nline\n", 20)
	for _, c := range [][2]string{
		{"", "a\nb\n"}, {"a\n", ""}, {"a\nb\nc\n", "a\nX\nc\n"}, {"a", "a\n"}, {"a\n", "a"}, {long + "x\n" + long, "y\n" + long + long + "z\n"},
		{long, "one\n" + long + "two\n" + long + "three"},
	} {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(c[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("patch", "--force", name)
		cmd.Stdin = strings.NewReader(Diff("f", c[0], c[1]))
		out, err := cmd.CombinedOutput()
		got, _ := os.ReadFile(name)
		if err != nil || string(got) != c[1] {
			t.Errorf("%.20q to %.20q: %v %s\n%s", c[0], c[1], err, out, got)
		}
	}
	if Diff("f", "a", "a") != "" {
		t.Error("equal texts differ")
	}
}
