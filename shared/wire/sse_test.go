package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/fault"
)

type sseEvent struct{ Name, Data string }

func feedAll(t testing.TB, p *SSEParser, chunks ...[]byte) []sseEvent {
	t.Helper()
	var got []sseEvent
	emit := func(event string, data []byte) error {
		got = append(got, sseEvent{event, string(data)})
		return nil
	}
	for _, c := range chunks {
		own := bytes.Clone(c)
		if err := p.Feed(own, emit); err != nil {
			t.Fatalf("Feed: %v", err)
		}
		clear(own) // what the parser kept must be its own
	}
	if err := p.End(emit); err != nil {
		t.Fatalf("End: %v", err)
	}
	return got
}

var sseStreams = []struct {
	name, in string
	want     []sseEvent
}{
	{"one event", "data: a\n\n", []sseEvent{{"", "a"}}},
	{"no space after the colon", "data:a\n\n", []sseEvent{{"", "a"}}},
	{"only one space is taken", "data:  a\n\n", []sseEvent{{"", " a"}}},
	{"named event", "event: ping\ndata: {}\n\n", []sseEvent{{"ping", "{}"}}},
	{"name does not outlive its event", "event: x\ndata: 1\n\ndata: 2\n\n", []sseEvent{{"x", "1"}, {"", "2"}}},
	{"event without data is not given", "event: x\n\ndata: 2\n\n", []sseEvent{{"", "2"}}},
	{"several data lines", "data: a\ndata: b\ndata:\n\n", []sseEvent{{"", "a\nb\n"}}},
	{"empty data line is an event", "data\n\n", []sseEvent{{"", ""}}},
	{"comments and unknown fields", ": ping\nid: 3\nretry: 5\nfoo\ndata: a\n: x\n\n", []sseEvent{{"", "a"}}},
	{"CRLF", "event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []sseEvent{{"e", "a"}, {"", "b"}}},
	{"CR only", "data: a\rdata: b\r\rdata: c\r\r", []sseEvent{{"", "a\nb"}, {"", "c"}}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []sseEvent{{"", "a"}}},
	{"half a byte order mark is text", "\xef\xbbdata: a\n\ndata: b\n\n", []sseEvent{{"", "b"}}},
	{"last event without a blank line", "data: a\n\ndata: b\n", []sseEvent{{"", "a"}, {"", "b"}}},
	{"last line without an end", "data: a\n\ndata: b", []sseEvent{{"", "a"}, {"", "b"}}},
	{"only a byte order mark", "\xef\xbb", nil},
	{"UTF-8 text", "data: {\"t\":\"žluť 漢字 🎉\"}\n\n", []sseEvent{{"", `{"t":"žluť 漢字 🎉"}`}}},
	{"many names", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\nevent: a\ndata: 3\n\n", []sseEvent{{"a", "1"}, {"b", "2"}, {"a", "3"}}},
	{"blank lines between", "\n\ndata: a\n\n\n\ndata: b\n\n", []sseEvent{{"", "a"}, {"", "b"}}},
	{"empty", "", nil},
}

func TestSSEParserReadsWholeStreams(t *testing.T) {
	for _, c := range sseStreams {
		t.Run(c.name, func(t *testing.T) {
			if got := feedAll(t, &SSEParser{}, []byte(c.in)); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSSEParserDoesNotCareWhereTheStreamIsSplit(t *testing.T) {
	for _, c := range sseStreams {
		in := []byte(c.in)
		for i := 0; i <= len(in); i++ {
			for j := i; j <= len(in); j++ {
				got := feedAll(t, &SSEParser{}, in[:i], in[i:j], in[j:])
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Fatalf("%s split at %d and %d: got %q, want %q", c.name, i, j, got, c.want)
				}
			}
		}
	}
}

func TestSSEParserRefusesAnEventOverItsBound(t *testing.T) {
	for _, in := range []string{
		"data: " + strings.Repeat("x", 200),
		strings.Repeat("data: 123456789\n", 20),
		strings.Repeat("data: 123456789\r", 20),
	} {
		p := &SSEParser{MaxEvent: 100}
		none := func(string, []byte) error { t.Error("emitted"); return nil }
		var err error
		for i := 0; i < len(in) && err == nil; i += 7 {
			err = p.Feed([]byte(in[i:min(i+7, len(in))]), none)
		}
		if !fault.Is(err, fault.InvalidProviderResponse) {
			t.Errorf("got %v", err)
		}
		if again := p.End(none); again != err {
			t.Errorf("the error must stay: %v", again)
		}
	}
}

func TestSSEParserStopsAtTheErrorOfEmit(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	p := &SSEParser{}
	err := p.Feed([]byte("data: 1\n\ndata: 2\n\n"), func(string, []byte) error { n++; return stop })
	if err != stop || n != 1 {
		t.Fatalf("err %v after %d events", err, n)
	}
}

func TestAppendSSERoundTrip(t *testing.T) {
	for _, c := range []sseEvent{{"", "a"}, {"e", "a\nb"}, {"", ""}, {"", "a\r\nb\rc\n"}, {"x", `{"a":1}`}} {
		b := AppendSSE(nil, c.Name, []byte(c.Data))
		got := feedAll(t, &SSEParser{}, b)
		data := strings.ReplaceAll(strings.ReplaceAll(c.Data, "\r\n", "\n"), "\r", "\n")
		if len(got) != 1 || got[0].Name != c.Name || got[0].Data != data {
			t.Errorf("%q came back as %q from %q", c, got, b)
		}
	}
	if got := string(AppendSSE(nil, "", []byte("[DONE]"))); got != "data: [DONE]\n\n" {
		t.Errorf("got %q", got)
	}
}

func FuzzSSEParserSplits(f *testing.F) {
	for _, c := range sseStreams {
		f.Add([]byte(c.in), uint16(3), uint16(5))
	}
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16) {
		whole := feedAll(t, &SSEParser{}, in)
		i := min(int(a), len(in))
		j := min(i+int(b), len(in))
		if got := feedAll(t, &SSEParser{}, in[:i], in[i:j], in[j:]); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Fatalf("split at %d, %d: %q, whole: %q", i, j, got, whole)
		}
		var single [][]byte
		for k := range in {
			single = append(single, in[k:k+1])
		}
		if got := feedAll(t, &SSEParser{}, single...); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Fatalf("byte by byte: %q, whole: %q", got, whole)
		}
	})
}

func BenchmarkSSEParser100Chunks(b *testing.B) {
	var stream []byte
	for i := range 100 {
		stream = AppendSSE(stream, "", fmt.Appendf(nil, `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"token %d"},"finish_reason":null}]}`, i))
	}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	n := 0
	emit := func(string, []byte) error { n++; return nil }
	p := &SSEParser{}
	for b.Loop() {
		for i := 0; i < len(stream); i += 1000 {
			if err := p.Feed(stream[i:min(i+1000, len(stream))], emit); err != nil {
				b.Fatal(err)
			}
		}
	}
}
