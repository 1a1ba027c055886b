package openai

import (
	"bytes"
	"io"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamDecoder reads the chunks of a chat or text completion stream.
type streamDecoder struct {
	m       chat.Meter
	d       wire.Decoder
	c       chunk
	usage   usageReport // of all chunks so far
	out     chat.Delta
	choices []choiceState
	started bool
	scratch []byte

	mark   string // signature of the reasoning; "": the host does not want it back
	signed []chat.Signed

	// head and tail are the bytes around the text of an ordinary chunk, learned from the
	// first. A chunk that has the same ones is not read any further.
	head, tail []byte
}

// choiceState is the state of one choice.
type choiceState struct {
	index   int
	calls   []callState
	stopped bool
	refused bool

	thought  []byte // reasoning since the last call, as text, where the host wants it back
	unsigned bool   // its signature has not been given
	images   int    // images given
}

// callState is one tool call of a choice. Its place in the list is its number
// in the canonical stream; key is the index that the host gave it.
type callState struct {
	key     int
	id      string
	name    string
	began   bool
	args    bool   // a piece of the arguments was given
	waiting []byte // arguments that arrived before the name, as text
}

// Blocks of the canonical stream: thinking, text, then the calls and the images.
const (
	blockThinking = iota
	blockText
	blockCalls
	blockImages = blockCalls + maxCalls
)

func newStreamDecoder() *streamDecoder { return new(streamDecoder) }

// Meter implements chat.StreamDecoder.
func (s *streamDecoder) Meter() chat.Meter { return s.m }

// Signed implements chat.StreamDecoder.
func (s *streamDecoder) Signed() []chat.Signed { return s.signed }

// Event implements chat.StreamDecoder.
func (s *streamDecoder) Event(_ string, data []byte, emit func(*chat.Delta) error) error {
	if s.m.Err != nil {
		return s.m.Err
	}
	if len(data) < 16 {
		switch string(bytes.TrimSpace(data)) {
		case "":
			return nil
		case "[DONE]":
			return s.done(emit)
		}
	}
	if raw := s.ordinary(data); raw != nil {
		return s.piece(chat.DeltaText, s.c.choices[0].index, blockText, raw, nil, emit)
	}
	c := &s.c
	if err := c.read(&s.d, data); err != nil {
		f := upstream.UnreadableFault(err)
		s.m.Err = f
		return f
	}
	if c.err != nil {
		s.m.Err = inBandError(c.err)
		return s.m.Err
	}
	if err := s.start(emit); err != nil {
		return err
	}
	s.learn(data)
	for i := range c.choices {
		if err := s.choice(&c.choices[i], emit); err != nil {
			return err
		}
	}
	if len(c.tier) > 0 {
		s.m.Mode = pricing.ModeOf(string(c.tier))
	}
	if c.usage.known() {
		s.usage.merge(&c.usage)
		s.usage.classes(&s.m)
		s.out = chat.Delta{Kind: chat.DeltaUsage, Usage: &s.m.Usage}
		return emit(&s.out)
	}
	return nil
}

// learn stores the bytes around the text of data, if it contains nothing else.
func (s *streamDecoder) learn(data []byte) {
	s.tail = s.tail[:0]
	c := &s.c
	if len(c.choices) != 1 || c.usage.known() {
		return
	}
	ch := &c.choices[0]
	if len(ch.content) <= 2 || ch.size() != inside(ch.content) || len(ch.calls) > 0 || ch.function != nil || ch.images != nil || ch.logprobs != nil || ch.finish != nil {
		return
	}
	if at := bytes.Index(data, ch.content); at > 0 {
		s.head = append(s.head[:0], data[:at]...)
		s.tail = append(s.tail, data[at+len(ch.content):]...)
	}
}

// ordinary returns the text of a chunk that is like the one learned; nil for any other.
func (s *streamDecoder) ordinary(data []byte) []byte {
	if len(s.tail) == 0 || len(data) < len(s.head)+len(s.tail)+2 || !bytes.HasPrefix(data, s.head) || !bytes.HasSuffix(data, s.tail) {
		return nil
	}
	middle := data[len(s.head) : len(data)-len(s.tail)]
	s.d.Reset(middle)
	if raw := s.d.RawStr(); len(raw) == len(middle) {
		return raw
	}
	return nil
}

// start returns the first delta, when the chunk specifies who answers.
func (s *streamDecoder) start(emit func(*chat.Delta) error) error {
	c := &s.c
	if len(c.model) > 0 && s.m.Model == "" {
		s.m.Model = string(c.model)
	}
	if len(c.id) > 0 && s.m.ID == "" {
		s.m.ID = string(c.id)
	}
	if s.started || len(c.choices) == 0 {
		return nil
	}
	s.started = true
	s.out = chat.Delta{Kind: chat.DeltaStart, ID: s.m.ID, Model: s.m.Model, Created: c.created}
	return emit(&s.out)
}

func (s *streamDecoder) state(index int) *choiceState {
	for i := range s.choices {
		if s.choices[i].index == index {
			return &s.choices[i]
		}
	}
	s.choices = append(s.choices, choiceState{index: index})
	return &s.choices[len(s.choices)-1]
}

// piece returns a piece of text of a choice.
func (s *streamDecoder) piece(kind chat.DeltaKind, choice, block int, raw, logprobs []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 && logprobs == nil {
		return nil
	}
	if raw == nil {
		raw = []byte(`""`)
	}
	if len(raw) > 2 {
		s.m.Started = true
		s.m.Chunks++
	}
	s.m.OutputBytes += int64(inside(raw))
	s.out = chat.Delta{Kind: kind, Choice: choice, Block: block, JSON: s.valid(raw), Logprobs: logprobs}
	return emit(&s.out)
}

// valid returns raw, a JSON string, in valid UTF-8.
func (s *streamDecoder) valid(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	s.scratch = wire.AppendJSONString(s.scratch[:0], wire.AppendUnquoted(nil, raw))
	return s.scratch
}

// Limits of the buffered parts of a stream.
const (
	maxChoices = 256
	maxCalls   = 1024 // of a choice
)

func (s *streamDecoder) choice(c *choiceDelta, emit func(*chat.Delta) error) error {
	if c.index < 0 || c.index >= maxChoices {
		return nil
	}
	st := s.state(c.index)
	if len(st.calls) > 0 && len(c.calls) == 0 && c.function == nil && c.size() > 0 {
		if err := s.begin(st, len(st.calls), emit); err != nil {
			return err
		}
	}
	if err := s.piece(chat.DeltaThinking, c.index, blockThinking, c.thinking, nil, emit); err != nil {
		return err
	}
	s.think(st, c.thinking)
	if len(c.content) > 2 || len(c.refusal) > 2 || len(c.images) > 2 || len(c.calls) > 0 || c.finish != nil {
		if err := s.sign(st, emit); err != nil {
			return err
		}
	}
	if c.parts != nil {
		if err := s.contentList(c, emit); err != nil {
			return err
		}
	}
	if err := s.piece(chat.DeltaText, c.index, blockText, c.content, c.logprobs, emit); err != nil {
		return err
	}
	if len(c.notes) > 2 {
		if err := s.notes(c, emit); err != nil {
			return err
		}
	}
	if len(c.refusal) > 2 {
		st.refused = true
		if err := s.piece(chat.DeltaRefusal, c.index, blockText, c.refusal, nil, emit); err != nil {
			return err
		}
	}
	if len(c.images) > 2 {
		if err := s.images(st, c.images, emit); err != nil {
			return err
		}
	}
	for i := range c.calls {
		if err := s.call(st, &c.calls[i], emit); err != nil {
			return err
		}
	}
	if c.function != nil {
		if err := s.call(st, c.function, emit); err != nil {
			return err
		}
	}
	if c.finish == nil || st.stopped {
		return nil
	}
	if err := s.begin(st, len(st.calls), emit); err != nil {
		return err
	}
	s.m.Finish = string(c.finish)
	stop, failed := hosts.StopOf(c.finish)
	if failed {
		s.m.Err = failedStop(s.m.Finish)
		return s.m.Err
	}
	st.stopped, s.m.Started = true, true
	if stop == chat.StopEnd && st.refused {
		stop = chat.StopFilter
	}
	s.out = chat.Delta{Kind: chat.DeltaStop, Choice: c.index, Stop: stop, Native: s.m.Finish}
	if (stop == chat.StopEnd || stop == chat.StopSequence) && len(c.stopped) > 0 {
		s.out.Stop, s.out.StopSequence = chat.StopSequence, string(c.stopped)
	}
	return emit(&s.out)
}

// think stores a piece of reasoning, a JSON string, for the next turn.
func (s *streamDecoder) think(st *choiceState, raw []byte) {
	if s.mark != "" && len(raw) > 2 {
		st.thought, st.unsigned = wire.AppendUnquoted(st.thought, raw), true
	}
}

// sign ends a block of reasoning with its signature.
func (s *streamDecoder) sign(st *choiceState, emit func(*chat.Delta) error) error {
	if !st.unsigned {
		return nil
	}
	st.unsigned = false
	s.out = chat.Delta{Kind: chat.DeltaSignature, Choice: st.index, Block: blockThinking, Call: -1, JSON: wire.AppendJSONString(nil, s.mark)}
	return emit(&s.out)
}

// notes returns the sources of the text.
func (s *streamDecoder) notes(c *choiceDelta, emit func(*chat.Delta) error) error {
	d := wire.NewDecoder(c.notes)
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		s.out = chat.Delta{Kind: chat.DeltaCitation, Choice: c.index, Block: blockText, Call: -1, JSON: d.Raw()}
		if err := emit(&s.out); err != nil {
			return err
		}
	}
	return nil
}

