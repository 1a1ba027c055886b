package content

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"gateway/shared/wire"
)

// Text in base64 is judged however it is written: with an escaped letter, white space or
// foreign characters within the base64, with a control character, bytes that are no UTF-8 or
// in UTF-16 within the text.
func TestTextInBase64IsJudgedHoweverItIsWritten(t *testing.T) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const word = "FORBIDDENWORD is here"
	plain := encode(word)
	utf16 := "\xff\xfe"
	for _, c := range word {
		utf16 += string([]byte{byte(c), 0})
	}
	values := map[string]string{
		"plain":             plain,
		"an escaped letter": `\u00` + string("0123456789abcdef"[plain[0]>>4]) + string("0123456789abcdef"[plain[0]&15]) + plain[1:],
		"a space":           plain[:5] + " " + plain[5:],
		"a foreign sign":    plain[:5] + "!" + plain[5:],
		"control character": encode("\x01" + word),
		"no UTF-8":          encode("\xfe\x80" + word),
		"UTF-16":            encode(utf16),
	}
	bodies := map[string]string{
		"Anthropic": `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"text/plain","data":"%"}}]}]}`,
		"Gemini":    `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"text/plain","data":"%"}}]}]}`,
		"OpenAI":    `{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,%"}}]}]}`,
	}
	for value, data := range values {
		for format, body := range bodies {
			if value == "a foreign sign" && format != "OpenAI" {
				continue // it is judged as it is written: no base64
			}
			found := InRequest("", []byte(strings.Replace(body, "%", data, 1)), AllMessages)
			if !strings.Contains(strings.Join(found.Texts, "\n"), word) {
				t.Errorf("%s in %s: judged is %q", value, format, found.Texts)
			}
		}
	}
	for name, data := range map[string]string{"picture": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "sound": "RIFF\x24\x08\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00", "PDF": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"} {
		body := `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"` + encode(data) + `"}}]}]}`
		if found := InRequest("", []byte(body), AllMessages); strings.Join(found.Texts, "") != "" {
			t.Errorf("%s: judged is %q", name, found.Texts)
		}
	}
}

// A text is judged whatever media type a host gives it; pictures are not.
func TestTextIsJudgedInAnyMediaType(t *testing.T) {
	const word = "FORBIDDENWORD"
	for _, kind := range []string{"application/json", "image/png", "audio/mpeg", "text/event-stream", "application/octet-stream", "", "text/plain"} {
		for _, body := range []string{`{"choices":[{"message":{"content":"` + word + `"}}]}`, "it is " + word} {
			if kind == "text/event-stream" && body[0] != '{' {
				continue // no event
			}
			doc, ok := Read(kind, []byte(body))
			if found := InResponse("", doc.JSON, AllMessages); !ok || !strings.Contains(strings.Join(found.Texts, "\n"), word) {
				t.Errorf("%s, %s: %t, judged is %q", kind, body, ok, found.Texts)
			}
		}
	}
	if doc, ok := Read("image/png", []byte("\x89PNG\r\n\x1a\n\x00\x00")); !ok || doc.JSON != nil {
		t.Errorf("a picture: %t, %s", ok, doc.JSON)
	}
}

// TestNamesAreJudgedWhereTheyAreText: the model reads the names of participants and of files,
// whatever they look like. A name comes before the other texts of its message. Names of tools
// are exempt unless they are addresses or numbers.
func TestNamesAreJudgedWhereTheyAreText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ann@example.com", "078-05-1120", "alice", "get_weather-2"} {
		ordinary := name == "alice" || name == "get_weather-2"
		for body, judged := range map[string]bool{
			`{"messages":[{"role":"user","content":"a","name":"NAME"}]}`:                                true,
			`{"messages":[{"name":"NAME","role":"assistant","content":[{"type":"text","text":"a"}]}]}`:  true,
			`{"messages":[{"role":"system","content":"a","name":"NAME"}]}`:                              true,
			`{"messages":[{"role":"tool","content":"a","name":"NAME"}]}`:                                !ordinary,
			`{"input":[{"type":"function_call","arguments":"{}","name":"NAME"}]}`:                       !ordinary,
			`{"messages":[{"role":"user","content":[{"type":"document","document":{"name":"NAME"}}]}]}`: true,
			`{"messages":[{"role":"user","parts":[{"kind":"file","file":{"name":"NAME"}}]}]}`:           true,
		} {
			found := InRequest(ToolCall, []byte(strings.ReplaceAll(body, "NAME", name)), AllMessages)
			system := InRequest("", []byte(strings.ReplaceAll(body, "NAME", name)), ToolArguments)
			if got := strings.Contains(strings.Join(append(found.Texts, system.Texts...), "\n"), name); got != judged {
				t.Errorf("%s in %s: judged is %q", name, body, found.Texts)
			}
		}
	}
	found := InRequest("", []byte(`{"messages":[{"role":"user","content":"the end","name":"alice"}]}`), LastMessage)
	if !slices.Equal(found.Texts, []string{"alice", "the end"}) {
		t.Errorf("%q", found.Texts)
	}
}

