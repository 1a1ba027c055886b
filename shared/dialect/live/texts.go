package live

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Texts are the strings of a JSON message that are in fields with these names, or in lists
// within such fields, in order; nil if the message is not JSON. Below names that are true,
// strings count at any depth: for example in the object that a tool has answered with.
func Texts(message []byte, names map[string]bool) (out []string) {
	if !mayHold(message, names) {
		return nil
	}
	v, ok := decode(message)
	if !ok {
		return nil
	}
	collect(v, names, outside, func(s string) {
		if s != "" {
			out = append(out, s)
		}
	})
	return out
}

// mayHold looks for the names without reading the message, which may be sound. A name may
// be hidden by an escape, so a message with one may hold it.
func mayHold(message []byte, names map[string]bool) bool {
	if bytes.IndexByte(message, '\\') >= 0 {
		return true
	}
	for name := range names {
		if bytes.Contains(message, []byte(name)) {
			return true
		}
	}
	return false
}

func decode(message []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(message))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// place is the position of a value.
type place uint8

const (
	outside place = iota
	within        // in a field with one of the names
	below         // in or below a field with texts that count at any depth
	sound         // in settings of sound, which are no words
)

// in is the place of a field's value.
func (p place) in(name string, names map[string]bool) place {
	deep, named := names[name]
	switch {
	case p == below:
		return below
	case p == sound && name == "output":
		return sound // how the model is to speak
	case deep:
		return below
	case named:
		return within
	case p == outside && name == "audio":
		return sound
	}
	return outside
}

// collect passes each text to f.
func collect(v any, names map[string]bool, at place, f func(string)) {
	switch v := v.(type) {
	case string:
		if at == within || at == below {
			f(v)
		}
	case []any:
		for i := range v {
			collect(v[i], names, at, f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			collect(v[name], names, at.in(name, names), f)
		}
	}
}
