package chat

import "gateway/shared/wire"

// logprobs collects the log probabilities of a choice: the elements of its two lists, with
// commas.
type logprobs struct {
	choice           int
	content, refusal []byte
}

// tokens adds the logprobs of a piece of text.
func (c *Collector) tokens(d *Delta) {
	var l *logprobs
	for i := range c.logprobs {
		if c.logprobs[i].choice == d.Choice {
			l = &c.logprobs[i]
		}
	}
	if l == nil {
		c.logprobs = append(c.logprobs, logprobs{choice: d.Choice})
		l = &c.logprobs[len(c.logprobs)-1]
	}
	in := wire.NewDecoder(d.Logprobs)
	if in.Kind() != wire.KindObject {
		return
	}
	for key := range in.Object {
		switch string(key) {
		case "content":
			l.content = appendElements(l.content, in)
		case "refusal":
			l.refusal = appendElements(l.refusal, in)
		}
	}
}

// appendElements appends the elements of the list at d.
func appendElements(dst []byte, d *wire.Decoder) []byte {
	if d.Kind() != wire.KindArray {
		return dst
	}
	for range d.Array {
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, d.Raw()...)
	}
	return dst
}

// object returns the complete object in the format of chat completions.
func (l *logprobs) object() []byte {
	dst := []byte(`{"content":`)
	if dst = appendList(dst, l.content); len(l.refusal) == 0 {
		return append(dst, `,"refusal":null}`...)
	}
	return append(appendList(append(dst, `,"refusal":`...), l.refusal), '}')
}

func appendList(dst, elements []byte) []byte {
	if len(elements) == 0 {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '['), elements...), ']')
}
