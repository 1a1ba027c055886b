package mask

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestOneValueHasOneTokenInAllTexts(t *testing.T) {
	t.Parallel()
	texts := []string{"ann@x.io wrote to bob@x.io", "plain", "and bob@x.io answered {{EMAIL_ADDRESS_3}}"}
	out, values := Texts(texts, [][]Span{{{0, 8, "EMAIL_ADDRESS"}, {18, 26, "EMAIL_ADDRESS"}}, nil, {{4, 12, "EMAIL_ADDRESS"}}})
	if out[1] != nil {
		t.Errorf("a text without spans became %q", *out[1])
	}
	if want := "{{EMAIL_ADDRESS_4}} wrote to {{EMAIL_ADDRESS_5}}"; *out[0] != want {
		t.Errorf("got %q, want %q", *out[0], want)
	}
	if want := "and {{EMAIL_ADDRESS_5}} answered {{EMAIL_ADDRESS_3}}"; *out[2] != want {
		t.Errorf("got %q, want %q", *out[2], want)
	}
	if len(values) != 2 || values["{{EMAIL_ADDRESS_4}}"] != "ann@x.io" {
		t.Errorf("values are %v", values)
	}
	var r Restorer
	r.Add(values)
	if got := r.Text(*out[2]); got != texts[2] {
		t.Errorf("restored %q, want %q", got, texts[2])
	}
}

func TestRestoredValuesAreNotRescanned(t *testing.T) {
	t.Parallel()
	var r Restorer
	r.Add(map[string]string{"{{NAME_1}}": "{{NAME_2}}", "{{NAME_2}}": "Ann"})
	if got := r.Text("{{NAME_1}} {{{NAME_2}} {{NAME_9}} {{name_1}} {{NAME_1}"); got != "{{NAME_2}} {Ann {{NAME_9}} {{name_1}} {{NAME_1}" {
		t.Errorf("got %q", got)
	}
}

func TestValuesAreEscapedWithinJSON(t *testing.T) {
	t.Parallel()
	var r Restorer
	r.Add(map[string]string{"{{NAME_1}}": "A \"B\"\n\\"})
	out := r.JSON([]byte(`{"to":{"name":"{{NAME_1}}"}}`))
	var v struct{ To struct{ Name string } }
	if err := json.Unmarshal(out, &v); err != nil || v.To.Name != "A \"B\"\n\\" {
		t.Errorf("%s: %v, %q", out, err, v.To.Name)
	}
}

func TestStreamDelaysOnlyPossibleTokens(t *testing.T) {
	t.Parallel()
	var r Restorer
	r.Add(map[string]string{"{{NAME_1}}": "Ann"})
	st := r.Stream(false)
	for _, c := range []struct{ push, want string }{
		{"hello {", "hello "}, {"{NA", ""}, {"ME_1}", ""}, {"}!", "Ann!"}, {" {x", " {x"}, {"{{name", "{{name"}, {" {{NAME_", " "}, {"x", "{{NAME_x"},
	} {
		if got := st.Push(c.push); got != c.want {
			t.Errorf("push %q: %q, want %q", c.push, got, c.want)
		}
	}
	if got := st.Push("{{NAME_1"); got != "" || st.End() != "{{NAME_1" {
		t.Errorf("the end of the text lost what was held back, or sent %q early", got)
	}
}

// However a text is cut, what is sent is the restored whole, and what comes out of
// Texts comes back.
func FuzzRestore(f *testing.F) {
	f.Add("mail ann@x.io {{NAME_1}} {{{", 5, 8, 3)
	f.Add("{{A_1}}{{A_", 2, 4, 1)
	f.Fuzz(func(t *testing.T, text string, from, size, step int) {
		from, size, step = max(0, from), max(0, size), max(1, step)
		if from > len(text) || size == 0 || size > len(text)-from {
			return
		}
		out, values := Texts([]string{text}, [][]Span{{{from, from + size, "NAME"}}})
		var r Restorer
		r.Add(values)
		whole := r.Text(*out[0])
		if !strings.Contains(text, "{") && whole != text {
			t.Fatalf("%q came back as %q", text, whole)
		}
		st := r.Stream(false)
		var b strings.Builder
		for rest := *out[0]; rest != ""; {
			n := min(step, len(rest))
			b.WriteString(st.Push(rest[:n]))
			rest = rest[n:]
			if len(st.pending) > 2+maxLabel+maxDigits+3 {
				t.Fatalf("holds back %d bytes", len(st.pending))
			}
		}
		b.WriteString(st.End())
		if b.String() != whole {
			t.Fatalf("in pieces %q, whole %q", b.String(), whole)
		}
	})
}

// TestOverlapsAreMaskedCompletely: spans of any order that overlap are masked as one.
func TestOverlapsAreMaskedCompletely(t *testing.T) {
	t.Parallel()
	const text = "0123456789"
	for a := range 8 {
		for b := range 8 {
			spans := []Span{{a, a + 3, "NAME"}, {b, b + 2, "EMAIL_ADDRESS"}}
			out, values := Texts([]string{text}, [][]Span{spans})
			var r Restorer
			r.Add(values)
			rest := *out[0]
			for token := range values {
				rest = strings.ReplaceAll(rest, token, "")
			}
			for _, s := range spans {
				if strings.ContainsAny(rest, text[s.Start:s.End]) {
					t.Errorf("%v: %s", spans, *out[0])
				}
			}
			if got := r.Text(*out[0]); got != text {
				t.Errorf("%v: put back as %q", spans, got)
			}
		}
	}
}

// TestLogsShowTokens: what was put back into a response is a token again in its log, also
// within JSON, and the longest value first.
func TestLogsShowTokens(t *testing.T) {
	t.Parallel()
	var r Restorer
	r.Add(map[string]string{"{{NAME_1}}": "Ann", "{{NAME_2}}": "Ann \"O\" Neil"})
	args, _ := json.Marshal("Ann \"O\" Neil")
	body, _ := json.Marshal(map[string]string{"content": "Ann \"O\" Neil and Ann", "arguments": string(args)})
	if got := string(r.Mask(body)); strings.Contains(got, "Ann") || !strings.Contains(got, `"{{NAME_2}} and {{NAME_1}}"`) || !strings.Contains(got, `\"{{NAME_2}}\"`) {
		t.Errorf("%s", got)
	}
}
