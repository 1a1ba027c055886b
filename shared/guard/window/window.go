// Package window judges a stream between the reader of the provider's events and the writer of
// the client's. A window forwards a text after it was judged together with the following text.
// A hold forwards nothing before the entire response was judged.
package window

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/wire"
)

// Judge returns the text to send instead of a text, or a denial.
type Judge func(text string) (now string, denied *fault.Fault)

// Texts returns a decoder that passes texts through a window; reach is its width.
//
// A text is forwarded up to a point after which at least the window's characters have arrived
// and were judged together with it. So anything forbidden that is not longer than the window is
// seen completely before any of it is sent, however the stream is split. A replacement is
// forwarded once the remaining text yields the same result when judged separately: then no
// change crosses the cut. Until then the decoder waits for more text, at most the complete
// response. Unchanged text is judged again only as far as the reach overlaps with the following
// text.
//
// With words, a text is judged and forwarded only up to the end of a word, however long the
// word is. So anything forbidden within a word is seen completely, with its ends. With grown, a
// text is judged with everything before it: see grow. If too much of a text was sent to change
// it, deny returns the denial.
//
// Other deltas, such as citations, are judged by elements on arrival.
func Texts(dec chat.StreamDecoder, reach guard.MatchWindow, judge Judge, elements Elements, deny func() *fault.Fault) chat.StreamDecoder {
	g := &texts{decoderBase: decoderBase{dec: dec}, size: reach.Most, reach: reach.Overlap, words: reach.WholeWords, grown: reach.Cumulative, elements: elements, deny: deny, lines: map[int]*line{}}
	g.judge = func(text string) (string, *fault.Fault) {
		g.judged = true
		return judge(text)
	}
	g.push = g.delta
	return g
}

// decoderBase is the common part of both decoders.
type decoderBase struct {
	dec        chat.StreamDecoder
	emit       func(*chat.Delta) error
	push       func(*chat.Delta) error
	denied     *fault.Fault
	denialSent bool // the denial was sent
}

// Parser implements chat.Framed.
func (f *decoderBase) Parser() chat.EventParser {
	if framed, ok := f.dec.(chat.Framed); ok {
		return framed.Parser()
	}
	return new(wire.SSEParser)
}

// Signed implements chat.StreamDecoder.
func (f *decoderBase) Signed() []chat.Signed { return f.dec.Signed() }

func nothing(*chat.Delta) error { return nil }

// event reads an event. After a denial it is read only for its usage: the response was
// generated and must be paid for.
func (f *decoderBase) event(event string, data []byte, emit func(*chat.Delta) error) error {
	if f.denialSent {
		return f.dec.Event(event, data, nothing)
	}
	f.emit = emit
	return f.dec.Event(event, data, f.push)
}

// sendDenial sends the denial once.
func (f *decoderBase) sendDenial() error {
	if f.denied == nil || f.denialSent {
		return nil
	}
	f.denialSent = true
	return f.denied
}

// texts is a decoder with a window.
type texts struct {
	decoderBase
	size  int
	reach int // characters before new text that are judged with it; zero means all
	words bool
	grown bool
	judge Judge

	elements Elements
	deny     func() *fault.Fault

	lines  map[int]*line // by choice
	sent   bool          // something was forwarded
	judged bool          // the judge was called
	json   []byte
}

// line is the text of one choice that was not yet forwarded.
type line struct {
	queue queue
	text  []byte // of the texts among the deltas
	count int    // length of text in characters
	clean int    // length of the judged and unchanged text, in bytes
	next  int    // length in characters at which it is judged again
	seen  []byte // forwarded text, verbatim; set if texts are judged grown
	sent  string // the same as it was sent
	// passed is the length of the prefix of seen and text that was unchanged when it was last
	// judged separately; only if texts are judged grown.
	passed int
}

// Event implements chat.StreamDecoder.
func (g *texts) Event(event string, data []byte, emit func(*chat.Delta) error) error {
	if err := g.event(event, data, emit); err != nil {
		return err
	}
	return g.sendDenial()
}

// End implements chat.StreamDecoder.
func (g *texts) End() error {
	if g.denialSent {
		return g.dec.End()
	}
	err := g.dec.End()
	for choice := range g.lines {
		if err == nil {
			err = g.finish(choice)
		}
	}
	if err != nil {
		return err
	}
	return g.sendDenial()
}

// Meter implements chat.StreamDecoder. The response begins only when something was sent.
func (g *texts) Meter() chat.Meter {
	m := g.dec.Meter()
	if m.Withheld = m.Started && !g.sent; m.Withheld {
		m.Started = false
	}
	return m
}

func (g *texts) delta(d *chat.Delta) error {
	if g.denied != nil {
		return nil
	}
	switch treatments[d.Kind] {
	case text:
		return g.text(d)
	case element:
		if d, g.denied = g.elements.judge(d, g.deny); g.denied != nil {
			return nil
		}
	case exempt:
	default: // a kind that is not judged
		g.denied = g.deny()
		return nil
	}
	switch d.Kind {
	case chat.DeltaStart, chat.DeltaUsage, chat.DeltaPing:
		return g.emit(d)
	case chat.DeltaStop:
		if err := g.finish(d.Choice); err != nil || g.denied != nil {
			return err
		}
		return g.pass(d)
	}
	if l := g.lines[d.Choice]; l != nil && l.queue.len() > 0 {
		l.queue.add(d, 0) // preserves the order of arrival
		return nil
	}
	return g.pass(d)
}

func (g *texts) pass(d *chat.Delta) error {
	g.sent = g.sent || d.HasContent()
	return g.emit(d)
}

