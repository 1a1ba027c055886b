package response

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/egress"
	"gateway/shared/fault"
)

func translated() Stream {
	return Translate(openai.Chat{}.NewStreamDecoder(&chat.Traits{}), anthropic.Messages{}, &chat.Options{ID: "x", Model: "m"}, new(chat.Loss), nil)
}

// If a body starts like an object although events are expected, it is read completely, after any
// white space; only its beginning decides.
func TestAnswersThatComeWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string
		whole  int // index of the deciding piece; -1: none
	}{
		"an object":        {[]string{`{"id":"x"}`}, 0},
		"behind space":     {[]string{"\n ", "\t", `{`}, 2},
		"events":           {[]string{"data: {}", `{`}, -1},
		"a comment":        {[]string{": x", `{`}, -1},
		"nothing":          {[]string{"", " "}, -1},
		"a list":           {[]string{"[1]"}, -1},
		"a second of them": {[]string{"d", "{"}, -1},
	} {
		for way, s := range map[string]Stream{"passed": Pass(openai.Chat{}.NewStreamFilter(&chat.FilterOptions{})), "translated": translated()} {
			for i, piece := range c.pieces {
				if got := s.IsNotEvents([]byte(piece)); got != (i == c.whole) {
					t.Errorf("%s, %s: piece %d comes whole: %t", name, way, i, got)
				}
			}
		}
	}
	s := Pass(openai.Chat{}.NewStreamFilter(&chat.FilterOptions{}))
	s.ReplaceBy(translated())
	if !s.Translated() || s.IsNotEvents([]byte("{")) {
		t.Error("what stands in the place of a stream is looked at again")
	}
}

// A stream is only complete with the end of its dialect.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{len(openaiStream), strings.Index(openaiStream, `data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},`)} {
		for way, s := range map[string]Stream{"passed": Pass(openai.Chat{}.NewStreamFilter(&chat.FilterOptions{})), "translated": translated()} {
			out, err := s.Feed([]byte(openaiStream[:cut]))
			if err != nil || !bytes.Contains(out, []byte("Grü")) || !s.Meter().Started || !s.Is() {
				t.Errorf("%s: %v %s", way, err, out)
			}
			if _, err = s.End(); (err == nil) != (cut == len(openaiStream)) {
				t.Errorf("%s, cut at %d: %v", way, cut, err)
			}
			if way == "passed" && err != nil && err != io.ErrUnexpectedEOF {
				t.Errorf("%s: %v", way, err)
			}
		}
	}
	if (&Stream{}).Is() {
		t.Error("no stream is one")
	}
}

// An error ends a translated stream in its client's dialect; for a forwarded one the caller must
// write it, unless the provider has.
func TestErrorsOfStreams(t *testing.T) {
	t.Parallel()
	s := translated()
	if out, ok := s.AppendError(nil, fault.New(fault.ProviderError, "", "too busy")); !ok || !bytes.Contains(out, []byte("event: error")) || s.ForwardedError() {
		t.Errorf("%t %s", ok, out)
	}
	passed := Pass(openai.Chat{}.NewStreamFilter(&chat.FilterOptions{}))
	if out, ok := passed.AppendError(nil, fault.New(fault.ProviderError, "", "x")); ok || len(out) > 0 || passed.ForwardedError() || passed.Signed() != nil {
		t.Errorf("%t %s", ok, out)
	}
	if _, err := passed.Feed([]byte("data: {\"error\":{\"message\":\"overloaded\"}}\n\n")); err != nil || !passed.ForwardedError() || passed.Meter().Err == nil {
		t.Errorf("%v, passed on: %t, %v", err, passed.ForwardedError(), passed.Meter().Err)
	}
}

// A stream that is received at once is assembled like one that is received in pieces, and a
// complete response replayed as a stream is the same response.
func TestWholeAnswersAndStreams(t *testing.T) {
	t.Parallel()
	r, m, _, err := Collect(openai.Chat{}.NewStreamDecoder(&chat.Traits{}), []byte(openaiStream))
	if err != nil || !m.Usage.IsReported() || r.Choices[0].Text() != "Grüße" {
		t.Fatalf("%v %+v", err, r)
	}
	again, _, _, err := Collect(anthropic.Messages{}.NewStreamDecoder(&chat.Traits{}), Replay(r, anthropic.Messages{}.NewStreamEncoder(&chat.Options{ID: "x", Model: "m"})))
	if err != nil || again.Choices[0].Text() != "Grüße" {
		t.Errorf("%v %+v", err, again)
	}
	if _, m, _, err := Collect(openai.Chat{}.NewStreamDecoder(&chat.Traits{}), []byte(openaiStream[:400])); err == nil || m.OutputBytes == 0 && !m.Started {
		t.Errorf("half a stream: %v %+v", err, m)
	}
	for body, is := range map[string]bool{"data: x": true, "\n event: x": true, ": x": true, `{"data":1}`: false, "": false} {
		if IsEvents([]byte(body)) != is {
			t.Errorf("%q: %t", body, !is)
		}
	}
}

// Bytes without an event are counted, and released with the next event.
func TestABacklogIsGivenBack(t *testing.T) {
	t.Parallel()
	memory := egress.NewMemory(1 << 20)
	var l egress.Lease
	l.Of(memory, "org")
	var b Backlog
	ctx, stop := context.WithCancel(context.Background())
	stop()
	for range 8 {
		if err := b.Record(ctx, &l, egress.Uncounted/4, 0); err != nil {
			t.Fatal(err)
		}
	}
	if l.Size() == 0 {
		t.Error("a long event takes no memory")
	}
	if err := b.Record(ctx, &l, 1, 1); err != nil || l.Size() != 0 {
		t.Errorf("%d bytes are held behind it, %v", l.Size(), err)
	}
}
