package openai

import (
	"math"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/hosts"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// bound is the rule for one field of a body: its type, and the values it must be between.
// null counts as absent.
type bound struct {
	key      string
	test     func(key string, raw []byte, b *bound) error
	min, max float64
	// wider returns which limit a value exceeds, and by how much it counts, if some host
	// accepts more than test does; 0 if no host does.
	wider func(raw []byte) (chat.ExcessKind, float64)
}

// defaultWord as a value means "use the provider's default".
const defaultWord = `"gateway-default"`

var unbounded = math.Inf(1)

// checker holds the rules of one operation. The walk finds all fields in one pass; only
// those that are present are looked at again.
type checker struct {
	keys   *wire.KeySet
	bounds []bound
	across func(m members) error // rules over several fields
}

func newChecker(across func(members) error, bounds ...bound) *checker {
	c := &checker{bounds: bounds, across: across}
	keys := make([]string, len(bounds))
	for i := range bounds {
		keys[i] = bounds[i].key
	}
	c.keys = wire.NewKeySet(keys...)
	return c
}

func (c *checker) check(body []byte, checked *chat.Checked) error {
	checked.Keys, checked.Excess = c.keys, checked.Excess[:0]
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
		err := b.test(b.key, raw, b)
		if err != nil && b.wider != nil {
			if kind, amount := b.wider(raw); kind != 0 {
				err = checked.Exceeds(kind, amount, err)
			}
		}
		if err != nil {
			return err
		}
	}
	return c.across(members{checked, body})
}

// members are those of a checked body.
type members struct {
	found *chat.Checked
	body  []byte
}

// get is the value of a field; nil when it is absent or defaultWord.
func (m members) get(key string) []byte {
	if s := m.found.Span(key); s.Present(m.body) && string(s.Of(m.body)) != defaultWord {
		return s.Of(m.body)
	}
	return nil
}

var chatChecker = newChecker(acrossChat,
	bound{key: "model", test: testName},
	bound{key: "messages", test: testMessages},
	bound{key: "frequency_penalty", test: testNumber, min: -2, max: 2},
	bound{key: "presence_penalty", test: testNumber, min: -2, max: 2},
	bound{key: "logit_bias", test: testLogitBias, min: -100, max: 100},
	bound{key: "logprobs", test: testBool, wider: countedLogprobs},
	bound{key: "top_logprobs", test: testInteger, min: 0, max: 20, wider: numberOver(chat.ManyLogprobs, 20)},
	bound{key: "max_tokens", test: testInteger, min: 0, max: unbounded, wider: noEnd},
	bound{key: "max_completion_tokens", test: testInteger, min: 0, max: unbounded, wider: noEnd},
	bound{key: "n", test: testInteger, min: 1, max: 128},
	bound{key: "response_format", test: testFormat},
	bound{key: "seed", test: testInteger, min: math.Inf(-1), max: unbounded},
	bound{key: "service_tier", test: testString},
	bound{key: "stop", test: testStop, wider: elementsOver(chat.ManyStops, wire.KindString)},
	bound{key: "stream", test: testBool},
	bound{key: "stream_options", test: testStreamOptions},
	bound{key: "thinking", test: testObject},
	bound{key: "temperature", test: testNumber, min: 0, max: 2, wider: numberOver(chat.HighTemperature, 2)},
	bound{key: "top_p", test: testNumber, min: 0, max: 1},
	bound{key: "tools", test: testObjects, min: 0, max: 128, wider: elementsOver(chat.ManyTools, wire.KindObject)},
	bound{key: "tool_choice", test: testToolChoice},
	bound{key: "parallel_tool_calls", test: testBool},
	bound{key: "user", test: testString},
	bound{key: "function_call", test: testFunctionCall},
	bound{key: "functions", test: testObjects, min: 1, max: 128, wider: elementsOver(chat.ManyTools, wire.KindObject)},
)

func acrossChat(m members) error {
	if m.get("messages") == nil {
		return fault.Invalid("messages", "messages is required: a list of at least one message")
	}
	if m.get("top_logprobs") != nil && string(m.get("logprobs")) != "true" {
		return fault.Invalid("top_logprobs", "top_logprobs requires logprobs to be true")
	}
	return streamOptionsNeedStream(m)
}

