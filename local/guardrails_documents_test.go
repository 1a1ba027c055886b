package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
)

// denies is a config with a guardrail that denies a word on one side.
func denies(list, more string) string {
	return `{"provider":"@mock","` + list + `":[{"regexMatch":{"rule":"hunter2","not":true},"deny":true` + more + `}]}`
}

// TestDocumentsThatCannotBeRead sends a document to each endpoint that can have one. While a
// guardrail denies, one that cannot be read is rejected, unless the endpoint is exempt; one
// that is text is judged, and pictures are not.
func TestDocumentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := start(t)
	pdf, png, text := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj")), "iVBORw0KGgo=", base64.StdEncoding.EncodeToString([]byte("my hunter2 is here"))
	const claude = `{"model":"@mock-anthropic/claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":[`
	for _, c := range []struct{ name, path, body, exempt string }{
		{"Anthropic document", "/messages", claude + `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"FILE"}}]}]}`, "messages"},
		{"Anthropic tool result", "/messages", claude + `{"type":"tool_result","tool_use_id":"t","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"FILE"}}]}]}]}`, "messages"},
		{"Converse document", "/model/gpt-4o/converse", `{"messages":[{"role":"user","content":[{"text":"a"},{"document":{"format":"pdf","name":"d","source":{"bytes":"FILE"}}}]}]}`, "/model"},
		{"OpenAI file", "/chat/completions", `{"model":"@mock/gpt-4o","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,FILE"}}]}]}`, "chatComplete"},
		{"OpenAI file, passed through", "/proxy/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,FILE"}}]}]}`, "/chat"},
		{"Responses file", "/responses", `{"model":"@mock/gpt-4o","input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,FILE"}]}]}`, "createModelResponse"},
		{"Gemini document", "/v1beta/models/gpt-4o:generateContent", `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"FILE"}}]}]}`, "/v1beta/models"},
		{"OCR document", "/ocr", `{"model":"@mock/mistral-ocr-latest","document":{"type":"document_url","document_url":"data:application/pdf;base64,FILE"}}`, "/ocr"},
	} {
		send := func(file, config string) reply {
			return r.call("POST", c.path, strings.Replace(c.body, "FILE", file, 1), "X-Gateway-Provider", "@mock", "x-gateway-config", config)
		}
		if got := send(pdf, denies("input_guardrails", "")); got.status != 403 || !strings.Contains(got.body, "allow_unread") {
			t.Errorf("%s: %d %.300s", c.name, got.status, got.body)
		}
		if got := send(text, denies("input_guardrails", "")); got.status != 446 {
			t.Errorf("%s, text: %d %.300s", c.name, got.status, got.body)
		}
		for why, got := range map[string]reply{
			"exempt":   send(pdf, denies("input_guardrails", `,"allow_unread":["`+c.exempt+`"]`)),
			"no deny":  send(pdf, strings.Replace(denies("input_guardrails", ""), `"deny":true`, `"deny":false`, 1)),
			"a type":   send(pdf, `{"provider":"@mock","input_guardrails":[{"allowedRequestTypes":{"blockedTypes":["embed"]},"deny":true}]}`),
			"a PNG":    send(png, denies("input_guardrails", "")),
			"the back": send(pdf, denies("output_guardrails", "")),
		} {
			if got.status == 403 || got.status == 446 {
				t.Errorf("%s, %s: %d %.300s", c.name, why, got.status, got.body)
			}
		}
	}
	echoed := `{"model":"@mock/gpt-4o","messages":[{"role":"user","content":"a"}]}`
	if got := r.call("POST", "/chat/completions", echoed, "x-gateway-config", denies("output_guardrails", "")); got.status != 200 {
		t.Errorf("a response without documents: %d %.300s", got.status, got.body)
	}
}

// TestFilesOfFormsAreJudged sends texts as files of a form: a provider reads a part that has a
// file name as it reads one that has none.
func TestFilesOfFormsAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct {
		name, path, part, kind, body string
		want                         int
	}{
		{"a prompt", "/audio/transcriptions", "prompt", "text/plain", "my hunter2", 446},
		{"a part of an edit", "/images/edits", "other", "", "my hunter2", 446},
		{"any part", "/audio/translations", "other[]", "application/octet-stream", "my hunter2", 446},
		{"a document", "/audio/transcriptions", "other", "application/pdf", "%PDF-1.7 \xff", 403},
		{"a recording", "/audio/transcriptions", "other", "audio/mpeg", "\xff\xfb\x90\x00\x00", 0},
		{"a harmless text", "/audio/transcriptions", "prompt", "text/plain", "hello", 0},
	} {
		form := new(bytes.Buffer)
		w := multipart.NewWriter(form)
		_ = w.WriteField("model", map[bool]string{true: "@mock/gpt-image-1", false: "@mock/whisper-1"}[strings.HasPrefix(c.path, "/images")]) // memory
		if strings.HasPrefix(c.path, "/images") {
			_ = w.WriteField("prompt", "a") // memory
		}
		for name, body := range map[string]string{"file": "RIFF\x00\x00\x00\x00WAVEfmt \xff", "image": "\x89PNG\r\n\x1a\n\xff"} {
			p, _ := w.CreateFormFile(name, name)
			_, _ = p.Write([]byte(body))
		}
		h := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename="a"`, c.part)}}
		if c.kind != "" {
			h["Content-Type"] = []string{c.kind}
		}
		p, _ := w.CreatePart(h)
		_, _ = p.Write([]byte(c.body))
		_ = w.Close()
		got := r.call("POST", c.path, form.String(), "content-type", w.FormDataContentType(), "x-gateway-config", denies("input_guardrails", ""))
		if c.want != 0 && got.status != c.want || c.want == 0 && (got.status == 403 || got.status == 446) {
			t.Errorf("%s: %d %.300s", c.name, got.status, got.body)
		}
	}
}

