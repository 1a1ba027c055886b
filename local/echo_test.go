package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const (
	echoKey    = "sk-ECHO-key/0123+456789"
	echoHeader = "Basic ECHOheader0123456789"
)

// echoes spell what a provider was sent, in the ways in which it may repeat it.
func echoes(r *http.Request) map[string]string {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if key == "" {
		key = r.Header.Get("X-Api-Key")
	}
	both := key + " " + r.Header.Get("X-Inner")
	escaped := strings.NewReplacer("-", `\u002D`, "/", `\/`, "+", `\u002b`).Replace(both)
	inner, _ := json.Marshal(`{"x":"` + escaped + `"}`)
	return map[string]string{"plain": both, "escaped": escaped, "inner": strings.Trim(string(inner), `"`), "url": url.QueryEscape(both), "path": url.PathEscape(both)}
}

// startEcho is a provider that repeats the credential in each response. The model
// says how: status-spelling-form.
func startEcho(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		how := strings.SplitN(r.Header.Get("X-How"), "_", 3)
		if len(how) < 3 {
			var b struct{ Model string }
			_ = json.Unmarshal(body, &b)
			how = strings.SplitN(b.Model+"__", "_", 3)
		}
		repeated := echoes(r)[how[1]]
		w.Header().Set("X-Request-Id", "id "+repeated)
		w.Header().Set("X-Ratelimit-Told", repeated)
		w.Header().Set("X-Echo", repeated)
		status := 400
		_, _ = fmt.Sscan(how[0], &status)
		text := `{"type":"error","error":{"type":"` + repeated + `","code":"` + repeated + `","param":"` + repeated + `","message":"bad key ` + repeated + `"}}`
		switch form := strings.TrimRight(how[2], "_"); form {
		case "html":
			w.Header().Set("Content-Type", "text/html")
			text = "<p>" + repeated
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
			_, _ = io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}`+"\n\n")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			return
		case "first":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			return
		case "gzip":
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(status)
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, text)
			_ = z.Close()
			return
		case "br":
			w.Header().Set("Content-Encoding", "br")
		case "long":
			text = `{"error":{"message":"` + strings.Repeat("x", 4090) + repeated + strings.Repeat("y", 100_000) + repeated + `"}}`
		case "good":
			w.Header().Set("Content-Type", "application/json")
			text = `{"id":"c","object":"chat.completion","created":1,"model":"` + repeated + `","choices":[{"index":0,"message":{"role":"assistant","content":"` + repeated + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
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

// When a provider repeats the credential, neither the caller nor the log gets it, on any
// route and in any dialect.
//
//lane:exhaustive
func TestCredentialsAreRedactedFromResponsesAndLogs(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := startEcho(t)
	for _, id := range []string{"openai", "anthropic"} {
		r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"echo","slug":"echo-%s","ai_provider_id":%q,"key":%q,"configurations":{"custom_host":%q,"custom_headers":{"X-Inner":%q}}}`, id, id, echoKey, host, echoHeader))
		r.admin("PUT", "/integrations/echo-"+id+"/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	}
	config := r.saveConfig(fmt.Sprintf(`{"provider":"openai","api_key":%q,"custom_host":%q,"custom_headers":{"X-Inner":%q}}`, echoKey, host, echoHeader))
	before := len(r.records(0))
	n := 0
	send := func(how, path, body string, headers ...string) {
		t.Helper()
		n++
		got, err := r.try("POST", path, strings.ReplaceAll(body, "HOW", how), append(headers, "X-How", how)...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(how, "good") && (leaks(got.body) || leaks(fmt.Sprint(got.header))) {
			t.Errorf("%s %s %v: %d %v %s", path, how, headers, got.status, got.header, got.body)
		}
		if want := how[:3]; want != "200" && fmt.Sprint(got.status) != want && got.status < 400 {
			t.Errorf("%s %s: %d %s", path, how, got.status, got.body)
		}
	}
	chat := `{"model":"HOW","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`
	for _, via := range [][]string{{"X-Gateway-Provider", "@echo-openai"}, {"X-Gateway-Provider", "@echo-anthropic"}, {"X-Gateway-Config", config}} {
		for _, spelling := range []string{"plain", "escaped", "inner", "url", "path"} {
			for _, status := range []string{"400", "401", "429", "503"} {
				if spelling == "plain" || status == "400" {
					send(status+"_"+spelling+"_", "/chat/completions", chat, via...)
				}
			}
			how := "401_" + spelling + "_"
			send(how, "/messages", chat, via...)
			send(how, "/responses", `{"model":"HOW","input":"x"}`, via...)
			send(how, "/proxy/v1/anything", chat, via...)
			send("302_"+spelling+"_", "/proxy/v1/anything", chat, via...)
			send(how+"gzip", "/chat/completions", chat, via...)
			send(how+"gzip", "/proxy/v1/anything", chat, via...)
			send(how+"br", "/proxy/v1/anything", chat, append([]string{"Accept-Encoding", "br"}, via...)...)
			send(how+"html", "/chat/completions", chat, via...)
			send(how+"html", "/proxy/v1/anything", chat, via...)
			send(how+"long", "/proxy/v1/anything", chat, via...)
			send("200_"+spelling+"_", "/chat/completions", chat, via...)
			send("200_"+spelling+"_html", "/chat/completions", chat, via...)
			stream := strings.Replace(chat, "{", `{"stream":true,`, 1)
			send("200_"+spelling+"_first", "/chat/completions", stream, via...)
			send("200_"+spelling+"_stream", "/chat/completions", stream, via...)
		}
		if via[1] != "@echo-openai" {
			continue
		}
		for _, path := range []string{"/embeddings", "/moderations", "/completions", "/images/generations", "/audio/speech"} {
			send("401_plain_", path, `{"model":"HOW","input":"x","prompt":"x","voice":"alloy"}`, via...)
		}
		send("401_plain_", "/files", form("purpose", "batch", "file", "a.jsonl:{}"), append(formType, via...)...)
		send("401_plain_", "/audio/transcriptions", form("model", "whisper-1", "file", "a.mp3:abc"), append(formType, via...)...)
		send("200_plain_good", "/chat/completions", chat, via...)
	}
	dry := 0
	for _, slug := range []string{"@echo-openai", "@echo-anthropic"} {
		dry++
		if dry := r.dryRun(`{"path":"/chat/completions","headers":{"x-gateway-provider":"` + slug + `"},"body":` + chat + `}`); leaks(fmt.Sprint(dry)) {
			t.Errorf("%v", dry)
		}
	}
	for _, row := range r.logs(n+before+dry, adminKey) {
		log := r.get("/logs/"+row["id"].(string), adminKey)
		if text := fmt.Sprint(row, log); leaks(text) {
			t.Errorf("in the log: %s", text)
		}
	}
}
