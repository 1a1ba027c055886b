package wire

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"gateway/shared/fault"
)

// EventStreamException comes before the name of an event that reports a failure, see
// EventStreamParser.
const EventStreamException = "exception:"

// Sizes of an event-stream message in bytes: the prelude (total length, length
// of the headers, checksum of both) and the checksum at the end.
const (
	esPrelude = 12
	esTrailer = 4
)

// EventStreamParser parses the binary framing application/vnd.amazon.eventstream in push
// form: bytes go in as they arrive, split anywhere, and complete messages come out. The
// name of an event is its :event-type. An exception or an error has EventStreamException
// and its type or code instead, and the data of an error is {"message":...}. Both
// checksums of each message are verified before it is emitted. The zero value is ready to
// use. It does not allocate once its buffer has grown.
type EventStreamParser struct {
	MaxMessage int // bytes of one message; 0 means DefaultMaxEvent

	partial []byte // beginning of an incomplete message
	err     error
	made    []byte // data of an error message
	names   [16]string
	next    int
}

// Feed reads in and calls emit for each message that ends in it. data is valid
// until emit returns. Feed stops at the first error of emit; a message that is
// damaged or too large is a *fault.Fault. After an error the parser gives the
// same error again.
func (p *EventStreamParser) Feed(in []byte, emit func(event string, data []byte) error) error {
	if p.err != nil {
		return p.err
	}
	if len(p.partial) > 0 {
		var err error
		if in, err = p.complete(in, emit); err != nil || len(p.partial) > 0 {
			return p.setErr(err)
		}
	}
	for len(in) > 0 {
		n, err := p.size(in)
		if err != nil {
			return p.setErr(err)
		}
		if n == 0 || n > len(in) {
			p.partial = append(p.partial[:0], in...)
			return nil
		}
		if err := p.message(in[:n], emit); err != nil {
			return p.setErr(err)
		}
		in = in[n:]
	}
	return nil
}

// complete adds to the held message what belongs to it, and returns the rest of in.
func (p *EventStreamParser) complete(in []byte, emit func(string, []byte) error) ([]byte, error) {
	if missing := esPrelude - len(p.partial); missing > 0 {
		n := min(missing, len(in))
		p.partial, in = append(p.partial, in[:n]...), in[n:]
	}
	size, err := p.size(p.partial)
	if err != nil || size == 0 {
		return in, err
	}
	n := min(size-len(p.partial), len(in))
	p.partial, in = append(p.partial, in[:n]...), in[n:]
	if len(p.partial) < size {
		return in, nil
	}
	err = p.message(p.partial, emit)
	p.partial = p.partial[:0]
	return in, err
}

// EventStreamStart returns the offset of the first message of in with a complete prelude,
// for a part cut out of a stream anywhere; -1 if there is none.
func EventStreamStart(in []byte) int {
	for i := 0; i+esPrelude <= len(in); i++ {
		if crc32.ChecksumIEEE(in[i:i+8]) == binary.BigEndian.Uint32(in[i+8:]) {
			return i
		}
	}
	return -1
}

// End reports a stream that stopped within a message as io.ErrUnexpectedEOF.
func (p *EventStreamParser) End(func(event string, data []byte) error) error {
	if p.err == nil && len(p.partial) > 0 {
		p.err = io.ErrUnexpectedEOF
	}
	return p.err
}

func (p *EventStreamParser) setErr(err error) error {
	p.err = err
	return err
}

func brokenMessage(why string) error {
	f := fault.Newf(fault.InvalidProviderResponse, "", "The provider sent a damaged stream message: %s", why)
	f.Source = fault.SourceProvider
	return f
}

// size returns the length of the message at the beginning of b, with a verified prelude;
// 0 if the prelude is incomplete.
func (p *EventStreamParser) size(b []byte) (int, error) {
	if len(b) < esPrelude {
		return 0, nil
	}
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0, brokenMessage("the checksum of its prelude is wrong")
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	limit := p.MaxMessage
	if limit == 0 {
		limit = DefaultMaxEvent
	}
	switch {
	case uint64(total) > uint64(limit):
		return 0, brokenMessage("it is longer than is allowed")
	case total < esPrelude+esTrailer || headers > total-esPrelude-esTrailer:
		return 0, brokenMessage("its lengths are inconsistent")
	}
	return int(total), nil
}