// TestQueriesOfPassThroughAreJudged: a provider reads a search in a query string.
func TestQueriesOfPassThroughAreJudged(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct {
		method, path, body, config string
		want                       int
	}{
		{"GET", "/proxy/files/search?q=my+hunter2", "", denies("input_guardrails", ""), 446},
		{"GET", "/proxy/files/search?limit=20&q=%68unter2", "", denies("input_guardrails", ""), 446},
		{"POST", "/proxy/search?q=hunter2", `{"a":"b"}`, denies("input_guardrails", ""), 446},
		{"POST", "/proxy/search?q=other", `{"a":"hunter2"}`, denies("input_guardrails", ""), 446},
		{"GET", "/proxy/files/search?limit=20&after=file_1&key=hunter2", "", denies("input_guardrails", ""), 0},
		{"POST", "/proxy/search?q=other", `{"a":"b"}`, denies("input_guardrails", ""), 0},
		{"POST", "/proxy/search?q=hunter2", `{"a":"b"}`, `{"provider":"@mock","input_guardrails":[{"regexReplace":{"rule":"hunter2"}}]}`, 403},
	} {
		got := r.call(c.method, c.path, c.body, "X-Gateway-Provider", "@mock", "x-gateway-config", c.config)
		if c.want != 0 && got.status != c.want || c.want == 0 && (got.status == 403 || got.status == 446) {
			t.Errorf("%s %s: %d %.300s", c.method, c.path, got.status, got.body)
		}
	}
	got := r.call("POST", "/proxy/chat/completions?trace=on", chatBody("gpt-4o", "mock: echo\nmy hunter2", ""), "X-Gateway-Provider", "@mock", "x-gateway-config",
		`{"provider":"@mock","input_guardrails":[{"regexReplace":{"rule":"hunter2","redactText":"****"}}]}`)
	if got.status != 200 || !strings.Contains(got.body, "my ****") {
		t.Errorf("a redacted body beside a query: %d %.300s", got.status, got.body)
	}
}
