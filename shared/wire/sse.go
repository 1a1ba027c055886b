package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"

	"gateway/shared/fault"
)

// DefaultMaxEvent bounds one server-sent event in bytes if the reader sets no other bound.
// Image answers come as one event of several megabytes.
const DefaultMaxEvent = 16 << 20

// SSEParser parses server-sent events in push form: bytes go in as they arrive, split
// anywhere, and complete events come out. It follows the WHATWG grammar (LF, CRLF and CR
// line ends, byte order mark, comments, several data lines), except that an event without
// its closing blank line is emitted at the end of the stream. The zero value is ready to
// use. It does not allocate once its buffers have grown.
type SSEParser struct {
	MaxEvent int // bytes of one event; 0 means DefaultMaxEvent

	line    []byte // beginning of an incomplete line
	data    []byte // data of the event so far; aliases the input while inInput
	held    []byte // own buffer for data
	name    string
	hasData bool
	inInput bool // data aliases the input or line, not held
	skipLF  bool // the last line ended in CR: a LF now belongs to it
	bom     int  // bytes of the byte order mark seen; bomDone when past it
	err     error

	names [8]string // event names seen, so that a name is allocated once
	next  int
}

const (
	byteOrderMark = "\xef\xbb\xbf"
	bomDone       = 4
)

// Feed reads p and calls emit for each event that ends in it. event is "" when
// the stream names none. data is valid until emit returns. Feed stops at the
// first error of emit; an event over MaxEvent is a *fault.Fault. After an
// error the parser gives the same error again.
func (p *SSEParser) Feed(in []byte, emit func(event string, data []byte) error) error {
	for {
		n, ready, err := p.step(in)
		if err != nil {
			return err
		}
		if !ready {
			return nil
		}
		in = in[n:]
		if err := p.emitEvent(emit); err != nil {
			return err
		}
	}
}

// End returns the last event when the stream stopped without its blank line.
func (p *SSEParser) End(emit func(event string, data []byte) error) error {
	if p.err != nil {
		return p.err
	}
	if !p.finish() {
		return nil
	}
	return p.emitEvent(emit)
}

func (p *SSEParser) emitEvent(emit func(event string, data []byte) error) error {
	err := emit(p.name, p.data)
	p.reset()
	if err != nil {
		p.err = err
	}
	return err
}

func (p *SSEParser) reset() {
	p.name, p.data, p.hasData, p.inInput = "", nil, false, false
}

// finish handles the last line, which has no line end, and reports whether an event is
// ready.
func (p *SSEParser) finish() bool {
	if p.bom > 0 && p.bom < bomDone {
		p.line = append(p.line, byteOrderMark[:p.bom]...)
		p.bom = bomDone
	}
	if len(p.line) > 0 {
		line := p.line
		p.field(line)
		p.copyData()
		p.line = p.line[:0]
	}
	return p.hasData
}

// step reads in up to the end of the next event. ready: the event is in p.name and p.data,
// and n bytes were read. Otherwise all of in was read.
func (p *SSEParser) step(in []byte) (n int, ready bool, err error) {
	if p.err != nil {
		return 0, false, p.err
	}
	i := 0
	if p.bom < bomDone {
		i = p.skipBOM(in)
	}
	for i < len(in) {
		if p.skipLF {
			p.skipLF = false
			if in[i] == '\n' {
				i++
				continue
			}
		}
		end := i + lineEnd(in[i:])
		if err := p.bound(end - i); err != nil {
			return 0, false, err
		}
		if end == len(in) {
			p.copyData()
			p.line = append(p.line, in[i:]...)
			return len(in), false, nil
		}
		line := in[i:end]
		p.skipLF = in[end] == '\r'
		i = end + 1
		if len(p.line) > 0 {
			// The line buffer is read below and must not be overwritten while data still aliases
			// it; keep() takes care of that at the next partial line.
			p.line = append(p.line, line...)
			line = p.line
			p.line = p.line[:0]
		}
		if len(line) > 0 {
			p.field(line)
			continue
		}
		if p.hasData {
			return i, true, nil
		}
		p.name = "" // an event without data is not given
	}
	p.copyData()
	return len(in), false, nil
}

func (p *SSEParser) bound(more int) error {
	limit := p.MaxEvent
	if limit == 0 {
		limit = DefaultMaxEvent
	}
	if len(p.data)+len(p.line)+more <= limit {
		return nil
	}
	p.err = fault.Newf(fault.InvalidProviderResponse, "", "The provider sent a stream event of more than %d bytes", limit)
	return p.err
}

