package wire

import (
	"bytes"

	"gateway/shared/fault"
)

// CheckStrict checks a body that people write and the gateway stores: one JSON
// value (not only an object), UTF-8 throughout, at most maxDepth levels (never
// above MaxDepth) and no key twice in one object at any level. The error is a
// *fault.Fault (400) that names the path.
func CheckStrict(body []byte, maxDepth int) error {
	if err := CheckUTF8(body); err != nil {
		return err
	}
	if skipSpace(body, 0) == len(body) {
		return fault.Invalid("", "The body is empty; JSON is expected")
	}
	d := NewDecoder(body)
	checkKeys(d, min(maxDepth, MaxDepth), 0)
	return d.End()
}

// checkKeys reads the next value of d, which is inside of depth levels.
func checkKeys(d *Decoder, maxDepth, depth int) {
	kind := d.Kind()
	if kind != KindObject && kind != KindArray {
		d.Skip()
		return
	}
	if depth >= maxDepth {
		d.Fail("is nested too deeply: arrays and objects may nest at most %d deep", maxDepth)
		return
	}
	if kind == KindArray {
		for range d.Array {
			checkKeys(d, maxDepth, depth+1)
		}
		return
	}
	var seen keys
	for key := range d.Object {
		if seen.twice(key) {
			d.Fail("is in the same object twice, again at byte %d", d.Offset())
		}
		checkKeys(d, maxDepth, depth+1)
	}
}

// keys are the keys of an object so far. A few are compared one by one, without an
// allocation: a key is a part of the body, or was made because of its escapes.
type keys struct {
	few  [12][]byte
	n    int
	many map[string]struct{} // used when there are more
}

// twice reports whether a key has come before, and remembers it.
func (k *keys) twice(key []byte) bool {
	if k.many == nil {
		for _, other := range k.few[:k.n] {
			if bytes.Equal(other, key) {
				return true
			}
		}
		if k.n < len(k.few) {
			k.few[k.n] = key
			k.n++
			return false
		}
		k.many = make(map[string]struct{}, 4*len(k.few))
		for _, other := range k.few {
			k.many[string(other)] = struct{}{}
		}
	}
	if _, twice := k.many[string(key)]; twice {
		return true
	}
	k.many[string(key)] = struct{}{}
	return false
}
