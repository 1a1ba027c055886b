package mockprovider

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// start gives a running server and its URL, closed with the test.
func start(t testing.TB, o Options) (*Server, string) {
	t.Helper()
	s := New(o)
	url, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, url
}

var plainClient = &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 20 * time.Second}

type reply struct {
	status int
	header http.Header
	body   []byte
	err    error // of reading the body
}

// post sends a body as the dialect's client does; path tells the dialect.
func post(t testing.TB, url, path, body string, headers ...string) reply {
	t.Helper()
	return do(t, http.MethodPost, url+path, body, headers...)
}

func do(t testing.TB, method, url, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer mock-key")
	if strings.Contains(url, "/messages") {
		r.Header.Del("Authorization")
		r.Header.Set("X-Api-Key", "mock-key")
		r.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := plainClient.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, b, err}
}

func chat(user, more string) string {
	return fmt.Sprintf(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":%s}]%s}`, quoted(user), more)
}

func claude(user, more string) string {
	return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[{"role":"user","content":%s}]%s}`, quoted(user), more)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs\n got %s\nwant %s", file, got, want)
	}
}

func decode(t testing.TB, b []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %.300s", err, b)
	}
	return v
}

// at walks a decoded body: names and indexes.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			a, _ := v.([]any)
			if p >= len(a) {
				return nil
			}
			v = a[p]
		}
	}
	return v
}

const (
	weatherTool = `{"type":"function","function":{"name":"get_weather","description":"Weather in a city","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","fahrenheit"]},"days":{"type":"integer","minimum":1,"maximum":7}},"required":["city"]}}}`
	clockTool   = `{"type":"function","function":{"name":"clock_now","parameters":{"type":"object","properties":{}}}}`
	weatherUse  = `{"name":"get_weather","description":"Weather in a city","input_schema":{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","fahrenheit"]}},"required":["city"]}}`
	clockUse    = `{"name":"clock_now","input_schema":{"type":"object","properties":{}}}`
	person      = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","age","tags"],"additionalProperties":false}`
)

// TestWireShapes freezes what clients see, byte for byte.
func TestWireShapes(t *testing.T) {
	cases := []struct{ name, path, body string }{
		{"chat", "/v1/chat/completions", chat("Hello", "")},
		{"chat_stream", "/v1/chat/completions", chat("Hello", `,"stream":true,"stream_options":{"include_usage":true}`)},
		{"chat_tools", "/v1/chat/completions", chat("mock: parallel", `,"tools":[`+weatherTool+`,`+clockTool+`]`)},
		{"chat_tools_stream", "/v1/chat/completions", chat("mock: parallel interleave", `,"stream":true,"tools":[`+weatherTool+`,`+clockTool+`]`)},
		{"chat_functions", "/v1/chat/completions", chat("weather", `,"functions":[{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`)},
		{"chat_logprobs", "/v1/chat/completions", chat("mock: say=Hé there", `,"logprobs":true,"top_logprobs":2`)},
		{"chat_schema", "/v1/chat/completions", chat("Ada", `,"response_format":{"type":"json_schema","json_schema":{"name":"person","strict":true,"schema":`+person+`}}`)},
		{"completion", "/v1/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":"Once upon","logprobs":1,"echo":true,"max_tokens":4}`},
		{"completion_stream", "/v1/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":["a","b"],"max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`},
		{"embeddings", "/v1/embeddings", `{"model":"text-embedding-3-small","input":["hello world","hello"],"dimensions":16}`},
		{"embeddings_base64", "/v1/embeddings", `{"model":"text-embedding-3-small","input":"hello world","dimensions":16,"encoding_format":"base64"}`},
		{"chat_error", "/v1/chat/completions", chat("hi", `,"temperature":3`)},
		{"message", "/v1/messages", claude("Hello", "")},
		{"message_stream", "/v1/messages", claude("Hello", `,"stream":true`)},
		{"message_tools", "/v1/messages", claude("mock: parallel", `,"tools":[`+weatherUse+`,`+clockUse+`]`)},
		{"message_tools_stream", "/v1/messages", claude("mock: parallel ping", `,"stream":true,"tools":[`+weatherUse+`,`+clockUse+`]`)},
		{"message_thinking", "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"mock: reasoning=4"}]}`},
		{"message_thinking_stream", "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":2000,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"mock: reasoning=4"}]}`},
		{"message_error", "/v1/messages", claude("hi", `,"top":1`)},
		{"count_tokens", "/v1/messages/count_tokens", `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hello there"}]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, url := start(t, Options{Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
			r := post(t, url, c.path, c.body)
			if r.err != nil {
				t.Fatal(r.err)
			}
			golden(t, c.name+".golden", fmt.Appendf(nil, "%d %s\n%s\n", r.status, r.header.Get("Content-Type"), r.body))
		})
	}
}
