package response

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/dialect/openai"
)

var packers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":     func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"X-GZip":   func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate":  func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"deflate,": func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f },
}

func packed(coding, text string) []byte {
	var b bytes.Buffer
	z := packers[coding](&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.Bytes()
}

const usage = `"usage":{"prompt_tokens":7,"completion_tokens":11,"total_tokens":18}`

// answers are responses with usage, by media type; all but the last are longer than the retained
// part of a stream.
var answers = map[string]string{
	"text/event-stream": strings.Repeat(`data: {"id":"c","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}`+"\n\n", 3000) +
		`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + usage + "}\n\ndata: [DONE]\n\n",
	"application/json":     `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 30_000) + `"},"finish_reason":"stop"}],` + usage + `}`,
	"application/x-ndjson": strings.Repeat(`{"id":"c"}`+"\n", 9000) + `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"word"},"finish_reason":"stop"}],` + usage + "}\n",
}

func fed(kind, coding string, body []byte, piece int) *UsageTail {
	m := NewUsageTail(&http.Response{Header: http.Header{"Content-Type": {kind}, "Content-Encoding": {coding}}})
	for len(body) > 0 {
		n := min(piece, len(body))
		m.Feed(body[:n])
		body = body[n:]
	}
	return m
}

func TestWhatCameCompressedIsMetered(t *testing.T) {
	t.Parallel()
	for kind, text := range answers {
		for coding := range packers {
			for _, piece := range []int{1, 1000, 1 << 20} {
				m := fed(kind, coding, packed(coding, text), piece)
				if m.Unpack() {
					t.Errorf("%s, %s: unread", kind, coding)
				}
				if got := m.Read(openai.Chat{}).Usage; got.InputTokens() != 7 || got.OutputTokens() != 11 || m.Cut {
					t.Errorf("%s, %s, by %d bytes: %+v, cut %t", kind, coding, piece, got, m.Cut)
				}
				if kind != "application/json" && len(m.Retained) > 2*keep {
					t.Errorf("%s, %s: %d bytes are kept", kind, coding, len(m.Retained))
				}
			}
		}
	}
}

// An unreadable response is reported as unread and not buffered; it is inflated only up to the
// limit.
func TestWhatCannotBeUnpackedIsUnread(t *testing.T) {
	t.Parallel()
	noise := make([]byte, maxPlain+1)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	for name, c := range map[string]struct {
		coding string
		body   []byte
	}{
		"br":            {"br", []byte("whatever")},
		"zstd":          {"zstd", []byte("whatever")},
		"two codings":   {"gzip, gzip", packed("gzip", "{}")},
		"no gzip":       {"gzip", []byte(answers["application/json"])},
		"no deflate":    {"deflate", bytes.Repeat([]byte{0xff}, 100)},
		"a bomb":        {"gzip", packed("gzip", strings.Repeat("a", 70<<20))},
		"damaged":       {"gzip", damaged(packed("gzip", answers["application/json"]))},
		"longer than 4": {"gzip", noise},
	} {
		for kind := range answers {
			m := fed(kind, c.coding, c.body, 1<<16)
			if !m.Unpack() || len(m.Retained) > 0 || m.Read(openai.Chat{}).Usage.IsReported() || m.Total != int64(len(c.body)) {
				t.Errorf("%s, %s: kept %d, total %d", name, kind, len(m.Retained), m.Total)
			}
		}
	}
}

func damaged(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-6] ^= 0x55 // its checksum
	return b
}

// Of a truncated response the received part is read, wherever it was truncated.
func TestWhatBrokeOffCompressedIsReadUpToThere(t *testing.T) {
	t.Parallel()
	text := answers["application/json"]
	for coding := range packers {
		whole := packed(coding, text)
		for _, at := range []int{len(whole) / 2, len(whole) - 1} {
			m := fed("application/json", coding, whole[:at], 1000)
			m.Cut = true
			if m.Unpack() || !m.Cut || !strings.HasPrefix(text, string(m.Retained)) || len(m.Retained) == 0 || m.Total != int64(len(m.Retained)) {
				t.Errorf("%s, %d of %d bytes: kept %d, total %d", coding, at, len(whole), len(m.Retained), m.Total)
			}
		}
	}
}

func TestUnpackLeavesPlainAnswersAlone(t *testing.T) {
	t.Parallel()
	for _, coding := range []string{"", "identity"} {
		m := fed("application/json", coding, []byte(answers["application/json"]), 1000)
		if m.Unpack() || fmt.Sprint(m.Read(openai.Chat{}).Usage.OutputTokens()) != "11" {
			t.Errorf("%q: %+v", coding, m.Read(openai.Chat{}).Usage)
		}
	}
}
