package oci

import (
	"bytes"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// counts are what a usage object reports.
type counts struct{ in, out, cached, reasoning chat.Opt[int64] }

func (c *counts) read(d *wire.Decoder) {
	object(d, func(key string) {
		switch key {
		case "promptTokens":
			upstream.Count(d, &c.in)
		case "completionTokens":
			upstream.Count(d, &c.out)
		case "promptTokensDetails":
			object(d, func(key string) {
				if key == "cachedTokens" {
					upstream.Count(d, &c.cached)
				}
			})
		case "completionTokensDetails":
			object(d, func(key string) {
				if key == "reasoningTokens" {
					upstream.Count(d, &c.reasoning)
				}
			})
		}
	})
}

// classes returns the counts as disjoint classes.
func (c *counts) classes() (u pricing.Usage) {
	part := func(whole *chat.Opt[int64], part chat.Opt[int64], class pricing.Class) {
		if part.Set && whole.Set {
			n := min(part.Value, whole.Value)
			u.Set(class, n)
			whole.Value -= n
		}
	}
	in, out := c.in, c.out
	part(&in, c.cached, pricing.CacheRead)
	part(&out, c.reasoning, pricing.Reasoning)
	if in.Set {
		u.Set(pricing.Input, in.Value)
	}
	if out.Set {
		u.Set(pricing.Output, out.Value)
	}
	return u
}

// message is the content of a response or of a piece of one.
type message struct {
	text, reasoning, refusal []byte // JSON strings
	calls                    []chat.ToolCall
}

// read reads a message of the format GENERIC.
func (m *message) read(d *wire.Decoder) {
	object(d, func(key string) {
		switch key {
		case "content":
			list(d, func(int) {
				object(d, func(key string) {
					if key == "text" {
						if s := upstream.RawString(d); len(s) > 2 {
							m.text = joined(m.text, s)
						}
					}
				})
			})
		case "reasoningContent":
			m.reasoning = upstream.RawString(d)
		case "refusal":
			m.refusal = upstream.RawString(d)
		case "toolCalls":
			m.readCalls(d)
		}
	})
}

// joined puts two JSON strings together.
func joined(a, b []byte) []byte {
	if a == nil {
		return b
	}
	return append(append([]byte(nil), a[:len(a)-1]...), b[1:]...)
}

// readCalls reads tool calls of both formats: {id, name, arguments} and {name,
// parameters}.
func (m *message) readCalls(d *wire.Decoder) {
	list(d, func(int) {
		var c chat.ToolCall
		object(d, func(key string) {
			switch key {
			case "id":
				c.ID = upstream.OptString(d)
			case "name":
				c.Name = upstream.OptString(d)
			case "arguments":
				c.Arguments = upstream.OptString(d)
			case "parameters":
				c.Arguments = string(d.Raw())
			}
		})
		m.calls = append(m.calls, c)
	})
}

// parts are the content of the message as canonical parts.
func (m *message) parts() (parts []chat.Part) {
	text := func(kind chat.PartKind, raw []byte) {
		if len(raw) > 2 {
			parts = append(parts, chat.Part{Kind: kind, Text: string(wire.AppendUnquoted(nil, raw))})
		}
	}
	text(chat.Reasoned, m.reasoning)
	text(chat.Text, m.text)
	text(chat.Refusal, m.refusal)
	for i, c := range m.calls {
		call := c
		if call.ID == "" {
			call.ID = "call_" + strconv.Itoa(i)
		}
		if call.Arguments == "" || call.Arguments == "null" {
			call.Arguments = "{}"
		}
		parts = append(parts, chat.Part{Kind: chat.Call, Call: &call})
	}
	return parts
}

// DecodeResponse implements chat.ResponseReader.
func (Chat) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	r := &chat.Response{}
	var u counts
	var whole message // of the format COHERE
	native, problem := "", ""
	object(d, func(key string) {
		switch key {
		case "modelId":
			r.Model = upstream.OptString(d)
		case "chatResponse":
			object(d, func(key string) {
				switch key {
				case "choices":
					list(d, func(i int) { r.Choices = append(r.Choices, choice(d, i, &u)) })
				case "usage":
					u.read(d)
				case "text":
					whole.text = upstream.RawString(d)
				case "toolCalls":
					whole.readCalls(d)
				case "finishReason":
					native = upstream.OptString(d)
				case "errorMessage":
					problem = upstream.OptString(d)
				}
			})
		}
	})
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's response is not JSON", err)
	}
	if whole.text != nil || native != "" {
		r.Choices = []chat.Choice{{Parts: whole.parts(), Native: native, Stop: stopAfter(native, len(whole.calls))}}
	}
	if len(r.Choices) == 0 {
		return nil, upstream.InBand(body)
	}
	for i := range r.Choices {
		if failed(r.Choices[i].Native) {
			return nil, failure(r.Choices[i].Native, problem)
		}
	}
	r.Usage = u.classes()
	return r, nil
}

func choice(d *wire.Decoder, i int, u *counts) chat.Choice {
	c := chat.Choice{Index: i}
	var m message
	object(d, func(key string) {
		switch key {
		case "message":
			m.read(d)
		case "finishReason":
			c.Native = upstream.OptString(d)
		case "usage":
			u.read(d)
		}
	})
	c.Parts, c.Stop = m.parts(), stopAfter(c.Native, len(m.calls))
	return c
}

// NewStreamDecoder implements chat.ResponseReader.
func (Chat) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(decoder) }

// decoder reads the events of both formats. Usage may come after the finish reason, so the
// response ends with the stream.
type decoder struct {
	upstream.Stream
	u       counts
	choices []streamed
}

