package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"gateway/shared/fault"
)

var testKeys = NewKeySet("model", "stream", "messages", "n", "k")

func TestWalkFindsTheWantedValues(t *testing.T) {
	body := []byte(" {\n \"model\" : \"gpt-4o\" , \"x\":[{\"model\":\"inner\"}],\"stream\":true,\"messages\":[{\"a\":\"}]\\\"\"}] , \"n\":-1.5e+3\t}\r\n")
	var w Walk
	if err := testKeys.Walk(body, &w); err != nil {
		t.Fatal(err)
	}
	want := []string{`"gpt-4o"`, `true`, `[{"a":"}]\""}]`, `-1.5e+3`, ``}
	for i, s := range want {
		if got := string(w.Spans[i].Of(body)); got != s {
			t.Errorf("%s: got %s, want %s", testKeys.Keys()[i], got, s)
		}
	}
	if !w.Spans[4].Absent() || w.Spans[4].Of(body) != nil {
		t.Error("an absent key must give no span")
	}
	if body[w.ObjectStart] != '{' || body[w.ObjectEnd-1] != '}' || w.Empty {
		t.Errorf("object at %d..%d, empty %v", w.ObjectStart, w.ObjectEnd, w.Empty)
	}
	if err := testKeys.Walk([]byte("{ }"), &w); err != nil || !w.Empty || !w.Spans[0].Absent() {
		t.Errorf("empty object: %v %+v", err, w)
	}
}

