package document

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseReadsValuesWithTheirPlaces(t *testing.T) {
	n, err := Parse("f.yaml", []byte("a: 1\nb:\n  - x: \"1\"\n    y: yes\n    z: 0x10\n  - null\nc: &c {d: 1.5}\ne: {<<: *c, f: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": json.Number("1"), "b": []any{map[string]any{"x": "1", "y": "yes", "z": json.Number("16")}, nil},
		"c": map[string]any{"d": json.Number("1.5")}, "e": map[string]any{"f": json.Number("2"), "d": json.Number("1.5")}}
	if got := n.Value(); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
	if at := n.Get("b").Items()[0].Get("z").At; at != (Position{"f.yaml", 5, 8}) {
		t.Error(at)
	}
}

func TestParseReadsJSONWithPlaces(t *testing.T) {
	n, err := Parse("c.json", []byte("{\n\t\"a\": [1, {\"b\": \"x\"}],\n\t\"c\": null\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Value(); !reflect.DeepEqual(got, map[string]any{"a": []any{json.Number("1"), map[string]any{"b": "x"}}, "c": nil}) {
		t.Errorf("%#v", got)
	}
	if at := n.Get("a").Items()[1].Get("b").At; at != (Position{"c.json", 2, 17}) {
		t.Error(at)
	}
}

// Hostile files end with an error that has a place, and cost little.
func TestParseRejectsHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		n := string(rune('0' + i%10))
		if i >= 10 {
			n = "1" + n
		}
		p := string(rune('0' + (i-1)%10))
		if i-1 >= 10 {
			p = "1" + p
		}
		bomb += "a" + n + ": &a" + n + " [" + strings.Repeat("*a"+p+",", 9) + "*a" + p + "]\n"
	}
	for name, text := range map[string]string{
		"aliases that expand":  bomb,
		"an alias of itself":   "a: &a [*a]\n",
		"merges that expand":   "a: &a {" + strings.Repeat("k: 1, ", 1) + "}\nb: {<<: [" + strings.Repeat("*a,", 200_000) + "*a]}\n",
		"deep nesting":         strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"deep JSON":            `{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}",
		"very many values":     "a: [" + strings.Repeat("1,", 2_000_000) + "1]",
		"a key twice":          "a: 1\na: 2\n",
		"a JSON key twice":     `{"a":1,"a":2}`,
		"a second document":    "a: 1\n---\nb: 1\n",
		"a broken line":        "a: 1\n b: [\n",
		"a tag":                "a: !!python/object:os.system x\n",
		"a key that is a list": "[a]: 1\n",
		"not a number":         "a: .nan\n",
		"unknown alias":        "a: *b\n",
	} {
		_, err := Parse("f.yaml", []byte(text))
		var e *Error
		if !errors.As(err, &e) || e.At.File != "f.yaml" || e.At.Line == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFolderReadsNothingOutsideOfIt(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	for name, text := range map[string]string{"secret.yaml": "a: 1", "in/main.yaml": "b: 1", "in/sub/more.yaml": "c: 1"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.yaml", filepath.Join(in, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	f, name, err := Open(filepath.Join(in, "main.yaml"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, ok := range []string{name, "sub/more.yaml", "./main.yaml"} {
		if _, err := f.Read(ok, Position{}); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"../secret.yaml", "link.yaml", filepath.Join(dir, "secret.yaml"), "sub", "none.yaml", "sub/../../secret.yaml", ""} {
		if n, err := f.Read(bad, Position{"main.yaml", 3, 1}); err == nil || n != nil || !strings.HasPrefix(err.Error(), "main.yaml:3:1: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// What is written is read as the same values, whatever the texts are.
func TestWriteRoundTrip(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "null", "yes", "1", "1.5", "~", "a: b", "- x", "${A}", " lead", "trail ", "a\nb", "a\n", "\na", "a \nb", "# c", "2001-01-01", "0x1", "1e3", "<<", "=", "a\tb", "\r", "\u0085", "\u2028", "a\r\nb", "  x\ny", "%", "@a", "`", "*x", "&x", "!x", "|", ">", "'", "\"", "a\n\n", "\n", "a\n  b\n"}))
	var value *rapid.Generator[any]
	value = rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return json.Number(rapid.SampledFrom([]string{"0", "-1", "12", "1.5", "1e-9", "0.000000001", "1E5", "1e3", "123456789012345678901234567890"}).Draw(t, "number"))
		case 3:
			return rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value }), 0, 3).Draw(t, "list")
		case 4:
			return rapid.MapOfN(text, rapid.Deferred(func() *rapid.Generator[any] { return value }), 0, 3).Draw(t, "map")
		}
		return text.Draw(t, "text")
	})
	rapid.Check(t, func(t *rapid.T) {
		v := value.Draw(t, "value")
		raw, err := Write(map[string]any{"v": v})
		if err != nil {
			t.Fatal(err)
		}
		n, err := Parse("f.yaml", raw)
		if err != nil {
			t.Fatalf("%v: %q", err, raw)
		}
		if got := n.Get("v").Value(); !reflect.DeepEqual(got, v) {
			t.Fatalf("%#v became %#v by %q", v, got, raw)
		}
	})
}
