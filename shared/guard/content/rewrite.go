package content

import (
	"bytes"
	"encoding/json"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"gateway/shared/wire"
)

// none is the parent of a source that is not nested.
const none = -1

// origin is the position of an event.
type origin struct {
	parent int   // the source that contains it in base64, as piece; none for the body
	piece  piece // of parent
	end    int   // end of the event in the body, unless a framing contains it
}

// source is an event with collected texts.
type source struct {
	origin
	raw   []byte
	twice []wire.Span // fields that repeat its texts
	edits []wire.Edit
	now   []byte // replacement of raw, or nil
}

// segment is the part of a joined text from one event.
type segment struct {
	source int
	piece  piece
	span   wire.Span // in the text
}

// Rewrite returns a stream or text body with the texts of changed, which is the Document that
// Read returned for the body, with some texts replaced. It replaces only strings that contain a
// changed text (and removes fields that repeat them, such as log probabilities); all other
// bytes stay unchanged: ids, signatures, usage, headers of frames. ok is false if a change
// cannot be written back.
func Rewrite(contentType string, body, changed []byte) (out []byte, ok bool) {
	texts, ok := textsOf(changed)
	if !ok {
		return nil, false
	}
	j := joined{track: true}
	var write func(body []byte, j *joined) ([]byte, bool)
	switch kind, _, _ := mime.ParseMediaType(contentType); {
	case kind == "application/vnd.amazon.eventstream":
		ok, write = readFrames(body, &j), writeFrames
	case kind == "text/event-stream" && !isJSON(body):
		ok, write = readEvents(body, &j), writeEvents
	case isJSON(body):
		readArray(body, &j)
		write = writeParts
	case readLines(body, &j):
		write = writeParts
	default:
		return texts.plain, texts.plain != nil
	}
	if !ok || !j.change(texts) || !j.splice() {
		return nil, false
	}
	if out, ok = write(body, &j); !ok {
		return nil, false
	}
	// Verifies that nothing that was removed remains.
	again, ok := Read(contentType, out)
	if !ok {
		return nil, false
	}
	now, ok := textsOf(again.JSON)
	return out, ok && now.within(texts)
}

// contents are the texts of a Document of a stream.
type contents struct {
	texts, calls []string
	thoughts     string
	plain        []byte // the text of a body that is not a stream, or nil
}

func textsOf(doc []byte) (c contents, ok bool) {
	var whole struct {
		Choices []struct {
			Text    *string
			Message struct {
				Content []struct{ Text string }
				Calls   []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				Thought string                                          `json:"reasoning_content"`
			}
		}
	}
	if json.Unmarshal(doc, &whole) != nil || len(whole.Choices) != 1 {
		return c, false
	}
	one := whole.Choices[0]
	if one.Text != nil {
		c.plain = append([]byte{}, *one.Text...)
	}
	for _, p := range one.Message.Content {
		c.texts = append(c.texts, p.Text)
	}
	for _, p := range one.Message.Calls {
		c.calls = append(c.calls, p.Function.Arguments)
	}
	c.thoughts = one.Message.Thought
	return c, true
}

// within reports whether all texts are among those of others, in order. A text that became an
// identifier is no longer read as a text.
func (c *contents) within(others contents) bool {
	for _, list := range [][2][]string{{c.texts, others.texts}, {c.calls, others.calls}} {
		rest := list[1]
		for _, t := range list[0] {
			i := slices.Index(rest, t)
			if i < 0 {
				return false
			}
			rest = rest[i+1:]
		}
	}
	return c.thoughts == others.thoughts
}

// change records the edits that produce the texts. It returns false if they do not correspond
// to the collected texts.
func (j *joined) change(to contents) bool {
	var thoughts []byte
	var thinking []segment
	for _, at := range j.order {
		var now string
		switch {
		case at.class == reasoned:
			for _, s := range j.segments[at] {
				s.span.Start, s.span.End = s.span.Start+len(thoughts), s.span.End+len(thoughts)
				thinking = append(thinking, s)
			}
			thoughts = append(thoughts, j.texts[at]...)
			continue
		case at.class == arguments:
			if len(to.calls) == 0 {
				return false
			}
			now, to.calls = to.calls[0], to.calls[1:]
		default:
			if len(to.texts) == 0 {
				return false
			}
			now, to.texts = to.texts[0], to.texts[1:]
		}
		j.edit(string(j.texts[at]), now, j.segments[at])
	}
	j.edit(string(thoughts), to.thoughts, thinking)
	return len(to.calls)+len(to.texts) == 0 && (len(thinking) > 0 || to.thoughts == "")
}

// edit records the edits that turn a text, which consists of segments, into another.
func (j *joined) edit(old, now string, of []segment) {
	changes := difference(old, now)
	if len(changes) == 0 || len(of) == 0 {
		return
	}
	texts, changed := make([][]byte, len(of)), make([]bool, len(of))
	for i, c := range changes {
		// The new text goes into the first segment that ends after the change.
		first := slices.IndexFunc(of, func(s segment) bool { return s.span.End > c.Start })
		if first < 0 {
			first = len(of) - 1
		}
		changes[i].first = first
	}
	for i, s := range of {
		at := s.span.Start
		for _, c := range changes {
			if c.first != i && (c.End <= s.span.Start || c.Start >= s.span.End) {
				continue
			}
			if from := min(c.Start, s.span.End); from > at {
				texts[i], at = append(texts[i], old[at:from]...), from
			}
			if c.first == i {
				texts[i] = append(texts[i], c.now...)
			}
			at, changed[i] = max(at, min(c.End, s.span.End)), true
		}
		if !changed[i] {
			continue
		}
		texts[i] = append(texts[i], old[at:s.span.End]...)
		src := &j.sources[s.source]
		if s.piece.at.Absent() {
			src.now = append([]byte{}, texts[i]...)
			continue
		}
		src.edits = append(src.edits, wire.Replace(s.piece.at, s.piece.written(src.raw, string(texts[i]))))
	}
}

