package dialect_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
)

// streamsOf are complete streams by their dialect, for filters of that dialect.
var streamsOf = map[string]string{
	"openai":      "openai-anthropic/stream-text/response.sse",
	"completions": "completions-invoke/stream-text/response.sse",
	"anthropic":   "anthropic-anthropic/stream/upstream_response.sse",
	"responses":   "responses-responses/stream/upstream_response.sse",
	"gemini":      "openai-gemini/stream-text/upstream_response.sse",
	"cohere":      "openai-cohere/stream-text/upstream_response.sse",
}

// garbage are events that no dialect knows what to do with: half an event, words,
// a page, and JSON that is no object.
var garbage = []string{`{"choices":[{"delta" : not json`, `{"type":"content_block_delta","index":0,"delta":{"ty`, "<html>", "17", `"a"`, `{"a":1}}`}

// TestGarbageInAStreamThatIsPassedOnEndsIt puts garbage between the events of a stream.
// What came before goes out, the garbage and what follows do not, and the stream counts as
// broken.
func TestGarbageInAStreamThatIsPassedOnEndsIt(t *testing.T) {
	for name, file := range streamsOf {
		whole := golden.File(t, filepath.Dir(file), filepath.Base(file))
		all := strings.SplitAfter(strings.ReplaceAll(string(whole), "\r\n", "\n"), "\n\n")
		for at := 1; at+2 < len(all); at++ {
			if strings.TrimSpace(all[at]) == "data: [DONE]" {
				break
			}
			before := strings.Join(all[:at], "")
			if _, m := passed(t, name, before, len(before)); m.Complete {
				break // what comes after a whole response is another case
			}
			for _, bad := range garbage {
				in := before + "data: " + bad + "\n\n" + strings.Join(all[at:], "")
				for _, size := range []int{len(in), 1, 13} {
					out, m := passed(t, name, in, size)
					want, _ := passed(t, name, before, len(before))
					if out != want {
						t.Fatalf("%s, %q after %d events in pieces of %d:\n%s\nwant\n%s", name, bad, at, size, out, want)
					}
					if m.Err == nil || m.Err.Code != fault.InvalidProviderResponse || m.Complete {
						t.Fatalf("%s, %q after %d events: %v, complete %v", name, bad, at, m.Err, m.Complete)
					}
				}
			}
		}
	}
}

// TestGarbageBehindAWholeAnswerIsLeftOut: the response is complete and stays so. No client
// speaks Cohere's dialect, whose streams are only metered.
func TestGarbageBehindAWholeAnswerIsLeftOut(t *testing.T) {
	for name, file := range streamsOf {
		whole := golden.File(t, filepath.Dir(file), filepath.Base(file))
		in := string(bytes.TrimRight(whole, "\n")) + "\n\n"
		want, _ := passed(t, name, in, len(in))
		for _, bad := range []string{"data: \n\n", "data: not json\n\n", ": a comment\n\n"} {
			out, m := passed(t, name, in+bad, 50)
			if m.Err != nil || !m.Complete || strings.Contains(out, "not json") && name != "cohere" || !strings.HasPrefix(out, want) {
				t.Errorf("%s, %q: %v, complete %v\n%s", name, bad, m.Err, m.Complete, out)
			}
		}
	}
}

// passed sends in through the filter of a dialect in pieces, and gives what came
// out before the end of the stream.
func passed(t *testing.T, name, in string, size int) (string, chat.Meter) {
	t.Helper()
	f := upstream.Passer(golden.Providers[name]).NewStreamFilter(&chat.FilterOptions{IncludeUsage: true})
	var out []byte
	for rest := []byte(in); len(rest) > 0; {
		n := min(size, len(rest))
		part, err := f.Feed(bytes.Clone(rest[:n]))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, part...)
		rest = rest[n:]
	}
	m := f.Meter()
	if m.Err != nil && f.Passed() {
		t.Fatalf("%s: the error is taken for the provider's own", name)
	}
	return string(out), m
}
