package relay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

const (
	echoKey    = "sk-ECHO-key/0123+456789"
	echoHeader = "Basic ECHOheader0123456789"
)

// echoed spells what a provider was sent in the ways in which it may repeat it.
func echoed(h http.Header, spelling string) string {
	key := strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	if key == "" {
		key = h.Get("X-Api-Key")
	}
	both := key + " " + h.Get("X-Inner")
	escaped := strings.NewReplacer("-", `\u002D`, "/", `\/`, "+", `\u002b`).Replace(both)
	inner, _ := json.Marshal(`{"x":"` + escaped + `"}`)
	return map[string]string{"plain": both, "escaped": escaped, "inner": strings.Trim(string(inner), `"`), "url": url.QueryEscape(both), "path": url.PathEscape(both)}[spelling]
}

// echo is a provider that repeats the credential in each response, with a status, in a spelling and
// in a form.
func echo(status int, spelling, form string) func(relaytest.Call) relaytest.Reply {
	return func(c relaytest.Call) relaytest.Reply {
		repeated := echoed(c.Header, spelling)
		text := `{"type":"error","error":{"type":"` + repeated + `","code":"` + repeated + `","param":"` + repeated + `","message":"bad key ` + repeated + `"}}`
		out := relaytest.Reply{Status: status, Body: text, Header: http.Header{"X-Request-Id": {"id " + repeated}, "X-Ratelimit-Told": {repeated}, "X-Echo": {repeated}}}
		switch form {
		case "html":
			out.Header.Set("Content-Type", "text/html")
			out.Body = "<p>" + repeated
		case "stream":
			out.Body = sse(piece("Hi", ""), text)
		case "first":
			out.Body = sse(text)
		case "gzip":
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write([]byte(text))
			_ = z.Close()
			out.Header.Set("Content-Encoding", "gzip")
			out.Body = packed.String()
		case "br":
			out.Header.Set("Content-Encoding", "br")
		case "long":
			out.Body = `{"error":{"message":"` + strings.Repeat("x", 4090) + repeated + strings.Repeat("y", 100_000) + repeated + `"}}`
		case "good":
			out.Body = strings.NewReplacer("gpt-4o-2024-08-06", repeated, "Hello", repeated).Replace(reply)
		}
		return out
	}
}

// leaks looks for the credentials in any spelling that the provider uses.
func leaks(text string) bool {
	for range 3 {
		plain := strings.NewReplacer(`\`, "", "u002D", "-", "u002d", "-", "u002b", "+", "u002B", "+").Replace(text)
		if strings.Contains(plain, "ECHO") {
			return true
		}
		if un, err := url.QueryUnescape(text); err == nil {
			text = un
		}
	}
	return false
}

// TestCredentialsAreRedactedFromResponsesAndLogs requires that neither the caller nor the record has a
// credential that a provider repeats, on any route and in any format.
func TestCredentialsAreRedactedFromResponsesAndLogs(t *testing.T) {
	t.Parallel()
	const chat = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`
	stream := strings.Replace(chat, "{", `{"stream":true,`, 1)
	for _, id := range []string{"openai", "anthropic", "saved"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			g := relaytest.New(t, familyRoutes)
			via := config(fmt.Sprintf(`{"provider":%q,"api_key":%q,"custom_headers":{"X-Inner":%q}}`, id, echoKey, echoHeader))
			if id == "saved" {
				g.Provider("echo", echoKey, provider.Integration{AIProviderID: "openai"})
				via = []string{"X-Gateway-Provider", "@echo"}
			}
			send := func(status int, spelling, form, path, body string, headers ...string) {
				t.Helper()
				g.Respond(echo(status, spelling, form))
				got := g.Do("POST", "/v1"+path, body, append(headers, via...)...)
				if form != "good" && (leaks(got.Body) || leaks(fmt.Sprint(got.Header))) {
					t.Errorf("%s %d %s %s: %d %v %s", path, status, spelling, form, got.Status, got.Header, got.Body)
				}
				if status != 200 && got.Status != status && got.Status < 400 {
					t.Errorf("%s %d %s %s: %d %s", path, status, spelling, form, got.Status, got.Body)
				}
				for _, r := range g.Records() {
					b := g.Bodies(&r)
					if all := fmt.Sprintf("%+v %s %s %s %s %s %s %s", r, b.Request, b.Sent, b.Received, b.Response, b.RequestHeaders, b.SentHeaders, b.ResponseHeaders); leaks(all) {
						t.Errorf("%s %d %s %s: recorded %s", path, status, spelling, form, all)
					}
				}
			}
			for _, spelling := range []string{"plain", "escaped", "inner", "url", "path"} {
				for _, status := range []int{400, 401, 429, 503} {
					send(status, spelling, "", "/chat/completions", chat)
				}
				send(401, spelling, "", "/messages", chat)
				send(401, spelling, "", "/responses", `{"model":"m","input":"x"}`)
				send(401, spelling, "", "/proxy/v1/anything", chat)
				send(302, spelling, "", "/proxy/v1/anything", chat)
				for _, form := range []string{"gzip", "html"} {
					send(401, spelling, form, "/chat/completions", chat)
					send(401, spelling, form, "/proxy/v1/anything", chat)
				}
				if id == "saved" { // what is compressed with a credential of the caller's own is forwarded
					send(401, spelling, "br", "/proxy/v1/anything", chat, "Accept-Encoding", "br")
				}
				send(401, spelling, "long", "/proxy/v1/anything", chat)
				send(200, spelling, "", "/chat/completions", chat)
				send(200, spelling, "html", "/chat/completions", chat)
				send(200, spelling, "first", "/chat/completions", stream)
				send(200, spelling, "stream", "/chat/completions", stream)
			}
			if id != "saved" {
				return
			}
			for _, path := range []string{"/embeddings", "/moderations", "/completions", "/images/generations", "/audio/speech"} {
				send(401, "plain", "", path, `{"model":"m","input":"x","prompt":"x","voice":"alloy"}`)
			}
			const part = "--b\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n%s\r\n"
			form := fmt.Sprintf(part+part+part+"--b--\r\n", "purpose", "", "batch", "model", "", "whisper-1", "file", `; filename="a.jsonl"`, "{}")
			send(401, "plain", "", "/files", form, "Content-Type", "multipart/form-data; boundary=b")
			send(401, "plain", "", "/audio/transcriptions", form, "Content-Type", "multipart/form-data; boundary=b")
			send(200, "plain", "good", "/chat/completions", chat)
		})
	}
}
