package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
	"gateway/shared/relay"
)

// canned answers every request with the same bytes: what is left is the
// gateway's own work, without network and without the worker.
type canned struct {
	kind string
	body []byte
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		if t := httptrace.ContextClientTrace(req.Context()); t != nil {
			t.WroteRequest(httptrace.WroteRequestInfo{}) // as a transport does
		}
	}
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: int64(len(c.body)),
		Header: http.Header{"Content-Type": {c.kind}, "X-Request-Id": {"req_1"}}, Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

// sink throws a response away.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}

// recorded is what the mock provider answers to a request, in the provider's own
// dialect.
func recorded(b *testing.B, g *gateway, path, body string) canned {
	req, _ := http.NewRequest("POST", "http://mock/v1"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer mock-x")
	req.Header.Set("X-Api-Key", "mock-x")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	w := &recorder{h: http.Header{}}
	g.mock.ServeHTTP(w, req)
	if w.status != 0 && w.status != 200 {
		b.Fatalf("the mock provider answers %d: %s", w.status, w.body.Bytes())
	}
	return canned{w.h.Get("Content-Type"), w.body.Bytes()}
}

type recorder struct {
	h      http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.h }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *recorder) WriteHeader(s int)           { r.status = s }
func (r *recorder) Flush()                      {}

func BenchmarkRelay(b *testing.B) {
	b.Setenv("GATEWAY_ADMIN_KEY", adminKey)
	b.Setenv("GATEWAY_WORKSPACE_KEY", workspaceKey)
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	o, err := parse([]string{"-addr", "127.0.0.1:0", "-data", dir})
	if err != nil {
		b.Fatal(err)
	}
	g, err := open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer g.close()
	long := strings.Repeat("many words of a long conversation ", 3000)
	for _, c := range []struct{ name, model, upstream, message, more string }{
		{"chat 1 KB", "@mock/gpt-4o-mini", "/chat/completions", strings.Repeat("words ", 150), ""},
		{"chat 100 KB", "@mock/gpt-4o-mini", "/chat/completions", long, ""},
		{"stream of 100", "@mock/gpt-4o-mini", "/chat/completions", "mock: chunks=100", `,"stream":true`},
		{"to Anthropic 1 KB", "@mock-anthropic/claude-sonnet-4-5", "/messages", strings.Repeat("words ", 150), ""},
		{"to Anthropic stream of 100", "@mock-anthropic/claude-sonnet-4-5", "/messages", "mock: chunks=100", `,"stream":true`},
	} {
		b.Run(c.name, func(b *testing.B) {
			_, model, _ := strings.Cut(c.model, "/")
			more := c.more
			if c.upstream == "/messages" {
				more += `,"max_tokens":1000`
			} else if c.more != "" {
				more += `,"stream_options":{"include_usage":true}`
			}
			r := relay.New(relay.Options{
				Loader: g.core.Loader, Auth: g.core.Auth, Ledger: g.core.Ledger, Prices: pricing.Default(), Sink: g.stores.Journal,
				Sealer: g.core.Sealer, Store: g.core.Store, Egress: g.core.Egress,
				Transport: recorded(b, g, c.upstream, chatBody(model, c.message, more)),
				Dialects:  []chat.Provider{openai.Chat{}, openai.Completions{}, anthropic.Messages{}},
			})
			mux := relay.NewMux(r, assembly.DataPlane())
			body := chatBody(c.model, c.message, c.more)
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest("POST", "http://gateway/v1/chat/completions", strings.NewReader(body))
				req.Header["Content-Type"] = []string{"application/json"}
				req.Header["X-Gateway-Api-Key"] = []string{workspaceKey}
				mux.ServeHTTP(&sink{http.Header{}}, req)
			}
		})
	}
}
