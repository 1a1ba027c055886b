package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseList(t *testing.T) {
	for header, want := range map[string][]string{
		"": nil, " , ,": nil, "a": {"a"}, "a, b ,c": {"a", "b", "c"},
		`["a", "b"]`: {"a", "b"}, "[a,'b']": {"a", "b"}, "[]": nil, "[": {"["}, `"x-y"`: {"x-y"},
	} {
		if got := ParseList(header); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}

func TestParseTraceparent(t *testing.T) {
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	good := Traceparent{trace, parent, 1}
	for header, want := range map[string]Traceparent{
		"00-" + trace + "-" + parent + "-01":                   good,
		"  00-" + trace + "-" + parent + "-01 ":                good,
		"cc-" + trace + "-" + parent + "-01-what":              good,
		"00-" + trace + "-" + parent + "-01-x":                 {},
		"ff-" + trace + "-" + parent + "-01":                   {},
		"cc-" + trace + "-" + parent + "-01x":                  {},
		"00-" + strings.ToUpper(trace) + "-" + parent + "-01":  {},
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01": {},
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":  {},
		"00-" + trace + "-" + parent:                           {},
		"00_" + trace + "-" + parent + "-01":                   {},
		"00-" + trace[:31] + "g-" + parent + "-01":             {},
		"": {},
	} {
		got, ok := ParseTraceparent(header)
		if got != want || ok != (want != Traceparent{}) {
			t.Errorf("%q: got %+v %v", header, got, ok)
		}
	}
}

func TestParseBaggage(t *testing.T) {
	long := strings.Repeat("é", 200)
	for header, want := range map[string]map[string]string{
		"":                                   nil,
		"a=1":                                {"a": "1"},
		"a=1, b = two%20words ;prop=x , c=":  {"a": "1", "b": "two words", "c": ""},
		"a=1,a=2":                            {"a": "2"},
		"novalue, =x, a b=1, bad=%zz, k=%ff": nil,
		"k=" + long:                          {"k": strings.Repeat("é", 128)},
		"k=1," + strings.Repeat("x", 9000):   {"k": "1"},
		strings.Repeat("x", 9000):            nil,
	} {
		if got := ParseBaggage(header); !maps.Equal(got, want) {
			t.Errorf("%.40q: got %q, want %q", header, got, want)
		}
	}
}

func TestParseMetadata(t *testing.T) {
	for header, want := range map[string]map[string]string{
		`{}`: {},
		`{"_user":"ann","n":1.50,"on":true,"nil":null,"list":[1],"obj":{"a":1}}`: {"_user": "ann", "n": "1.50", "on": "true"},
		`{"k":"` + strings.Repeat("é", 129) + `"}`:                               {"k": strings.Repeat("é", 128)},
		`{"k":"` + strings.Repeat("é", 128) + `"}`:                               {"k": strings.Repeat("é", 128)},
		`{"a":"x\ny"}`: {"a": "x\ny"},
		``:             nil, `null`: nil, `"x"`: nil, `[]`: nil, `{"a":1`: nil, `{"a":1}x`: nil,
		`{"k":"` + strings.Repeat("x", MaxMetadataHeader) + `"}`: nil,
	} {
		got, ok := ParseMetadata(header)
		if ok != (want != nil) || !maps.Equal(got, want) {
			t.Errorf("%.40q: got %q %v, want %q", header, got, ok, want)
		}
	}
}

func FuzzParseList(f *testing.F) {
	f.Add(`["a", 'b'],c`)
	f.Fuzz(func(t *testing.T, header string) {
		for _, s := range ParseList(header) {
			if s == "" || strings.Contains(s, ",") || strings.TrimSpace(s) != s {
				t.Fatalf("%q gives %q", header, s)
			}
		}
	})
}

func FuzzParseTraceparent(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Fuzz(func(t *testing.T, header string) {
		tp, ok := ParseTraceparent(header)
		if ok && (len(tp.TraceID) != 32 || len(tp.ParentID) != 16 || !strings.Contains(header, tp.TraceID+"-"+tp.ParentID)) {
			t.Fatalf("%q gives %+v", header, tp)
		}
	})
}

func FuzzParseBaggage(f *testing.F) {
	f.Add("a=1, b = two%20words ;prop=x")
	f.Fuzz(func(t *testing.T, header string) {
		got := ParseBaggage(header)
		if len(got) > maxBaggagePairs {
			t.Fatalf("%d pairs", len(got))
		}
		for k, v := range got {
			if k == "" || utf8.RuneCountInString(v) > MaxMetadataValue || !utf8.ValidString(k+v) {
				t.Fatalf("%q gives %q=%q", header, k, v)
			}
		}
	})
}

func FuzzParseMetadata(f *testing.F) {
	f.Add(`{"_user":"ann","n":1.50,"on":true,"nil":null,"list":[1],"obj":{"a":1}}`)
	f.Fuzz(func(t *testing.T, header string) {
		got, ok := ParseMetadata(header)
		var object map[string]any
		valid := json.Unmarshal([]byte(header), &object) == nil && object != nil
		if ok && !valid {
			t.Fatal("accepted what is not a JSON object")
		}
		if len(got) > len(object) {
			t.Fatalf("%d values of %d", len(got), len(object))
		}
		for k, v := range got {
			if utf8.RuneCountInString(v) > MaxMetadataValue || !utf8.ValidString(k+v) {
				t.Fatalf("%q=%q", k, v)
			}
		}
	})
}
