package gemini

import (
	"bytes"
	"io"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// streamDecoder reads the events of one stream. Each is a complete response with the next
// parts of some candidates; the stream ends when every candidate has a finish reason.
// There is no terminal event.
type streamDecoder struct {
	t       *chat.Traits
	m       chat.Meter
	h       head
	d       wire.Decoder
	list    wire.Decoder // of candidates
	parts   wire.Decoder
	last    []byte // the last usageMetadata, not read yet
	out     chat.Delta
	ids     callIDs
	began   bool
	choices []streamChoice
	found   int64 // searches
	scratch []byte
	signed  []chat.Signed
}

// streamChoice is the state of one candidate.
type streamChoice struct {
	index            int
	block            int       // the open block, or the next one
	open             blockKind // of the open block
	calls            int
	finished         bool
	pending          []chat.Part // signed reasoning since the last call
	pendingSignature string      // signature of the open text, which may still get sources

	firstText      []byte // the first text; its sources refer to places in it
	firstTextBlock int    // its block
	grounding      []byte // the last groundingMetadata
}

type blockKind uint8

const (
	blockNone blockKind = iota
	blockText
	blockThought
)

// Meter implements chat.StreamDecoder.
func (s *streamDecoder) Meter() chat.Meter {
	s.count()
	return s.m
}

// deferUsage holds usage back: each event restates it, and only the last one counts.
func (s *streamDecoder) deferUsage() {
	if s.h.counted == nil {
		return
	}
	if !bytes.Contains(s.h.counted, promptCount) {
		s.count() // the new one omits the prompt, so the earlier one is counted first
	}
	s.last = append(s.last[:0], s.h.counted...)
}

var promptCount = []byte(`"promptTokenCount"`)

// count reads the usage that was held back.
func (s *streamDecoder) count() {
	if len(s.last) > 0 {
		s.h.counted = s.last
		s.h.count()
		s.last = s.last[:0]
		s.m.ReportedTotal = s.h.usage.classes(&s.m.Usage, billed(s.found, s.t))
		s.m.Mode = s.h.usage.mode
	}
}

// Signed implements chat.StreamDecoder.
func (s *streamDecoder) Signed() []chat.Signed { return s.signed }

// End implements chat.StreamDecoder.
func (s *streamDecoder) End() error {
	switch {
	case s.m.Err != nil:
		return s.m.Err
	case !s.m.Complete:
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (s *streamDecoder) fail(f *fault.Fault) error {
	s.count()
	s.m.Err = f
	return f
}

var doneWord = []byte("[DONE]")

// Event implements chat.StreamDecoder.
func (s *streamDecoder) Event(_ string, data []byte, emit func(*chat.Delta) error) error {
	if s.m.Err != nil {
		return s.m.Err
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 || bytes.Equal(data, doneWord) {
		return nil // some hosts in front of the provider send it
	}
	if data[0] == '[' && readError(data) != nil {
		return s.fail(inBandError(data))
	}
	s.d.Reset(data)
	s.h.read(&s.d)
	switch err := s.d.End(); {
	case err != nil:
		return s.fail(invalidResponse(err))
	case s.h.failed:
		return s.fail(inBandError(data))
	}
	s.deferUsage()
	s.m.ID, s.m.Model = s.h.id, s.h.model
	if !s.began {
		s.began = true
		s.count()
		s.out = chat.Delta{Kind: chat.DeltaStart, ID: s.h.id, Model: s.h.model, Usage: &s.m.Usage}
		if err := emit(&s.out); err != nil {
			return err
		}
	}
	if s.h.candidates != nil {
		if err := s.candidates(s.h.candidates, emit); err != nil {
			return err
		}
	}
	if s.h.blocked != "" && len(s.choices) == 0 {
		s.choices = append(s.choices, streamChoice{finished: true})
		s.m.Finish, s.m.Started, s.m.Complete = s.h.blocked, true, true
		return s.stop(0, chat.StopFilter, s.h.blocked, nil, emit)
	}
	return nil
}

func (s *streamDecoder) candidates(raw []byte, emit func(*chat.Delta) error) error {
	d := &s.list
	d.Reset(raw)
	var c candidate
	var err error
	for i := range d.Array {
		c.read(d, i)
		if err = s.candidate(&c, emit); err != nil {
			break
		}
	}
	if err == nil {
		s.m.Complete = len(s.choices) > 0
		for i := range s.choices {
			s.m.Complete = s.m.Complete && s.choices[i].finished
		}
	}
	return err
}

// choice finds or makes the state of a candidate.
func (s *streamDecoder) choice(index int) *streamChoice {
	for i := range s.choices {
		if s.choices[i].index == index {
			return &s.choices[i]
		}
	}
	s.choices = append(s.choices, streamChoice{index: index})
	return &s.choices[len(s.choices)-1]
}

func (s *streamDecoder) candidate(c *candidate, emit func(*chat.Delta) error) error {
	ch := s.choice(c.index)
	s.found = max(s.found, c.searches)
	if ch.finished {
		return s.usage(emit) // a late count
	}
	var logprobs []byte
	if c.logprobs != nil {
		logprobs = appendLogprobs(nil, c.logprobs)
	}
	if c.parts != nil {
		var p part
		d := &s.parts
		d.Reset(c.parts)
		for range d.Array {
			p.read(d)
			if err := s.part(ch, &p, logprobs, emit); err != nil {
				return err
			}
			if p.text != nil && !p.thought {
				logprobs = nil
			}
		}
	}
	if c.grounding != nil {
		ch.grounding = append(ch.grounding[:0], c.grounding...)
	}
	if c.native == "" {
		return nil
	}
	if err := s.cite(ch, emit); err != nil {
		return err
	}
	if err := s.release(ch, emit); err != nil {
		return err
	}
	stop, failed := callStop(c.native, ch.calls)
	if failed {
		s.m.Finish = c.native
		return s.fail(failedResponse(c.native, c.message))
	}
	if err := s.close(ch, emit); err != nil {
		return err
	}
	ch.finished = true
	s.m.Started = true
	if s.m.Finish == "" {
		s.m.Finish = c.native
	}
	return s.stop(c.index, stop, c.native, c.extra, emit)
}

// usage returns the counts so far.
func (s *streamDecoder) usage(emit func(*chat.Delta) error) error {
	s.count()
	s.m.ReportedTotal = s.h.usage.classes(&s.m.Usage, billed(s.found, s.t))
	s.m.Mode = s.h.usage.mode
	s.out = chat.Delta{Kind: chat.DeltaUsage, Usage: &s.m.Usage}
	return emit(&s.out)
}

func (s *streamDecoder) stop(index int, stop chat.StopReason, native string, extra []chat.Field, emit func(*chat.Delta) error) error {
	if err := s.usage(emit); err != nil {
		return err
	}
	s.out = chat.Delta{Kind: chat.DeltaStop, Choice: index, Stop: stop, Native: native, Extra: extra}
	return emit(&s.out)
}
