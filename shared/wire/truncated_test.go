package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRepairClosesOpenValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want, open string }{
		{`{"a":1}`, `{"a":1}`, ""},
		{` {"a":1} and more`, `{"a":1}`, ""},
		{`{"a":1`, `{}`, "a"},
		{`{"a":1,`, `{"a":1}`, ""},
		{`{"usage":{"in":5}`, `{"usage":{"in":5}}`, ""},
		{`{"usage":{"in":5,"d":{}`, `{"usage":{"in":5,"d":{}}}`, "usage"},
		{`{"a":"tex`, `{"a":"tex"}`, "a"},
		{`{"a":"tex\`, `{"a":"tex"}`, "a"},
		{`{"a":"tex\u00e`, `{"a":"tex"}`, "a"},
		{`{"a":"\ud83d\ude0`, `{"a":""}`, "a"},
		{`{"a":"\ud83d`, `{"a":""}`, "a"},
		{`{"a":"\ud83d\ude00`, `{"a":"\ud83d\ude00"}`, "a"},
		{"{\"a\":\"tex\xe2\x82", `{"a":"tex"}`, "a"},
		{"{\"a\":\"te\x00}{", `{"a":"te"}`, "a"},
		{`{"a":[{"b":tru`, `{"a":[{}]}`, "a b"},
		{`{"a":1,"b`, `{"a":1}`, ""},
		{`{"a":1,"b":`, `{"a":1}`, "b"},
		{`{"usage":{"in":5,"out":12`, `{"usage":{"in":5}}`, "usage out"},
		{"{\"a\":1,\x00}{ not", `{"a":1}`, ""},
		{`{`, `{}`, ""}, {`[1,2`, `[1]`, ""}, {`[`, `[]`, ""}, {``, ``, ""}, {`<html>`, ``, ""}, {`"text"`, ``, ""}, {`data: {}`, ``, ""},
	} {
		got, open := RepairTruncated([]byte(c.in))
		if string(got) != c.want || strings.Join(open, " ") != c.open {
			t.Errorf("%q: %s, open %q", c.in, got, open)
		}
	}
}

// Every beginning of a JSON object is mended to JSON.
func TestRepairMakesJSONOfEveryBeginning(t *testing.T) {
	t.Parallel()
	whole := []byte(`{"id":"x","n":[1,-2.5e+3,true,null,{"a\"b":"\ud83d\ude00\n€ é"}],"usage":{"prompt_tokens":12,"d":{}},"e":[],"s":""} `)
	for i := 1; i < len(whole); i++ {
		if got, _ := RepairTruncated(whole[:i]); !json.Valid(got) {
			t.Errorf("%s: %s", whole[:i], got)
		}
	}
}

func FuzzRepair(f *testing.F) {
	f.Add([]byte(`{"a":[1,"b`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if got, _ := RepairTruncated(in); json.Valid(in) && got != nil && !json.Valid(got) {
			t.Errorf("%q: %q", in, got)
		}
	})
}
