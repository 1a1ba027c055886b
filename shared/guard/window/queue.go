package window

import (
	"bytes"
	"slices"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/wire"
)

// queue stores waiting deltas in order in few buffers. Consecutive pieces of a text differ only
// in their JSON, so they share one delta.
type queue struct {
	runs   []series
	pieces []piece
	json   []byte // of the pieces, concatenated
	// The first waiting delta: its run, its position in it, its piece and its JSON.
	run, used, piece, at int
}

// series is a number of consecutive deltas that differ only in their JSON.
type series struct {
	delta chat.Delta // its JSON is set by first
	count int
}

// piece contains the lengths of a delta's JSON and of its text, in bytes.
type piece struct{ json, text int }

// len returns the number of deltas.
func (q *queue) len() int { return len(q.pieces) - q.piece }

// add appends a copy of a delta with a text of the given length.
func (q *queue) add(d *chat.Delta, text int) {
	if n := len(q.runs); n > q.run && alike(&q.runs[n-1].delta, d) {
		q.runs[n-1].count++
	} else {
		q.runs = append(q.runs, series{cloneWithoutJSON(d), 1})
	}
	q.pieces = append(q.pieces, piece{len(d.JSON), text})
	q.json = append(q.json, d.JSON...)
}

// first returns the first delta and the length of its text. It is valid until the next call of
// first, add, shorten or compact. ok is false if there is none.
func (q *queue) first() (d *chat.Delta, text int, ok bool) {
	if q.piece == len(q.pieces) {
		return nil, 0, false
	}
	p := q.pieces[q.piece]
	d = &q.runs[q.run].delta
	if d.JSON = nil; p.json > 0 {
		d.JSON = q.json[q.at : q.at+p.json : q.at+p.json]
	}
	return d, p.text, true
}

// drop removes the first delta.
func (q *queue) drop() {
	q.at += q.pieces[q.piece].json
	q.piece++
	if q.used++; q.used == q.runs[q.run].count {
		q.run, q.used = q.run+1, 0
	}
}

// shorten replaces the JSON of the first delta, which then has a text of the given length and
// no logprobs.
func (q *queue) shorten(json []byte, text int) {
	p := &q.pieces[q.piece]
	q.json = slices.Replace(q.json, q.at, q.at+p.json, json...)
	p.json, p.text = len(json), text
	q.runs[q.run].delta.Logprobs = nil // a delta with logprobs is a separate run
}

// compact frees the memory of dropped deltas.
func (q *queue) compact() {
	if q.run > 0 {
		n := copy(q.runs, q.runs[q.run:])
		clear(q.runs[n:])
		q.runs = q.runs[:n]
	}
	if q.used > 0 {
		q.runs[0].count -= q.used
	}
	q.pieces = append(q.pieces[:0], q.pieces[q.piece:]...)
	q.json = append(q.json[:0], q.json[q.at:]...)
	q.run, q.used, q.piece, q.at = 0, 0, 0, 0
}

// alike reports whether two deltas differ only in their JSON. Deltas with other data are never
// alike.
func alike(a, b *chat.Delta) bool {
	return a.Kind == b.Kind && a.Choice == b.Choice && a.Block == b.Block && a.Call == b.Call && a.Response == b.Response &&
		a.Created == b.Created && a.Stop == b.Stop && a.ID == b.ID && a.Name == b.Name && a.Model == b.Model &&
		a.Native == b.Native && a.StopSequence == b.StopSequence && a.Signature == b.Signature &&
		a.Logprobs == nil && b.Logprobs == nil && a.Extra == nil && b.Extra == nil && a.Usage == nil && b.Usage == nil
}

// clone returns a deep copy of a delta.
func clone(d *chat.Delta) chat.Delta {
	k := cloneWithoutJSON(d)
	k.JSON = bytes.Clone(d.JSON)
	return k
}

func cloneWithoutJSON(d *chat.Delta) chat.Delta {
	k := *d
	k.JSON, k.Logprobs = nil, bytes.Clone(d.Logprobs)
	k.Extra = append([]chat.Field(nil), d.Extra...)
	if d.Usage != nil {
		u := *d.Usage
		k.Usage = &u
	}
	return k
}

// Restoring returns a response writer that replaces tokens by their values, even if a token
// arrives in several pieces.
func Restoring(to chat.ResponseWriter, r *mask.Restorer) chat.ResponseWriter {
	return restoring{to, r}
}

type restoring struct {
	chat.ResponseWriter
	values *mask.Restorer
}

// NewStreamEncoder implements chat.ResponseWriter.
func (r restoring) NewStreamEncoder(o *chat.Options) chat.StreamEncoder {
	return &encoder{to: r.ResponseWriter.NewStreamEncoder(o), values: r.values, open: map[place]*opened{}}
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
