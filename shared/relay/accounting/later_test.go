package accounting

import (
	"net/http"
	"strings"
	"testing"

	"gateway/shared/relay/response"
)

// The last run is found in a tail that starts in the middle of an event and ends without the
// final blank line.
func TestTheLastRunOfAStream(t *testing.T) {
	const last = `{"id":"run_2","object":"thread.run","usage":{"total_tokens":3}}`
	for name, end := range map[string]string{
		"whole":              "event: thread.run.created\ndata: {\"id\":\"run_1\",\"object\":\"thread.run\"}\n\ndata: " + last + "\n\nevent: done\ndata: [DONE]\n\n",
		"from the middle":    "ject\":\"thread.run\"}\n\ndata: " + last + "\n\n",
		"without its end":    "data: {\"object\":\"thread.message\"}\n\ndata: " + last + "\n",
		"behind a long line": strings.Repeat("x", 5000) + "\n\ndata: " + last + "\n\n",
	} {
		m := response.NewUsageTail(&http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}})
		if name == "from the middle" || name == "behind a long line" {
			m.Total = 1 << 20 // earlier bytes were dropped
		}
		m.Feed([]byte(end))
		if got := string(lastRun(m)); got != last {
			t.Errorf("%s: %q", name, got)
		}
	}
}
