package openai

import (
	"gateway/shared/fault"
	"gateway/shared/wire"
)

func testString(key string, raw []byte, _ *bound) error {
	if wire.KindOf(raw) != wire.KindString {
		return fault.Invalid(key, "%s must be a string, not %s", key, wire.KindOf(raw))
	}
	return nil
}

func testName(key string, raw []byte, b *bound) error {
	if err := testString(key, raw, b); err != nil {
		return err
	}
	if len(raw) == 2 {
		return fault.Invalid(key, "%s must not be empty", key)
	}
	return nil
}

func testBool(key string, raw []byte, _ *bound) error {
	_, err := wire.ScanBool(raw, key)
	return err
}

func testNumber(key string, raw []byte, b *bound) error {
	v, err := wire.ScanFloat(raw, key)
	if err != nil {
		return err
	}
	return b.within(key, v)
}

func testInteger(key string, raw []byte, b *bound) error {
	n, err := wire.ScanInt(raw, key)
	if err != nil {
		return err
	}
	return b.within(key, float64(n))
}

func (b *bound) within(key string, v float64) error {
	switch {
	case v >= b.min && v <= b.max:
		return nil
	case b.max == unbounded:
		return fault.Invalid(key, "%s must be at least %g", key, b.min)
	}
	return fault.Invalid(key, "%s must be between %g and %g", key, b.min, b.max)
}

func testObject(key string, raw []byte, _ *bound) error {
	if wire.KindOf(raw) != wire.KindObject {
		return fault.Invalid(key, "%s must be an object, not %s", key, wire.KindOf(raw))
	}
	return nil
}

// testMessages only checks for a list that is not empty. The content of the list is read
// when it is translated, or else by the provider.
func testMessages(key string, raw []byte, _ *bound) error {
	if wire.KindOf(raw) != wire.KindArray {
		return fault.Invalid(key, "%s must be a list of messages, not %s", key, wire.KindOf(raw))
	}
	switch c := raw[skipSpace(raw, 1)]; c {
	case '{':
		return nil
	case ']':
		return fault.Invalid(key, "%s must contain at least one message", key)
	}
	return fault.Invalid(key+"[0]", "%s[0] must be an object", key)
}

// testObjects is for lists of min to max objects.
func testObjects(key string, raw []byte, b *bound) error {
	if wire.KindOf(raw) != wire.KindArray {
		return fault.Invalid(key, "%s must be a list of objects, not %s", key, wire.KindOf(raw))
	}
	d := wire.NewDecoderAt(raw, key)
	n := 0
	for range d.Array {
		if d.Kind() != wire.KindObject {
			d.Fail("must be an object")
		}
		n++
	}
	if err := d.Err(); err != nil {
		return err
	}
	if n > int(b.max) {
		return fault.Invalid(key, "%s must contain at most %d elements, not %d", key, int(b.max), n)
	}
	if n < int(b.min) {
		return fault.Invalid(key, "%s must contain at least %d element", key, int(b.min))
	}
	return nil
}

func testLogitBias(key string, raw []byte, b *bound) error {
	if err := testObject(key, raw, b); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	for range d.Object {
		if v := d.Float(); v < b.min || v > b.max {
			d.Fail("must be between %g and %g", b.min, b.max)
		}
	}
	return d.Err()
}

const maxStops = 4

func testStop(key string, raw []byte, _ *bound) error {
	switch wire.KindOf(raw) {
	case wire.KindString:
		return nil
	case wire.KindArray:
	default:
		return fault.Invalid(key, "%s must be a string or a list of up to %d strings, not %s", key, maxStops, wire.KindOf(raw))
	}
	d := wire.NewDecoderAt(raw, key)
	n := 0
	for range d.Array {
		d.RawStr()
		n++
	}
	if err := d.Err(); err != nil {
		return err
	}
	if n > maxStops {
		return fault.Invalid(key, "%s must contain at most %d sequences, not %d", key, maxStops, n)
	}
	return nil
}

