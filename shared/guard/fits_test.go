package guard

import "testing"

func TestFitsReadsAllKeywords(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"a":{"type":["integer","null"],"minimum":1},"b":{"type":"array","items":{"enum":["x","y"]}},"c":{"type":"string","pattern":"^[a-z]+$"},"d":{"anyOf":[{"type":"string"},{"type":"boolean"}]}},"required":["a"],"additionalProperties":false}`
	for value, want := range map[string]bool{
		`{"a":1}`: true, `{"a":null,"b":["x"]}`: true, `{"a": 1, "b": ["y", "x"]}`: true, `{"b":[]}`: false, `{"a":"1"}`: false,
		`{"a":1,"b":["z"]}`: false, `{"a":1,"e":2}`: false, `[]`: false, `{"a":1,"b":{}}`: false,
		`{"a":0}`: false, `{"a":1,"c":"A"}`: false, `{"a":1,"d":1}`: false, `{"a":1,"d":true}`: true, `{`: false,
	} {
		if got := MatchSchema(t.Context(), []byte(schema), []byte(value)); got != want {
			t.Errorf("%s: %t", value, got)
		}
	}
	if !MatchSchema(t.Context(), []byte(`{"$ref":"https://elsewhere.example/s.json"}`), []byte(`{}`)) {
		t.Error("a schema that cannot be compiled refuses a value")
	}
}
