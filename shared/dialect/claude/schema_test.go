package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/chat"
)

func TestAppendSchemaMovesWhatIsRefusedIntoTheDescription(t *testing.T) {
	for _, c := range []struct{ in, want, lost string }{
		{`{"type":"number","minimum":1}`, `{"type":"number","description":"{minimum: 1}"}`, "s.minimum"},
		{`{"type":"string","description":"A \"name\"","maxLength":3,"minLength":1}`, `{"type":"string","description":"A \"name\"\n\n{maxLength: 3, minLength: 1}"}`, "s.minLength"},
		{`{"type":"array","minItems":1,"items":{"type":"string"}}`, "", ""},
		{`{"type":"array","minItems":2,"items":{"type":"integer","multipleOf":2}}`, `{"type":"array","items":{"type":"integer","description":"{multipleOf: 2}"},"description":"{minItems: 2}"}`, "s.items.multipleOf"},
		{`{"type":"string","format":"uuid"}`, "", ""},
		{`{"type":"string","format":"byte"}`, `{"type":"string","description":"{format: \"byte\"}"}`, "s.format"},
		{`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"required":["a"],"additionalProperties":false}`, "", ""},
		{`{"type":"object","properties":{}}`, `{"type":"object","properties":{},"additionalProperties":false}`, ""},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","additionalProperties":false}`, "s.additionalProperties"},
		{`{"$defs":{"d":{"maximum":2}},"anyOf":[{"$ref":"#/$defs/d"},{"not":{}}]}`, `{"$defs":{"d":{"description":"{maximum: 2}"}},"anyOf":[{"$ref":"#/$defs/d"},{"description":"{not: {}}"}]}`, "s.$defs.d.maximum"},
		{`{"oneOf":[true,{"type":"null"}]}`, `{"anyOf":[true,{"type":"null"}]}`, "s.oneOf"},
		{`{"properties":{"minimum":{"type":"string"}},"additionalProperties":false}`, "", ""},
	} {
		var loss chat.Loss
		got := string(AppendSchema([]byte("x"), []byte(c.in), "s", &loss))
		if c.want == "" {
			c.want = c.in
		}
		if got != "x"+c.want || !json.Valid([]byte(got[1:])) {
			t.Errorf("%s\n  is %s\nwant %s", c.in, got, c.want)
		}
		if (c.lost == "") != loss.Empty() || !strings.Contains(loss.Header(), c.lost) {
			t.Errorf("%s: lost %q, want %q", c.in, loss.Header(), c.lost)
		}
	}
}
