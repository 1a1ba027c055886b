package responses

import "gateway/shared/chat"

// note gives a source of the text of a part that has begun.
func (s *streamDecoder) note(e *streamEvent, emit func(*chat.Delta) error) error {
	it := s.item(e.index, "message")
	if it.block < 0 || it.part != e.part || e.note == nil {
		return nil
	}
	s.out = chat.Delta{Kind: chat.DeltaCitation, Block: it.block, Call: -1, JSON: e.note}
	return emit(&s.out)
}
