package field

import (
	"net/http"
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range commonNames {
		if want != http.CanonicalHeaderKey(name) {
			t.Errorf("%q stands for %q, http.Header writes %q", name, want, http.CanonicalHeaderKey(name))
		}
	}
	for _, c := range []struct {
		in, want string
		ok       bool
	}{
		{"content-type", "Content-Type", true}, {"Content-Type", "Content-Type", true}, {"CONTENT-TYPE", "Content-Type", true},
		{"x-new-HEADER", "X-New-Header", true}, {"_x", "_x", true}, {"", "", false}, {"a b", "", false}, {" a", "", false},
		{"a\t", "", false}, {"a:", "", false}, {"ä", "", false}, {"a\x00", "", false},
	} {
		if got, ok := Name(c.in); got != c.want || ok != c.ok {
			t.Errorf("Name(%q) = %q, %v; want %q, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func TestLength(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "7": 7, "007": 7, "999999999999999999": 999999999999999999} {
		if got, ok := Length(in); got != want || !ok {
			t.Errorf("Length(%q) = %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "+1", "-1", " 1", "1 ", "1,1", "0x1", "1e3", "1_0", "9999999999999999999", "١"} {
		if got, ok := Length(in); ok {
			t.Errorf("Length(%q) = %d, want none", in, got)
		}
	}
}

func TestValuesAndLists(t *testing.T) {
	for in, want := range map[string]bool{"": true, "a\tb": true, "\x80ü": true, "a\nb": false, "a\rb": false, "\x00": false, "\x7f": false, "\x1f": false} {
		if Value(in) != want {
			t.Errorf("Value(%q) is not %v", in, want)
		}
	}
	for in, want := range map[string]bool{"close": true, "Keep-Alive , CLOSE": true, "closed": false, "": false, "a,\tclose\t,b": true, "clo se": false} {
		if Lists(in, "close") != want {
			t.Errorf("Lists(%q) is not %v", in, want)
		}
	}
	for in, want := range map[string][2]string{"a\r\nb\n": {"a", "b\n"}, "a\nb": {"a", "b"}, "a": {"a", ""}, "\r\nx": {"", "x"}, "a\r\r\n": {"a\r", ""}} {
		if line, rest := CutLine(in); line != want[0] || rest != want[1] {
			t.Errorf("CutLine(%q) = %q, %q", in, line, rest)
		}
	}
	if Trim(" \ta b\t ") != "a b" || Trim(" \t") != "" || !Token("a-B") || Token("") || Token("a ") {
		t.Error("Trim or Token")
	}
}
