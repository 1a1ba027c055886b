package http1

import (
	"fmt"
	"io"
	"net/http"
	"sync"
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
			b.Fatal("not accepted")
		}
	}
}

// BenchmarkServe sends requests over a few persistent connections, both ends in this process: a
// request of a few bytes, and one with a body that arrives after its head.
func BenchmarkServe(b *testing.B) {
	for _, size := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchmarkServe(b, size) })
	}
}

func benchmarkServe(b *testing.B, size int) {
	const connections = 8
	answer := make([]byte, 1000)
	addr, _ := ours(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	}), testOptions)
	raw := []byte(post("/", string(make([]byte, size))))
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for i := range connections {
		c := dial(b, addr)
		defer c.Close()
		all.Go(func() {
			var whole int
			in := make([]byte, 4<<10)
			for range (b.N + connections - 1 - i) / connections {
				if _, err := c.Write(raw); err != nil {
					b.Error(err)
					return
				}
				for got := 0; got == 0 || got < whole; {
					n, err := c.Read(in[got:])
					if err != nil {
						b.Error(err)
						return
					}
					if got += n; whole == 0 { // all responses are as long as the first, which comes at once
						whole = got
					}
				}
			}
		})
	}
	all.Wait()
}
