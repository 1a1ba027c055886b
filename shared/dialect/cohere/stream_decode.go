package cohere

import (
	"bytes"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamDecoder reads the events of one stream.
type streamDecoder struct {
	upstream.Stream
	blocks   []block
	calls    int
	reported pricing.Usage // tokens, for the client
	// chances are the log probabilities of the next text.
	chances []byte
}

// blockKind is what a block holds; the provider counts the blocks of each kind.
type blockKind uint8

const (
	blockText blockKind = iota + 1
	blockThinking
	blockPlan
	blockTool
)

// block is one block that has started; its place in blocks is its number.
type block struct {
	kind   blockKind
	index  int
	call   int
	sent   bool // a piece of the arguments was given
	closed bool
}

// maxBlocks bounds the blocks of a stream.
const maxBlocks = 4096

// event is what an event of any kind holds; values alias the event.
type event struct {
	kind, id, finish, failure  string
	index                      int
	text, thinking, plan       []byte // JSON strings
	callID, callName, callArgs []byte
	contentType                string
	citation                   []byte
	logprobs                   []byte
	message                    []byte // error in place of an event
}

// Event implements chat.StreamDecoder.
func (s *streamDecoder) Event(name string, data []byte, emit func(*chat.Delta) error) error {
	if s.M.Err != nil {
		return s.M.Err
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "[DONE]" || s.M.Complete {
		return nil
	}
	e := event{kind: name}
	var u counts
	if err := s.read(data, &e, &u); err != nil {
		return s.Unreadable(err)
	}
	switch e.kind {
	case "message-start":
		s.M.ID = e.id
		return s.Emit(chat.Delta{Kind: chat.DeltaStart, ID: e.id}, emit)
	case "content-start", "content-delta":
		return s.content(&e, emit)
	case "content-end":
		return s.close(blockText, e.index, emit)
	case "tool-plan-delta":
		return s.piece(chat.DeltaText, blockPlan, 0, e.plan, emit)
	case "tool-call-start":
		return s.callStart(&e, emit)
	case "tool-call-delta":
		return s.arguments(e.index, e.callArgs, emit)
	case "tool-call-end":
		return s.close(blockTool, e.index, emit)
	case "citation-start":
		if e.citation != nil {
			return s.Emit(chat.Delta{Kind: chat.DeltaCitation, Block: s.find(blockText, 0), Call: -1, JSON: e.citation}, emit)
		}
	case "message-end":
		return s.messageEnd(&e, &u, emit)
	default:
		if e.message != nil || e.kind == "error" {
			return s.Fail(upstream.InBand(data))
		}
	}
	return nil
}

// read reads the fields that any event may have.
func (s *streamDecoder) read(data []byte, e *event, u *counts) error {
	d := &s.D
	d.Reset(data)
	for key := range d.Object {
		switch string(key) {
		case "type":
			e.kind = upstream.OptString(d)
		case "id":
			e.id = upstream.OptString(d)
		case "index":
			var n chat.Opt[int64]
			upstream.Count(d, &n)
			e.index = int(n.Value)
		case "message":
			e.message = d.Raw()
		case "logprobs":
			e.logprobs = d.Raw()
		case "delta":
			each(d, func(key string) {
				switch key {
				case "message":
					each(d, func(key string) { s.readMessage(key, e) })
				case "finish_reason":
					e.finish = upstream.OptString(d)
				case "error":
					e.failure = upstream.OptString(d)
				case "usage":
					u.read(d)
				}
			})
		}
	}
	return d.End()
}

func (s *streamDecoder) readMessage(key string, e *event) {
	d := &s.D
	switch key {
	case "content":
		each(d, func(key string) {
			switch key {
			case "type":
				e.contentType = upstream.OptString(d)
			case "text":
				e.text = upstream.RawString(d)
			case "thinking":
				e.thinking = upstream.RawString(d)
			}
		})
	case "tool_plan":
		e.plan = upstream.RawString(d)
	case "tool_calls":
		each(d, func(key string) {
			switch key {
			case "id":
				e.callID = upstream.RawString(d)
			case "function":
				each(d, func(key string) {
					switch key {
					case "name":
						e.callName = upstream.RawString(d)
					case "arguments":
						e.callArgs = upstream.RawString(d)
					}
				})
			}
		})
	case "citations":
		if d.Kind() == wire.KindObject {
			e.citation = d.Raw()
		}
	}
}

// find returns the number of a block, which starts when it is new.
func (s *streamDecoder) find(kind blockKind, index int) int {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if s.blocks[i].kind == kind && s.blocks[i].index == index {
			return i
		}
	}
	s.blocks = append(s.blocks, block{kind: kind, index: index, call: -1})
	return len(s.blocks) - 1
}

func (s *streamDecoder) piece(kind chat.DeltaKind, of blockKind, index int, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 {
		return nil
	}
	if len(s.blocks) >= maxBlocks {
		return s.Unreadable(nil)
	}
	d := chat.Delta{Kind: kind, Block: s.find(of, index), Call: -1, JSON: raw}
	if of == blockText && len(s.chances) > 0 {
		d.Logprobs = s.chances
	}
	return s.Piece(d, emit)
}

func (s *streamDecoder) content(e *event, emit func(*chat.Delta) error) error {
	if err := s.piece(chat.DeltaThinking, blockThinking, e.index, e.thinking, emit); err != nil {
		return err
	}
	s.chances = s.chances[:0]
	if e.logprobs != nil && len(e.text) > 2 {
		s.chances = appendLogprobs(s.chances, e.logprobs)
	}
	return s.piece(chat.DeltaText, blockText, e.index, e.text, emit)
}

func (s *streamDecoder) callStart(e *event, emit func(*chat.Delta) error) error {
	if len(s.blocks) >= maxBlocks {
		return s.Unreadable(nil)
	}
	n := s.find(blockTool, e.index)
	if s.blocks[n].call >= 0 {
		return s.Unreadable(nil) // the same call twice
	}
	call := s.calls
	s.calls++
	s.blocks[n].call = call
	s.M.Started = true
	id := string(wire.AppendUnquoted(nil, e.callID))
	if id == "" {
		id = "call_" + strconv.Itoa(call)
	}
	d := chat.Delta{Kind: chat.DeltaToolStart, Block: n, Call: call, ID: id, Name: string(wire.AppendUnquoted(nil, e.callName))}
	s.M.OutputBytes += int64(len(d.Name))
	if err := s.Emit(d, emit); err != nil {
		return err
	}
	return s.arguments(e.index, e.callArgs, emit)
}

// arguments returns a piece of the arguments of a call that has started.
func (s *streamDecoder) arguments(index int, raw []byte, emit func(*chat.Delta) error) error {
	n := s.find(blockTool, index)
	b := &s.blocks[n]
	switch {
	case b.call < 0 || b.closed:
		return s.Unreadable(nil)
	case len(raw) <= 2:
		return nil
	}
	b.sent = true
	return s.Piece(chat.Delta{Kind: chat.DeltaToolArgs, Block: n, Call: b.call, JSON: raw}, emit)
}

// close ends a block. Texts and thoughts share their indexes.
func (s *streamDecoder) close(kind blockKind, index int, emit func(*chat.Delta) error) error {
	for i := range s.blocks {
		b := &s.blocks[i]
		same := b.kind == kind || kind == blockText && b.kind == blockThinking
		if !same || b.index != index || b.closed {
			continue
		}
		if err := s.end(i, emit); err != nil {
			return err
		}
	}
	return nil
}

func (s *streamDecoder) end(i int, emit func(*chat.Delta) error) error {
	b := &s.blocks[i]
	if b.kind == blockTool && !b.sent && b.call >= 0 {
		b.sent = true
		if err := s.Piece(chat.Delta{Kind: chat.DeltaToolArgs, Block: i, Call: b.call, JSON: []byte(`"{}"`)}, emit); err != nil {
			return err
		}
	}
	b.closed = true
	return s.Emit(chat.Delta{Kind: chat.DeltaBlockStop, Block: i, Call: b.call}, emit)
}

func (s *streamDecoder) messageEnd(e *event, u *counts, emit func(*chat.Delta) error) error {
	s.reported, s.M.Usage, s.M.ReportedTotal = u.tokens(), u.bill(), u.total()
	if !s.M.Usage.IsReported() {
		s.M.Usage = s.reported
	}
	s.M.Finish = e.finish
	if Failed(e.finish) || e.failure != "" {
		return s.Fail(Failure(e.finish, e.failure))
	}
	for i := range s.blocks {
		if !s.blocks[i].closed {
			if err := s.end(i, emit); err != nil {
				return err
			}
		}
	}
	if s.reported.IsReported() {
		if err := s.Emit(chat.Delta{Kind: chat.DeltaUsage, Usage: &s.reported}, emit); err != nil {
			return err
		}
	}
	return s.Stop(StopReason(e.finish), e.finish, emit)
}