// message emits one complete message.
func (p *EventStreamParser) message(b []byte, emit func(string, []byte) error) error {
	end := len(b) - esTrailer
	if crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		return brokenMessage("its checksum is wrong")
	}
	headers := esPrelude + int(binary.BigEndian.Uint32(b[4:]))
	var h messageHeaders
	if !h.read(b[esPrelude:headers]) {
		return brokenMessage("its headers cannot be read")
	}
	data := b[headers:end]
	switch string(h.kind) {
	case "exception":
		return emit(p.intern(true, h.exception), data)
	case "error":
		p.made = append(AppendJSONString(append(p.made[:0], `{"message":`...), h.errorText), '}')
		return emit(p.intern(true, h.errorCode), p.made)
	}
	return emit(p.intern(false, h.event), data)
}

// messageHeaders are the headers that determine the kind of a message.
type messageHeaders struct {
	kind, event, exception, errorCode, errorText []byte
}

// read walks the headers; false when they are malformed.
func (h *messageHeaders) read(b []byte) bool {
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 || len(b) < n+2 {
			return false
		}
		name, kind := b[1:1+n], b[1+n]
		b = b[n+2:]
		size, known := esValueSize(kind, b)
		if !known || len(b) < size {
			return false
		}
		value := b[:size]
		b = b[size:]
		if kind != esString {
			continue
		}
		value = value[2:]
		switch string(name) {
		case ":message-type":
			h.kind = value
		case ":event-type":
			h.event = value
		case ":exception-type":
			h.exception = value
		case ":error-code":
			h.errorCode = value
		case ":error-message":
			h.errorText = value
		}
	}
	return true
}

const esString = 7

// esValueSize is the length of a header's value with this type, including its length
// prefix.
func esValueSize(kind byte, b []byte) (int, bool) {
	switch kind {
	case 0, 1: // true, false
		return 0, true
	case 2: // byte
		return 1, true
	case 3: // short
		return 2, true
	case 4: // integer
		return 4, true
	case 5, 8: // long, timestamp
		return 8, true
	case 6, esString: // bytes, string
		if len(b) < 2 {
			return 0, false
		}
		return 2 + int(binary.BigEndian.Uint16(b)), true
	case 9: // uuid
		return 16, true
	}
	return 0, false
}

// intern returns the string of an event's name without a new allocation for the few names
// that a stream repeats.
func (p *EventStreamParser) intern(failed bool, b []byte) string {
	for _, s := range p.names {
		if failed {
			if n := len(EventStreamException); len(s) == n+len(b) && s[:n] == EventStreamException && s[n:] == string(b) {
				return s
			}
		} else if s == string(b) {
			return s
		}
	}
	s := string(b)
	if failed {
		s = EventStreamException + s
	}
	p.names[p.next] = s
	p.next = (p.next + 1) % len(p.names)
	return s
}

// AppendEventStream appends one message of the event-stream framing: an event of
// JSON, or an exception when its name begins with EventStreamException.
func AppendEventStream(dst []byte, event string, data []byte) []byte {
	kind, name := "event", ":event-type"
	if n := len(EventStreamException); len(event) > n && event[:n] == EventStreamException {
		kind, name, event = "exception", ":exception-type", event[n:]
	}
	start := len(dst)
	dst = append(dst, make([]byte, esPrelude)...)
	dst = appendHeader(dst, name, event)
	dst = appendHeader(dst, ":content-type", "application/json")
	dst = appendHeader(dst, ":message-type", kind)
	headers := len(dst) - start - esPrelude
	dst = append(dst, data...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start+esTrailer))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(headers))
	binary.BigEndian.PutUint32(dst[start+8:], crc32.ChecksumIEEE(dst[start:start+8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}

// EventStreamSize returns the length of the message at the beginning of in, which a
// parser has read before; 0 if it is incomplete.
func EventStreamSize(in []byte) int {
	if len(in) < esPrelude {
		return 0
	}
	if n := binary.BigEndian.Uint32(in); uint64(n) <= uint64(len(in)) && n >= esPrelude+esTrailer {
		return int(n)
	}
	return 0
}

// AppendEventStreamPayload appends a complete message with other data and the same
// headers. ok is false for an error, which has its data in its headers.
func AppendEventStreamPayload(dst, message, data []byte) (out []byte, ok bool) {
	headers := esPrelude + int(binary.BigEndian.Uint32(message[4:]))
	var h messageHeaders
	if headers > len(message)-esTrailer || !h.read(message[esPrelude:headers]) || string(h.kind) == "error" {
		return dst, false
	}
	start := len(dst)
	dst = append(append(dst, message[:headers]...), data...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start+esTrailer))
	binary.BigEndian.PutUint32(dst[start+8:], crc32.ChecksumIEEE(dst[start:start+8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:])), true
}

func appendHeader(dst []byte, name, value string) []byte {
	dst = append(append(dst, byte(len(name))), name...)
	dst = binary.BigEndian.AppendUint16(append(dst, esString), uint16(len(value)))
	return append(dst, value...)
}