// splice applies the edits to the sources, inner ones first.
func (j *joined) splice() bool {
	for i := len(j.sources) - 1; i >= 0; i-- {
		s := &j.sources[i]
		if len(s.edits) > 0 {
			for _, again := range s.twice {
				s.edits = append(s.edits, wire.Delete(again))
			}
			s.now = wire.Splice(nil, s.raw, s.edits...)
			if !isJSON(s.now) {
				return false
			}
		}
		if s.now != nil && s.parent != none {
			up := &j.sources[s.parent]
			up.edits = append(up.edits, wire.Replace(s.piece.at, s.piece.written(up.raw, string(s.now))))
		}
	}
	return true
}

// replaced returns the replacement of an event's data, or nil.
func (j *joined) replaced(event int) []byte {
	if event >= len(j.events) || j.events[event] == none {
		return nil
	}
	return j.sources[j.events[event]].now
}

// writeParts writes a body of JSON values.
func writeParts(body []byte, j *joined) ([]byte, bool) {
	var edits []wire.Edit
	for i := range j.sources {
		if s := &j.sources[i]; s.parent == none && s.now != nil {
			edits = append(edits, wire.Replace(wire.Span{Start: s.end - len(s.raw), End: s.end}, s.now))
		}
	}
	return wire.Splice(nil, body, edits...), true
}

// writeFrames writes events in the binary framing of AWS.
func writeFrames(body []byte, j *joined) (out []byte, ok bool) {
	for n := range j.events {
		size := wire.EventStreamSize(body)
		if size == 0 {
			return nil, false
		}
		if now := j.replaced(n); now == nil {
			out = append(out, body[:size]...)
		} else if out, ok = wire.AppendEventStreamPayload(out, body[:size], now); !ok {
			return nil, false // the text is in a header
		}
		body = body[size:]
	}
	return append(out, body...), true
}

// writeEvents writes server-sent events.
func writeEvents(body []byte, j *joined) (out []byte, ok bool) {
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		out, body = append(out, body[:3]...), body[3:]
	}
	event, within := 0, false
	for len(body) > 0 {
		end := bytes.IndexAny(body, "\r\n")
		if end < 0 {
			end = len(body)
		}
		next := min(end+1, len(body))
		if next < len(body) && body[end] == '\r' && body[next] == '\n' {
			next++
		}
		line, ending := body[:end], body[end:next]
		body = body[next:]
		field, _, _ := bytes.Cut(line, []byte{':'})
		now := j.replaced(event)
		switch {
		case len(line) == 0:
			if within {
				event++
			}
			within = false
		case string(field) == "data":
			again := within
			within = true
			if now != nil && again {
				continue
			}
			if now != nil {
				head := "data:"
				if bytes.HasPrefix(line, []byte("data: ")) {
					head = "data: "
				}
				if len(ending) == 0 {
					ending = []byte{'\n'}
				}
				for row := range bytes.SplitSeq(now, []byte{'\n'}) {
					out = append(append(append(out, head...), row...), ending...)
				}
				continue
			}
		}
		out = append(append(out, line...), ending...)
	}
	return out, true
}

// replacement is a part of a text to replace.
type replacement struct {
	wire.Span
	now   string
	first int // index of the receiving segment
}

// Parameters of the comparison: anchor is the number of equal bytes that end a difference,
// ahead the distance of the search.
const (
	anchor = 12
	ahead  = 4 << 10
)

// difference returns replacements that turn one text into another. They are not always minimal;
// a long one is correct but affects more events.
func difference(old, now string) (out []replacement) {
	end := 0 // length of the common suffix
	for end < min(len(old), len(now)) && old[len(old)-1-end] == now[len(now)-1-end] {
		end++
	}
	for end > 0 && !utf8.RuneStart(old[len(old)-end]) {
		end--
	}
	tail := len(old) - end
	head, rest := old[:tail], now[:len(now)-end]
	at := 0 // in head
	for {
		same := 0
		for same < min(len(head)-at, len(rest)) && head[at+same] == rest[same] {
			same++
		}
		if at+same == len(head) && same == len(rest) {
			return out
		}
		for same > 0 && (at+same < len(head) && !utf8.RuneStart(head[at+same]) || same < len(rest) && !utf8.RuneStart(rest[same])) {
			same--
		}
		at, rest = at+same, rest[same:]
		to, skip := len(head), len(rest)
		for i := at; i+anchor <= min(len(head), at+ahead); i++ {
			if !utf8.RuneStart(head[i]) {
				continue
			}
			if found := strings.Index(rest[:min(len(rest), i-at+ahead)], head[i:i+anchor]); found >= 0 {
				to, skip = i, found
				break
			}
		}
		out = append(out, replacement{Span: wire.Span{Start: at, End: to}, now: rest[:skip]})
		at, rest = to, rest[skip:]
	}
}
