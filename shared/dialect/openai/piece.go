package openai

import (
	"bytes"

	"gateway/shared/wire"
)

// pieceShape is what surrounds the text in the chunks of one stream. The next chunk of the
// same shape is measured without being decoded.
type pieceShape struct {
	at         int    // where the choices begin
	head, tail []byte // of the choices, around the text and its quotes
}

// learn takes the shape of data, which was read into c, if it only brings one text. core is
// the length of data up to the end of its choices.
func (p *pieceShape) learn(data []byte, core int, c *chunk) {
	p.tail = p.tail[:0]
	if c.early || len(c.choices) != 1 {
		return
	}
	ch := &c.choices[0]
	text := ch.content
	if len(text) <= 2 {
		text = ch.thinking
	}
	if len(text) <= 2 || ch.size() != inside(text) {
		return
	}
	p.at = len(c.prefix)
	i := bytes.Index(data[p.at:core], text)
	if i < 0 {
		return
	}
	p.head = append(p.head[:0], data[p.at:p.at+i+1]...)
	p.tail = append(p.tail, data[p.at+i+len(text)-1:core]...)
}

// text returns the length of the text in the choices that end core; ok is false if they do
// not have the shape.
func (p *pieceShape) text(core []byte) (n int, ok bool) {
	if len(p.tail) == 0 || len(core) < p.at+len(p.head)+len(p.tail) || !bytes.HasPrefix(core[p.at:], p.head) || !bytes.HasSuffix(core, p.tail) {
		return 0, false
	}
	text := core[p.at+len(p.head) : len(core)-len(p.tail)]
	if bytes.IndexByte(text, '"') >= 0 {
		return 0, false // a further member, or an escaped quote
	}
	return wire.UnescapedLen(text), true
}
