package relay

import (
	"slices"
	"testing"

	"gateway/shared/provider"
)

// A turn that another provider answered may go to Claude on any host: without the
// citations that are not Anthropic's.
func TestAdaptCitations(t *testing.T) {
	const turns = `"messages":[{"role":"assistant","content":[{"type":"text","text":"a","citations":`
	const theirs = `{"type":"web_search_result_location","url":"https://a","title":"A","encrypted_index":"","cited_text":""}`
	const own = `{"type":"web_search_result_location","url":"https://a","title":"A","encrypted_index":"Eo8","cited_text":"q"}`
	for id, front := range map[string]string{"anthropic": "{", "vertex-ai": `{"anthropic_version":"vertex-2023-10-16",`} {
		row, known := provider.ByID(id)
		if !known {
			t.Fatal(id)
		}
		target := &provider.Target{Provider: row}
		got, dropped := adapt(target, provider.Messages, provider.AnthropicMessages, "anthropic.claude-x", []byte(`{`+turns+`[`+theirs+`,`+own+`]}]}]}`))
		if want := front + turns + `[` + own + `]}]}]}`; string(got) != want || !slices.Equal(dropped, []string{"messages[0].content[0].citations"}) {
			t.Errorf("%s: %s, %v left out; want %s", id, got, dropped, want)
		}
	}
}
