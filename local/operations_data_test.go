package main

import (
	"fmt"
	"strings"
)

// What the tests of operations are made of.

var (
	onMock     = []string{"X-Gateway-Provider", "@mock"}
	formType   = []string{"Content-Type", "multipart/form-data; boundary=the-boundary"}
	formOnMock = append([]string{"X-Gateway-Provider", "@mock"}, formType...)
)

// triesOfRow is how often a row of the matrix is sent at most.
const triesOfRow = 12

// batchRows is the content of a file for a batch.
const batchRows = `{"custom_id":"one","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}}
{"custom_id":"two","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Again"}]}}
`

// form writes a multipart body of names and values; a value "name:content" of
// file, image or mask is a file.
func form(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		name, value := pairs[i], pairs[i+1]
		fmt.Fprintf(&b, "--the-boundary\r\nContent-Disposition: form-data; name=%q", name)
		if name == "file" || name == "image" || name == "mask" {
			file, content, _ := strings.Cut(value, ":")
			fmt.Fprintf(&b, "; filename=%q\r\nContent-Type: application/octet-stream", file)
			value = content
		}
		fmt.Fprintf(&b, "\r\n\r\n%s\r\n", value)
	}
	b.WriteString("--the-boundary--\r\n")
	return b.String()
}

// id makes a thing and gives its id.
func (r *running) id(method, path, body string, headers ...string) string {
	r.t.Helper()
	got := r.call(method, path, body, headers...)
	if got.status != 200 {
		r.t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
	return got.json(r.t)["id"].(string)
}

func aPrompt(r *running) string {
	r.t.Helper()
	return r.prompt(`[{"role":"user","content":"{{name}}"}]`, "")
}

func aFile(r *running) string {
	r.t.Helper()
	return r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+batchRows), formOnMock...)
}

func aFileWithoutPrice(r *running) string {
	r.t.Helper()
	rows := strings.ReplaceAll(batchRows, "gpt-4o-mini", "nobody-knows-this-model")
	return r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+rows), formOnMock...)
}

func aTrainingFile(r *running) string {
	r.t.Helper()
	return r.id("POST", "/files", form("purpose", "fine-tune", "file", "rows.jsonl:{}"), formOnMock...)
}

func aBatch(r *running) string {
	r.t.Helper()
	return r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, aFile(r)), onMock...)
}

func aDoneBatch(r *running) string {
	r.t.Helper()
	id := aBatch(r)
	for range 2 {
		r.id("GET", "/batches/"+id, "", onMock...)
	}
	return id
}

func aJob(r *running) string {
	r.t.Helper()
	return r.id("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":"gpt-4o-mini","training_file":%q}`, aTrainingFile(r)), onMock...)
}

// aLaterResponse makes a response in the background and gives its id.
func aLaterResponse(r *running) string {
	r.t.Helper()
	return r.id("POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello","background":true}`, onMock...)
}

func aResponse(r *running) string {
	r.t.Helper()
	return r.id("POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello"}`, onMock...)
}
