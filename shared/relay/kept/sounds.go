package kept

import (
	"bytes"

	"gateway/shared/wire"
)

var audioWord = []byte(`"audio"`)

// AsksSound looks whether a chat may be answered by sound, which the provider keeps for a
// while under an id: a later message of the assistant's may name it instead of its words.
func AsksSound(body []byte) bool { return bytes.Contains(body, audioWord) }

// Sounds gives the ids of the sounds that an answer of a chat tells of, or one event of it.
func Sounds(answer []byte) (ids []string) {
	if !bytes.Contains(answer, audioWord) {
		return nil
	}
	d := wire.NewDecoder(answer)
	if d.Kind() != wire.KindObject {
		return nil
	}
	for key := range d.Object {
		if string(key) != "choices" || d.Kind() != wire.KindArray {
			d.Skip()
			continue
		}
		for range d.Array {
			ids = soundOf(d, ids, "message", "delta")
		}
	}
	return ids
}

// soundOf reads what a choice has in one of the members: {"audio":{"id":"..."}}.
func soundOf(d *wire.Decoder, ids []string, members ...string) []string {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ids
	}
	for key := range d.Object {
		name := string(key)
		switch {
		case len(members) > 0 && (name == members[0] || name == members[1]):
			ids = soundOf(d, ids)
		case len(members) == 0 && name == "audio" && d.Kind() == wire.KindObject:
			for key := range d.Object {
				if string(key) != "id" || d.Kind() != wire.KindString {
					d.Skip()
				} else if id := d.Str(); id != "" {
					ids = append(ids, id)
				}
			}
		default:
			d.Skip()
		}
	}
	return ids
}
