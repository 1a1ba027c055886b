package relay

import (
	"net/http"
	"strings"
	"testing"

	"gateway/shared/dialect/openai"
)

// TestTheEndOfALongStreamIsMetered: what is kept of it begins in the middle of an
// event, which must not hide the usage behind it.
func TestTheEndOfALongStreamIsMetered(t *testing.T) {
	for _, eol := range []string{"\n", "\r\n"} {
		m := newTailMeter(&http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}})
		piece := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 700) + `"},"finish_reason":null}]}` + eol + eol
		for range 200 {
			m.feed([]byte(piece))
		}
		if m.total <= int64(len(m.tail)) || strings.HasPrefix(string(m.tail), "data:") {
			t.Fatalf("the tail of %d bytes is not cut inside of an event", len(m.tail))
		}
		m.feed([]byte(`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":200}}` + eol + eol + "data: [DONE]" + eol + eol))
		if got := m.meter(openai.Chat{}); got.Err != nil || !got.Complete || got.Usage.OutputTokens() != 200 {
			t.Errorf("%q: %v, complete %v, %+v", eol, got.Err, got.Complete, got.Usage)
		}
	}
}
