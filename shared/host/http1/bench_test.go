package http1

import (
	"net/http"
	"testing"
)

// BenchmarkParse reads the head of a request of a usual client.
func BenchmarkParse(b *testing.B) {
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: OpenAI/Python 1.99.1\r\nContent-Length: 1024\r\nAccept: application/json\r\n" +
		"Authorization: Bearer gw_0123456789abcdef0123456789abcdef0123456789abcdef\r\nContent-Type: application/json\r\nX-Stainless-Lang: python\r\n" +
		"Accept-Encoding: gzip, deflate\r\n\r\n"
	c := &conn{s: New(http.NotFoundHandler(), Options{})}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.parse(head); !ok {
			b.Fatal("not taken")
		}
	}
}
