package content

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// formats are beginnings of files, with noise behind them.
func formats() map[string]string {
	noise := make([]byte, 300)
	for i := range noise {
		noise[i] = byte(i*37 + 129)
	}
	out := map[string]string{}
	for name, begin := range map[string]string{
		"pdf": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "late pdf": strings.Repeat("x", 200) + "\n%PDF-1.4\n\xff", "docx": "PK\x03\x04\x14\x00", "doc": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
		"gzip": "\x1f\x8b\x08", "unknown": "\x81\x00\xf3", "png": "\x89PNG\r\n\x1a\n", "jpeg": "\xff\xd8\xff\xe0", "wav": "RIFF\x00\x00\x00\x00WAVEfmt ", "mp4": "\x00\x00\x00\x18ftypisom", "flac": "fLaC\x00",
	} {
		out[name] = begin + string(noise)
	}
	out["letters of pdf"] = "%PDF-1.4\n1 0 obj (F)(O)(R)(B) endobj"
	out["rtf"] = `{\rtf1\ansi \'46\'4f\'52}`
	out["text"] = "a text with a FORBIDDENWORD in it"
	out["utf16"] = "\xff\xfea\x00 \x00t\x00e\x00x\x00t\x00"
	return out
}

// places are where the formats of clients and providers have documents, Images and audio. %s is
// base64.
var places = []struct{ name, kind, body string }{
	{"Anthropic document", "document", `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"%s"}}]}]}`},
	{"Anthropic document in a tool result", "document", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"%s"}}]}]}]}`},
	{"Anthropic image", "media", `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`},
	{"Converse document", "document", `{"messages":[{"role":"user","content":[{"document":{"format":"pdf","name":"a","source":{"bytes":"%s"}}}]}]}`},
	{"Converse image", "media", `{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"%s"}}}]}]}`},
	{"Converse video", "media", `{"messages":[{"role":"user","content":[{"video":{"format":"mp4","source":{"bytes":"%s"}}}]}]}`},
	{"OpenAI file", "document", `{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,%s"}}]}]}`},
	{"OpenAI file without a type", "document", `{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"%s"}}]}]}`},
	{"OpenAI image", "media", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`},
	{"OpenAI sound", "media", `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"format":"wav","data":"%s"}}]}]}`},
	{"Responses file", "document", `{"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,%s"}]}]}`},
	{"Responses file in a tool output", "document", `{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_file","filename":"a.pdf","file_data":"data:;base64,%s"}]}]}`},
	{"Responses image", "media", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,%s"}]}]}`},
	{"Gemini document", "document", `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"%s"}}]}]}`},
	{"Gemini document, other spelling", "document", `{"contents":[{"role":"user","parts":[{"inline_data":{"data":"%s","mime_type":"application/pdf"}}]}]}`},
	{"Gemini image", "media", `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"%s"}}]}]}`},
	{"Cohere document", "document", `{"messages":[{"role":"user","content":[{"type":"document","document":{"id":"a","data":"%s"}}]}]}`},
	{"OCR document", "document", `{"document":{"type":"document_url","document_url":"data:application/pdf;base64,%s"}}`},
	{"OCR image", "media", `{"document":{"type":"image_url","image_url":"data:image/png;base64,%s"}}`},
	{"MCP resource", "document", `{"contents":[{"uri":"file:///a","mimeType":"application/pdf","blob":"%s"}]}`},
	{"A2A file", "document", `{"message":{"parts":[{"kind":"file","file":{"mimeType":"application/pdf","bytes":"%s"}}]}}`},
	{"a format that nobody knows", "document", `{"anything":{"at":["all",{"bytes":"%s"}]}}`},
}

// TestDocumentsThatCannotBeReadAreUnread puts files of each format into each place where a
// client or a provider can put one: a document is unread whatever it is declared to be, and
// images, audio and texts are not. Bytes of no known format are a document unless they are in
// the place of an image or of audio.
func TestDocumentsThatCannotBeReadAreUnread(t *testing.T) {
	t.Parallel()
	for _, p := range places {
		for name, file := range formats() {
			want := slices.Contains([]string{"pdf", "late pdf", "letters of pdf", "rtf", "docx", "doc", "gzip"}, name) || name == "unknown" && p.kind == "document"
			coded := base64.StdEncoding.EncodeToString([]byte(file))
			spellings := map[string]string{"plain": coded}
			if name == "pdf" || name == "png" {
				spellings["URL alphabet"] = base64.RawURLEncoding.EncodeToString([]byte(file))
				spellings["spaces"] = coded[:20] + "  " + coded[20:]
				spellings["lines"] = coded[:20] + `\n` + coded[20:]
				spellings["strange"] = coded[:80] + "!" + coded[80:]
			}
			for spelling, s := range spellings {
				if strings.Contains(p.body, "base64,") && spelling != "plain" && spelling != "URL alphabet" {
					continue // no data URL
				}
				body := fmt.Sprintf(p.body, s)
				for _, answer := range []bool{false, true} {
					if _, got := HasUnreadable("chatComplete", []byte(body), answer); got != want {
						t.Errorf("%s, %s, %s, answer %t: unread is %t", p.name, name, spelling, answer, got)
					}
				}
			}
			if l := (leaf{body: fmt.Appendf(nil, p.body, coded)}); name == "text" && p.kind == "document" && !l.seen("chatComplete") {
				t.Errorf("%s: the text is not judged", p.name)
			}
		}
	}
}

// TestReadAcceptsBodiesWithoutDocuments covers values in base64 that are not files.
func TestReadAcceptsBodiesWithoutDocuments(t *testing.T) {
	t.Parallel()
	random := base64.StdEncoding.EncodeToString([]byte(formats()["unknown"]))
	for _, body := range []string{
		`{"content":[{"type":"redacted_thinking","data":"` + random + `"}]}`,
		`{"content":[{"type":"thinking","thinking":"a","signature":"` + random + `"}]}`,
		`{"choices":[{"message":{"reasoning_details":[{"type":"reasoning.encrypted","data":"` + random + `"}]}}]}`,
		`{"choices":[{"message":{"audio":{"id":"a","data":"` + random + `","transcript":"b"}}}]}`,
		`{"output":[{"type":"image_generation_call","result":"` + random + `"}]}`,
		`{"data":[{"embedding":"` + random + `"}]}`,
		`{"data":[{"b64_json":"` + base64.StdEncoding.EncodeToString([]byte(formats()["png"])) + `"}]}`,
		`{"data":"success"}`, `{"data":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`, `{"data":{"a":"b"}}`, `{"bytes":"12"}`, `{"document_url":"https://example.com/a.pdf"}`, `{"file_id":"file-1"}`,
	} {
		for _, answer := range []bool{false, true} {
			if _, is := HasUnreadable("chatComplete", []byte(body), answer); is {
				t.Errorf("unread: %s", body)
			}
		}
	}
	if l := (leaf{body: []byte(`{"messages":[{"role":"user","content":[{"type":"x","data":"FORBIDDENWORD"}]}]}`)}); !l.seen("chatComplete") {
		t.Error("a word in the place of base64 is not judged")
	}
}

// TestFilesOfForms: a text is judged, a document is unread, and Images and audio have no text.
func TestFilesOfForms(t *testing.T) {
	t.Parallel()
	for name, file := range formats() {
		for _, media := range []bool{false, true} {
			text, ok := ReadFile("application/octet-stream", []byte(file), media)
			want := slices.Contains([]string{"png", "jpeg", "wav", "mp4", "flac", "text", "utf16"}, name) || name == "unknown" && media
			if ok != want || name == "text" && text != file || name == "utf16" && text != "a text" {
				t.Errorf("%s, media %t: %q %t", name, media, text, ok)
			}
		}
	}
}

// TestTokenIDsAreUnread: numbers in place of a text of a request are a text that nobody reads,
// in any spelling and depth; other numbers are not.
func TestTokenIDsAreUnread(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"prompt", "input", "Prompt", "prompt_token_ids", "promptTokenIds", "token_ids", "negative_prompt_token_ids"} {
		for _, value := range []string{`[15339,1917]`, `[[1,2],[3]]`, `["a",[1]]`, `[[["a"],[7]]]`, `[1]`} {
			for _, body := range []string{`{"model":"m","FIELD":VALUE}`, `[{"FIELD":VALUE}]`, `{"requests":[{"params":{"FIELD":VALUE}}]}`} {
				body = strings.NewReplacer("FIELD", field, "VALUE", value).Replace(body)
				if at, is := HasUnreadable("embed", []byte(body), false); !is || at != field {
					t.Errorf("%s is read, %q", body, at)
				}
			}
		}
	}
	for _, body := range []string{
		`{"prompt":"a"}`, `{"prompt":["a","b"]}`, `{"input":[]}`, `{"input":[{"a":[1,2]}]}`, `{"input":5}`, `{"numbers":[1,2]}`, `{"logit_bias":{"5":1}}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"input":[1,2]}}]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"prompt\":[1]}"}}]}]}`,
	} {
		if at, is := HasUnreadable("chatComplete", []byte(body), false); is {
			t.Errorf("%s is not read, %q", body, at)
		}
	}
	if _, is := HasUnreadable("chatComplete", []byte(`{"prompt_token_ids":[1],"choices":[{"token_ids":[2],"message":{"content":"a"}}]}`), true); is {
		t.Error("ids beside the text of a response")
	}
}
