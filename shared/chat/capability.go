package chat

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// Limits are known limitations of a host or model. A request that needs an unsupported feature
// is rejected with 400 before it is sent, because a response that ignores a part of the request
// looks correct. The zero value has no limitations.
type Limits struct {
	NoTools     bool // no tools
	NoImages    bool // no images
	NoDocuments bool // no documents
	NoAudio     bool // no audio
	NoStream    bool // no streaming
	NoLogprobs  bool // no log probabilities
	NoSeveral   bool // only one choice: n is 1
	NoJSON      bool // no JSON responses without a schema
	NoThinking  bool // no thinking
}

// MayExceed reports whether body may need something that t does not support, without parsing
// it: it searches for the fields of such a request, or for words that it must contain. false is
// certain, except for words with escapes, which the provider then rejects. known is the result
// of the dialect's check of this body, which saves a full search; it may be nil.
func (t *Traits) MayExceed(body []byte, known *Checked) bool {
	if t.Limits == (Limits{}) && t.Schema != SchemaNone && t.Schema != SchemaInWords {
		return false
	}
	return t.NoTools && (known.hasField(body, "tools") || known.hasField(body, "functions")) ||
		(t.NoImages || t.NoDocuments || t.NoAudio) && !known.textOnly() && t.hasMedia(body) ||
		t.NoStream && known.hasField(body, "stream") ||
		t.NoLogprobs && known.hasLogprobs(body) ||
		t.NoSeveral && known.hasField(body, "n") ||
		(t.NoJSON || t.Schema == SchemaNone || t.Schema == SchemaInWords) && known.hasFormat(body) ||
		t.NoThinking && known.hasField(body, "thinking")
}

func (t *Traits) hasMedia(body []byte) bool {
	return t.NoImages && containsWord(body, `image`) ||
		t.NoDocuments && (containsWord(body, `file"`) || containsWord(body, `document"`)) ||
		t.NoAudio && containsWord(body, `audio`)
}

// hasField reports whether a body has a field: at its top level if the dialect knows the field
// there, otherwise anywhere.
func (c *Checked) hasField(body []byte, member string) bool {
	if c.allows(member) {
		return c.Span(member).Present(body)
	}
	return containsWord(body, `"`+member+`"`)
}

func (c *Checked) allows(member string) bool {
	return c != nil && c.Keys != nil && c.Keys.Index(member) >= 0
}

func (c *Checked) hasLogprobs(body []byte) bool {
	if c.allows("logprobs") && c.allows("top_logprobs") {
		return c.Span("logprobs").Present(body) || c.Span("top_logprobs").Present(body)
	}
	return containsWord(body, `logprobs`)
}

func (c *Checked) hasFormat(body []byte) bool {
	if c.allows("response_format") && !c.Span("response_format").Present(body) {
		return false
	}
	return containsWord(body, `json`)
}

// textOnly reports whether no message has a list: then every content is a string, because media
// are in lists of parts.
func (c *Checked) textOnly() bool {
	if !c.allows("messages") || c.Walk.Arrays[c.Keys.Index("messages")] > 1 {
		return false
	}
	return !c.allows("system") || c.Walk.Arrays[c.Keys.Index("system")] == 0
}

func containsWord(body []byte, word string) bool { return bytes.Contains(body, []byte(word)) }

// CheckSupport returns the 400 for what r needs and t does not support. It names the field of the
// client's format: unsupported_operation, or unsupported_response_format for a format. Log
// probabilities are rejected for clients that rely on the exact format and dropped for others,
// see Loss.StrictResponse. Tools that must not be called do not count.
func CheckSupport(client Dialect, r *Request, t *Traits, loss *Loss) error {
	err := r.exceeds(t, loss)
	if n, ok := client.(Named); ok {
		return renamed(err, n, loss)
	}
	return err
}

