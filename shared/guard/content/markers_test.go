package content

import (
	"strings"
	"testing"
)

// TestFieldsHideNoText: a field that a client adds to its own words does not take them out of
// what is judged.
func TestFieldsHideNoText(t *testing.T) {
	t.Parallel()
	const word = "FORBIDDENWORD"
	for _, body := range map[string]string{
		"chat":       `{ROOT"model":"m","messages":[{TURN"role":"user","content":"WORD"}]}`,
		"parts":      `{ROOT"model":"m","messages":[{TURN"role":"user","content":[{PART"type":"text","text":"WORD"}]}]}`,
		"Gemini":     `{ROOT"contents":[{TURN"role":"user","parts":[{PART"text":"WORD"}]}]}`,
		"Responses":  `{ROOT"input":[{TURN"type":"message","role":"user","content":[{PART"type":"input_text","text":"WORD"}]}]}`,
		"Converse":   `{ROOT"messages":[{TURN"role":"user","content":[{PART"text":"WORD"}]}]}`,
		"completion": `{ROOT"model":"m","prompt":"WORD"}`,
		"embeddings": `{ROOT"model":"m","input":["WORD"]}`,
	} {
		for _, marker := range []string{`"thought":true,`, `"type":"reasoning",`, `"type":"x_call",`, `"Type":"thinking",`, `"kind":"reasoning",`} {
			for _, at := range []string{"ROOT", "TURN", "PART"} {
				if !strings.Contains(body, at) {
					continue
				}
				marked := strings.NewReplacer(at, marker, "WORD", word, "ROOT", "", "TURN", "", "PART", "").Replace(body)
				for _, scope := range []Scope{LastMessage, AllMessages} {
					if found := InRequest("", []byte(marked), scope); !strings.Contains(strings.Join(found.Texts, "\n"), word) {
						t.Errorf("%s, %v: judged is %q", marked, scope, found.Texts)
					}
				}
			}
		}
	}
	for _, body := range []string{`{"thought":true,"choices":[{"message":{"role":"assistant","content":"WORD"}}]}`, `{"choices":[{"message":{"role":"assistant","thought":true,"content":"WORD"}}]}`} {
		if found := InResponse("", []byte(strings.Replace(body, "WORD", word, 1)), LastMessage); !strings.Contains(strings.Join(found.Texts, "\n"), word) {
			t.Errorf("%s: judged is %q", body, found.Texts)
		}
	}
}

// An empty message is not sent, so the last one is the one before it.
func TestTheLastMessageIsNotEmpty(t *testing.T) {
	t.Parallel()
	for _, after := range []string{`{"role":"user","content":""}`, `{"role":"assistant","content":""}`, `{"role":"user","content":[]}`, `{"role":"user","content":[{"type":"text","text":""}]}`} {
		body := `{"messages":[{"role":"user","content":"first"},{"role":"user","content":"FORBIDDENWORD"},` + after + `]}`
		if got := strings.Join(InRequest("", []byte(body), LastMessage).Texts, "\n"); !strings.Contains(got, "FORBIDDENWORD") || strings.Contains(got, "first") {
			t.Errorf("%s: judged is %q", body, got)
		}
	}
}

// The bytes decide what a base64 value is, not the media type beside it.
func TestMediaTypesHideNoText(t *testing.T) {
	t.Parallel()
	const word = "Rk9SQklEREVOV09SRCBpbiBhIHNlbnRlbmNlIHRoYXQgaXMgbG9uZyBlbm91Z2g=" // FORBIDDENWORD in a sentence that is long enough
	for _, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"text/plain","data":"` + word + `","mime_type":"image/png"}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","mime_type":"text/plain","data":"` + word + `"}}]}]}`,
	} {
		if found := InRequest("", []byte(body), AllMessages); !strings.Contains(strings.Join(found.Texts, "\n"), "FORBIDDENWORD") {
			t.Errorf("%s: judged is %q", body, found.Texts)
		}
	}
}