// text processes the next piece of a text.
func (g *texts) text(d *chat.Delta) error {
	l := g.lines[d.Choice]
	if l == nil {
		if l = (&line{next: 2 * g.size}); g.grown {
			l.next = g.size
		}
		g.lines[d.Choice] = l
	}
	from := len(l.text)
	l.text = wire.AppendUnquoted(l.text, d.JSON)
	l.queue.add(d, len(l.text)-from)
	l.count += utf8.RuneCount(l.text[from:])
	if l.count < l.next {
		return nil
	}
	return g.advance(l)
}

// advance judges the text that arrived and forwards what passed.
func (g *texts) advance(l *line) error {
	added := l.text
	if g.words {
		if added = added[:g.end(added, len(added))]; len(added) == 0 {
			l.next = l.count + g.size
			return nil
		}
	}
	if g.grown {
		return g.grow(l, added)
	}
	now, denied := g.judgeNew(l, added)
	if g.denied = denied; denied != nil {
		return nil
	}
	cut := g.cut(added)
	if now == nil {
		if cut > 0 {
			err := g.release(l, cut, nil)
			l.clean = len(added) - cut
			return err
		}
		l.clean = len(added)
	} else {
		for ; cut > 0; cut = g.end(added, cut/2) {
			rest, denied := g.judge(string(added[cut:]))
			if denied == nil && strings.HasSuffix(*now, rest) {
				head := (*now)[:len(*now)-len(rest)]
				return g.release(l, cut, &head)
			}
		}
	}
	l.next = l.count + g.size
	return nil
}

// judgeNew judges the beginning of a line's text. Text that was judged and unchanged is judged
// again only as far as a match can reach back from the new text. A nil result means unchanged.
func (g *texts) judgeNew(l *line, added []byte) (now *string, denied *fault.Fault) {
	if from := g.overlap(l, added); from > 0 {
		text := string(added[from:])
		switch now, denied := g.judge(text); {
		case denied != nil:
			return nil, denied
		case now == text:
			return nil, nil
		}
	}
	text := string(added)
	changed, denied := g.judge(text)
	if denied != nil || changed == text {
		return nil, denied
	}
	return &changed, nil
}

// overlap returns where the text begins that must be judged with the new text of a line.
func (g *texts) overlap(l *line, added []byte) int {
	if g.reach == 0 || l.clean == 0 {
		return 0
	}
	at := min(l.clean, len(added))
	for range g.reach {
		if at == 0 {
			return 0
		}
		_, n := utf8.DecodeLastRune(added[:at])
		at -= n
	}
	if g.words {
		return g.end(added, at)
	}
	return at
}

// cut returns where a forwarded text may end: size characters before its end, after a word.
func (g *texts) cut(text []byte) int {
	at := len(text)
	for range g.size {
		if at == 0 {
			return 0
		}
		_, n := utf8.DecodeLastRune(text[:at])
		at -= n
	}
	return g.end(text, at)
}

// end returns the end of the last word at or before a position. A text without white space is
// cut between characters, unless words must stay complete.
func (g *texts) end(text []byte, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	ends := unicode.IsSpace
	if g.words {
		ends = guard.Ends
	}
	if i := bytes.LastIndexFunc(text[:at], ends); i >= 0 {
		_, n := utf8.DecodeRune(text[i:])
		return i + n
	}
	if g.words {
		return 0
	}
	return at
}

// finish judges the rest of a choice and forwards it. A response without text is judged too.
func (g *texts) finish(choice int) error {
	l := g.lines[choice]
	if l == nil || l.queue.len() == 0 {
		if !g.judged {
			_, g.denied = g.judge("")
		}
		return nil
	}
	if g.grown {
		return g.finishGrown(l)
	}
	now, denied := g.judgeNew(l, l.text)
	if g.denied = denied; denied != nil {
		return nil
	}
	return g.release(l, len(l.text), now)
}

// release forwards everything before a position in the text, replaced by now if that is not
// nil.
func (g *texts) release(l *line, cut int, now *string) error {
	whole, at := cut == len(l.text), 0
	for at < cut || whole {
		d, size, ok := l.queue.first()
		if !ok {
			break
		}
		isText := treatments[d.Kind] == text
		if end := at + size; isText && end > cut {
			if err := g.piece(d, l.text[at:cut], now); err != nil {
				return err
			}
			g.json = wire.AppendJSONString(g.json[:0], l.text[cut:end])
			l.queue.shorten(g.json, end-cut)
			break
		}
		l.queue.drop()
		at += size
		var err error
		if !isText || now == nil {
			err = g.pass(d)
		} else {
			err = g.piece(d, nil, now)
			now = empty(now)
		}
		if err != nil {
			return err
		}
	}
	l.queue.compact()
	l.count -= utf8.RuneCount(l.text[:cut])
	l.text = append(l.text[:0], l.text[cut:]...)
	l.clean = 0
	l.next = max(2*g.size, l.count+g.size)
	if whole {
		l.next = 2 * g.size
	}
	return nil
}

func empty(now *string) *string {
	if now == nil {
		return nil
	}
	none := ""
	return &none
}

// piece forwards a text in place of a delta's, without its logprobs, which contain the text
// too.
func (g *texts) piece(d *chat.Delta, text []byte, now *string) error {
	if now != nil {
		text = []byte(*now)
	}
	if len(text) == 0 {
		return nil
	}
	c := *d
	g.json = wire.AppendJSONString(g.json[:0], text)
	c.JSON, c.Logprobs = g.json, nil
	return g.pass(&c)
}