func streamOptionsNeedStream(m members) error {
	if m.get("stream_options") != nil && string(m.get("stream")) != "true" {
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
	bound{key: "logprobs", test: testInteger, min: 0, max: 5, wider: numberOver(chat.ManyLogprobs, 5)},
	bound{key: "max_tokens", test: testInteger, min: 0, max: unbounded, wider: noEnd},
	bound{key: "n", test: testInteger, min: 1, max: 128},
	bound{key: "seed", test: testInteger, min: math.Inf(-1), max: unbounded},
	bound{key: "stop", test: testStop, wider: elementsOver(chat.ManyStops, wire.KindString)},
	bound{key: "stream", test: testBool},
	bound{key: "stream_options", test: testStreamOptions},
	bound{key: "suffix", test: testString},
	bound{key: "temperature", test: testNumber, min: 0, max: 2, wider: numberOver(chat.HighTemperature, 2)},
	bound{key: "top_p", test: testNumber, min: 0, max: 1},
	bound{key: "user", test: testString},
)

func acrossCompletion(m members) error {
	if m.get("prompt") == nil {
		return fault.Invalid("prompt", "prompt is required: a string, or a list of strings, tokens or lists of tokens")
	}
	if raw := m.get("best_of"); raw != nil {
		best, _ := wire.ScanInt(raw, "best_of")
		n := int64(1)
		if raw := m.get("n"); raw != nil {
			n, _ = wire.ScanInt(raw, "n")
		}
		// The defaults (one each) may be given explicitly.
		if best > 0 && best <= n && n > 1 {
			return fault.Invalid("best_of", "best_of must exceed n, which is %d", n)
		}
		if best > 1 && string(m.get("stream")) == "true" {
			return fault.Invalid("best_of", "best_of cannot be used with stream true")
		}
	}
	return streamOptionsNeedStream(m)
}

var embeddingChecker = newChecker(acrossEmbedding,
	bound{key: "model", test: testName},
	bound{key: "input", test: testEmbeddingInput},
	bound{key: "encoding_format", test: testFormatName},
	bound{key: "dimensions", test: testInteger, min: 1, max: unbounded},
	bound{key: "user", test: testString},
)

func acrossEmbedding(m members) error {
	if m.get("input") == nil {
		return fault.Invalid("input", "input is required: a string, or a list of strings, tokens or lists of tokens")
	}
	return nil
}

// CheckEmbeddings tests the bounds of a body of /embeddings.
func CheckEmbeddings(body []byte) error {
	var c chat.Checked
	return embeddingChecker.check(body, &c)
}

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

// Chat is the dialect of POST /chat/completions.
type Chat struct{}

var _ chat.TwoWayDialect = Chat{}

// Name implements chat.Dialect.
func (Chat) Name() string { return "openai.chat" }

// Check implements chat.RequestReader.
func (Chat) Check(body []byte, c *chat.Checked) error { return chatChecker.check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Chat) DecodeRequest(body []byte) (*chat.Request, error) { return decodeChatRequest(body) }

// EncodeResponse implements chat.ResponseWriter.
func (Chat) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeChatResponse(dst, r, o)
}

// NewStreamEncoder implements chat.ResponseWriter.
func (Chat) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return newStreamEncoder(o) }

// AppendError implements chat.ErrorWriter.
func (Chat) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.ErrorWriter.
func (Chat) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendStreamError(dst, f, o)
}

// EncodeRequest implements chat.RequestWriter.
func (Chat) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeChatRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.ResponseReader.
func (Chat) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	r, err := decodeResponse(body)
	if err != nil {
		return nil, err
	}
	if mark := reasoner(t).Signature(); mark != "" {
		for i := range r.Choices {
			for j := range r.Choices[i].Parts {
				if p := &r.Choices[i].Parts[j]; p.Kind == chat.Reasoned && p.Signature == "" {
					p.Signature = mark
				}
			}
		}
	}
	return r, nil
}

// reasoner returns the row of a host that requires its reasoning back; nil if it does
// not.
func reasoner(t *chat.Traits) *hosts.Reasoner {
	if t == nil {
		return nil
	}
	return hosts.ReasonerOf(t.Provider)
}

// NewStreamDecoder implements chat.ResponseReader.
func (Chat) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	s := newStreamDecoder()
	s.mark = reasoner(t).Signature()
	return s
}

// DecodeError implements chat.ErrorReader.
func (Chat) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Chat) MeterResponse(body []byte) chat.Meter { return meterPlain(body, "choices") }

// NewStreamFilter implements chat.Passer.
func (Chat) NewStreamFilter(o *chat.FilterOptions) chat.StreamFilter { return newFilter(o) }

// MeterEmbeddings reads what accounting need of a response of /embeddings.
func MeterEmbeddings(body []byte) chat.Meter { return meterPlain(body, "data") }

// Support implements chat.ResponseWriter. What has no place in the shape itself goes into
// fields of the gateway's own, which only clients see that did not ask for the strict
// shape.
func (Chat) Support(o *chat.Options) chat.ResponseSupport {
	h := chat.ResponseSupport{
		Features: chat.HoldsChoices | chat.HoldsFingerprint | chat.HoldsTier | chat.HoldsLogprobs | chat.HoldsRefusals |
			chat.HoldsCitations | chat.HoldsCalls | chat.HoldsMoreCalls,
		Cites:  addressed,
		Choice: "choices", Content: "message",
	}
	if !o.Strict {
		h.Cites = nil
		h.Features |= chat.HoldsExtra | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted | chat.HoldsForeign | chat.HoldsImages | chat.HoldsSignedCalls
	}
	if o.Legacy() {
		h.Features &^= chat.HoldsMoreCalls
	}
	return h
}

// addressed reports whether a source has an address. Without one it cannot be an
// annotation.
func addressed(cite []byte) bool {
	c := citation.Read(cite)
	return c.URL != ""
}

// Support implements chat.ResponseWriter: a text completion is text and nothing else.
func (Completions) Support(*chat.Options) chat.ResponseSupport {
	return chat.ResponseSupport{Features: chat.HoldsChoices | chat.HoldsFingerprint | chat.HoldsTier, Choice: "choices"}
}
