package chat

import (
	"bytes"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// A translated response is verified between the decoder of the provider's dialect and the
// encoder of the client's:
//
//   - a response without any choice is a failure of the provider,
//   - tool calls are never invented: the arguments of a call are the model's, or the call is
//     omitted,
//   - a response with tool calls waits for their results, even if the host's stop reason is
//     "stop".

// BrokenCalls is the handling of a tool call with arguments that are not a JSON object.
type BrokenCalls uint8

// The ways. A call that was truncated at a token limit is omitted from formats in which the
// arguments are an object; the stop reason states why.
const (
	BrokenAsText BrokenCalls = iota // arguments are text and are forwarded verbatim
	BrokenFail                      // the response fails, unless it has valid calls
	BrokenStop                      // the response ends with StopMalformed, unless it has valid calls
)

// lostBroken is the reason for an omitted tool call.
const lostBroken = "the arguments are not a JSON object"

// errBrokenCall returns the fault for a response with only invalid tool calls.
func errBrokenCall() *fault.Fault {
	f := fault.New(fault.InvalidProviderResponse, "", "The model called a tool with arguments that are not a JSON object")
	f.Source = fault.SourceProvider
	return f
}

// errEmpty returns the fault for a success without any content.
func errEmpty() *fault.Fault {
	f := fault.New(fault.InvalidProviderResponse, "", "The provider's response contains no choice")
	f.Source = fault.SourceProvider
	return f
}

// cut reports whether a response with this stop reason may have ended within a tool call.
func (s StopReason) cut() bool {
	switch s {
	case StopLength, StopContext, StopFilter, StopSequence, StopPause:
		return true
	}
	return false
}

// withCalls returns the stop reason of a response with valid tool calls.
func (s StopReason) withCalls() StopReason {
	switch s {
	case StopUnknown, StopEnd, StopSequence, StopMalformed:
		return StopToolCalls
	}
	return s
}

// ObjectArguments returns the arguments of a tool call as a JSON object, or "" if they are
// something else. Some hosts write null for a call without parameters.
func ObjectArguments(args string) string {
	trimmed := strings.TrimSpace(args)
	switch {
	case trimmed == "" || trimmed == "null":
		return "{}"
	case trimmed[0] != '{':
		return ""
	}
	d := wire.NewDecoder([]byte(trimmed))
	if d.Skip(); d.End() != nil {
		return ""
	}
	return args
}

// Verify verifies a complete response for a client with a format that supports h. It reports omitted
// calls in loss.
func Verify(r *Response, h ResponseSupport, loss *Loss) error {
	if len(r.Choices) == 0 {
		return errEmpty()
	}
	for i := range r.Choices {
		if err := r.Choices[i].verify(h, loss); err != nil {
			return err
		}
	}
	return nil
}

// verify verifies one choice.
func (c *Choice) verify(h ResponseSupport, loss *Loss) error {
	calls, broken := 0, 0
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.Kind != Call {
			continue
		}
		calls++
		if h.Broken != BrokenAsText && !p.Call.Custom && ObjectArguments(p.Call.Arguments) == "" {
			broken++
		}
	}
	if calls == 0 {
		return nil
	}
	if broken > 0 {
		c.Parts = slices.DeleteFunc(c.Parts, func(p Part) bool {
			return p.Kind == Call && !p.Call.Custom && ObjectArguments(p.Call.Arguments) == ""
		})
		m := LossReporter{support: h, loss: loss}
		m.because(c.Index, true, lostCalls, lostBroken)
		switch {
		case broken < calls || c.Stop.cut():
		case h.Broken == BrokenFail:
			return errBrokenCall()
		default:
			c.Stop = StopMalformed
		}
	}
	if broken < calls {
		c.Stop = c.Stop.withCalls()
	}
	return nil
}

// Verified returns a decoder that verifies its response for a client with a format that supports h,
// see Verify. In a stream an invalid call may have been sent already: the response then ends
// with an error, or with StopMalformed if the format supports it. Split surrogate pairs are
// joined.
func Verified(dec StreamDecoder, h ResponseSupport, loss *Loss) StreamDecoder {
	v := &verified{dec: dec, support: h, loss: loss}
	v.push = v.delta
	return v
}

// verified wraps a StreamDecoder.
type verified struct {
	dec     StreamDecoder
	support ResponseSupport
	loss    *Loss
	emit    func(*Delta) error
	push    func(*Delta) error
	fault   *fault.Fault
	some    bool // part of a response arrived
	calls   []streamedCall
	ended   []int   // choices with a stop reason
	stops   []Delta // deferred stop reasons
	half    halves
}

// streamedCall is one tool call of a stream.
type streamedCall struct {
	choice, call int
	args         []byte // text; only if the client's format requires an object
}

// Parser implements Framed.
func (v *verified) Parser() EventParser {
	if framed, ok := v.dec.(Framed); ok {
		return framed.Parser()
	}
	return new(wire.SSEParser)
}

// Event implements StreamDecoder.
func (v *verified) Event(event string, data []byte, emit func(*Delta) error) error {
	if v.fault != nil {
		return v.fault
	}
	v.emit = emit
	if err := v.dec.Event(event, data, v.push); err != nil || v.some && len(v.stops) == 0 {
		return err
	}
	m := v.dec.Meter()
	switch {
	case !m.Complete || m.Err != nil:
		return nil
	case !v.some:
		return v.fail(errEmpty())
	}
	return v.settle()
}