// streamed is one response of a stream.
type streamed struct {
	calls  []streamedCall
	native string
}

type streamedCall struct {
	id   string
	sent bool
}

// maxChoices bounds the responses of a stream, maxCalls the calls of a response.
const (
	maxChoices = 128
	maxCalls   = 1024
)

// Blocks of a response: thoughts, text, then the calls.
const (
	blockThinking = iota
	blockText
	blockRefusal
	blockCalls
)

// Parser implements chat.Framed.
func (*decoder) Parser() chat.EventParser { return new(upstream.Events) }

// Event implements chat.StreamDecoder.
func (s *decoder) Event(name string, data []byte, emit func(*chat.Delta) error) error {
	data = bytes.TrimSpace(data)
	switch {
	case s.M.Err != nil:
		return s.M.Err
	case name == upstream.EndOfStream:
		return s.end(emit)
	case len(data) == 0 || string(data) == "[DONE]":
		return nil
	}
	d := &s.D
	d.Reset(data)
	var m message
	var index chat.Opt[int64]
	native, problem := "", ""
	known, cohere := false, false
	object(d, func(key string) {
		known = known || key != "code" && key != "message"
		switch key {
		case "index":
			upstream.Count(d, &index)
		case "message":
			if known = known || d.Kind() == wire.KindObject; d.Kind() == wire.KindObject {
				m.read(d)
			}
		case "text":
			cohere = true
			m.text = upstream.RawString(d)
		case "toolCalls":
			m.readCalls(d)
		case "finishReason":
			native = upstream.OptString(d)
		case "errorMessage":
			problem = upstream.OptString(d)
		case "usage":
			s.u.read(d)
		}
	})
	switch {
	case d.End() != nil:
		return s.Unreadable(d.End())
	case !known:
		return s.Fail(upstream.InBand(data))
	case failed(native):
		return s.Fail(failure(native, problem))
	case index.Value >= maxChoices:
		return s.Unreadable(nil)
	}
	if cohere && native != "" {
		m.text = nil // the last event repeats the complete text
	}
	return s.forward(int(index.Value), &m, native, emit)
}

// forward forwards what an event brings for one response.
func (s *decoder) forward(n int, m *message, native string, emit func(*chat.Delta) error) error {
	for len(s.choices) <= n {
		s.choices = append(s.choices, streamed{})
	}
	for _, p := range [...]struct {
		kind  chat.DeltaKind
		block int
		raw   []byte
	}{{chat.DeltaThinking, blockThinking, m.reasoning}, {chat.DeltaText, blockText, m.text}, {chat.DeltaRefusal, blockRefusal, m.refusal}} {
		if err := s.Piece(chat.Delta{Kind: p.kind, Choice: n, Block: p.block, Call: -1, JSON: p.raw}, emit); err != nil {
			return err
		}
	}
	c := &s.choices[n]
	for i := range m.calls {
		if err := s.call(n, c, &m.calls[i], emit); err != nil {
			return err
		}
	}
	if native != "" {
		c.native, s.M.Finish = native, native
	}
	return nil
}

// call forwards a piece of a call: a new id or a name begins a call.
func (s *decoder) call(n int, c *streamed, t *chat.ToolCall, emit func(*chat.Delta) error) error {
	last := len(c.calls) - 1
	if begins := last < 0 || t.ID != "" && t.ID != c.calls[last].id || t.ID == "" && t.Name != ""; begins {
		if last+1 >= maxCalls {
			return s.Unreadable(nil)
		}
		last++
		id := t.ID
		if id == "" {
			id = "call_" + strconv.Itoa(last)
		}
		c.calls = append(c.calls, streamedCall{id: id})
		s.M.Started = true
		if err := s.Emit(chat.Delta{Kind: chat.DeltaToolStart, Choice: n, Block: blockCalls + last, Call: last, ID: id, Name: t.Name}, emit); err != nil {
			return err
		}
	}
	if t.Arguments == "" {
		return nil
	}
	c.calls[last].sent = true
	return s.arguments(n, last, t.Arguments, emit)
}

func (s *decoder) arguments(n, call int, args string, emit func(*chat.Delta) error) error {
	return s.Piece(chat.Delta{Kind: chat.DeltaToolArgs, Choice: n, Block: blockCalls + call, Call: call, JSON: wire.AppendJSONString(nil, args)}, emit)
}

// end ends the responses if each has given its finish reason.
func (s *decoder) end(emit func(*chat.Delta) error) error {
	if len(s.choices) == 0 {
		return nil
	}
	for i := range s.choices {
		if s.choices[i].native == "" {
			return nil // the stream was cut
		}
	}
	for n := range s.choices {
		for call := range s.choices[n].calls {
			if !s.choices[n].calls[call].sent {
				if err := s.arguments(n, call, "{}", emit); err != nil {
					return err
				}
			}
			if err := s.Emit(chat.Delta{Kind: chat.DeltaBlockStop, Choice: n, Block: blockCalls + call, Call: call}, emit); err != nil {
				return err
			}
		}
	}
	if s.M.Usage = s.u.classes(); s.M.Usage.IsReported() {
		u := s.M.Usage
		if err := s.Emit(chat.Delta{Kind: chat.DeltaUsage, Usage: &u}, emit); err != nil {
			return err
		}
	}
	for n := 1; n < len(s.choices); n++ {
		c := &s.choices[n]
		if err := s.Emit(chat.Delta{Kind: chat.DeltaStop, Choice: n, Stop: stopAfter(c.native, len(c.calls)), Native: c.native}, emit); err != nil {
			return err
		}
	}
	first := &s.choices[0]
	return s.Stop(stopAfter(first.native, len(first.calls)), first.native, emit)
}
