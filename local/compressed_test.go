package main

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// compressor is a coding of responses, and whether the gateway reads it.
type compressor struct {
	name  string
	pack  func(w io.Writer) io.WriteCloser
	known bool
}

var compressors = []compressor{
	{"gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, true},
	{"x-gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, true},
	{"deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, true},
	{"br", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, false},
	{"gzip, gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, false},
}

// compressedHost answers everything compressed. The model says how, or the body if there is
// no model: "bomb" is a response that becomes a thousand times larger.
func compressedHost(t *testing.T, coding *atomic.Pointer[compressor], bomb *atomic.Bool, status *atomic.Int64) string {
	t.Helper()
	const usage = `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		c := coding.Load()
		kind, text := "application/json", `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello there"},"finish_reason":"stop"}],`+usage+`}`
		switch {
		case bytes.Contains(body, []byte(`"stream":true`)):
			kind, text = "text/event-stream", `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello there"}}]}`+"\n\n"+
				`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],`+usage+"}\n\ndata: [DONE]\n\n"
		case strings.HasSuffix(req.URL.Path, "/embeddings"):
			text = `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":3,"total_tokens":3}}`
		case strings.HasSuffix(req.URL.Path, "/models"):
			text = `{"object":"list","data":[{"id":"hello there","object":"model"}]}`
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", c.name)
		if s := int(status.Load()); s != http.StatusOK {
			text = `{"error":{"message":"hello there","type":"server_error"}}`
			w.WriteHeader(s)
		}
		_, _ = w.Write(packed(c, text, bomb.Load()))
	}))
	t.Cleanup(host.Close)
	return host.URL
}

// packed is a text as a compressor packs it; a bomb has 96 MiB before its words. Bombs are
// kept, because making one takes seconds under the race detector.
func packed(c *compressor, text string, bomb bool) []byte {
	key := strings.TrimPrefix(c.name, "x-") + " " + text
	if cached, ok := bombs.Load(key); ok && bomb {
		return cached.([]byte)
	}
	var b bytes.Buffer
	z := c.pack(&b)
	head, tail, found := strings.Cut(text, "hello there")
	_, _ = io.WriteString(z, head)
	if bomb {
		_, _ = z.Write(bytes.Repeat([]byte("a"), 96<<20))
	}
	if found {
		_, _ = io.WriteString(z, "hello there"+tail)
	}
	_ = z.Close()
	if bomb {
		bombs.Store(key, b.Bytes())
	}
	return b.Bytes()
}

var bombs sync.Map // of []byte, by compressor and text

// compressedCalls are routes that read answers in ways of their own.
var compressedCalls = []struct {
	name, method, path, body string
	errors                   bool // the client sees an error of the gateway's shape
}{
	{"chat", "POST", "/chat/completions", chatBody("@squeezed/m", "Hello", ""), true},
	{"chat stream", "POST", "/chat/completions", chatBody("@squeezed/m", "Hello", `,"stream":true`), true},
	{"translated", "POST", "/messages", `{"model":"@squeezed/m","max_tokens":10,"messages":[{"role":"user","content":"Hello"}]}`, true},
	{"translated stream", "POST", "/messages", `{"model":"@squeezed/m","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`, true},
	{"embeddings", "POST", "/embeddings", `{"model":"@squeezed/m","input":"Hello"}`, true},
	{"models", "GET", "/models", "", true},
}

// In a row: it measures what this process allocates.
//
//lane:exhaustive
//lane:standard
func TestCompressedAnswers(t *testing.T) {
	r := start(t)
	var coding atomic.Pointer[compressor]
	var bomb atomic.Bool
	var status atomic.Int64
	host := compressedHost(t, &coding, &bomb, &status)
	r.save("squeezed", `"ai_provider_id":"openai","key":"sk-squeezed","configurations":{"custom_host":"`+host+`/v1"}`)
	send := func(i int) reply {
		c := compressedCalls[i]
		return r.call(c.method, c.path, c.body, "X-Gateway-Provider", "@squeezed")
	}
	for _, co := range compressors {
		coding.Store(&co)
		for i, c := range compressedCalls {
			bomb.Store(false)
			status.Store(http.StatusOK)
			got := send(i)
			if good := got.status == http.StatusOK && (c.name == "embeddings" || strings.Contains(got.body, "hello there")); good != co.known || !good && got.status != http.StatusBadGateway {
				t.Errorf("%s, %s: %d %.300s", co.name, c.name, got.status, got.body)
			}
			status.Store(http.StatusTooManyRequests)
			if got := send(i); got.status != http.StatusTooManyRequests || co.known && !strings.Contains(got.body, "hello there") {
				t.Errorf("%s, %s, an error: %d %.300s", co.name, c.name, got.status, got.body)
			}
			if !co.known || c.name == "embeddings" {
				continue
			}
			bomb.Store(true)
			for _, s := range []int64{http.StatusOK, http.StatusInternalServerError} {
				status.Store(s)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got := send(i)
				runtime.ReadMemStats(&after)
				// A stream that has begun ends with an error event; one whose first event never ends is rejected.
				if got.status < 500 || strings.Contains(got.body, "hello there") || len(got.body) > 1<<20 {
					t.Errorf("%s, %s, a bomb of status %d: %d, %d bytes, %.300s", co.name, c.name, s, got.status, len(got.body), got.body)
				}
				if made := after.TotalAlloc - before.TotalAlloc; made > 160<<20 { // the host itself makes 96 MiB
					t.Errorf("%s, %s, a bomb of status %d: %d MiB were allocated", co.name, c.name, s, made>>20)
				}
			}
		}
	}
	if used := r.g.relay.Memory.Used(); used != 0 {
		t.Errorf("%d bytes of the budget are never given back", used)
	}
}

// TestLargeAnswersShareOneBudget: what does not fit is rejected, and given back.
//
//lane:standard
func TestLargeAnswersShareOneBudget(t *testing.T) {
	t.Parallel()
	r := start(t)
	release := make(chan struct{})
	var waiting atomic.Int64
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"`)
		block := bytes.Repeat([]byte("a"), 1<<20)
		for range 40 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		waiting.Add(1)
		select {
		case <-release:
		case <-req.Context().Done():
			return
		}
		_, _ = fmt.Fprintf(w, `","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(host.Close)
	r.save("large", `"ai_provider_id":"openai","key":"sk-large","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	const requests = 4
	got := make(chan reply, requests)
	send := func() {
		go func() {
			one, err := r.try("POST", "/chat/completions", chatBody("@large/m", "Hello", ""))
			if err != nil {
				one.body = err.Error()
			}
			got <- one
		}()
	}
	send()
	eventually(t, func() error { // until the first has taken what it needs
		if waiting.Load() == 0 {
			return fmt.Errorf("the host has not sent its answer")
		}
		return nil
	})
	for range requests - 1 {
		send()
	}
	var refused, good int
	count := func(one reply) {
		switch {
		case one.status == http.StatusServiceUnavailable && one.header.Get("Retry-After") != "" && strings.Contains(one.body, "memory"):
			refused++
		case one.status == http.StatusOK && len(one.body) > 40<<20:
			good++
		default:
			t.Errorf("%d %.300s", one.status, one.body)
		}
	}
	for range requests - 1 {
		count(<-got) // those that do not fit are told so while the one that fits is held
	}
	close(release)
	count(<-got)
	if refused != requests-1 || good != 1 {
		t.Errorf("%d refused, %d good", refused, good)
	}
	eventually(t, func() error {
		if used := r.g.relay.Memory.Used(); used != 0 {
			return fmt.Errorf("%d bytes of the budget are never given back", used)
		}
		return nil
	})
}
