package citation

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRead(t *testing.T) {
	for name, c := range map[string]struct{ raw, nested, messages string }{
		"chat completions": {`{"type":"url_citation","url_citation":{"url":"https://a","title":"A","start_index":2,"end_index":4}}`, `"start_index":12,"end_index":14,"url":"https://a","title":"A"`, `"type":"web_search_result_location","url":"https://a"`},
		"responses":        {`{"type":"url_citation","url":"https://a","title":"A","start_index":2,"end_index":4}`, `"start_index":12,"end_index":14,`, `"title":"A"`},
		"beyond the text":  {`{"type":"url_citation","url":"https://a","start_index":2,"end_index":400}`, `"start_index":12,"end_index":15,`, `"title":""`},
		"without a place":  {`{"type":"url_citation","url":"https://a","start_index":4,"end_index":4}`, `"start_index":10,"end_index":15,`, `"url":"https://a"`},
		"messages":         {`{"type":"web_search_result_location","url":"https://a","title":null,"encrypted_index":"e","cited_text":"q"}`, `"start_index":10,"end_index":15,"url":"https://a","title":""`, `"encrypted_index":"e"`},
		"a search result":  {`{"type":"search_result_location","source":"https://a","title":"A","cited_text":"q","search_result_index":0}`, `"url":"https://a"`, `"search_result_index":0`},
		"a named result":   {`{"type":"search_result_location","source":"handbook","title":"A","cited_text":"q"}`, "", `"source":"handbook"`},
		"a document":       {`{"type":"page_location","cited_text":"q","document_index":0}`, "", `"page_location"`},
		"converse, web":    {`{"title":"A","sourceContent":[{"text":"q"},{"text":"r"}],"location":{"web":{"url":"https://a","domain":"a"}}}`, `"url":"https://a","title":"A"`, `"cited_text":"qr"`},
		"converse, pages":  {`{"title":"A","location":{"documentPage":{"documentIndex":1,"start":2,"end":3}}}`, "", `{"type":"page_location","cited_text":"","document_index":1,"document_title":"A","start_page_number":2,"end_page_number":3}`},
		"cohere":           {`{"start":0,"end":3,"text":"abc","sources":[{"type":"tool","id":"t"},{"type":"document","document":{"id":"d","url":"https://a","title":"A"}}]}`, `"start_index":10,"end_index":13,"url":"https://a"`, `"url":"https://a"`},
		"a file":           {`{"type":"file_citation","file_id":"f","index":3}`, "", ""},
		"not an object":    {`[]`, "", ""},
		"not JSON":         {`{"url":"https://a"`, "", ""},
	} {
		got := Read([]byte(c.raw))
		nested, messages := string(got.AppendNested(nil, 10, 5)), string(got.AppendMessages(nil))
		if !strings.Contains(nested, c.nested) || c.nested == "" && nested != "" {
			t.Errorf("%s: nested %s, want %s", name, nested, c.nested)
		}
		if !strings.Contains(messages, c.messages) || c.messages == "" && messages != "" {
			t.Errorf("%s: messages %s, want %s", name, messages, c.messages)
		}
	}
}

func TestLength(t *testing.T) {
	for _, s := range []string{"", "abc", "Grüße", "a\"b\n\u2028", "🙂 東京", "\\"} {
		raw, _ := json.Marshal(s)
		if got, want := Length(raw), utf8.RuneCountInString(s); got != want {
			t.Errorf("%s: %d, want %d", raw, got, want)
		}
		if len(s) > 0 && Length(raw[1:len(raw)-1]) != utf8.RuneCountInString(s) {
			t.Errorf("%s without its quotes", raw)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"type":"url_citation","url_citation":{"url":"https://a","title":"A","start_index":2,"end_index":4}},{"cited_text":"q","type":"x_location"},{"location":{"documentChar":{"start":1e9}}}]`))
	f.Fuzz(func(t *testing.T, list []byte) {
		if !json.Valid(list) {
			return
		}
		for _, one := range []func(dst []byte, c *Citation) []byte{
			func(dst []byte, c *Citation) []byte { return c.AppendNested(dst, 3, 7) },
			func(dst []byte, c *Citation) []byte { return c.AppendFlat(dst, 0, 0) },
			func(dst []byte, c *Citation) []byte { return c.AppendMessages(dst) },
		} {
			if out := append(Join([]byte("["), list, one), ']'); !json.Valid(out) || !utf8.Valid(out) {
				t.Fatalf("%q becomes %q", list, out)
			}
		}
	})
}
