package window

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/wire"
)

// Restoring returns a response writer that replaces tokens by their values, even if a token
// arrives in several pieces.
func Restoring(to chat.AnswerWriter, r *mask.Restorer) chat.AnswerWriter {
	return restoring{to, r}
}

type restoring struct {
	chat.AnswerWriter
	values *mask.Restorer
}

// NewStreamEncoder implements chat.AnswerWriter.
func (r restoring) NewStreamEncoder(o *chat.Options) chat.StreamEncoder {
	return &encoder{to: r.AnswerWriter.NewStreamEncoder(o), values: r.values, open: map[place]*opened{}}
}

// place is a text or the arguments of a call.
type place struct {
	choice, block, call int
	kind                chat.DeltaKind
}

type opened struct {
	text *mask.Stream
	last chat.Delta
}

type encoder struct {
	to     chat.StreamEncoder
	values *mask.Restorer
	open   map[place]*opened
	json   []byte
}

// Append implements chat.StreamEncoder.
func (e *encoder) Append(dst []byte, d *chat.Delta) []byte {
	switch d.Kind {
	case chat.DeltaText, chat.DeltaRefusal, chat.DeltaThinking, chat.DeltaToolArgs:
		return e.piece(dst, d)
	case chat.DeltaCitation, chat.DeltaForeign:
		c := *d
		c.JSON = e.values.JSON(d.JSON)
		return e.to.Append(dst, &c)
	case chat.DeltaBlockStop, chat.DeltaStop, chat.DeltaToolStart:
		dst = e.close(dst, func(p place) bool {
			return p.choice == d.Choice && (d.Kind != chat.DeltaBlockStop || p.block == d.Block)
		})
	}
	return e.to.Append(dst, d)
}

func (e *encoder) piece(dst []byte, d *chat.Delta) []byte {
	at := place{d.Choice, d.Block, 0, d.Kind}
	if d.Kind == chat.DeltaToolArgs {
		at.call = d.Call
	}
	o := e.open[at]
	if o == nil {
		o = &opened{text: e.values.Stream(d.Kind == chat.DeltaToolArgs)}
		e.open[at] = o
	}
	o.last = *d
	o.last.JSON, o.last.Logprobs = nil, nil
	return e.write(dst, d, o.text.Push(d.Text()))
}

// write writes a piece with its text replaced.
func (e *encoder) write(dst []byte, d *chat.Delta, text string) []byte {
	if text == "" && len(d.JSON) > 2 {
		return dst // it may be the beginning of a token
	}
	c := *d
	e.json = wire.AppendJSONString(e.json[:0], text)
	c.JSON = e.json
	return e.to.Append(dst, &c)
}

// close writes the delayed text of texts that have ended.
func (e *encoder) close(dst []byte, ended func(place) bool) []byte {
	for at, o := range e.open {
		if !ended(at) {
			continue
		}
		delete(e.open, at)
		if rest := o.text.End(); rest != "" {
			o.last.JSON = nil
			dst = e.write(dst, &o.last, rest)
		}
	}
	return dst
}

// Finish implements chat.StreamEncoder.
func (e *encoder) Finish(dst []byte) []byte {
	return e.to.Finish(e.close(dst, func(place) bool { return true }))
}

// Error implements chat.StreamEncoder.
func (e *encoder) Error(dst []byte, f *fault.Fault) []byte { return e.to.Error(dst, f) }
