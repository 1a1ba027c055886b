package response

import (
	"net/http"
	"strings"
	"testing"

	"gateway/shared/dialect/openai"
)

// TestTheEndOfALongStreamIsMetered checks that a retained end that starts in the middle of an
// event does not hide the usage after it.
func TestTheEndOfALongStreamIsMetered(t *testing.T) {
	for _, eol := range []string{"\n", "\r\n"} {
		m := NewUsageTail(&http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}})
		piece := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 700) + `"},"finish_reason":null}]}` + eol + eol
		for range 200 {
			m.Feed([]byte(piece))
		}
		if m.Total <= int64(len(m.Retained)) || strings.HasPrefix(string(m.Retained), "data:") {
			t.Fatalf("the tail of %d bytes is not cut inside of an event", len(m.Retained))
		}
		m.Feed([]byte(`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":200}}` + eol + eol + "data: [DONE]" + eol + eol))
		if got := m.Read(openai.Chat{}); got.Err != nil || !got.Complete || got.Usage.OutputTokens() != 200 {
			t.Errorf("%q: %v, complete %v, %+v", eol, got.Err, got.Complete, got.Usage)
		}
	}
}
