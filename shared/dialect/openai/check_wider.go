package openai

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

// Values that some hosts accept beyond the specification, see chat.Room. Values that no
// host accepts, such as a negative temperature, return 0.

// numberOver is for a number above the bound.
func numberOver(kind chat.ExcessKind, most float64) func([]byte) (chat.ExcessKind, float64) {
	return func(raw []byte) (chat.ExcessKind, float64) {
		if v, err := wire.ScanFloat(raw, ""); err == nil && v > most {
			return kind, v
		}
		return 0, 0
	}
}

// elementsOver is for a list with more elements, all of one kind.
func elementsOver(kind chat.ExcessKind, of wire.Kind) func([]byte) (chat.ExcessKind, float64) {
	return func(raw []byte) (chat.ExcessKind, float64) {
		if wire.KindOf(raw) != wire.KindArray {
			return 0, 0
		}
		d := wire.NewDecoder(raw)
		n := 0
		for range d.Array {
			if d.Kind() != of {
				return 0, 0
			}
			d.Skip()
			n++
		}
		if d.Err() != nil || n == 0 {
			return 0, 0
		}
		return kind, float64(n)
	}
}

// countedLogprobs is for a number in place of true.
func countedLogprobs(raw []byte) (chat.ExcessKind, float64) {
	if n, err := wire.ScanInt(raw, ""); err == nil && n >= 0 {
		return chat.CountedLogprobs, float64(n)
	}
	return 0, 0
}

// noEnd is for -1, which means no bound.
func noEnd(raw []byte) (chat.ExcessKind, float64) {
	if string(raw) == "-1" {
		return chat.NoEnd, 1
	}
	return 0, 0
}