// copyData copies data out of the input, before the caller uses the input again.
func (p *SSEParser) copyData() {
	if p.inInput {
		p.held = append(p.held[:0], p.data...)
		p.data, p.inInput = p.held, false
	}
}

// skipBOM skips a byte order mark at the start of the stream, which may itself be split,
// and returns the index of the first byte after it.
func (p *SSEParser) skipBOM(in []byte) int {
	for i, c := range in {
		if p.bom < len(byteOrderMark) && c == byteOrderMark[p.bom] {
			p.bom++
			continue
		}
		if p.bom < len(byteOrderMark) { // it was only a part of a mark, so it was text
			p.line = append(p.line, byteOrderMark[:p.bom]...)
		}
		p.bom = bomDone
		return i
	}
	return len(in)
}

// field handles one line that is not empty.
func (p *SSEParser) field(line []byte) {
	name, value := line, []byte(nil)
	if colon := bytes.IndexByte(line, ':'); colon >= 0 {
		name, value = line[:colon], line[colon+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "data":
		p.addData(value)
	case "event":
		p.name = p.intern(value)
	}
}

func (p *SSEParser) addData(value []byte) {
	if !p.hasData {
		p.data, p.hasData, p.inInput = value, true, true
		return
	}
	p.copyData()
	p.held = append(append(p.held, '\n'), value...)
	p.data = p.held
}

// intern returns the string of an event name without a new allocation for the few names
// that a stream repeats.
func (p *SSEParser) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	for _, s := range p.names {
		if s == string(b) {
			return s
		}
	}
	s := string(b)
	p.names[p.next] = s
	p.next = (p.next + 1) % len(p.names)
	return s
}

// lineEnd is the index of the first CR or LF in b, len(b) if there is none.
func lineEnd(b []byte) int {
	i := 0
	for i+8 <= len(b) {
		x := load(b, i)
		lf, cr := x^lows*'\n', x^lows*'\r'
		if m := ((lf-lows)&^lf | (cr-lows)&^cr) & highs; m != 0 {
			return i + firstByte(m)
		}
		i += 8
	}
	for i < len(b) && b[i] != '\n' && b[i] != '\r' {
		i++
	}
	return i
}

// AppendSSE appends one event. event "" writes no event line. Each line end in
// data starts a further data line; the reader gets it back as LF.
func AppendSSE(dst []byte, event string, data []byte) []byte {
	if event != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, event...)
		dst = append(dst, '\n')
	}
	for {
		end := lineEnd(data)
		dst = append(dst, "data: "...)
		dst = append(dst, data[:end]...)
		dst = append(dst, '\n')
		if end == len(data) {
			return append(dst, '\n')
		}
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
}

// Eight bytes are processed at once: lows and highs are the lowest and the highest bit of
// each byte of a word.
const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// load reads eight bytes at i, which must leave eight bytes in b. The first
// byte is the lowest of the word, so the lowest set bit of a mask is the first
// hit.
func load(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// firstByte is the index of the first byte that mask (highest bits) marks.
func firstByte(mask uint64) int { return bits.TrailingZeros64(mask) >> 3 }

// stringStops marks the bytes of x at which a JSON string may not simply continue: a quote,
// a backslash or a control character. Only the first mark is exact, because a borrow may
// mark bytes above it. If its second bit is flipped, a quote comes directly after the
// control characters, so one comparison finds both.
func stringStops(x uint64) uint64 {
	return (((x ^ lows*0x02) - lows*0x21) | ((x ^ lows*'\\') - lows)) &^ x & highs
}

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as a quoted JSON string. Bytes that are not UTF-8
// become U+FFFD, as every JSON parser would read them.
func AppendJSONString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, view(&s))
	return append(dst, '"')
}

// view returns the bytes of a string or slice without a copy. A slice header begins with
// the two words of a string header, so one reading fits both.
func view[S ~string | ~[]byte](s *S) []byte {
	str := *(*string)(unsafe.Pointer(s))
	return unsafe.Slice(unsafe.StringData(str), len(str))
}

// appendEscaped appends b as the inside of a JSON string. It copies runs of
// bytes that need no escape at once.
func appendEscaped(dst, b []byte) []byte {
	start, i := 0, 0
	for i < len(b) {
		if i+8 <= len(b) {
			x := load(b, i)
			m := stringStops(x) | x&highs
			if m == 0 {
				i += 8
				continue
			}
			i += firstByte(m)
		}
		c := b[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, b[start:i]...)
				dst = append(dst, "\uFFFD"...)
				start = i + 1
			}
			i += n
		case c >= 0x20 && c != '"' && c != '\\':
			i++
		default:
			dst = append(dst, b[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
		}
	}
	return append(dst, b[start:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
