package ownership

import (
	"bytes"

	"gateway/shared/wire"
)

var audioWord = []byte(`"audio"`)

// MayReturnAudio reports whether a chat may get a response with audio, which the provider stores for
// a while under an id: a later assistant message may name it instead of its text.
func MayReturnAudio(body []byte) bool { return bytes.Contains(body, audioWord) }

// Sounds returns the ids of the audio in a chat response, or in one event of it.
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

// soundOf reads the audio id in one of the fields of a choice: {"audio":{"id":"..."}}.
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
