package openai

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// call returns one piece of a tool call.
func (s *streamDecoder) call(st *choiceState, c *callDelta, emit func(*chat.Delta) error) error {
	s.m.Started = true
	n := st.find(c)
	if n < 0 {
		if n = len(st.calls); n == maxCalls {
			s.m.Err = invalidResponse(nil)
			return s.m.Err
		}
		st.calls = append(st.calls, callState{key: c.index})
	}
	call := &st.calls[n]
	if call.id == "" && len(c.id) > 2 {
		call.id = unquote(c.id)
	}
	if !call.began {
		call.name = joinedName(call.name, unquote(c.name))
		if call.name == "" || len(c.args) <= 2 && len(call.waiting) == 0 {
			// Nothing can be forwarded before the name, which may come in pieces.
			call.waiting = append(call.waiting, unquote(c.args)...)
			return s.begin(st, n, emit)
		}
		if err := s.begin(st, n+1, emit); err != nil {
			return err
		}
	}
	return s.args(st, n, c.args, emit)
}

// joinedName returns the name of a call that continues with piece. Some hosts repeat the
// complete name, or all of it so far.
func joinedName(before, piece string) string {
	if strings.HasPrefix(piece, before) {
		return piece
	}
	if piece == "" {
		return before
	}
	return before + piece
}

// begin returns the starts of those of the first n calls of a choice that have a name.
func (s *streamDecoder) begin(st *choiceState, n int, emit func(*chat.Delta) error) error {
	for n := range st.calls[:n] {
		call := &st.calls[n]
		if call.began || call.name == "" {
			continue
		}
		call.began = true
		if call.id == "" {
			if call.id = chat.NewCallID(); s.m.ID != "" {
				call.id = "call_" + s.m.ID + "_" + strconv.Itoa(st.index) + "_" + strconv.Itoa(n)
			}
		}
		if len(st.thought) > 0 {
			part := chat.Part{Kind: chat.Reasoned, Text: string(st.thought), Signature: s.mark}
			s.signed = append(s.signed, chat.Signed{ToolCallID: call.id, Parts: []chat.Part{part}})
			st.thought = nil
		}
		s.m.OutputBytes += int64(len(call.name))
		s.out = chat.Delta{Kind: chat.DeltaToolStart, Choice: st.index, Block: blockCalls + n, Call: n, ID: call.id, Name: call.name}
		if err := emit(&s.out); err != nil {
			return err
		}
		if len(call.waiting) > 0 {
			if err := s.args(st, n, wire.AppendJSONString(nil, call.waiting), emit); err != nil {
				return err
			}
			call.waiting = nil
		}
	}
	return nil
}

func (s *streamDecoder) args(st *choiceState, n int, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 {
		return nil
	}
	st.calls[n].args = true
	s.m.OutputBytes += int64(inside(raw))
	s.m.Chunks++
	s.out = chat.Delta{Kind: chat.DeltaToolArgs, Choice: st.index, Block: blockCalls + n, Call: n, JSON: s.valid(raw)}
	return emit(&s.out)
}

// find returns the call that a piece belongs to; -1 for a new one. Some hosts give every
// call the index 0, or none: then a new id begins a new call.
func (st *choiceState) find(c *callDelta) int {
	for n := len(st.calls) - 1; n >= 0; n-- {
		call := &st.calls[n]
		if call.key != c.index && c.hasIndex {
			continue
		}
		if len(c.id) > 2 && call.id != "" && string(c.id[1:len(c.id)-1]) != call.id && len(c.name) > 2 {
			if n > 0 && st.calls[n-1].id == string(c.id[1:len(c.id)-1]) {
				continue
			}
			return -1
		}
		return n
	}
	return -1
}