func (r *Request) exceeds(t *Traits, loss *Loss) error {
	no := func(field, format string, args ...any) error {
		return fault.Newf(fault.UnsupportedOperation, field, format, args...)
	}
	switch {
	case t.NoTools && r.wantsTools():
		field := "tools"
		if r.Legacy {
			field = "functions"
		}
		return no(field, "%s is not supported: this model has no tool support; omit it or choose another model", field)
	case t.NoStream && r.Stream:
		return no("stream", "stream is not supported: responses of this model cannot be streamed; stream must be false or absent")
	case t.NoSeveral && r.N.Set && r.N.Value > 1:
		return no("n", "n must be 1 for this model, which returns one response")
	case t.NoThinking && r.Reasoning.Thinking == ThinkingBudget:
		return no("thinking", "thinking is not supported: this model has no thinking; omit it or choose another model")
	case t.Schema == SchemaNone && r.Format.Kind == FormatSchema:
		return fault.New(fault.UnsupportedResponse, "response_format", "response_format is not supported: this model cannot answer in a JSON schema")
	case t.NoJSON && r.Format.Kind == FormatJSON:
		return fault.New(fault.UnsupportedResponse, "response_format", "response_format is not supported: this model has no JSON mode without a schema")
	}
	if t.NoLogprobs {
		switch c := r.Completion; {
		case r.Logprobs.Value:
			loss.AddResponse("logprobs", "this model returns none")
		case r.TopLogprobs.Value > 0:
			loss.AddResponse("top_logprobs", "this model returns none")
		case c != nil && c.Logprobs.Set:
			loss.AddResponse("logprobs", "this model returns none")
		}
		if err := loss.Err(); err != nil {
			return err
		}
	}
	if !t.NoImages && !t.NoDocuments && !t.NoAudio {
		return nil
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		for j := range m.Parts {
			if err := r.exceedsPart(m, &m.Parts[j], t); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantsTools reports whether the request offers functions that the model may call.
func (r *Request) wantsTools() bool {
	if r.ToolChoice.Mode == ToolsNone {
		return false
	}
	for i := range r.Tools {
		if r.Tools[i].ForeignType == "" {
			return true
		}
	}
	return false
}

// exceedsPart rejects media that t does not support, in a message or in a tool result.
func (r *Request) exceedsPart(m *Message, p *Part, t *Traits) error {
	if err := exceedsMedia(p, t, func() string { return m.Path(p) }); err != nil || p.Result == nil {
		return err
	}
	for i := range p.Result.Parts {
		q := &p.Result.Parts[i]
		err := exceedsMedia(q, t, func() string {
			at := "messages[" + strconv.Itoa(m.At) + "]"
			if !strings.HasPrefix(r.Dialect, "openai.") { // in that format a result is a separate message
				at = m.Path(p)
			}
			return at + ".content[" + strconv.Itoa(q.At) + "]"
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func exceedsMedia(p *Part, t *Traits, path func() string) error {
	what := ""
	switch {
	case p.Kind == Image && t.NoImages:
		what = "an image"
	case p.Kind == Document && t.NoDocuments && !p.Media.Plain:
		what = "a document"
	case p.Kind == Audio && t.NoAudio:
		what = "audio"
	default:
		return nil
	}
	at := path()
	return fault.Newf(fault.UnsupportedOperation, at, "%s is %s, which this model does not accept", at, what)
}

// Path returns the path of a message (p nil) or of one of its parts in chat completions:
// messages[2], messages[2].content[0], messages[2].tool_calls[1].
func (m *Message) Path(p *Part) string {
	if m.At < 0 {
		if p == nil {
			return "system"
		}
		return "system[" + strconv.Itoa(p.At) + "]"
	}
	at := "messages[" + strconv.Itoa(m.At) + "]"
	switch {
	case p == nil:
		return at
	case p.Kind == Call:
		return at + ".tool_calls[" + strconv.Itoa(p.At) + "]"
	case m.IsString:
		return at + ".content"
	}
	return at + ".content[" + strconv.Itoa(p.At) + "]"
}

// Excess is a limit of the specification that a body exceeds and that some hosts extend. The
// target decides, see Room.
type Excess struct {
	Kind   ExcessKind
	Amount float64 // the amount in the body: a count, or the number itself
	Err    error   // the 400 for targets without an extended limit
}

// ExcessKind identifies the exceeded limit.
type ExcessKind uint8

// The limits that some target extends.
const (
	ManyStops       ExcessKind = iota + 1 // more stop strings
	ManyTools                             // more tools
	HighTemperature                       // temperature
	ManyLogprobs                          // alternatives per token
	CountedLogprobs                       // logprobs of a chat given as a number
	NoEnd                                 // -1 as the token limit: no limit
)

// ExtendedLimits contains the extended limits of a target. The zero value is the specification.
type ExtendedLimits struct {
	Stops           int     // stop strings
	Tools           int     // tools
	Temperature     float64 // maximum
	Logprobs        int     // alternatives per token
	CountedLogprobs int     // maximum of logprobs of a chat given as a number
	NoEnd           bool    // accepts -1 as the token limit
}

// Unbounded is the Room of an unknown host: the host itself rejects what it does not accept.
var Unbounded = ExtendedLimits{
	Stops: math.MaxInt, Tools: math.MaxInt, Temperature: math.MaxFloat64, Logprobs: math.MaxInt, CountedLogprobs: math.MaxInt, NoEnd: true,
}

// Check returns the error of the first excess that the target does not allow.
func (r *ExtendedLimits) Check(all []Excess) error {
	for i := range all {
		if !r.takes(&all[i]) {
			return all[i].Err
		}
	}
	return nil
}

func (r *ExtendedLimits) takes(e *Excess) bool {
	switch e.Kind {
	case ManyStops:
		return e.Amount <= float64(r.Stops)
	case ManyTools:
		return e.Amount <= float64(r.Tools)
	case HighTemperature:
		return e.Amount <= r.Temperature
	case ManyLogprobs:
		return e.Amount <= float64(r.Logprobs)
	case CountedLogprobs:
		return e.Amount <= float64(r.CountedLogprobs)
	case NoEnd:
		return r.NoEnd
	}
	return false
}

// Exceeds records that a body exceeds a limit. It returns err if no target will be consulted.
func (c *Checked) Exceeds(kind ExcessKind, amount float64, err error) error {
	if !c.ByTarget {
		return err
	}
	c.Excess = append(c.Excess, Excess{kind, amount, err})
	return nil
}
