package responses

import (
	"math"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// rule is what one field of a body must be. null counts as absent.
type rule struct {
	key      string
	kind     wire.Kind
	min, max float64         // of numbers
	wider    chat.ExcessKind // set where some host takes more than max
	also     func(key string, raw []byte) error
}

var unbounded = math.Inf(1)

// rules are the fields that are tested, in the order of the walk's keys.
var rules = []rule{
	{key: "model", kind: wire.KindString, also: notEmpty},
	{key: "input", also: testInput},
	{key: "instructions", kind: wire.KindString},
	{key: "max_output_tokens", kind: wire.KindNumber, min: 1, max: unbounded, also: whole},
	{key: "max_tool_calls", kind: wire.KindNumber, min: 1, max: unbounded, also: whole},
	{key: "temperature", kind: wire.KindNumber, min: 0, max: 2, wider: chat.HighTemperature},
	{key: "top_p", kind: wire.KindNumber, min: 0, max: 1},
	{key: "top_logprobs", kind: wire.KindNumber, min: 0, max: 20, also: whole, wider: chat.ManyLogprobs},
	{key: "stream", kind: wire.KindBool},
	{key: "stream_options", kind: wire.KindObject},
	{key: "store", kind: wire.KindBool},
	{key: "background", kind: wire.KindBool},
	{key: "parallel_tool_calls", kind: wire.KindBool},
	{key: "previous_response_id", kind: wire.KindString},
	{key: "conversation", also: testConversation},
	{key: "prompt", kind: wire.KindObject},
	{key: "reasoning", kind: wire.KindObject},
	{key: "text", kind: wire.KindObject},
	{key: "tools", kind: wire.KindArray, also: testObjects},
	{key: "tool_choice", also: testToolChoice},
	{key: "include", kind: wire.KindArray, also: testStrings},
	{key: "metadata", kind: wire.KindObject},
	{key: "truncation", kind: wire.KindString},
	{key: "user", kind: wire.KindString},
	{key: "service_tier", kind: wire.KindString},
	{key: "thinking", kind: wire.KindObject},
}

var keys, ruleAt = func() (*wire.KeySet, map[string]int) {
	names, at := make([]string, len(rules)), make(map[string]int, len(rules))
	for i := range rules {
		names[i], at[rules[i].key] = rules[i].key, i
	}
	return wire.NewKeySet(names...), at
}()

// defaultWord as a value means "use the provider's default".
const defaultWord = `"gateway-default"`

// check tests the bounds of a body of /responses.
func check(body []byte, c *chat.Checked) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i := range rules {
		span := c.Walk.Spans[i]
		if !span.Present(body) || string(span.Of(body)) == defaultWord {
			continue
		}
		err := rules[i].test(span.Of(body))
		if wider := rules[i].wider; err != nil && wider != 0 {
			if v, bad := wire.ScanFloat(span.Of(body), ""); bad == nil && v > rules[i].max {
				err = c.Exceeds(wider, v, err)
			}
		}
		if err != nil {
			return err
		}
	}
	get := func(key string) []byte {
		if s := c.Walk.Spans[ruleAt[key]]; s.Present(body) {
			return s.Of(body)
		}
		return nil
	}
	switch {
	case get("stream_options") != nil && string(get("stream")) != "true":
		return fault.Invalid("stream_options", "stream_options is only allowed with stream true")
	case get("previous_response_id") != nil && get("conversation") != nil:
		return fault.Invalid("conversation", "conversation cannot be used together with previous_response_id")
	case get("previous_response_id") != nil || get("conversation") != nil || get("prompt") != nil:
	case get("input") == nil:
		return fault.Invalid("input", "input is required: a string or a list of items")
	case emptyList(get("input")):
		return fault.Invalid("input", "input must contain at least one item")
	}
	return nil
}

func (r *rule) test(raw []byte) error {
	if got := wire.KindOf(raw); r.kind != wire.KindNone && got != r.kind {
		return fault.Invalid(r.key, "%s must be %s, not %s", r.key, r.kind, got)
	}
	if r.kind == wire.KindNumber {
		v, err := wire.ScanFloat(raw, r.key)
		switch {
		case err != nil:
			return err
		case v >= r.min && v <= r.max:
		case r.max == unbounded:
			return fault.Invalid(r.key, "%s must be at least %g", r.key, r.min)
		default:
			return fault.Invalid(r.key, "%s must be between %g and %g", r.key, r.min, r.max)
		}
	}
	if r.also == nil {
		return nil
	}
	return r.also(r.key, raw)
}

func notEmpty(key string, raw []byte) error {
	if len(raw) == 2 {
		return fault.Invalid(key, "%s must not be empty", key)
	}
	return nil
}

func whole(key string, raw []byte) error {
	_, err := wire.ScanInt(raw, key)
	return err
}

func emptyList(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '[' {
		return false
	}
	for _, c := range raw[1:] {
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c == ']'
		}
	}
	return false
}

// testInput only checks the type. The items are read when they are translated, or else by
// the provider.
func testInput(key string, raw []byte) error {
	switch k := wire.KindOf(raw); k {
	case wire.KindString:
		return nil
	case wire.KindArray:
		return testObjects(key, raw)
	default:
		return fault.Invalid(key, "%s must be a string or a list of items, not %s", key, k)
	}
}

func testObjects(key string, raw []byte) error {
	d := wire.NewDecoderAt(raw, key)
	for range d.Array {
		if d.Kind() != wire.KindObject {
			d.Fail("must be an object")
		}
	}
	return d.Err()
}

func testStrings(key string, raw []byte) error {
	d := wire.NewDecoderAt(raw, key)
	for range d.Array {
		d.RawStr()
	}
	return d.Err()
}

func testConversation(key string, raw []byte) error {
	if k := wire.KindOf(raw); k != wire.KindString && k != wire.KindObject {
		return fault.Invalid(key, "%s must be an id or an object with an id, not %s", key, k)
	}
	return nil
}

func testToolChoice(key string, raw []byte) error {
	switch wire.KindOf(raw) {
	case wire.KindObject, wire.KindString:
		return nil
	}
	return fault.Invalid(key, "%s must be none, auto, required or an object that names a tool", key)
}
