package openai

import (
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
)

// TestRestoreReturnsRequiredReasoning: a turn with tool calls gets the reasoning that is stored for
// one of them if its host requires it and the client has not returned it. Other bytes stay.
func TestRestoreReturnsRequiredReasoning(t *testing.T) {
	t.Parallel()
	const ask, offered = `{"role":"user","content":"go"}`, `,"tools":[{"type":"function","function":{"name":"f"}}]`
	turn := func(id, more string) string {
		return `{` + more + `"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}},{"type":"function","id":"` + id + `","function":{"name":"f","arguments":"{}"}}]}`
	}
	const first, second = `"reasoning_content":"first \"one\"",`, `"reasoning_content":"second",`
	for _, c := range []struct {
		name, host, more string
		turns, want      []string
		forgets          bool
	}{
		{"no turn with calls yet", "deepseek", offered, []string{ask, `{"role":"assistant","content":"hi"}`}, nil, true},
		{"no tools", "deepseek", ``, []string{ask}, nil, false},
		{"a host that does not require it", "openrouter", offered, []string{turn("c1", "")}, nil, false},
		{"another host", "openai", offered, []string{turn("c1", "")}, nil, false},
		{"all turns", "deepseek", offered, []string{ask, turn("c1", ""), turn("c2", "")}, []string{ask, turn("c1", first), turn("c2", second)}, true},
		{"of another host of that kind", "moonshot", offered, []string{turn("c1", "")}, nil, true},
		{"empty and null", "deepseek", offered, []string{turn("c1", `"reasoning_content": "" ,`), turn("c2", `"reasoning_content":null,`)},
			[]string{turn("c1", `"reasoning_content": "first \"one\"" ,`), turn("c2", second)}, true},
		{"returned", "deepseek", offered, []string{turn("c1", `"reasoning_content":"mine",`)}, nil, false},
		{"one of two is returned", "deepseek", offered, []string{turn("c1", ""), turn("c2", `"reasoning_content":"mine",`)}, []string{turn("c1", first), turn("c2", `"reasoning_content":"mine",`)}, true},
		{"none before a turn without any", "deepseek", offered, []string{turn("c1", ""), turn("unknown", "")}, nil, true},
	} {
		recall := func(id string) []chat.Part {
			text := map[string]string{"c1": `first "one"`, "c2": "second"}[id]
			if text == "" {
				return nil
			}
			return []chat.Part{{Kind: chat.Reasoned, Text: text, Signature: hosts.ReasonerOf("deepseek").Signature()}}
		}
		body := func(turns []string) string {
			return `{ "model":"m","messages" : [` + strings.Join(turns, " ,") + `]` + c.more + `}`
		}
		if c.want == nil {
			c.want = c.turns
		}
		got, forgets := Chat{}.Restore([]byte(body(c.turns)), &chat.Traits{Provider: c.host}, recall)
		if string(got) != body(c.want) || forgets != c.forgets {
			t.Errorf("%s: forgets %v, %s\nwant %s", c.name, forgets, got, body(c.want))
		}
	}
	for _, broken := range []string{``, `[]`, `{"messages":{}}`, `{"messages":[{"tool_calls":[{"id":"c1"}]}`, `{"tools":[{}],"messages":[1,{"tool_calls":{}}]`} {
		if got, forgets := (Chat{}).Restore([]byte(broken), &chat.Traits{Provider: "deepseek"}, nil); string(got) != broken || forgets {
			t.Errorf("%s: %v %s", broken, forgets, got)
		}
	}
}
