package wire

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

var spliceKeys = NewKeySet("model", "stream", "n")

func splice(t testing.TB, body string, edits func(w *Walk) []Edit) string {
	t.Helper()
	var w Walk
	if err := spliceKeys.Walk([]byte(body), &w); err != nil {
		t.Fatal(err)
	}
	return string(Splice(nil, []byte(body), edits(&w)...))
}

func TestSplicePreservesEveryOtherByte(t *testing.T) {
	const model, stream, n = 0, 1, 2
	for _, c := range []struct {
		name, body, want string
		edits            func(w *Walk) []Edit
	}{
		{"no edit", ` { "model" : "a" } `, ` { "model" : "a" } `, func(w *Walk) []Edit { return nil }},
		{"replace", `{ "x":1.0, "model" : "a" , "y":[ ]}`, `{ "x":1.0, "model" : "bb" , "y":[ ]}`, func(w *Walk) []Edit {
			return []Edit{Replace(w.Spans[model], []byte(`"bb"`))}
		}},
		{"replace out of order", `{"stream":true,"model":"a"}`, `{"stream":false,"model":"b"}`, func(w *Walk) []Edit {
			return []Edit{Replace(w.Spans[model], []byte(`"b"`)), Replace(w.Spans[stream], []byte(`false`))}
		}},
		{"replace of an absent key", `{"x":1}`, `{"x":1}`, func(w *Walk) []Edit { return []Edit{Replace(w.Spans[model], []byte(`1`))} }},
		{"set an absent key", `{"x":1}`, `{"n":2,"x":1}`, func(w *Walk) []Edit { return []Edit{spliceKeys.SetKey(w, n, []byte(`2`))} }},
		{"set a present key", `{"n":1}`, `{"n":2}`, func(w *Walk) []Edit { return []Edit{spliceKeys.SetKey(w, n, []byte(`2`))} }},
		{"insert", ` { "x":1}`, ` {"a\"b":true, "x":1}`, func(w *Walk) []Edit { return []Edit{InsertKey(w, `a"b`, []byte("true"))} }},
		{"insert into an empty object", `{ }`, `{"a":1 }`, func(w *Walk) []Edit { return []Edit{InsertKey(w, "a", []byte("1"))} }},
		{"two inserts into an empty object", `{}`, `{"a":1,"b":2}`, func(w *Walk) []Edit {
			return []Edit{InsertKey(w, "a", []byte("1")), InsertKey(w, "b", []byte("2"))}
		}},
		{"delete the first", `{"model":"a", "x":1}`, `{ "x":1}`, func(w *Walk) []Edit { return []Edit{DeleteKey(w, model)} }},
		{"delete the last", `{"x":1 , "model":"a" }`, `{"x":1  }`, func(w *Walk) []Edit { return []Edit{DeleteKey(w, model)} }},
		{"delete the only one", `{ "model":"a"}`, `{ }`, func(w *Walk) []Edit { return []Edit{DeleteKey(w, model)} }},
		{"delete the last two", `{"x":1,"model":"a","n":2}`, `{"x":1}`, func(w *Walk) []Edit { return []Edit{DeleteKey(w, n), DeleteKey(w, model)} }},
		{"delete all", `{"stream":true,"model":"a","n":2}`, `{}`, func(w *Walk) []Edit {
			return []Edit{DeleteKey(w, n), DeleteKey(w, model), DeleteKey(w, stream)}
		}},
		{"delete an absent key", `{"x":1}`, `{"x":1}`, func(w *Walk) []Edit { return []Edit{DeleteKey(w, n)} }},
		{"delete all and insert", `{"model":"a"}`, `{"k":1}`, func(w *Walk) []Edit { return []Edit{DeleteKey(w, model), InsertKey(w, "k", []byte("1"))} }},
		{"delete wins over replace", `{"model":"a","x":1}`, `{"x":1}`, func(w *Walk) []Edit {
			return []Edit{Replace(w.Spans[model], []byte(`"b"`)), DeleteKey(w, model)}
		}},
		{"delete array elements", `{"model":[1, 2,3]}`, `{"model":[ 2]}`, func(w *Walk) []Edit {
			at := w.Spans[model].Start
			return []Edit{Delete(Span{at + 1, at + 2}), Delete(Span{at + 6, at + 7})}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := splice(t, c.body, c.edits); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	prefix := []byte("prefix,")
	var w Walk
	body := []byte(`{"model":"a"}`)
	if err := spliceKeys.Walk(body, &w); err != nil {
		t.Fatal(err)
	}
	if got := string(Splice(prefix, body, DeleteKey(&w, 0))); got != "prefix,{}" {
		t.Errorf("what is already in dst must stay: %s", got)
	}
}

// TestSpliceMeansTheSameAsEditingTheMap compares with decoding, changing a map
// and comparing values.
func TestSpliceMeansTheSameAsEditingTheMap(t *testing.T) {
	values := []string{`1`, `"x"`, `null`, `{"model":2}`, `[1,{"n":3}]`, `true`}
	spaces := rapid.SampledFrom([]string{"", " ", "\n\t"})
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.Permutation([]string{"model", "stream", "n", "a", "b"}).Draw(t, "keys")[:rapid.IntRange(0, 5).Draw(t, "count")]
		want := map[string]any{}
		body := spaces.Draw(t, "s") + "{" + spaces.Draw(t, "s")
		for i, k := range keys {
			if i > 0 {
				body += "," + spaces.Draw(t, "s")
			}
			v := rapid.SampledFrom(values).Draw(t, "v")
			body += `"` + k + `"` + spaces.Draw(t, "s") + ":" + spaces.Draw(t, "s") + v + spaces.Draw(t, "s")
			want[k] = decodeAny(t, v)
		}
		body += "}"
		got := decodeAny(t, splice2(t, body, want))
		if !reflect.DeepEqual(got, any(want)) {
			t.Fatalf("%s: got %v, want %v", body, got, want)
		}
	})
}

// splice2 draws one edit for each wanted key and applies it to both forms.
func splice2(t *rapid.T, body string, object map[string]any) string {
	var w Walk
	if err := spliceKeys.Walk([]byte(body), &w); err != nil {
		t.Fatal(err)
	}
	var edits []Edit
	for i, k := range spliceKeys.Keys() {
		switch rapid.IntRange(0, 2).Draw(t, "edit") {
		case 1:
			edits = append(edits, spliceKeys.SetKey(&w, i, []byte(`[ 7 ]`)))
			object[k] = []any{7.0}
		case 2:
			edits = append(edits, DeleteKey(&w, i))
			delete(object, k)
		}
	}
	return string(Splice(nil, []byte(body), rapid.Permutation(edits).Draw(t, "order")...))
}

func decodeAny(t interface{ Fatal(...any) }, s string) any {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(s, err)
	}
	return v
}

