package chat

import (
	"bytes"

	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// DeltaKind determines which fields of a Delta are set.
type DeltaKind uint8

// The kinds of delta. Choice and Block are set from DeltaText to DeltaBlockStop; Choice also
// for DeltaStop.
const (
	DeltaStart     DeltaKind = iota + 1 // ID, Model, Created, Usage: first of a stream
	DeltaText                           // JSON
	DeltaRefusal                        // JSON
	DeltaThinking                       // JSON
	DeltaSignature                      // JSON; belongs to the thinking of its Block
	DeltaRedacted                       // JSON; the complete data
	DeltaCitation                       // JSON; an object, not a string
	DeltaForeign                        // JSON; the complete block, an object
	DeltaImage                          // JSON; the address of a complete image, see ReadImage
	DeltaToolStart                      // Call, ID, Name
	DeltaToolArgs                       // Call, JSON
	DeltaBlockStop                      // end of a block; Call is -1 unless it is a tool call
	DeltaStop                           // Stop, Native, StopSequence
	DeltaUsage                          // Usage so far; replaces the previous one
	DeltaPing                           // keep-alive
)

// Delta is one step of a streamed response. It and its references are valid until the receiving
// function returns.
//
// A decoder emits a DeltaStart first, a DeltaToolStart before the arguments of each call (Call
// counts from 0 without gaps within a choice), the arguments of each call as one JSON object in
// pieces ("{}" for a call without arguments), and a DeltaStop for each choice that ended.
// Blocks of different tool calls may overlap; encoders for formats that forbid it must buffer.
type Delta struct {
	Kind   DeltaKind
	Choice int
	Block  int // content block of the choice, numbered by the provider
	Call   int // tool call of the choice, from 0
	// Response is set for text from the hidden tool, see Request.HiddenResponse.
	Response bool

	ID, Name, Model string
	Created         int64

	// JSON is the piece as a validated JSON string with its quotes.
	JSON []byte
	// Logprobs is the logprobs object of the piece in the OpenAI format; it may be nil.
	Logprobs []byte

	Stop                 StopReason
	Native, StopSequence string
	// Signature of the reasoning that led to the call of a DeltaToolStart, if the host attaches
	// it to the call; see ToolCall.Signature.
	Signature string
	// Extra of a DeltaStop: see Choice.Extra.
	Extra []Field

	Usage *pricing.Usage
}

// Text returns the piece as plain text.
func (d *Delta) Text() string {
	if len(d.JSON) < 2 || d.JSON[0] != '"' {
		return ""
	}
	return string(wire.AppendUnquoted(nil, d.JSON))
}

// HasContent reports whether the delta contains anything that a client shows or executes. After
// such a delta was sent, the request cannot be sent to another target.
func (d *Delta) HasContent() bool {
	switch d.Kind {
	case DeltaText, DeltaRefusal, DeltaThinking:
		return len(d.JSON) > 2
	case DeltaSignature, DeltaRedacted, DeltaForeign, DeltaImage, DeltaToolStart, DeltaToolArgs, DeltaStop:
		return true
	}
	return false
}

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
	return len(d.JSON) > 2 && d.Kind == h.of.Kind && d.Choice == h.of.Choice && d.Block == h.of.Block && d.Call == h.of.Call && d.Response == h.of.Response
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
