package reference

import (
	"strings"
	"testing"

	"gateway/shared/wire"
)

// What is found in a body without looking at its keys first is mentioned by them.
func FuzzMentioned(f *testing.F) {
	for _, body := range []string{
		`{"tools":[{"type":"web_search"}]}`, `{"toolConfig":{"Tools":[{"google_search":{}}]}}`, `{"plugins" : [{"id":"web"}]}`,
		`{"mcp_servers":[{"url":"x"}]}`, `{"\u0074ools":[{"type":"mcp"}]}`, `{"to_ols":[{"type":"mcp"}]}`,
		`{"tools` + strings.Repeat("_", 80) + `":[{"type":"mcp"}]}`, `{"request":{"enableSearch":true}}`, `[{"params":{"search_parameters":{}}}]`,
		`{"input":[{"id":"msg_1"}]}`, `{"Items":[{"type":"compaction"}]}`, `{"\u0069nput":[{"id":"msg_1"}]}`, `{"file_id":"file-1"}`, `{"plugİns":[{"id":"web"}]}`, `{"İnput":[{"id":"msg_1"}]}`,
		`{"messages":[{"content":"a school:\"tools\":"}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		may := Mentioned(body)
		h := hostFinder{d: wire.NewDecoder(body)}
		if h.holder("", 0); len(h.found) > 0 && may&Tools == 0 {
			t.Errorf("%s has the tool %s", body, h.found[0].Field)
		}
		if field := FindStored(body, func(string) bool { return false }); field != "" && may&Stored == 0 {
			t.Errorf("%s has the stored item %s", body, field)
		}
		if (may&Objects != 0) != MayNameObjects(body) {
			t.Errorf("%s: objects %t, alone %t", body, may&Objects != 0, MayNameObjects(body))
		}
	})
}

func TestAConversationMentionsNothing(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"Cool tools: search the school's \"items\", input and mcp plugins\n"}]}`,
		`{"model":"m","max_tokens":16,"system":"Answer: briefly.","messages":[{"role":"user","content":[{"type":"text","text":"ids: a_b"}]}]}`,
	} {
		if got := Mentioned([]byte(body)); got != 0 {
			t.Errorf("%s: %b", body, got)
		}
	}
}
