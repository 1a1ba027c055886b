package wire

import (
	"strings"
	"testing"

	"gateway/shared/fault"
)

func TestTypedReadsOfASpan(t *testing.T) {
	if s, err := ScanString([]byte(`"a\nb"`), "f"); err != nil || s != "a\nb" {
		t.Errorf("string: %q %v", s, err)
	}
	if s, err := ScanString([]byte("\"a\xffb\""), "f"); err != nil || s != "a\uFFFDb" {
		t.Errorf("string that is not UTF-8: %q %v", s, err)
	}
	if v, err := ScanBool([]byte(`true`), "f"); err != nil || !v {
		t.Errorf("bool: %v %v", v, err)
	}
	for raw, want := range map[string]int64{"5": 5, "-7": -7, "5.0": 5, "1e3": 1000, "9223372036854775807": 1<<63 - 1, "-0": 0} {
		if n, err := ScanInt([]byte(raw), "f"); err != nil || n != want {
			t.Errorf("int %s: %d %v", raw, n, err)
		}
	}
	if v, err := ScanFloat([]byte("0.25"), "f"); err != nil || v != 0.25 {
		t.Errorf("float: %v %v", v, err)
	}
	body := []byte(`[null,1]`)
	if (Span{1, 5}).Present(body) || !(Span{6, 7}).Present(body) || (Span{}).Present(body) {
		t.Error("null and absent are not present")
	}
}

func TestTypedReadsNameTheFieldThatIsWrong(t *testing.T) {
	read := map[string]func(raw []byte) error{
		"string": func(raw []byte) error { _, err := ScanString(raw, "user"); return err },
		"bool":   func(raw []byte) error { _, err := ScanBool(raw, "user"); return err },
		"int":    func(raw []byte) error { _, err := ScanInt(raw, "user"); return err },
		"float":  func(raw []byte) error { _, err := ScanFloat(raw, "user"); return err },
	}
	for _, c := range []struct{ kind, raw, message string }{
		{"string", `1`, "must be a string, not a number"},
		{"string", `null`, "must be a string, not null"},
		{"bool", `"true"`, "must be true or false, not a string"},
		{"int", `1.5`, "must be a whole number"},
		{"int", `1e30`, "whole number"},
		{"int", `9223372036854775808`, "whole number"},
		{"int", `{}`, "must be a whole number, not an object"},
		{"float", `[]`, "must be a number, not an array"},
		{"float", `1e999`, "too large"},
	} {
		err := read[c.kind]([]byte(c.raw))
		f := fault.From(err)
		if err == nil || f.Status() != 400 || f.Field != "user" || !strings.Contains(f.Message, c.message) {
			t.Errorf("%s of %s: %v", c.kind, c.raw, err)
		}
	}
}
