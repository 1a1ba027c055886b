package citation

import (
	"slices"
	"testing"
)

const (
	signedCitation   = `{"type":"web_search_result_location","url":"https://a","title":"A","encrypted_index":"Eo8B","cited_text":"q"}`
	pageCitation     = `{"type": "page_location","cited_text":"q","document_index":0,"start_page_number":1,"end_page_number":2}`
	unsignedCitation = `{"type":"web_search_result_location","url":"https://b","title":"B","encrypted_index": "","cited_text":""}`
)

func TestOwn(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		left     int
	}{
		"all":        {`[ ` + signedCitation + ` , ` + pageCitation + `]`, `[ ` + signedCitation + ` , ` + pageCitation + `]`, 0},
		"some":       {`[` + unsignedCitation + `, ` + pageCitation + `]`, `[` + pageCitation + `]`, 1},
		"none":       {`[` + unsignedCitation + `,` + unsignedCitation + `]`, ``, 2},
		"no index":   {`[{"type":"web_search_result_location","url":"https://b","cited_text":""}]`, ``, 1},
		"of others":  {`[{"type":"url_citation","url":"https://b"}]`, ``, 1},
		"empty":      {`[]`, `[]`, 0},
		"no list":    {`{"enabled":true}`, `{"enabled":true}`, 0},
		"no objects": {`[5,null]`, `[5,null]`, 0},
		"cut":        {`[` + unsignedCitation, `[` + unsignedCitation, 0},
	} {
		got, left := FromAnthropic([]byte(c.in))
		if string(got) != c.want || left != c.left {
			t.Errorf("%s: %s, %d left out; want %s, %d", name, got, left, c.want, c.left)
		}
	}
}

func TestUnsigned(t *testing.T) {
	text := func(text, citations string) string {
		return `{"type":"text", "text":"` + text + `","citations":` + citations + `}`
	}
	body := func(blocks string) string {
		return `{"model":"m", "messages":[{"role":"user","content":"the \"encrypted_index\":\"\" of"},{"role":"assistant","content":` + blocks + `},{"role":"user","content":[{"type":"text","text":""}]}],"max_tokens":5}`
	}
	at := "messages[1].content[0].citations"
	for name, c := range map[string]struct {
		in, want string
		left     []string
	}{
		"nothing":         {body(`"plain"`), body(`"plain"`), nil},
		"own":             {body(`[` + text("a", `[`+signedCitation+`]`) + ` ]`), body(`[` + text("a", `[`+signedCitation+`]`) + ` ]`), nil},
		"all of a text":   {body(`[` + text("a", `[`+unsignedCitation+`]`) + `]`), body(`[` + text("a", `null`) + `]`), []string{at}},
		"beside own":      {body(`[` + text("a", `[`+unsignedCitation+`,`+signedCitation+`]`) + `,{"type":"x"}]`), body(`[` + text("a", `[`+signedCitation+`]`) + `,{"type":"x"}]`), []string{at}},
		"an empty text":   {body(`[{"type":"x"},` + text("", `[`+unsignedCitation+`]`) + `]`), body(`[{"type":"x"}]`), []string{"messages[1].content[1].citations"}},
		"empty with own":  {body(`[` + text("", `[`+unsignedCitation+`,`+pageCitation+`]`) + `]`), body(`[` + text("", `[`+pageCitation+`]`) + `]`), []string{at}},
		"strange content": {body(`[5,{"citations":7},{"text":[` + unsignedCitation + `]}]`), body(`[5,{"citations":7},{"text":[` + unsignedCitation + `]}]`), nil},
		"messages of any": {`{"messages":[5,` + unsignedCitation + `]}`, `{"messages":[5,` + unsignedCitation + `]}`, nil},
		"cut":             {`{"messages":[{"content":[` + text("a", `[`+unsignedCitation+`]`), `{"messages":[{"content":[` + text("a", `[`+unsignedCitation+`]`), nil},
	} {
		got, left := Unsigned([]byte(c.in))
		if string(got) != c.want || !slices.Equal(left, c.left) {
			t.Errorf("%s: %v left out\ngot  %s\nwant %s", name, left, got, c.want)
		}
	}
}

func FuzzUnsigned(f *testing.F) {
	f.Add([]byte(`{"messages":[{"content":[{"type":"text","text":"","citations":[` + unsignedCitation + `,` + pageCitation + `]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		once, left := Unsigned(body)
		if len(left) == 0 && string(once) != string(body) {
			t.Fatalf("changed without a report: %q", once)
		}
		if again, left := Unsigned(once); len(left) > 0 {
			t.Fatalf("%q still holds %v: %q", once, left, again)
		}
	})
}
