package citation

import (
	"bytes"
	"strconv"

	"gateway/shared/wire"
)

// Anthropic reports whether Anthropic made the citation and takes it back in a later turn.
// A citation by another provider lacks the encrypted index, which only Anthropic can write.
func (c *Citation) Anthropic() bool { return c.own != nil && !c.unsigned }

// FromAnthropic returns the citations of a list that Anthropic made: the list itself if these are
// all, nil if there are none. left counts the others.
func FromAnthropic(list []byte) (own []byte, left int) {
	if wire.KindOf(list) != wire.KindArray {
		return list, 0
	}
	d := wire.NewDecoder(list)
	for range d.Array {
		raw := d.Raw()
		if wire.KindOf(raw) == wire.KindObject {
			if c := Read(raw); !c.Anthropic() {
				left++
				continue
			}
		}
		if own == nil {
			own = append(own, '[')
		} else {
			own = append(own, ',')
		}
		own = append(own, raw...)
	}
	if d.End() != nil || left == 0 {
		return list, 0
	}
	if own != nil {
		own = append(own, ']')
	}
	return own, left
}

// Unsigned removes from a body of Anthropic's messages the citations of other providers,
// because Anthropic rejects them, and empty texts that only carried such citations. It
// preserves every other byte; if nothing is removed, the result is body itself. left are
// the paths of the removed citations. body is a checked JSON object.
func Unsigned(body []byte) (out []byte, left []string) {
	if !mayCite(body) {
		return body, nil
	}
	var edits []wire.Edit
	d := wire.NewDecoder(body)
	for key := range d.Object {
		if string(key) != "messages" || d.Kind() != wire.KindArray {
			continue
		}
		for i := range d.Array {
			at := "messages[" + strconv.Itoa(i) + "].content"
			edits, left = unsignedMessage(d, at, edits, left)
		}
	}
	if d.End() != nil || len(edits) == 0 {
		return body, nil
	}
	return wire.Splice(make([]byte, 0, len(body)), body, edits...), left
}

// mayCite looks for the field that only citations of a search have. It searches for the
// end of the name first, because that is rare and long bodies are searched in every
// request.
func mayCite(body []byte) bool {
	rare, front := []byte(`_index"`), []byte(`"encrypted`)
	for from := 0; ; {
		i := bytes.Index(body[from:], rare)
		if i < 0 {
			return false
		}
		if bytes.HasSuffix(body[:from+i], front) {
			return true
		}
		from += i + len(rare)
	}
}

// unsignedMessage makes the edit of one message.
func unsignedMessage(d *wire.Decoder, at string, edits []wire.Edit, left []string) ([]wire.Edit, []string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return edits, left
	}
	for key := range d.Object {
		if string(key) != "content" || d.Kind() != wire.KindArray {
			continue
		}
		start, before := d.Offset(), len(left)
		blocks := d.Raw()
		in, list := wire.NewDecoder(blocks), []byte{'['}
		for i := range in.Array {
			block, found := unsignedBlock(in.Raw())
			if found {
				left = append(left, at+"["+strconv.Itoa(i)+"].citations")
			}
			if block == nil {
				continue
			}
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, block...)
		}
		if len(left) > before {
			edits = append(edits, wire.Replace(wire.Span{Start: start, End: start + len(blocks)}, append(list, ']')))
		}
	}
	return edits, left
}

// unsignedBlock is a block without citations of other providers; nil when nothing
// is left of it.
func unsignedBlock(block []byte) (out []byte, found bool) {
	if wire.KindOf(block) != wire.KindObject {
		return block, false
	}
	d := wire.NewDecoder(block)
	empty := false
	var own []byte
	var edits []wire.Edit
	for key := range d.Object {
		switch {
		case string(key) == "text" && d.Kind() == wire.KindString:
			empty = len(d.RawStr()) <= len(`""`)
		case string(key) == "citations" && d.Kind() == wire.KindArray:
			start := d.Offset()
			list := d.Raw()
			var n int
			if own, n = FromAnthropic(list); n == 0 {
				continue
			}
			value := own
			if value == nil {
				value = []byte("null")
			}
			edits = append(edits, wire.Replace(wire.Span{Start: start, End: start + len(list)}, value))
		}
	}
	switch {
	case d.End() != nil || len(edits) == 0:
		return block, false
	case empty && own == nil:
		return nil, true
	}
	return wire.Splice(make([]byte, 0, len(block)), block, edits...), true
}
