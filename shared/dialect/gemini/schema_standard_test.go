package gemini

import (
	"encoding/json"
	"testing"
)

func TestSchemasOfGeminisClients(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true},"n":{"type":"ARRAY","items":{"type":"INTEGER","format":"int32"},"minItems":"2"}},"required":["n"],"propertyOrdering":["n","type"]}`: `{"type":"object","properties":{"type":{"type":["string","null"]},"n":{"type":"array","items":{"type":"integer","format":"int32"},"minItems":2}},"required":["n"]}`,
		`{"anyOf":[{"type":"STRING","format":"enum","enum":["A","OBJECT"]},{"type":"NUMBER"}]}`:                                                                                                                      `{"anyOf":[{"type":"string","enum":["A","OBJECT"]},{"type":"number"}]}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]}}}`:                                                                                                                                            `{"type":"object","properties":{"a":{"type":["string","null"]}}}`,
		`{"nullable":false,"type":"STRING","maxLength":"x","description":"STRING"}`:                                                                                                                                  `{"type":"string","maxLength":"x","description":"STRING"}`,
		`{}`: `{}`,
	} {
		if got := string(standard(nil, []byte(in))); got != want {
			t.Errorf("%s\nis  %s\nnot %s", in, got, want)
		}
	}
}

func FuzzStandardSchema(f *testing.F) {
	f.Add(`{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true,"maxLength":"4"}},"anyOf":[{}],"items":[1]}`)
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 4096 || !json.Valid([]byte(in)) {
			return
		}
		once := standard(nil, []byte(in))
		if !json.Valid(once) {
			t.Fatalf("%s becomes %s", in, once)
		}
		if again := standard(nil, once); string(again) != string(once) {
			t.Errorf("%s becomes %s, then %s", in, once, again)
		}
	})
}
