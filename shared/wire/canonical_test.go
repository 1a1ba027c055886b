package wire_test

import (
	"testing"

	"gateway/shared/wire"
)

// TestCanonicalForm: the examples of RFC 8785 (3.2.2, 3.2.3 and appendix B), and what
// has no form.
func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`:                                        `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`: "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		`[0,-0,-0.0,5e-324,-5e-324,1.7976931348623157e308,9007199254740992,9007199254740993,295147905179352830000,9.999999999999997e22,1e23,1e21,999999999999999900000,1e-7,0.000001]`:                               `[0,0,0,5e-324,-5e-324,1.7976931348623157e+308,9007199254740992,9007199254740992,295147905179352830000,9.999999999999997e+22,1e+23,1e+21,999999999999999900000,1e-7,0.000001]`,
		"\"<a href='\u2028'>&\x7f\"": "\"<a href='\u2028'>&\x7f\"",
		` { } `:                      `{}`,
	} {
		got, err := wire.AppendCanonical(nil, []byte(raw))
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s\n%v", raw, got, want, err)
		}
	}
	for _, raw := range []string{`{`, `1e999`, ``} {
		if got, err := wire.AppendCanonical(nil, []byte(raw)); err == nil {
			t.Errorf("%s has the form %s", raw, got)
		}
	}
}