// End implements StreamDecoder.
func (v *verified) End() error {
	if v.fault != nil {
		return v.fault
	}
	if err := v.dec.End(); err != nil {
		return err
	}
	if !v.some {
		return v.fail(errEmpty())
	}
	if len(v.stops) > 0 {
		if err := v.settle(); err != nil {
			return err
		}
	}
	if v.support.Broken == BrokenFail { // of choices without a stop reason
		for i := range v.calls {
			if c := &v.calls[i]; !slices.Contains(v.ended, c.choice) && ObjectArguments(string(c.args)) == "" {
				return v.fail(errBrokenCall())
			}
		}
	}
	return nil
}

// Meter implements StreamDecoder.
func (v *verified) Meter() Meter {
	m := v.dec.Meter()
	if v.fault != nil {
		m.Err, m.Complete = v.fault, false
	}
	return m
}

// Signed implements StreamDecoder.
func (v *verified) Signed() []Signed { return v.dec.Signed() }

func (v *verified) fail(f *fault.Fault) error {
	v.fault = f
	return f
}

// delta verifies one step.
func (v *verified) delta(d *Delta) error {
	switch d.Kind {
	case DeltaStart, DeltaUsage, DeltaPing:
		return v.emit(d)
	case DeltaText, DeltaRefusal, DeltaThinking:
		v.some = true
		return v.half.piece(d, v.emit)
	case DeltaToolArgs:
		if c := v.call(d); c != nil && v.support.Broken != BrokenAsText {
			c.args = wire.AppendUnquoted(c.args, d.JSON)
		}
		return v.half.piece(d, v.emit)
	}
	v.some = true
	if err := v.half.flush(v.emit); err != nil {
		return err
	}
	switch d.Kind {
	case DeltaToolStart:
		v.calls = append(v.calls, streamedCall{choice: d.Choice, call: d.Call})
	case DeltaStop:
		return v.stop(d)
	}
	return v.emit(d)
}

// stop verifies the calls of a choice that has ended. A few hosts send arguments after the
// finish reason, so a stop reason with incomplete calls is deferred to the end.
func (v *verified) stop(d *Delta) error {
	v.ended = append(v.ended, d.Choice)
	calls, whole := v.count(d.Choice)
	switch {
	case calls == 0:
		return v.emit(d)
	case whole < calls:
		k := *d
		k.Extra = slices.Clone(d.Extra)
		for i := range k.Extra {
			k.Extra[i].Raw = bytes.Clone(k.Extra[i].Raw)
		}
		v.stops = append(v.stops, k)
		return nil
	}
	changed := *d
	changed.Stop = d.Stop.withCalls()
	return v.emit(&changed)
}

// count returns the number of calls of a choice, and the number of complete ones.
func (v *verified) count(choice int) (calls, whole int) {
	for i := range v.calls {
		c := &v.calls[i]
		if c.choice != choice {
			continue
		}
		calls++
		if v.support.Broken == BrokenAsText || len(c.args) > 0 && ObjectArguments(string(c.args)) != "" {
			whole++
		}
	}
	return calls, whole
}

// settle emits the deferred stop reasons at the end.
func (v *verified) settle() error {
	stops := v.stops
	v.stops = nil
	for i := range stops {
		d := &stops[i]
		valid, broken := 0, 0
		for j := range v.calls {
			switch c := &v.calls[j]; {
			case c.choice != d.Choice:
			case ObjectArguments(string(c.args)) == "":
				broken++
			default:
				valid++
			}
		}
		if broken > 0 && !d.Stop.cut() {
			if v.support.Broken == BrokenFail {
				return v.fail(errBrokenCall())
			}
			if valid == 0 || !v.support.CompleteCalls {
				d.Stop, valid = StopMalformed, 0
			}
		}
		if valid > 0 {
			d.Stop = d.Stop.withCalls()
		}
		if broken > 0 && v.support.CompleteCalls {
			m := LossReporter{support: v.support, loss: v.loss}
			m.because(d.Choice, true, lostCalls, lostBroken)
		}
		if err := v.emit(d); err != nil {
			return err
		}
	}
	return nil
}

// call returns the call of d; mostly it is the last.
func (v *verified) call(d *Delta) *streamedCall {
	for i := len(v.calls) - 1; i >= 0; i-- {
		if c := &v.calls[i]; c.choice == d.Choice && c.call == d.Call {
			return c
		}
	}
	return nil
}

// StopReason is the reason why a response ended. The zero value is unknown.
type StopReason uint8

const (
	StopUnknown   StopReason = iota
	StopEnd                  // the model finished
	StopSequence             // a stop string of the client matched
	StopLength               // the token limit was reached
	StopContext              // the context window was full
	StopToolCalls            // the model waits for tool results
	StopFilter               // refused or filtered
	StopPause                // a long turn was paused and may continue
	StopMalformed            // the model called a tool with invalid arguments, see Held.Broken
)

var openAIStops = [...]string{"stop", "stop", "stop", "length", "length", "tool_calls", "content_filter", "stop", "stop"}

// OpenAI returns the finish_reason of the stop reason.
func (s StopReason) OpenAI() string { return openAIStops[s] }

var anthropicStops = [...]string{"end_turn", "end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use", "refusal", "pause_turn", "end_turn"}

// Anthropic returns the stop_reason of the stop reason.
func (s StopReason) Anthropic() string { return anthropicStops[s] }