func TestWalkRefusesWhatParsersReadDifferently(t *testing.T) {
	for _, c := range []struct{ name, body, field, message string }{
		{"key twice", `{"model":"a","model":"b"}`, "model", "twice"},
		{"key twice, first null", `{"model":null,"model":"b"}`, "model", "twice"},
		{"other case", `{"Model":"a"}`, "model", `must be written as "model"`},
		{"other case after the right one", `{"model":"a","MODEL":"b"}`, "model", "must be written"},
		{"escaped", `{"mod\u0065l":"a"}`, "model", "without escapes"},
		{"escaped and other case", `{"\u004dodel":"a"}`, "model", "without escapes"},
		{"letters that fold to ASCII", "{\"\u017ftream\":true}", "stream", "must be written"},
		{"Kelvin sign", "{\"\u212a\":1}", "k", "must be written"},
		{"key that is not UTF-8", "{\"mod\xffel\":1}", "", "UTF-8"},
		{"trailing bytes", `{"model":"a"} x`, "", "after the end"},
		{"two objects", `{}{}`, "", "after the end"},
		{"trailing NUL", "{}\x00", "", "after the end"},
		{"array", `[1]`, "", "an object is expected"},
		{"byte order mark", "\xef\xbb\xbf{}", "", "an object is expected"},
		{"empty", ``, "", "ends too early"},
		{"spaces", "  \n", "", "ends too early"},
		{"cut", `{"model":"a`, "model", "ends too early"},
		{"cut after a key", `{"model"`, "model", "ends too early"},
		{"comma at the end", `{"model":"a",}`, "", "unexpected character"},
		{"no colon", `{"model" "a"}`, "model", "unexpected character"},
		{"no comma", `{"model":"a" "n":1}`, "model", "unexpected character"},
		{"no quotes", `{model:1}`, "", "unexpected character"},
		{"wrong bracket", `{"n":[1}}`, "n", "unexpected character"},
		{"array comma", `{"n":[1,]}`, "n", "unexpected character"},
		{"control character", "{\"model\":\"a\nb\"}", "model", "control character"},
		{"NUL in a string", "{\"model\":\"a\x00b\"}", "model", "control character"},
		{"bad escape", `{"model":"\x"}`, "model", "invalid escape"},
		{"bad unicode escape", `{"model":"\u12g4"}`, "model", "invalid escape"},
		{"leading zero", `{"n":01}`, "n", "unexpected character"},
		{"bare minus", `{"n":-}`, "n", "invalid number"},
		{"no digits after the point", `{"n":1.}`, "n", "invalid number"},
		{"no exponent", `{"n":1e}`, "n", "invalid number"},
		{"NaN", `{"n":NaN}`, "n", "without quotes"},
		{"True", `{"n":True}`, "n", "without quotes"},
		{"nul", `{"n":nul}`, "n", "without quotes"},
		{"too deep", `{"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "x", "at most 64 deep"},
		{"20 MB of brackets", `{"x":` + strings.Repeat("[", 20<<20), "x", "at most 64 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Walk
			err := testKeys.Walk([]byte(c.body), &w)
			f := fault.From(err)
			if err == nil || f.Status() != 400 {
				t.Fatalf("got %v, want a 400", err)
			}
			if f.Field != c.field || !strings.Contains(f.Message, c.message) {
				t.Errorf("field %q, message %q; want field %q and %q", f.Field, f.Message, c.field, c.message)
			}
		})
	}
}

func TestWalkAcceptsOtherKeysInAnySpelling(t *testing.T) {
	for _, body := range []string{
		`{"x":1,"x":2}`, `{"mod\u0065ls":1}`, `{"ž":1}`, `{"":1}`,
		`{"x":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
		"{\"x\":\"\xff\"}", // forwarded unchanged
		strings.Repeat(" ", 100) + `{"model":"a"}` + strings.Repeat("\n", 100),
	} {
		var w Walk
		if err := testKeys.Walk([]byte(body), &w); err != nil {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}

func TestWalkDoesNotAllocate(t *testing.T) {
	body := chatBody(4 << 10)
	var w Walk
	if n := testing.AllocsPerRun(20, func() {
		if err := testKeys.Walk(body, &w); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

var walkSeeds = []string{
	`{}`, `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi \"there\" \u00e9 \ud83c\udf89"}],"n":1}`,
	`{"a":[1,-2.5e3,0,true,false,null,{"b":{}},[[]]]}`, `{"model":"a","model":"b"}`, `{"Model":1}`, `{"mod\u0065l":1}`,
	`[1]`, `"x"`, `{"a":1}}`, `{"a":01}`, `{"a":"\x"}`, "{\"a\":\"\t\"}", ` { "n" : 1 , "k" : [ ] } `, "{\"\xff\":1}", `{"a":1,}`,
	`{"n":1.}`, `{"n":-0}`, `{"n":1E-2}`, "{\"\u017ftream\":1}",
}

// FuzzWalk: the walk accepts what encoding/json accepts and gives the same values, but
// for the spellings that it rejects on purpose.
func FuzzWalk(f *testing.F) {
	for _, s := range walkSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var w Walk
		err := testKeys.Walk(body, &w)
		var object map[string]json.RawMessage
		valid := json.Unmarshal(body, &object) == nil && object != nil
		if err != nil {
			if f := fault.From(err); f.Status() != 400 {
				t.Fatalf("not a 400: %v", err)
			}
			if valid && !refusedOnPurpose(body) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if !valid {
			t.Fatal("accepted what encoding/json refuses")
		}
		for i, key := range testKeys.Keys() {
			want, ok := object[key]
			if got := w.Spans[i].Of(body); ok == w.Spans[i].Absent() || !bytes.Equal(got, want) {
				t.Fatalf("%s: got %q, want %q", key, got, want)
			}
		}
	})
}

// refusedOnPurpose looks for the top-level spellings and the depth that only the walk
// rejects, with encoding/json's own tokens.
func refusedOnPurpose(body []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(body))
	depth, seen := 0, map[string]int{}
	for key := false; ; {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
			if depth > MaxDepth {
				return true
			}
			if depth == 1 {
				key = true
				continue
			}
		case string:
			if depth == 1 && key {
				for _, want := range testKeys.Keys() {
					if strings.EqualFold(v, want) {
						seen[want]++
						if v != want || seen[want] > 1 {
							return true
						}
					}
				}
				key = false
				continue
			}
		}
		if depth == 1 {
			key = true
		}
	}
	// Escaped spellings and bytes that are not UTF-8 are not visible in tokens.
	return bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body)
}

// chatBody is a chat request of about size bytes with the escapes of real text.
func chatBody(size int) []byte {
	text := strings.Repeat("The gateway reads the body once, and it says \"so\".\nIt then forwards what it read. ", 12)
	var messages []string
	for n := 0; n < size; n += len(text) + 40 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":%s}`, AppendJSONString(nil, text)))
	}
	return []byte(`{"model":"gpt-4o","messages":[` + strings.Join(messages, ",") + `],"stream":true,"temperature":0.7,"max_tokens":100}`)
}

func BenchmarkWalk(b *testing.B) {
	relay := NewKeySet("model", "stream", "messages", "max_tokens", "max_completion_tokens", "n", "user", "stream_options", "input", "prompt", "metadata", "tools")
	for _, size := range []int{1 << 10, 100 << 10} {
		body := chatBody(size)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var w Walk
			for b.Loop() {
				if err := relay.Walk(body, &w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("100KB-json.Valid", func(b *testing.B) {
		body := chatBody(100 << 10)
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			json.Valid(body)
		}
	})
	numbers := []byte(`{"input":[` + strings.Repeat("0.0123456789,", 8000) + `1],"model":"x"}`)
	b.Run("100KB-numbers", func(b *testing.B) {
		b.SetBytes(int64(len(numbers)))
		b.ReportAllocs()
		var w Walk
		for b.Loop() {
			if err := relay.Walk(numbers, &w); err != nil {
				b.Fatal(err)
			}
		}
	})
}