func testStreamOptions(key string, raw []byte, b *bound) error {
	if err := testObject(key, raw, b); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	for name := range d.Object {
		if string(name) == "include_usage" && !d.Null() {
			d.Bool()
		}
	}
	return d.Err()
}

func testFormat(key string, raw []byte, b *bound) error {
	if err := testObject(key, raw, b); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	for name := range d.Object {
		if string(name) == "type" {
			d.RawStr()
		}
	}
	return d.Err()
}

// testToolChoice checks only the kind: hosts know more modes than OpenAI.
func testToolChoice(key string, raw []byte, _ *bound) error {
	switch wire.KindOf(raw) {
	case wire.KindObject, wire.KindString:
		return nil
	}
	return fault.Invalid(key, "%s must be none, auto, required or an object that names a function", key)
}

func testFunctionCall(key string, raw []byte, _ *bound) error {
	switch wire.KindOf(raw) {
	case wire.KindObject, wire.KindString:
		return nil
	}
	return fault.Invalid(key, "%s must be none, auto or an object with a name", key)
}

func testPrompt(key string, raw []byte, _ *bound) error {
	return testInput(key, raw)
}

// testEmbeddingInput checks only the outer form of the input. Lists may hold texts, tokens,
// or texts and images as one; reading their elements is the provider's task.
func testEmbeddingInput(key string, raw []byte, _ *bound) error {
	switch wire.KindOf(raw) {
	case wire.KindString, wire.KindObject:
		return nil
	case wire.KindArray:
		if raw[skipSpace(raw, 1)] == ']' {
			return fault.Invalid(key, "%s must not be an empty list", key)
		}
		d := wire.NewDecoderAt(raw, key)
		var first wire.Kind
		for i := range d.Array {
			k := d.Kind()
			if i == 0 {
				first = k
			}
			if k != first && !(content(k) && content(first)) {
				d.Fail("must be %s like the first element", first)
			}
			switch k {
			case wire.KindString:
				d.RawStr()
			case wire.KindNumber:
				d.Int()
			case wire.KindArray:
				for range d.Array {
					d.Int()
				}
			case wire.KindObject:
				d.Skip()
			default:
				d.Fail("must be a text, a token, a list of tokens, or an object with text and image, not %s", k)
			}
		}
		return d.Err()
	}
	return fault.Invalid(key, "%s must be a string, an object, or a list of strings, of tokens, of lists of tokens or of objects, not %s", key, wire.KindOf(raw))
}

// content reports whether a value of this kind can be embedded: a text, or an object with
// text and image.
func content(k wire.Kind) bool { return k == wire.KindString || k == wire.KindObject }

// testInput is for a string, or a list of strings, of token numbers or of lists
// of token numbers.
func testInput(key string, raw []byte) error {
	const want = "must be a string, or a list of strings, of tokens or of lists of tokens"
	switch wire.KindOf(raw) {
	case wire.KindString:
		return nil
	case wire.KindArray:
	default:
		return fault.Invalid(key, "%s %s, not %s", key, want, wire.KindOf(raw))
	}
	// Most lists hold one long text; a list with many elements has short ones.
	d := wire.NewDecoderAt(raw, key)
	var kind wire.Kind
	for i := range d.Array {
		k := d.Kind()
		if i == 0 {
			kind = k
		}
		if k != kind {
			d.Fail("must be %s like the first element", kind)
		}
		switch k {
		case wire.KindString:
			d.RawStr()
		case wire.KindNumber:
			d.Int()
		case wire.KindArray:
			for range d.Array {
				d.Int()
			}
		default:
			d.Fail(want)
		}
	}
	return d.Err()
}

// testFormatName takes the name of a format, or a list of them.
func testFormatName(key string, raw []byte, _ *bound) error {
	if k := wire.KindOf(raw); k != wire.KindString && k != wire.KindArray {
		return fault.Invalid(key, "%s must be the name of a format such as float or base64, not %s", key, k)
	}
	return nil
}