// TestInstructionsOfResponsesAreJudged: only objects that repeat the instructions of their
// request are exempt, in whatever order their fields come.
func TestInstructionsOfResponsesAreJudged(t *testing.T) {
	t.Parallel()
	for body, judged := range map[string]bool{
		`{"choices":[{"message":{"content":"a"}}],"instructions":"FORBIDDENWORD"}`:                                           true,
		`{"instructions":"FORBIDDENWORD","object":"chat.completion","choices":[]}`:                                           true,
		`{"instructions":{"text":["FORBIDDENWORD"]},"content":[]}`:                                                           true,
		`{"instructions":"FORBIDDENWORD","object":"response","output":[]}`:                                                   false,
		`{"object":"response","output":[],"instructions":"FORBIDDENWORD"}`:                                                   false,
		`{"type":"response.completed","response":{"object":"response","output":[],"instructions":"FORBIDDENWORD"}}`:          false,
		`{"object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"FORBIDDENWORD"}]}]}`:      true,
		`{"object":"list","data":[{"role":"user","content":[{"type":"input_text","text":"FORBIDDENWORD"}]}],"first_id":"m"}`: true,
	} {
		found := InResponse("", []byte(body), AllMessages)
		if got := strings.Contains(strings.Join(found.Texts, "\n"), "FORBIDDENWORD"); got != judged {
			t.Errorf("%s: judged is %q", body, found.Texts)
		}
	}
}

// TestEscapedLettersOfArgumentsAreRead checks that no spelling of the arguments of a call that a
// client may accept hides a word by escapes.
func TestEscapedLettersOfArgumentsAreRead(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"a":"\u0068unter2"}`:         `{"a":"hunter2"}`,
		"\n {\"a\":\"\\u0068unter2\"}": "\n {\"a\":\"hunter2\"}",
		`[{"\u0068unter2":1}] `:        `[{"hunter2":1}] `,
		`"\u0068unter2"`:               `"hunter2"`,
		`print("\u0068unter2")`:        `print("\u0068unter2")`,
		``:                             ``,
	} {
		body := wire.AppendJSONString([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":`), args)
		found := InRequest("chatComplete", append(body, `}}]}]}`...), ToolArguments)
		if len(found.Texts) != 1 || found.Texts[0] != want {
			t.Errorf("%q: %q, want %q", args, found.Texts, want)
		}
	}
}

// TestOtherEncodingsCannotBeRead: a reader that follows the declaration finds other texts.
func TestOtherEncodingsCannotBeRead(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"": true, "application/json": true, "application/json; charset=UTF-8": true, `application/json; charset="utf8"`: true, "text/plain; charset=us-ascii": true, "multipart/form-data; boundary=x": true,
		"application/json; charset=utf-7": false, "application/json;charset=UTF-16LE": false, "application/json; charset=cp037": false, "application/json; charset=ISO-8859-1": true,
		"application/json; charset=utf-7; charset=utf-8": false, "application/json, application/json; charset=utf-7": false,
	} {
		if _, ok := Read(kind, []byte(`{"p":"+AEYATwBSAEI-"}`)); ReadsASCII(kind) != want || ok != want {
			t.Errorf("%s: %v, read: %v", kind, ReadsASCII(kind), ok)
		}
	}
}
