package wire

import "gateway/shared/fault"

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

// checkKeys reads the next value of d, which stands inside depth levels.
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
	seen := map[string]struct{}{}
	for key := range d.Object {
		if _, twice := seen[string(key)]; twice {
			d.Fail("is in the same object twice, again at byte %d", d.Offset())
		}
		seen[string(key)] = struct{}{}
		checkKeys(d, maxDepth, depth+1)
	}
}
