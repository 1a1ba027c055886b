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

// The last run is found in a tail that begins in the middle of an event and ends
// without the empty line behind the last one.
func TestTheLastRunOfAStream(t *testing.T) {
	const last = `{"id":"run_2","object":"thread.run","usage":{"total_tokens":3}}`
	for name, tail := range map[string]string{
		"whole":              "event: thread.run.created\ndata: {\"id\":\"run_1\",\"object\":\"thread.run\"}\n\ndata: " + last + "\n\nevent: done\ndata: [DONE]\n\n",
		"from the middle":    "ject\":\"thread.run\"}\n\ndata: " + last + "\n\n",
		"without its end":    "data: {\"object\":\"thread.message\"}\n\ndata: " + last + "\n",
		"behind a long line": strings.Repeat("x", 5000) + "\n\ndata: " + last + "\n\n",
	} {
		m := &tailMeter{stream: true, events: true, total: 1 << 20, tail: []byte(tail)}
		if name == "whole" || name == "without its end" {
			m.total = int64(len(tail))
		}
		if got := string(m.lastRun()); got != last {
			t.Errorf("%s: %q", name, got)
		}
	}
}
