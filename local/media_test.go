package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// picture is an image that the mock providers take for one.
var picture = append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 64)...)

// web serves a picture, a document and what is neither, and counts.
func web(t *testing.T) (base string, hits *atomic.Int64) {
	t.Helper()
	hits = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		for _, secret := range []string{"Authorization", "X-Gateway-Api-Key", "Cookie", "X-Goog-Api-Key", "X-Amz-Date"} {
			if r.Header.Get(secret) != "" {
				t.Errorf("%s was sent to a host of the web", secret)
			}
		}
		switch r.URL.Path {
		case "/cat.png", "/other.png":
			_, _ = w.Write(picture)
		case "/paper":
			_, _ = w.Write([]byte("%PDF-1.7\nHello"))
		case "/page.png":
			_, _ = w.Write([]byte("<html><body>Sign in</body></html>"))
		case "/inside.png":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, hits
}

// withImages is a chat request with a text and images by their addresses.
func withImages(model, text string, addresses ...string) string {
	var parts strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&parts, `,{"type":"image_url","image_url":{"url":%q}}`, a)
	}
	return fmt.Sprintf(`{"model":%q,"max_tokens":50,"messages":[{"role":"user","content":[{"type":"text","text":%q}%s]}]}`, model, text, parts.String())
}

// TestMediaAreFetchedForProvidersThatTakeBytes: for such a provider the gateway fetches the
// bytes of a web address, whatever dialect the client speaks, and fetches each address
// once.
func TestMediaAreFetchedForProvidersThatTakeBytes(t *testing.T) {
	t.Parallel()
	r, google := startGoogle(t)
	r.bedrock("bedrock", bedrockKeys)
	r.save("ollama", `"ai_provider_id":"ollama","key":"mock-ollama","configurations":{"custom_host":"`+strings.TrimSuffix(r.mockBase(), "/v1")+`"}`)
	base, hits := web(t)
	cat, paper := base+"/cat.png?X-Amz-Signature=ab@c", base+"/paper"
	data, pdf := base64.StdEncoding.EncodeToString(picture), base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\nHello"))
	for _, c := range []struct {
		path, body string
		sent       []string
	}{
		{"/chat/completions", withImages("@bedrock/"+bedrockClaude, "x", cat, paper, cat), []string{`"image":{"format":"png","source":{"bytes":"` + data, `"document":{"format":"pdf"`, pdf}},
		{"/messages", `{"model":"@bedrock/` + bedrockClaude + `","max_tokens":50,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"` + cat + `"}},{"type":"document","source":{"type":"url","url":"` + paper + `"}},{"type":"text","text":"x"}]}]}`, []string{`"bytes":"` + data, `"format":"pdf"`}},
		{"/responses", `{"model":"@bedrock/` + bedrockClaude + `","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + cat + `"},{"type":"input_file","file_url":"` + paper + `"},{"type":"input_text","text":"x"}]}]}`, []string{`"bytes":"` + data, pdf}},
		{"/chat/completions", withImages("@google/gemini-2.5-flash", "x", cat, paper), []string{`"inlineData":{"mimeType":"image/png","data":"` + data, `"mimeType":"application/pdf"`}},
		{"/messages", `{"model":"@vertex/anthropic.claude-sonnet-4-5","max_tokens":50,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"` + cat + `"}},{"type":"document","source":{"type":"url","url":"` + paper + `"}}]}]}`, []string{`"type":"base64"`, data, pdf, `"anthropic_version":"vertex-2023-10-16"`}},
		{"/chat/completions", withImages("@ollama/llava", "x", cat, cat), []string{`"url":"data:image/png;base64,` + data}},
	} {
		before := hits.Load()
		got := r.call("POST", c.path, c.body)
		if got.status != 200 {
			t.Errorf("%s: %d %s", c.body, got.status, got.body)
			continue
		}
		mock := r.mock
		if strings.Contains(c.body, "@google") || strings.Contains(c.body, "@vertex") {
			mock = google
		}
		sent := string(mock.Requests(1)[0].Body)
		for _, want := range c.sent {
			if !strings.Contains(sent, want) {
				t.Errorf("%s\nwas sent as %s\nwithout %s", c.body, sent, want)
			}
		}
		if strings.Contains(sent, base) {
			t.Errorf("an address was sent on: %s", sent)
		}
		if n, want := hits.Load()-before, int64(1+min(strings.Count(c.body, paper), 1)); n != want {
			t.Errorf("%s: %d requests, want %d", c.body, n, want)
		}
	}

	// A provider that reads addresses gets them, and what Gemini keeps is left to it.
	before := hits.Load()
	for _, c := range []struct{ model, address string }{
		{"@mock/gpt-4o-mini", cat}, {"@mock-anthropic/claude-sonnet-4-5", "https://example.com/cat.png"}, {"@google/gemini-2.5-flash", "https://www.youtube.com/watch?v=1"},
		{"@google/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/files/abc"}, {"@google/gemini-2.5-flash", "gs://bucket/cat.png"},
	} {
		got := r.call("POST", "/chat/completions", withImages(c.model, "x", c.address))
		mock := r.mock
		if strings.HasPrefix(c.model, "@google") {
			mock = google
		}
		if sent := string(mock.Requests(1)[0].Body); got.status != 200 || !strings.Contains(sent, c.address) {
			t.Errorf("%s %s: %d %s\n%s", c.model, c.address, got.status, got.body, sent)
		}
	}
	if hits.Load() != before {
		t.Error("an address was fetched that the provider reads")
	}
}

// TestMediaThatCannotBeHad: the error names the part before the provider is called, and no
// other target fetches the address again.
func TestMediaThatCannotBeHad(t *testing.T) {
	t.Parallel()
	r, google := startGoogle(t)
	r.bedrock("bedrock", bedrockKeys)
	base, _ := web(t)
	r.mock.Reset()
	google.Reset()
	for _, model := range []string{"@bedrock/" + bedrockClaude, "@google/gemini-2.5-flash"} {
		for _, c := range []struct{ address, why, code string }{
			{base + "/none.png", "status 404", "invalid_request"}, {base + "/page.png", "web page", "invalid_request"}, {base + "/inside.png", "must not be reached", "blocked_host"},
			{"http://169.254.169.254/latest/meta-data/", "must not be reached", "blocked_host"}, {"https://10.0.0.1/a.png", "must not be reached", "blocked_host"},
			{"https://a%zz/", "malformed", "invalid_request"},
		} {
			got := r.call("POST", "/chat/completions", withImages(model, "x", base+"/cat.png", c.address))
			e, _ := got.json(t)["error"].(map[string]any)
			if got.status != 400 || e["param"] != "messages[0].content[2]" || e["code"] != c.code || !strings.Contains(e["message"].(string), c.why) {
				t.Errorf("%s: %d %s", c.address, got.status, got.body)
			}
		}
	}
	if len(r.mock.Requests(1))+len(google.Requests(1)) != 0 {
		t.Error("a provider was asked")
	}
	got := r.call("POST", "/responses", `{"model":"@bedrock/`+bedrockClaude+`","input":[{"role":"user","content":[{"type":"input_image","image_url":"`+base+`/none.png"}]}]}`)
	if e, _ := got.json(t)["error"].(map[string]any); got.status != 400 || e["param"] != "input[0].content[0]" {
		t.Errorf("%d %s", got.status, got.body)
	}

	// Two targets, one of which fails, read one address once. What was aborted
	// above may still be under way: this is another host.
	base, hits := web(t)
	config := `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@bedrock","override_params":{"model":"` + bedrockClaude + `","temperature":0.5}},{"provider":"@google","override_params":{"model":"gemini-2.5-flash"}}]}`
	if err := r.mock.Fault(1, "status=500"); err != nil {
		t.Fatal(err)
	}
	fell := r.call("POST", "/chat/completions", withImages("x", "Hello", base+"/other.png"), "X-Gateway-Config", config)
	if fell.status != 200 || fell.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[1]" || hits.Load() != 1 {
		t.Errorf("%d %v %s after %d requests", fell.status, fell.header, fell.body, hits.Load())
	}
}
