package mockprovider

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func serve(s *Server, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.RequestURI = path
	r.Header["Content-Type"] = []string{"application/json"}
	r.Header["Authorization"] = []string{"Bearer mock-key"}
	r.Header["X-Api-Key"] = []string{"mock-key"}
	if strings.Contains(path, "/messages") {
		r.Header["Anthropic-Version"] = []string{"2023-06-01"}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func benchmark(b *testing.B, path, body string) {
	s := New(Options{})
	if w := serve(s, path, body); w.Code != 200 {
		b.Fatalf("%d %s", w.Code, w.Body)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		serve(s, path, body)
	}
}

func BenchmarkChat(b *testing.B) {
	benchmark(b, "/v1/chat/completions", chat(strings.Repeat("words ", 150), ""))
}
func BenchmarkChat100KB(b *testing.B) {
	benchmark(b, "/v1/chat/completions", chat(strings.Repeat("words ", 16_000), ""))
}
func BenchmarkMessage(b *testing.B) {
	benchmark(b, "/v1/messages", claude(strings.Repeat("words ", 150), ""))
}
func BenchmarkStream100(b *testing.B) {
	benchmark(b, "/v1/chat/completions", chat("mock: chunks=100", `,"stream":true`))
}
func BenchmarkEmbedding(b *testing.B) {
	benchmark(b, "/v1/embeddings", `{"model":"text-embedding-3-small","input":"the quick brown fox"}`)
}
