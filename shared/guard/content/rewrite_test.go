package content

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/wire"
)

// streamed is a kind of event in a stream of a format. Events contain %s where a piece of the
// text is, as a JSON string, or within one.
type streamed struct {
	name, kind string
	event      string
	first, end []string // events around it
	class      class
}

var streamsOf = []streamed{
	{"gemini text", "text/event-stream", `{"candidates": [{"content": {"parts": [{"text": %s}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 7},"modelVersion": "gemini-2.5-flash","responseId": "r-1"}`, nil,
		[]string{`{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f","args": {"a": "b c"}},"thoughtSignature": "CiQBVKhc7g=="}]},"finishReason": "STOP"}],"usageMetadata": {"totalTokenCount": 70}}`}, text},
	{"gemini thought", "text/event-stream", `{"candidates": [{"content": {"parts": [{"text": %s, "thought": true, "thoughtSignature": "CiQBVKhc7g=="}],"role": "model"}}]}`, nil, nil, reasoned},
	{"gemini list", "application/json", `{"candidates": [{"content": {"parts": [{"text": %s, "thoughtSignature": "CiQBVKhc7g=="}],"role": "model"}}],"usageMetadata": {"totalTokenCount": 70}}`, nil, nil, text},
	{"converse text", "application/vnd.amazon.eventstream", `{"contentBlockIndex":0,"delta":{"text":%s},"p":"abcdefgh"}`, []string{`{"p":"abc","role":"assistant"}`}, []string{`{"contentBlockIndex":0,"p":"ab"}`, `{"metrics":{"latencyMs":7},"usage":{"inputTokens":7,"outputTokens":8,"totalTokens":15}}`}, text},
	{"converse thought", "application/vnd.amazon.eventstream", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":%s}},"p":"abcdefgh"}`, nil, []string{`{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"CiQBVKhc7g=="}}}`}, reasoned},
	{"converse arguments", "application/vnd.amazon.eventstream", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":%s}}}`, []string{`{"contentBlockIndex":1,"start":{"toolUse":{"name":"f","toolUseId":"t_1"}}}`}, nil, arguments},
	{"invoke", "application/vnd.amazon.eventstream", `{"bytes":"{{ {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}} }}","p":"abc"}`, nil, []string{`{"bytes":"{{ {"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":7}} }}"}`}, text},
	{"cohere text", "text/event-stream", `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":%s}}}}`, []string{`{"id":"29f14a5a","type":"message-start","delta":{"message":{"role":"assistant"}}}`}, []string{`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":7}}}}`}, text},
	{"cohere thought", "text/event-stream", `{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":%s}}}}`, nil, nil, reasoned},
	{"cohere plan", "text/event-stream", `{"type":"tool-plan-delta","delta":{"message":{"tool_plan":%s}}}`, nil, nil, text},
	{"cohere arguments", "text/event-stream", `{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":%s}}}}}`, nil, nil, arguments},
	{"chat text", "text/event-stream", `{"id":"c-1","choices":[{"index":0,"delta":{"content":%s}}]}`, nil, []string{`{"id":"c-1","choices":[{"index":1,"delta":{"content":"another choice"}}]}`, `{"usage":{"total_tokens":7},"choices":[]}`, `[DONE]`}, text},
	{"messages text", "text/event-stream", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, nil, []string{`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"CiQBVKhc7g=="}}`}, text},
	{"responses text", "text/event-stream", `{"type":"response.output_text.delta","item_id":"m_1","output_index":0,"delta":%s,"sequence_number":7}`, nil, nil, text},
}

// frame returns a stream of events.
func (s *streamed) frame(events []string) []byte {
	var out []byte
	for i, e := range events {
		if at := strings.Index(e, `"{{ `); at >= 0 {
			end := strings.Index(e, ` }}"`)
			e = e[:at+1] + base64.StdEncoding.EncodeToString([]byte(e[at+4:end])) + e[end+3:]
		}
		switch s.kind {
		case "application/vnd.amazon.eventstream":
			out = wire.AppendEventStream(out, "chunk", []byte(e))
		case "text/event-stream":
			out = fmt.Appendf(out, ": comment\r\nevent: e%d\r\nid: %d\r\ndata:%s\r\n\r\n", i, i, e)
		case "application/json":
			out = append(append(out, ",\r\n"...), e...)
		}
	}
	if s.kind == "application/json" {
		return append(append([]byte{'['}, out[3:]...), "\n]"...)
	}
	return out
}

// of returns a stream whose events contain the pieces.
func (s *streamed) of(pieces []string) []byte {
	events := slices.Clone(s.first)
	for _, p := range pieces {
		events = append(events, strings.Replace(s.event, "%s", string(wire.AppendJSONString(nil, p)), 1))
	}
	return s.frame(append(events, s.end...))
}

// TestRewriteChangesTextsAlone redacts streams whose text comes in any pieces. The result is
// the stream that the provider would have sent with other pieces: nothing else differs by a
// byte.
func TestRewriteChangesTextsAlone(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`hunter\d+|ö@é`)
	for _, s := range streamsOf {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				words := rapid.SliceOfN(rapid.SampledFrom([]string{"hunter2", "hunter345", "ö@é", "a", "of the", "\n", `"`, "naïve 😀", "<b>", strings.Repeat("long ", 9)}), 0, 12).Draw(t, "words")
				whole := strings.Join(append([]string{"It is"}, words...), " ")
				var pieces []string
				for rest := whole; rest != ""; {
					n := rapid.IntRange(1, 12).Draw(t, "cut")
					r := []rune(rest)
					n = min(n, len(r))
					pieces, rest = append(pieces, string(r[:n])), string(r[n:])
				}
				body := s.of(pieces)
				doc, ok := Read(s.kind, body)
				if !ok || doc.IsBody {
					t.Fatalf("read %v %+v", ok, doc)
				}
				scope := map[class]Scope{text: AllMessages, reasoned: Reasoning, arguments: ToolArguments}[s.class]
				found := InResponse("chatComplete", doc.JSON, scope)
				texts := make([]*string, len(found.Texts))
				for i, now := range found.Texts {
					now = secret.ReplaceAllString(now, "{{*}}")
					texts[i] = &now
				}
				changed := found.ReplaceTexts(doc.JSON, texts)
				got, ok := Rewrite(s.kind, body, changed)
				if !ok {
					t.Fatalf("%q cannot be rewritten:\n%s\n%s", pieces, doc.JSON, changed)
				}
				now := s.pieces(t, got, len(pieces))
				if want := secret.ReplaceAllString(whole, "{{*}}"); strings.Join(now, "") != want {
					t.Fatalf("%q became %q, not %q", pieces, now, want)
				}
				if again := s.of(now); !bytes.Equal(got, again) {
					t.Fatalf("more than texts changed:\n%s\nwant\n%s", got, again)
				}
				if !secret.MatchString(whole) && !slices.Equal(now, pieces) {
					t.Fatalf("%q became %q", pieces, now)
				}
			})
		})
	}
}

