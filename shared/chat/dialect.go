package chat

import (
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Checked is what a bounds check found: where the fields stand that the dialect knows. It may
// be used again; its memory is kept.
type Checked struct {
	Walk wire.Walk
	Keys *wire.KeySet // the fields of Walk
	// ByTarget: exceeding a bound that some hosts set wider is no error of the check. It is
	// noted in Excess, and whoever sends the body must ask the target.
	ByTarget bool
	Excess   []Excess
}

// Span is where the value of a top-level field stands, so that the body need not be walked
// again; the zero span when it is absent or unknown to the dialect.
func (c *Checked) Span(name string) wire.Span {
	if c.Keys == nil {
		return wire.Span{}
	}
	if i := c.Keys.Index(name); i >= 0 {
		return c.Walk.Spans[i]
	}
	return wire.Span{}
}

// Options are what a response to a client is written with.
type Options struct {
	Strict       bool   // keep to the client's own shape: no extension fields
	IncludeUsage bool   // the client asked for usage in the stream
	Model        string // used where the provider named none
	ID           string // used where the provider gave none, or OwnID is set
	// OwnID names the response by ID even if the provider named it: of a translated answer,
	// whose provider promises nothing about its ids to clients of another shape.
	OwnID        bool
	Created      int64  // Unix seconds, used where the provider gave none
	ProviderName string // id of the provider
	// Origin is the name of the provider's dialect, which signs reasoning.
	Origin string
	// NextEvent is the number of an event that is added to a stream, where the
	// client's dialect numbers them.
	NextEvent int64
	// Request is the decoded request that is answered; nil when the response is not a
	// translation. It says which tool names were changed, whether calls are read as
	// function_call, and which stop strings may have ended the response.
	Request *Request
}

// AnswerID returns the id of a response that the provider named given. An id of the gateway's
// begins with prefix, as ids of the client's shape do.
func (o *Options) AnswerID(given, prefix string) string {
	switch {
	case o.OwnID:
		return prefix + o.ID
	case given != "":
		return given
	}
	return o.ID
}

// ToolName returns the client's name for a tool that the provider calls name.
func (o *Options) ToolName(name string) string {
	if o.Request == nil || o.Request.Renamed == nil {
		return name
	}
	if own, ok := o.Request.Renamed[name]; ok {
		return own
	}
	return name
}

// Legacy reports whether the client reads tool calls as function_call.
func (o *Options) Legacy() bool { return o.Request != nil && o.Request.Legacy }

// FilterOptions are what a stream of the client's own dialect is filtered with.
type FilterOptions struct {
	Strict       bool // swallow chunks that clients of the dialect trip over
	IncludeUsage bool // the client asked for usage
	// Injected says that usage was asked for on the client's behalf: what that
	// adds to the stream is taken out unless IncludeUsage.
	Injected bool
}

// Dialect is one wire shape. The roles that it implements tell what can be done with it; it
// has no methods for other roles. Implementations are stateless and safe for concurrent
// use. All errors are *fault.Fault.
type Dialect interface {
	// Name is the dialect's name: openai.chat, openai.completions,
	// anthropic.messages.
	Name() string
}

// RequestReader reads what clients send.
type RequestReader interface {
	// Check tests the bounds of the specification on a client's body: 400 naming
	// the field and what is allowed. null counts as absent, unknown fields pass.
	// A duplicate, escaped or case-variant spelling of a field that counts is 400.
	Check(body []byte, c *Checked) error
	// DecodeRequest reads a body that Check has passed. The result holds no
	// reference to body.
	DecodeRequest(body []byte) (*Request, error)
}

// AnswerWriter writes answers to clients.
type AnswerWriter interface {
	// EncodeResponse appends a response.
	EncodeResponse(dst []byte, r *Response, o *Options) []byte
	// NewStreamEncoder writes a streamed response.
	NewStreamEncoder(o *Options) StreamEncoder
	// Held tells what both have a place for; everything else is reported, see Missed.
	Held(o *Options) Held
}

// ErrorWriter writes errors to clients.
type ErrorWriter interface {
	// AppendError appends a plain error body.
	AppendError(dst []byte, f *fault.Fault, o *Options) []byte
	// AppendStreamError appends the event that ends a broken stream.
	AppendStreamError(dst []byte, f *fault.Fault, o *Options) []byte
}

// Refuser is an ErrorWriter whose clients may ask for final refusals of streamed requests
// as the one event of a stream, because they repeat requests after every error status.
type Refuser interface {
	// AppendRefusal appends that event.
	AppendRefusal(dst []byte, f *fault.Fault, o *Options) []byte
}

// Breaker is an ErrorWriter whose clients take the orderly end of a stream for a success,
// or repeat the request, even behind an error event.
type Breaker interface {
	// BreaksConnection reports whether the connection must be cut behind the error event.
	BreaksConnection() bool
}

// RequestWriter writes requests to providers.
type RequestWriter interface {
	Dialect
	// EncodeRequest appends the body for a provider. What it cannot carry is in
	// loss; it refuses what the provider would refuse. The request's Model is
	// what is sent.
	EncodeRequest(dst []byte, r *Request, t *Traits, loss *Loss) ([]byte, error)
}

// AnswerReader reads what providers answer.
type AnswerReader interface {
	// DecodeResponse reads a plain answer. An error body inside a success is an
	// error.
	DecodeResponse(body []byte, t *Traits) (*Response, error)
	// NewStreamDecoder reads a stream.
	NewStreamDecoder(t *Traits) StreamDecoder
}

// ErrorReader reads the errors of providers.
type ErrorReader interface {
	// DecodeError reads an error answer; the fault's source is the provider and
	// its cause a *ProviderError.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// Passer meters answers that are forwarded as they are.
type Passer interface {
	// MeterResponse reads what the books need of a plain answer.
	MeterResponse(body []byte) Meter
	// NewStreamFilter passes a stream on and meters it.
	NewStreamFilter(o *FilterOptions) StreamFilter
}

// Conformer is a Passer whose shape many hosts imitate without keeping to it.
type Conformer interface {
	// Conform returns a plain answer that clients of the shape can read: body itself where they
	// can read that. finish is the response's own Meter.Finish.
	Conform(body []byte, finish string, strict bool) []byte
}

// Client is a dialect in which clients ask.
type Client interface {
	Dialect
	RequestReader
	AnswerWriter
	ErrorWriter
}

// Provider is a dialect in which providers are asked.
type Provider interface {
	RequestWriter
	AnswerReader
	ErrorReader
}

// Spoken is a dialect that clients and providers speak, so that requests and
// answers may go through as they are.
type Spoken interface {
	Client
	Provider
	Passer
}

// Headed is a Provider that tells a part of a plain answer in its headers, mostly usage.
type Headed interface {
	// ReadHeader adds what h tells to a response that has been decoded.
	ReadHeader(h http.Header, r *Response)
}

// StreamEncoder writes the events of one streamed response.
type StreamEncoder interface {
	// Append appends the events for d, which may be none.
	Append(dst []byte, d *Delta) []byte
	// Finish appends the end of a whole stream.
	Finish(dst []byte) []byte
	// Error appends the event that ends a broken stream; nothing may follow.
	Error(dst []byte, f *fault.Fault) []byte
}

// StreamDecoder reads the events of one provider stream.
type StreamDecoder interface {
	// Event reads one server-sent event. An error event of the provider is
	// returned as a *fault.Fault and kept in Meter().Err.
	Event(event string, data []byte, emit func(*Delta) error) error
	// End must be called when the stream has ended: io.ErrUnexpectedEOF when it
	// was cut before its terminal event.
	End() error
	Meter() Meter
	// Signed is the signed reasoning seen so far, see Response.Signed.
	Signed() []Signed
}

// StreamFilter passes a stream of the client's own dialect on.
type StreamFilter interface {
	// Feed takes the next bytes and gives those to send: whole events only. out
	// may alias in, whose bytes may be changed, and is valid until the next call.
	// After an error event of the provider it gives nothing more.
	Feed(in []byte) (out []byte, err error)
	// End gives what is to be sent at the end of the stream. Meter().Complete is
	// false after it when the stream was cut.
	End() (out []byte)
	Meter() Meter
	// Passed reports that the provider's own error event has been given out.
	Passed() bool
}

// Meter is what the books need to know of a response.
type Meter struct {
	Model, ID string // as the provider named them
	Finish    string // stop reason in the provider's own word
	Usage     pricing.Usage
	// ReportedTotal is the provider's own total when it is not the sum of Usage, or when the
	// provider reported nothing else.
	ReportedTotal int64
	Complete      bool // the terminal event was seen
	Started       bool // the first content was seen
	Held          bool // content has come but guardrails hold it back: Started is then false
	Err           *fault.Fault
	OutputBytes   int64 // text made, for an estimate where usage is missing
	Pieces        int64 // pieces of text in a stream
	NextEvent     int64 // number of the next event, where a dialect numbers them
	Sized         int64 // images whose size could be read
	Pixels        int64 // of those images
	Served
}

// Served is what the price of a response depends on besides its usage, as far as the provider
// tells it.
type Served struct {
	Mode          string // see pricing.ModeOf
	Region        string // where it was made: us
	SearchContext string // low, medium, high
	Also          []Line // what further models used, on the same bill
}

// Line is what one more model used.
type Line struct {
	Model, Mode string // Mode as in Served
	Usage       pricing.Usage
}

// OutputEstimate estimates how many tokens were produced, for responses whose usage is
// missing or incomplete: one for each four bytes of text, reasoning and tool calls, and at
// least one for each piece of a stream.
func (m *Meter) OutputEstimate() int64 { return max(m.Pieces, (m.OutputBytes+3)/4) }

// TotalOnly reports whether the provider gave one total without saying how much of it was
// produced. Usage then counts all of it as input.
func (m *Meter) TotalOnly() bool {
	return m.ReportedTotal > 0 && m.ReportedTotal == m.Usage.InputTokens() && !m.Usage.HasOutput()
}
