package admin

import "testing"

// A parameter of any type with bytes that are not UTF-8 is rejected by name; a NUL is a
// character like others.
func TestParametersAreUTF8(t *testing.T) {
	t.Parallel()
	for kind := range typeText {
		fields := []Field{{Name: "a", Type: kind, Of: &Field{Type: String}}}
		for _, text := range []string{"%FF", "x%C3", "%C3(", "[%22%FF%22]", "%ED%A0%80"} {
			p := &problems{}
			checkQuery("a="+text, fields, p)
			if len(p.list) != 1 || p.list[0].Field != "a" || p.list[0].Message != "must be UTF-8" {
				t.Errorf("%v %s: %v", kind, text, p.list)
			}
		}
	}
	for _, kind := range []Type{String, Array} {
		p := &problems{}
		v := checkQuery("a=x%00y", []Field{{Name: "a", Type: kind, Of: &Field{Type: String}}}, p)
		if len(p.list) != 0 || !v.HasValue("a") {
			t.Errorf("%v: %v", kind, p.list)
		}
	}
}
