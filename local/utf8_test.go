package main

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/relay"
)

// notText are bytes that no JSON may have: Latin-1, a surrogate, an overlong slash,
// a character that is cut.
var notText = []string{"caf\xe9", "\xed\xa0\x80", "\xc0\xaf", "\xe4\xb8"}

// TestBytesThatAreNoTextAreRefused: on every route that takes JSON, to providers of
// the client's own shape and of others, in values and keys, at any depth, plain and
// streamed; nothing is sent.
//
//lane:exhaustive
func TestBytesThatAreNoTextAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.mock.Reset()
	refused := func(what string, got reply) {
		t.Helper()
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, "UTF-8") {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
		for _, sent := range r.mock.Requests(1) {
			t.Errorf("%s: %s %s was sent", what, sent.Method, sent.Path)
			r.mock.Reset()
		}
	}
	paths := []string{"/proxy/chat/completions", "/threads", "/proxy/v1/messages", "/unknown/of/the/provider"}
	for _, rt := range assembly.DataPlane() {
		if rt.BodyMode == relay.Unified && rt.Method == http.MethodPost && !strings.Contains(rt.Path, "{") {
			paths = append(paths, rt.Path)
		}
	}
	if len(paths) < 15 {
		t.Fatalf("%v", paths)
	}
	for _, path := range paths {
		for _, bad := range notText {
			for _, body := range []string{
				`{"model":"%s","messages":[{"role":"user","content":"Hello"}],"max_tokens":5,"input":"x","prompt":"x"}`,
				`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"%s"}],"max_tokens":5,"input":"x","prompt":"x"}`,
				`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}],"max_tokens":5,"input":"x","prompt":"x","stream":true,"x":{"%s":[1]}}`,
				`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"` + strings.Repeat("long ", 1000) + `"}],"max_tokens":5,"input":"%s","prompt":"x","%[1]s":1}`,
			} {
				for _, to := range []string{"@mock", "@mock-anthropic"} {
					refused(fmt.Sprintf("%s %q to %s", path, bad, to), r.call("POST", path, fmt.Sprintf(body, bad), "X-Gateway-Provider", to))
				}
			}
		}
	}

	plain := chatBody("gpt-4o-mini", "Hello", "")
	for _, bad := range notText {
		refused("metadata "+bad, r.call("POST", "/chat/completions", plain, "X-Gateway-Provider", "@mock", "X-Gateway-Metadata", `{"a":"`+bad+`"}`))
		refused("config "+bad, r.call("POST", "/chat/completions", plain, "X-Gateway-Config", `{"provider":"@mock","override_params":{"user":"`+bad+`"}}`))
		refused("dry run "+bad, r.call("POST", "/configs/dry-run", `{"path":"/chat/completions","body":{"model":"`+bad+`"}}`))
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		for name, value := range map[string]string{"model": "gpt-image-1", "prompt": "a " + bad} {
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		refused("form "+bad, r.call("POST", "/images/edits", form.String(), "Content-Type", w.FormDataContentType(), "X-Gateway-Provider", "@mock"))
		form.Reset()
		w = multipart.NewWriter(&form)
		if err := w.WriteField("purpose", "batch"); err != nil {
			t.Fatal(err)
		}
		part, err := w.CreateFormFile("file", "rows.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(part, `{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","messages":[{"role":"user","content":"%s"}]}}`+"\n", bad)
		w.Close()
		refused("row "+bad, r.call("POST", "/files", form.String(), "Content-Type", w.FormDataContentType(), "X-Gateway-Provider", "gateway"))
		for _, path := range []string{"/configs", "/virtual-keys", "/integrations", "/api-keys/workspace/service", "/workspaces"} {
			refused(path+" "+bad, r.call("POST", path, `{"name":"`+bad+`"}`, "X-Gateway-Api-Key", adminKey))
		}
	}

	// Text of every kind is no matter, and what is no JSON is the provider's on
	// paths of its own.
	for _, text := range []string{"café", "語", "😀", "\u0080", "\ufffd", "\U0010ffff"} {
		if got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", text, ""), "X-Gateway-Provider", "@mock", "X-Gateway-Metadata", `{"a":"`+text+`"}`); got.status != 200 {
			t.Errorf("%q: %d %s", text, got.status, got.body)
		}
	}
	const binary = "\xff\xfe{\x00}" // also below a type that says JSON
	a := echoed(t, r.call("POST", "/proxy/echo/x", binary, "X-Gateway-Provider", "@mock"))
	b := echoed(t, r.call("POST", "/proxy/echo/x", `{"a":"caf`+"\xe9"+`"}`, "X-Gateway-Provider", "@mock", "Content-Type", "application/octet-stream"))
	if a.Base64 == "" || b.Base64 == "" {
		t.Errorf("%+v %+v", a, b)
	}
}