// contentList returns content sent as a list of parts.
func (s *streamDecoder) contentList(c *choiceDelta, emit func(*chat.Delta) error) error {
	d := wire.NewDecoder(c.parts)
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		text, thought := contentItem(d)
		kind, block := chat.DeltaText, blockText
		raw := wire.AppendJSONString(nil, text)
		if st := s.state(c.index); thought {
			kind, block = chat.DeltaThinking, blockThinking
			s.think(st, raw)
		} else if err := s.sign(st, emit); err != nil {
			return err
		}
		if err := s.piece(kind, c.index, block, raw, nil, emit); err != nil {
			return err
		}
	}
	return nil
}

// done ends the stream. Calls without arguments have empty ones.
func (s *streamDecoder) done(emit func(*chat.Delta) error) error {
	if s.m.Complete {
		return nil
	}
	if len(s.choices) == 0 {
		s.m.Err = emptyResponse()
		return s.m.Err
	}
	s.m.Complete = true
	for i := range s.choices {
		st := &s.choices[i]
		if err := s.begin(st, len(st.calls), emit); err != nil {
			return err
		}
		for n := range st.calls {
			if !st.calls[n].began {
				continue
			}
			if !st.calls[n].args {
				if err := s.args(st, n, []byte(`"{}"`), emit); err != nil {
					return err
				}
			}
			s.out = chat.Delta{Kind: chat.DeltaBlockStop, Choice: st.index, Block: blockCalls + n, Call: n}
			if err := emit(&s.out); err != nil {
				return err
			}
		}
	}
	return nil
}

// End implements chat.StreamDecoder. The stream of a host that writes no [DONE] is
// complete when every choice has stopped.
func (s *streamDecoder) End() error {
	if s.m.Err != nil {
		return s.m.Err
	}
	if s.m.Complete {
		return nil
	}
	for i := range s.choices {
		if !s.choices[i].stopped {
			return io.ErrUnexpectedEOF
		}
	}
	if len(s.choices) == 0 {
		return io.ErrUnexpectedEOF
	}
	s.m.Complete = true
	return nil
}
