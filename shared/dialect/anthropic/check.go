package anthropic

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// rules are the members of a body that are tested, in the order of the walk's
// keys.
var rules = []struct {
	key  string
	test func(key string, raw []byte) error
}{
	{"model", testName},
	{"max_tokens", testWhole}, // 0 warms a cache
	{"messages", testMessages},
	{"system", testSystem},
	{"stop_sequences", testStrings},
	{"stream", testBool},
	{"temperature", testFraction},
	{"top_p", testFraction},
	{"top_k", testWhole},
	{"tools", testArray},
	{"tool_choice", testObject},
	{"metadata", testObject},
	{"thinking", testObject},
	{"output_config", testObject},
	{"service_tier", testText},
	{"speed", testText},
}

var keys = func() *wire.KeySet {
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].key
	}
	return wire.NewKeySet(names...)
}()

// check tests the bounds of a body of /messages.
func check(body []byte, c *chat.Checked) error { return checkBody(body, c, true) }

// checkBody is check; a body that requests no response needs no max_tokens.
func checkBody(body []byte, c *chat.Checked, answered bool) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i := range rules {
		span := c.Walk.Spans[i]
		key := rules[i].key
		if !span.Present(body) {
			if key == "max_tokens" && answered || key == "messages" {
				return fault.Invalid(key, "%s is required", key)
			}
			continue
		}
		if err := rules[i].test(key, span.Of(body)); err != nil {
			return err
		}
	}
	return nil
}

func kind(key string, raw []byte, want wire.Kind) error {
	if got := wire.KindOf(raw); got != want {
		return fault.Invalid(key, "%s must be %s, not %s", key, want, got)
	}
	return nil
}

func testName(key string, raw []byte) error {
	if err := kind(key, raw, wire.KindString); err != nil {
		return err
	}
	if len(raw) == 2 {
		return fault.Invalid(key, "%s must not be empty", key)
	}
	return nil
}

func testBool(key string, raw []byte) error   { return kind(key, raw, wire.KindBool) }
func testText(key string, raw []byte) error   { return kind(key, raw, wire.KindString) }
func testArray(key string, raw []byte) error  { return kind(key, raw, wire.KindArray) }
func testObject(key string, raw []byte) error { return kind(key, raw, wire.KindObject) }

func testWhole(key string, raw []byte) error {
	n, err := wire.ScanInt(raw, key)
	if err == nil && n < 0 {
		err = fault.Invalid(key, "%s must be at least 0", key)
	}
	return err
}

func testFraction(key string, raw []byte) error {
	v, err := wire.ScanFloat(raw, key)
	if err == nil && (v < 0 || v > 1) {
		err = fault.Invalid(key, "%s must be between 0 and 1", key)
	}
	return err
}

func testMessages(key string, raw []byte) error {
	if err := kind(key, raw, wire.KindArray); err != nil {
		return err
	}
	i := 1
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\r' || raw[i] == '\t') {
		i++
	}
	switch raw[i] {
	case '{':
		return nil
	case ']':
		return fault.Invalid(key, "%s must hold at least one message", key)
	}
	return fault.Invalid(key+"[0]", "%s[0] must be an object", key)
}

func testSystem(key string, raw []byte) error {
	if k := wire.KindOf(raw); k != wire.KindString && k != wire.KindArray {
		return fault.Invalid(key, "%s must be a string or a list of text blocks, not %s", key, k)
	}
	return nil
}

func testStrings(key string, raw []byte) error {
	if err := kind(key, raw, wire.KindArray); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	for range d.Array {
		d.RawStr()
	}
	return d.Err()
}