// pieces returns the pieces of the text in a stream.
func (s *streamed) pieces(t *rapid.T, body []byte, n int) (out []string) {
	j := joined{track: true}
	switch s.kind {
	case "application/vnd.amazon.eventstream":
		readFrames(body, &j)
	case "text/event-stream":
		readEvents(body, &j)
	case "application/json":
		readArray(body, &j)
	}
	for _, at := range j.order {
		if list := j.segments[at]; at.class == s.class && len(list) == n && bytes.HasPrefix(j.texts[at], []byte("I")) {
			for _, p := range list {
				out = append(out, p.piece.text(j.sources[p.source].raw))
			}
		}
	}
	if len(out) != n {
		t.Fatalf("%d of %d pieces in %s", len(out), n, body)
	}
	return out
}

// TestRewriteRejectsTextOutsideOfEvents has changes that cannot be written back.
func TestRewriteRejectsTextOutsideOfEvents(t *testing.T) {
	t.Parallel()
	frame := wire.AppendEventStream(nil, "chunk", []byte(`{}`))
	for name, c := range map[string]struct{ kind, body, changed string }{
		"another structure": {"text/event-stream", "data: {\"text\":\"a b\"}\n\n", `{"choices":[]}`},
		"more texts":        {"text/event-stream", "data: {\"text\":\"a b\"}\n\n", `{"choices":[{"message":{"content":[{"text":"a"},{"text":"b"}]}}]}`},
		"fewer texts":       {"text/event-stream", "data: {\"text\":\"a b\"}\n\n", `{"choices":[{"message":{"content":[]}}]}`},
		"new reasoning":     {"text/event-stream", "data: {\"text\":\"a b\"}\n\n", `{"choices":[{"message":{"content":[{"text":"a b"}],"reasoning_content":"x y"}}]}`},
		"no JSON":           {"application/vnd.amazon.eventstream", string(frame), `x`},
	} {
		if out, ok := Rewrite(c.kind, []byte(c.body), []byte(c.changed)); ok {
			t.Errorf("%s: %q", name, out)
		}
	}
	rows := `{"content":"ann"}` + "\n" + ` {"content":"bob"}  ` + "\r\n" + `{"done":true,"n":1.0}` + "\n"
	doc, _ := Read("application/x-ndjson", []byte(rows))
	changed := bytes.Replace(doc.JSON, []byte("bob"), []byte("*"), 1)
	if out, ok := Rewrite("application/x-ndjson", []byte(rows), changed); !ok || string(out) != strings.Replace(rows, "bob", "*", 1) {
		t.Errorf("rows: %q %v %s", out, ok, changed)
	}
	if out, ok := Rewrite("text/plain", []byte("mail ann"), []byte(`{"choices":[{"text":"mail *"}]}`)); !ok || string(out) != "mail *" {
		t.Errorf("text: %q %v", out, ok)
	}
}

// TestIncompleteMessagesAreUnread: a client may read the text of a message that was cut off.
func TestIncompleteMessagesAreUnread(t *testing.T) {
	t.Parallel()
	const kind = "application/vnd.amazon.eventstream"
	whole := wire.AppendEventStream(nil, "chunk", []byte(`{"delta":{"text":"ann"}}`))
	two := append(bytes.Clone(whole), whole...)
	if doc, ok := Read(kind, two); !ok || doc.Unreadable {
		t.Error("whole messages are unread")
	}
	for n := len(whole) + 1; n < len(two); n++ {
		if doc, ok := Read(kind, two[:n]); !ok || !doc.Unreadable || !bytes.Contains(doc.JSON, []byte("ann")) {
			t.Errorf("%d of %d bytes: read %v, unread %v, %s", n, len(two), ok, doc.Unreadable, doc.JSON)
		}
	}
}

// TestDifferenceMakesTheOtherText checks that the replacements give the new text, whatever both
// have in common.
func TestDifferenceMakesTheOtherText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "ö", "😀", "ñ", "é", strings.Repeat("xyz", 9)}), 0, 30)
		old, now := strings.Join(words.Draw(t, "old"), ""), strings.Join(words.Draw(t, "now"), "")
		var out strings.Builder
		at := 0
		for _, r := range difference(old, now) {
			out.WriteString(old[at:r.Start] + r.now)
			at = r.End
		}
		if out.WriteString(old[at:]); out.String() != now {
			t.Fatalf("%q became %q, not %q", old, out.String(), now)
		}
	})
}
