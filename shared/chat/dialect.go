package chat

import (
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Checked is the result of a limit check: the positions of known fields. It can be reused to
// avoid allocation.
type Checked struct {
	Walk wire.Walk
	Keys *wire.KeySet // the fields of Walk
	// ByTarget defers limits that some hosts extend: exceeding one is not an error of the check
	// but recorded in Excess, and the sender must consult the target.
	ByTarget bool
	Excess   []Excess
}

// Reset clears the result for another body. Its memory is reused.
func (c *Checked) Reset() {
	clear(c.Excess)
	c.Keys, c.Excess = nil, c.Excess[:0]
}

// Span returns the position of a top-level field's value, so that the body need not be scanned
// again; the zero span if it is absent or unknown to the dialect.
func (c *Checked) Span(name string) wire.Span {
	if c.Keys == nil {
		return wire.Span{}
	}
	if i := c.Keys.Index(name); i >= 0 {
		return c.Walk.Spans[i]
	}
	return wire.Span{}
}

// Options configure the encoding of a response to a client.
type Options struct {
	Strict       bool   // only fields of the client's format: no extensions
	IncludeUsage bool   // the client requested usage in the stream
	Model        string // used if the provider named none
	ID           string // used if the provider set none, or OwnID is set
	// OwnID uses ID even if the provider set one: for a translated response, because the
	// provider's ids are not valid for clients of another format.
	OwnID        bool
	Created      int64  // Unix seconds, used if the provider set none
	ProviderName string // id of the provider
	// Origin is the name of the provider's dialect, which signs reasoning.
	Origin string
	// NextEvent is the number of an event that is added to a stream, if the client's dialect
	// numbers events.
	NextEvent int64
	// Continues is the id of the earlier response that the request continues, as it was sent.
	Continues string
	// Stores is the maximum size in bytes of output that the gateway stores for later requests,
	// or zero if it stores none.
	Stores int
	// Request is the decoded request, or nil if the response is not a translation. It states
	// which tool names were changed, whether calls are read as function_call, and which stop
	// strings may have ended the response.
	Request *Request
}

// ResponseID returns the id of a response with the provider's id given. A generated id begins
// with prefix, like ids of the client's format.
func (o *Options) ResponseID(id, prefix string) string {
	switch {
	case o.OwnID:
		return prefix + o.ID
	case id != "":
		return id
	}
	return o.ID
}

// ToolName returns the client's name of a tool with the provider's name.
func (o *Options) ToolName(name string) string {
	if o.Request == nil || o.Request.ToolNames == nil {
		return name
	}
	if own, ok := o.Request.ToolNames[name]; ok {
		return own
	}
	return name
}

// Legacy reports whether the client reads tool calls as function_call.
func (o *Options) Legacy() bool { return o.Request != nil && o.Request.Legacy }

// FilterOptions configure the filter of a stream in the client's dialect.
type FilterOptions struct {
	Strict       bool // drop chunks that clients of the dialect do not understand
	IncludeUsage bool // the client requested usage
	// UsageAdded is set if usage was requested on the client's behalf: its additions to the
	// stream are removed unless IncludeUsage is set.
	UsageAdded bool
}

// Dialect is one wire format. The roles that it implements determine its use; it has no methods
// for other roles. Implementations are stateless and safe for concurrent use. All errors are
// *fault.Fault.
type Dialect interface {
	// Name returns the dialect's name: openai.chat, openai.completions, anthropic.messages.
	Name() string
}

// RequestReader reads requests of clients.
type RequestReader interface {
	// Check tests the limits of the specification on a client's body. A violation is a 400 that
	// names the field and what is allowed. null counts as absent, unknown fields pass. A
	// duplicate, escaped or case-variant spelling of a known field is a 400.
	Check(body []byte, c *Checked) error
	// DecodeRequest decodes a body that Check has passed. The result does not refer to body.
	DecodeRequest(body []byte) (*Request, error)
}

// ResponseWriter writes responses to clients.
type ResponseWriter interface {
	// EncodeResponse appends a response.
	EncodeResponse(dst []byte, r *Response, o *Options) []byte
	// NewStreamEncoder writes a streamed response.
	NewStreamEncoder(o *Options) StreamEncoder
	// Support returns what both support; everything else is reported, see Missed.
	Support(o *Options) ResponseSupport
}

// ErrorWriter writes errors to clients.
type ErrorWriter interface {
	// AppendError appends a plain error body.
	AppendError(dst []byte, f *fault.Fault, o *Options) []byte
	// AppendStreamError appends the event that ends a failed stream.
	AppendStreamError(dst []byte, f *fault.Fault, o *Options) []byte
}

// RefusalWriter is an ErrorWriter with clients that may request final rejections of streamed requests as
// the only event of a stream, because they repeat requests after every error status.
type RefusalWriter interface {
	// AppendRefusal appends that event.
	AppendRefusal(dst []byte, f *fault.Fault, o *Options) []byte
}

// Breaker is an ErrorWriter with clients that treat the orderly end of a stream as a success, or
// repeat the request, even after an error event.
type Breaker interface {
	// BreaksConnection reports whether the connection must be cut after the error event.
	BreaksConnection() bool
}

// RequestWriter writes requests to providers.
type RequestWriter interface {
	Dialect
	// EncodeRequest appends the body for a provider. It reports unsupported fields in loss and
	// rejects what the provider would reject. The request's Model is sent.
	EncodeRequest(dst []byte, r *Request, t *Traits, loss *Loss) ([]byte, error)
}

// ResponseReader reads responses of providers.
type ResponseReader interface {
	// DecodeResponse decodes a response that is not streamed. An error body with a success
	// status is an error.
	DecodeResponse(body []byte, t *Traits) (*Response, error)
	// NewStreamDecoder reads a stream.
	NewStreamDecoder(t *Traits) StreamDecoder
}

// ErrorReader reads errors of providers.
type ErrorReader interface {
	// DecodeError decodes an error response; the fault's source is the provider and its cause a
	// *ProviderError.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// Passer meters responses that are forwarded unchanged.
type Passer interface {
	// MeterResponse reads the accounting data of a response that is not streamed.
	MeterResponse(body []byte) Meter
	// NewStreamFilter returns a filter that forwards and meters a stream.
	NewStreamFilter(o *FilterOptions) StreamFilter
}

// Conformer is a Passer for a format that many hosts implement inexactly.
type Conformer interface {
	// Conform returns a response that clients of the format can read: body itself if they can.
	// finish is the response's Meter.Finish.
	Conform(body []byte, finish string, strict bool) []byte
}

// Restorer is a Passer for a format with clients that do not return reasoning, which some hosts
// require.
type Restorer interface {
	// Restore returns body with the reasoning that recall finds for the tool calls of turns
	// without it; body itself if it finds none. forgets reports whether the reasoning of the
	// response has to be stored: the host requires it, and the client does not return it, or has
	// not had any.
	Restore(body []byte, t *Traits, recall func(toolCallID string) []Part) (restored []byte, forgets bool)
}

// Client is a dialect of clients.
type Client interface {
	Dialect
	RequestReader
	ResponseWriter
	ErrorWriter
}

// Provider is a dialect of providers.
type Provider interface {
	RequestWriter
	ResponseReader
	ErrorReader
}

// TwoWayDialect is a dialect of both clients and providers, so that requests and responses can be
// forwarded unchanged.
type TwoWayDialect interface {
	Client
	Provider
	Passer
}

// HeaderReader is a Provider with parts of a response in its headers, mostly usage.
type HeaderReader interface {
	// ReadHeader adds the data in h to a decoded response.
	ReadHeader(h http.Header, r *Response)
}

// StreamEncoder writes the events of one streamed response.
type StreamEncoder interface {
	// Append appends the events for d, which may be none.
	Append(dst []byte, d *Delta) []byte
	// Finish appends the end of a complete stream.
	Finish(dst []byte) []byte
	// Error appends the event that ends a failed stream; nothing may follow.
	Error(dst []byte, f *fault.Fault) []byte
}

// StreamDecoder reads the events of one provider stream.
type StreamDecoder interface {
	// Event reads one server-sent event. An error event of the provider is returned as a
	// *fault.Fault and stored in Meter().Err.
	Event(event string, data []byte, emit func(*Delta) error) error
	// End must be called when the stream has ended. It returns io.ErrUnexpectedEOF if the
	// terminal event is missing.
	End() error
	Meter() Meter
	// Signed returns the signed reasoning so far, see Response.Signed.
	Signed() []Signed
}

// StreamFilter forwards a stream in the client's dialect.
type StreamFilter interface {
	// Feed processes the next bytes and returns those to send: complete events only. out may
	// alias in, which may be modified, and is valid until the next call. After an error event
	// of the provider it returns nothing more.
	Feed(in []byte) (out []byte, err error)
	// End returns the bytes to send at the end of the stream. Meter().Complete is then false if
	// the stream was truncated.
	End() (out []byte)
	Meter() Meter
	// Passed reports whether the provider's error event was returned.
	Passed() bool
}

// Meter is the accounting data of a response.
type Meter struct {
	Model, ID string // from the provider
	Finish    string // the provider's stop reason
	Usage     pricing.Usage
	// Prompt is the number of tokens of the largest prompt if Usage sums several, as of the rows
	// of a batch; 0: Usage is that of one.
	Prompt int64
	// ReportedTotal is the provider's total if it is not the sum of Usage, or if the provider
	// reported nothing else.
	ReportedTotal int64
	Complete      bool // the terminal event was received
	Started       bool // the first content was received
	Withheld      bool // content was received but guardrails hold it back; Started is then false
	Err           *fault.Fault
	OutputBytes   int64 // generated text, for an estimate if usage is missing
	Chunks        int64 // pieces of text in a stream
	NextEvent     int64 // number of the next event, where a dialect numbers them
	Sized         int64 // images with a readable size
	Pixels        int64 // of those images
	// Items are the items of the response that a later request may name in place of sending them.
	Items []ItemSize
	PriceFacts
}

// ItemSize is the most input tokens that a stored item amounts to.
type ItemSize struct {
	ID     string
	Tokens int64 // negative: at most those of the response
}

// PriceFacts contains what the price of a response depends on besides its usage, as far as the
// provider reports it.
type PriceFacts struct {
	Mode          string // see pricing.ModeOf
	Region        string // where it was generated: us
	SearchContext string // low, medium, high
	Extra         []Line // usage of further models on the same bill
}

// Line is the usage of a further model.
type Line struct {
	Model, Mode string // Mode as in PriceFacts
	Usage       pricing.Usage
}

// OutputEstimate estimates the generated tokens if usage is missing or incomplete: one for each
// four bytes of text, reasoning and tool calls, and at least one for each piece of a stream.
func (m *Meter) OutputEstimate() int64 { return max(m.Chunks, (m.OutputBytes+3)/4) }

// TotalOnly reports whether the provider reported only a total. Usage then counts all of it as
// input.
func (m *Meter) TotalOnly() bool {
	return m.ReportedTotal > 0 && m.ReportedTotal == m.Usage.InputTokens() && !m.Usage.HasOutput()
}
