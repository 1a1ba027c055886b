package chat

import "bytes"

// halves joins surrogate pairs that were split between two pieces of a stream. JSON encodes a
// character beyond U+FFFF as two escapes, \ud83d\ude00, and hosts that split their text by
// length may split between them.
type halves struct {
	of   Delta  // the piece that ended with the first half; JSON is not set
	half []byte // the escape, or empty
	buf  []byte
}

// halfLen is the length of an escape: \ud83d.
const halfLen = 6

// piece emits d without a first half at its end, and with the pending first half.
func (h *halves) piece(d *Delta, emit func(*Delta) error) error {
	if len(h.half) == 0 && !endsInHalf(d.JSON) {
		return emit(d)
	}
	if len(h.half) > 0 && !h.continues(d) {
		if err := h.flush(emit); err != nil {
			return err
		}
	}
	joined := *d
	h.buf = append(append(append(h.buf[:0], '"'), h.half...), d.JSON[1:]...)
	h.half = h.half[:0]
	if endsInHalf(h.buf) {
		end := len(h.buf) - halfLen - 1
		h.half = append(h.half, h.buf[end:len(h.buf)-1]...)
		h.of = *d
		h.of.JSON, h.of.Logprobs = nil, nil
		h.buf = append(h.buf[:end], '"')
		if len(h.buf) <= 2 && d.Logprobs == nil {
			return nil
		}
	}
	joined.JSON = h.buf
	return emit(&joined)
}

// continues reports whether d continues the text that ended with the first half.
func (h *halves) continues(d *Delta) bool {
	return len(d.JSON) > 2 && d.Kind == h.of.Kind && d.Choice == h.of.Choice && d.Block == h.of.Block && d.Call == h.of.Call && d.Answer == h.of.Answer
}

// flush emits a first half without a second.
func (h *halves) flush(emit func(*Delta) error) error {
	if len(h.half) == 0 {
		return nil
	}
	d := h.of
	d.JSON = append(append(append(h.buf[:0], '"'), h.half...), '"')
	h.half = h.half[:0]
	return emit(&d)
}

// endsInHalf reports whether the JSON string ends with the first half of a character.
func endsInHalf(json []byte) bool {
	n := len(json) - 1 - halfLen
	if n < 1 || json[n] != '\\' || json[n+1] != 'u' || json[n+2]|0x20 != 'd' {
		return false
	}
	switch json[n+3] {
	case '8', '9', 'a', 'b', 'A', 'B':
	default:
		return false
	}
	before := json[1:n]
	return (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0
}