// FuzzSplice deletes, sets and inserts keys of any accepted body: the result
// is a body of the same other fields.
func FuzzSplice(f *testing.F) {
	for _, s := range walkSeeds {
		f.Add([]byte(s), byte(7))
	}
	f.Fuzz(func(t *testing.T, body []byte, choice byte) {
		var w Walk
		if spliceKeys.Walk(body, &w) != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		edits := []Edit{DeleteKey(&w, 0)}
		delete(want, "model")
		if choice&1 != 0 {
			edits = append(edits, spliceKeys.SetKey(&w, 1, []byte("1")))
			want["stream"] = json.RawMessage("1")
		}
		if choice&2 != 0 {
			edits = append(edits, DeleteKey(&w, 2))
			delete(want, "n")
		}
		out := Splice(nil, body, edits...)
		var got map[string]json.RawMessage
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Fatalf("%q became %q", body, out)
		}
	})
}

func BenchmarkSpliceModel100KB(b *testing.B) {
	body := chatBody(100 << 10)
	var w Walk
	if err := spliceKeys.Walk(body, &w); err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 0, len(body)+100)
	model := []byte(`"gpt-4o-mini"`)
	b.ReportAllocs()
	for b.Loop() {
		dst = Splice(dst[:0], body, Replace(w.Spans[0], model))
	}
}
