package window

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Verdict decides about an entire response: it returns another one to send instead, or a denial,
// or nil for both.
type Verdict func(whole *chat.Response) (now *chat.Response, denied *fault.Fault)

// JudgeComplete returns a decoder that forwards nothing before the entire response was judged.
func JudgeComplete(dec chat.StreamDecoder, judge Verdict) chat.StreamDecoder {
	h := &whole{decoderBase: decoderBase{dec: dec}, judge: judge}
	h.give = h.delta
	return h
}

type whole struct {
	decoderBase
	judge    Verdict
	kept     []chat.Delta
	into     chat.Collector
	released bool
}

// Event implements chat.StreamDecoder.
func (h *whole) Event(event string, data []byte, emit func(*chat.Delta) error) error {
	if err := h.event(event, data, emit); err != nil {
		return err
	}
	if !h.released && h.dec.Meter().Complete {
		if err := h.release(); err != nil {
			return err
		}
	}
	return h.sendDenial()
}

// End implements chat.StreamDecoder.
func (h *whole) End() error {
	if err := h.dec.End(); err != nil || h.denialSent {
		return err
	}
	if !h.released {
		if err := h.release(); err != nil {
			return err
		}
	}
	return h.sendDenial()
}

// Meter implements chat.StreamDecoder.
func (h *whole) Meter() chat.Meter {
	m := h.dec.Meter()
	if m.Held = m.Started && (!h.released || h.denied != nil); m.Held {
		m.Started = false
	}
	return m
}

func (h *whole) delta(d *chat.Delta) error {
	switch {
	case h.denied != nil || d.Kind == chat.DeltaPing && !h.released:
		return nil
	case h.released:
		return h.emit(d)
	}
	h.into.Add(d)
	h.kept = append(h.kept, clone(d))
	return nil
}

// release judges the response and forwards it.
func (h *whole) release() error {
	h.released = true
	now, denied := h.judge(h.into.Response())
	kept := h.kept
	h.kept = nil
	if h.denied = denied; denied != nil || h.emit == nil {
		return nil
	}
	if now != nil {
		return now.Replay(h.emit)
	}
	cited := texted(kept)
	for i := range kept {
		d := &kept[i]
		if d.Kind == chat.DeltaCitation && !cited[[2]int{d.Choice, d.Block}] {
			continue // the entire response has no field for it, so it was not judged
		}
		if err := h.emit(d); err != nil {
			return err
		}
	}
	return nil
}

// texted returns the blocks, by choice, that have a text.
func texted(deltas []chat.Delta) map[[2]int]bool {
	out := map[[2]int]bool{}
	for i := range deltas {
		if d := &deltas[i]; d.Kind == chat.DeltaText && len(d.JSON) > 2 {
			out[[2]int{d.Choice, d.Block}] = true
		}
	}
	return out
}
