package openai

import (
	"bytes"
	"math"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// bound is the rule for one member of a body: what it must be and between which
// values. null counts as absent.
type bound struct {
	key      string
	test     func(key string, raw []byte, b *bound) error
	min, max float64
}

// defaultWord as a value stands for "use the provider's default".
const defaultWord = `"gateway-default"`

var unbounded = math.Inf(1)

// checker holds the rules of one operation. The walk finds all members in one
// pass; only those that are there are looked at again.
type checker struct {
	keys   *wire.KeySet
	bounds []bound
	index  map[string]int
	across func(body []byte, spans func(key string) []byte) error // rules over several members
}

func newChecker(across func([]byte, func(string) []byte) error, bounds ...bound) *checker {
	c := &checker{bounds: bounds, index: make(map[string]int, len(bounds)), across: across}
	keys := make([]string, len(bounds))
	for i := range bounds {
		keys[i] = bounds[i].key
		c.index[keys[i]] = i
	}
	c.keys = wire.NewKeySet(keys...)
	return c
}

func (c *checker) check(body []byte, checked *chat.Checked) error {
	checked.Keys = c.keys
	w := &checked.Walk
	if err := c.keys.Walk(body, w); err != nil {
		return err
	}
	for i := range c.bounds {
		b := &c.bounds[i]
		if !w.Spans[i].Present(body) || b.test == nil {
			continue
		}
		raw := w.Spans[i].Of(body)
		if raw[0] == '"' && string(raw) == defaultWord {
			continue
		}
		if err := b.test(b.key, raw, b); err != nil {
			return err
		}
	}
	return c.across(body, func(key string) []byte {
		if s := w.Spans[c.index[key]]; s.Present(body) && string(s.Of(body)) != defaultWord {
			return s.Of(body)
		}
		return nil
	})
}

var chatChecker = newChecker(acrossChat,
	bound{key: "model", test: testName},
	bound{key: "messages", test: testMessages},
	bound{key: "frequency_penalty", test: testNumber, min: -2, max: 2},
	bound{key: "presence_penalty", test: testNumber, min: -2, max: 2},
	bound{key: "logit_bias", test: testLogitBias, min: -100, max: 100},
	bound{key: "logprobs", test: testBool},
	bound{key: "top_logprobs", test: testInteger, min: 0, max: 20},
	bound{key: "max_tokens", test: testInteger, min: 0, max: unbounded},
	bound{key: "max_completion_tokens", test: testInteger, min: 0, max: unbounded},
	bound{key: "n", test: testInteger, min: 1, max: 128},
	bound{key: "response_format", test: testFormat},
	bound{key: "seed", test: testInteger, min: math.Inf(-1), max: unbounded},
	bound{key: "stop", test: testStop},
	bound{key: "stream", test: testBool},
	bound{key: "stream_options", test: testStreamOptions},
	bound{key: "thinking", test: testThinking},
	bound{key: "temperature", test: testNumber, min: 0, max: 2},
	bound{key: "top_p", test: testNumber, min: 0, max: 1},
	bound{key: "tools", test: testObjects, min: 0, max: 128},
	bound{key: "tool_choice", test: testToolChoice},
	bound{key: "parallel_tool_calls", test: testBool},
	bound{key: "user", test: testString},
	bound{key: "function_call", test: testFunctionCall},
	bound{key: "functions", test: testObjects, min: 1, max: 128},
)

func acrossChat(_ []byte, get func(string) []byte) error {
	if get("messages") == nil {
		return fault.Invalid("messages", "messages is required: a list of at least one message")
	}
	if get("top_logprobs") != nil && string(get("logprobs")) != "true" {
		return fault.Invalid("top_logprobs", "top_logprobs requires logprobs to be true")
	}
	return streamOptionsNeedStream(get)
}

func streamOptionsNeedStream(get func(string) []byte) error {
	if get("stream_options") != nil && string(get("stream")) != "true" {
		return fault.Invalid("stream_options", "stream_options is only allowed with stream true")
	}
	return nil
}

var completionChecker = newChecker(acrossCompletion,
	bound{key: "model", test: testName},
	bound{key: "prompt", test: testPrompt},
	bound{key: "best_of", test: testInteger, min: 0, max: 20},
	bound{key: "echo", test: testBool},
	bound{key: "frequency_penalty", test: testNumber, min: -2, max: 2},
	bound{key: "presence_penalty", test: testNumber, min: -2, max: 2},
	bound{key: "logit_bias", test: testLogitBias, min: -100, max: 100},
	bound{key: "logprobs", test: testInteger, min: 0, max: 5},
	bound{key: "max_tokens", test: testInteger, min: 0, max: unbounded},
	bound{key: "n", test: testInteger, min: 1, max: 128},
	bound{key: "seed", test: testInteger, min: math.Inf(-1), max: unbounded},
	bound{key: "stop", test: testStop},
	bound{key: "stream", test: testBool},
	bound{key: "stream_options", test: testStreamOptions},
	bound{key: "suffix", test: testString},
	bound{key: "temperature", test: testNumber, min: 0, max: 2},
	bound{key: "top_p", test: testNumber, min: 0, max: 1},
	bound{key: "user", test: testString},
)

func acrossCompletion(_ []byte, get func(string) []byte) error {
	if get("prompt") == nil {
		return fault.Invalid("prompt", "prompt is required: a string, or a list of strings, tokens or lists of tokens")
	}
	if raw := get("best_of"); raw != nil {
		best, _ := wire.ScanInt(raw, "best_of")
		n := int64(1)
		if raw := get("n"); raw != nil {
			n, _ = wire.ScanInt(raw, "n")
		}
		// The defaults, one of each, may be written out.
		if best > 0 && best <= n && n > 1 {
			return fault.Invalid("best_of", "best_of must exceed n, which is %d", n)
		}
		if best > 1 && string(get("stream")) == "true" {
			return fault.Invalid("best_of", "best_of cannot be used with stream true")
		}
	}
	return streamOptionsNeedStream(get)
}

var embeddingChecker = newChecker(acrossEmbedding,
	bound{key: "model", test: testName},
	bound{key: "input", test: testEmbeddingInput, max: 2048},
	bound{key: "encoding_format", test: testEncodingFormat},
	bound{key: "dimensions", test: testInteger, min: 1, max: unbounded},
	bound{key: "user", test: testString},
)

func acrossEmbedding(_ []byte, get func(string) []byte) error {
	if get("input") == nil {
		return fault.Invalid("input", "input is required: a string, or a list of strings, tokens or lists of tokens")
	}
	return nil
}

// CheckEmbeddings tests the bounds of a body of /embeddings.
func CheckEmbeddings(body []byte) error {
	var c chat.Checked
	return embeddingChecker.check(body, &c)
}

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

// testMessages looks at the beginning only: a list that is not empty. What is in
// it is read when it is translated, else by the provider.
func testMessages(key string, raw []byte, _ *bound) error {
	if wire.KindOf(raw) != wire.KindArray {
		return fault.Invalid(key, "%s must be a list of messages, not %s", key, wire.KindOf(raw))
	}
	switch c := raw[skipSpace(raw, 1)]; c {
	case '{':
		return nil
	case ']':
		return fault.Invalid(key, "%s must hold at least one message", key)
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
		return fault.Invalid(key, "%s must hold at most %d elements, not %d", key, int(b.max), n)
	}
	if n < int(b.min) {
		return fault.Invalid(key, "%s must hold at least %d element", key, int(b.min))
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
		return fault.Invalid(key, "%s must hold at most %d sequences, not %d", key, maxStops, n)
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

func testThinking(key string, raw []byte, b *bound) error {
	if err := testObject(key, raw, b); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	for name := range d.Object {
		switch string(name) {
		case "type":
			switch t := d.Bytes(); string(t) {
			case "enabled", "disabled", "adaptive":
			default:
				d.Fail("must be enabled, disabled or adaptive")
			}
		case "budget_tokens":
			if !d.Null() && d.Int() < 1 {
				d.Fail("must be at least 1")
			}
		}
	}
	return d.Err()
}

func testToolChoice(key string, raw []byte, _ *bound) error {
	switch wire.KindOf(raw) {
	case wire.KindObject:
		return nil
	case wire.KindString:
		switch string(raw) {
		case `"none"`, `"auto"`, `"required"`:
			return nil
		}
	}
	return fault.Invalid(key, "%s must be none, auto, required or an object that names a function", key)
}

func testFunctionCall(key string, raw []byte, _ *bound) error {
	switch wire.KindOf(raw) {
	case wire.KindObject:
		return nil
	case wire.KindString:
		switch string(raw) {
		case `"none"`, `"auto"`:
			return nil
		}
	}
	return fault.Invalid(key, "%s must be none, auto or an object with a name", key)
}

func testPrompt(key string, raw []byte, _ *bound) error {
	return testInput(key, raw, math.MaxInt, 0)
}

func testEmbeddingInput(key string, raw []byte, b *bound) error {
	return testInput(key, raw, int(b.max), 1)
}

// testInput is for a string, or a list of strings, of token numbers or of lists
// of token numbers, of at least least and at most most elements.
func testInput(key string, raw []byte, most, least int) error {
	const want = "must be a string, or a list of strings, of tokens or of lists of tokens"
	switch wire.KindOf(raw) {
	case wire.KindString:
		return nil
	case wire.KindArray:
	default:
		return fault.Invalid(key, "%s %s, not %s", key, want, wire.KindOf(raw))
	}
	// Most lists hold one long text: only short elements can be many.
	d := wire.NewDecoderAt(raw, key)
	n := 0
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
			m := 0
			for range d.Array {
				d.Int()
				m++
			}
			if m > most {
				d.Fail("must hold at most %d tokens", most)
			}
		default:
			d.Fail(want)
		}
		n++
	}
	if err := d.Err(); err != nil {
		return err
	}
	if n < least {
		return fault.Invalid(key, "%s must not be an empty list", key)
	}
	if n > most {
		return fault.Invalid(key, "%s must hold at most %d elements, not %d", key, most, n)
	}
	return nil
}

func testEncodingFormat(key string, raw []byte, _ *bound) error {
	if !bytes.Equal(raw, []byte(`"float"`)) && !bytes.Equal(raw, []byte(`"base64"`)) {
		return fault.Invalid(key, "%s must be float or base64", key)
	}
	return nil
}
