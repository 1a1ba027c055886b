package bound

import (
	"reflect"
	"strings"
	"testing"
)

type inner struct {
	Level string   `json:"level,omitempty" enum:"low,high" doc:"How high."`
	Names []string `json:"names" max:"2" each:"min=1 max=3"`
}

type sample struct {
	inner
	Text  string            `json:"text,omitempty" min:"2" max:"4"`
	Must  string            `json:"must" min:"1"`
	Pairs map[string]string `json:"pairs,omitempty" max:"1" each:"max=2"`
	Count int               `json:"count,omitempty" min:"3" max:"5"`
	Below *inner            `json:"below,omitempty"`
	Plain any               `json:"-"`
}

func TestCheckNamesWhatIsOutOfBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v    sample
		want string
	}{
		"good":                      {sample{Must: "x", Text: "ab", Count: 3}, ""},
		"zero values that may be":   {sample{Must: "x"}, ""},
		"a member that has to be":   {sample{}, "must"},
		"characters, not bytes":     {sample{Must: "x", Text: "üüüü"}, ""},
		"short and long":            {sample{Must: "x", Text: "a"}, "text"},
		"too long":                  {sample{Must: "x", Text: "aaaaa"}, "text"},
		"entries and what they are": {sample{Must: "x", inner: inner{Names: []string{"a", "", "aaaa"}}}, "names names[1] names[2]"},
		"pairs":                     {sample{Must: "x", Pairs: map[string]string{"a": "aaa", "b": ""}}, "pairs pairs.a"},
		"numbers":                   {sample{Must: "x", Count: 6}, "count"},
		"small numbers":             {sample{Must: "x", Count: 2}, "count"},
		"structs below":             {sample{Must: "x", Below: &inner{Level: "mid"}}, "below.level"},
		"a text of others":          {sample{Must: "x", inner: inner{Level: "x"}}, "level"},
	} {
		var fields []string
		for _, d := range Check(&c.v) {
			fields = append(fields, d.Field)
			if d.Message == "" {
				t.Errorf("%s: no message", name)
			}
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestFieldsHaveNamesDocsAndLimits(t *testing.T) {
	t.Parallel()
	all, err := Members(reflect.TypeFor[sample]())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "level names text must pairs count below" {
		t.Errorf("members: %s", got)
	}
	if m := all[0]; m.Doc != "How high." || strings.Join(m.Bound.Enum, " ") != "low high" {
		t.Errorf("%+v", m)
	}
	for _, wrong := range []any{struct {
		A string `json:"a" max:"x"`
	}{}, struct {
		A []string `json:"a" each:"most=1"`
	}{}} {
		if _, err := Members(reflect.TypeOf(wrong)); err == nil {
			t.Errorf("%T: accepted", wrong)
		}
	}
}
