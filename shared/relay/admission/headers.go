package admission

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/relay/record"
	"gateway/shared/wire"
)

// Names of the gateway's own headers, in canonical form, so that a lookup is one map access.
const (
	TraceID      = record.HeaderTraceID
	spanID       = "X-Gateway-Span-Id"
	ParentSpanID = "X-Gateway-Parent-Span-Id"
	spanName     = "X-Gateway-Span-Name"
	Metadata     = "X-Gateway-Metadata"
	lenient      = "X-Gateway-Lenient" // metadata that is no JSON object counts as empty
	Provider     = record.HeaderProvider
	virtualKey   = "X-Gateway-Virtual-Key"
	Config       = record.HeaderConfig
	CustomHost   = record.HeaderCustomHost
	timeout      = "X-Gateway-Request-Timeout"
	forward      = "X-Gateway-Forward-Headers"
	sensitive    = "X-Gateway-Sensitive-Headers"
	debug        = "X-Gateway-Debug"
	Translation  = "X-Gateway-Translation"
	Refusals     = "X-Gateway-Refusals"

	// Of coding agents; they are recorded, and not forwarded.
	sessionID     = "X-Claude-Code-Session-Id"
	agentID       = "X-Claude-Code-Agent-Id"
	parentAgentID = "X-Claude-Code-Parent-Agent-Id"
)

// sessions are further headers in which clients name a session.
var sessions = [...]string{"X-Session-Id", "Session-Id", "Session_id", "X-Conversation-Id", "Conversation_id", "Helicone-Session-Id", "X-Thread-Id"}

// Names of response headers, in canonical form.
const (
	RetryCount        = record.HeaderRetryCount
	CacheStatus       = record.HeaderCacheStatus
	OptionIndex       = record.HeaderOptionIndex
	PromptCache       = "X-Gateway-Prompt-Cache"
	ErrorStatus       = "X-Gateway-Error-Status"
	ProviderRequestID = record.HeaderProviderRequestID
)

// Limits of header values, in bytes.
const (
	MaxTraceID  = 256
	MaxSpanName = 256
	maxMetadata = 16 << 10
)

// Headers are the parsed gateway headers of one request.
type Headers struct {
	TraceID, SpanID, ParentSpanID, SpanName string
	Traced                                  bool // by traceparent
	named                                   bool // by the gateway's own headers
	Sampled                                 byte // its flags
	Session, Agent, ParentAgent             string

	Provider, VirtualKey, Config, CustomHost string
	Timeout                                  time.Duration // 0: no timeout
	Lenient                                  bool          // strict compliance switched off
	NoBodies                                 bool          // x-gateway-debug: false, which keeps bodies out of logs and cache
	StrictTranslation                        bool          // x-gateway-translation: strict, which rejects a target that needs a lossy translation
	Forward                                  []string      // canonical header names
	Sensitive                                []string
	Metadata                                 map[string]string // nil if none was sent
}

// Read reads the gateway's headers. It allocates only for headers that are present.
func (a *Headers) Read(h http.Header) error {
	*a = Headers{}
	var err error
	if a.TraceID, err = Identifier(h, TraceID, MaxTraceID); err != nil {
		return err
	}
	if a.SpanID, err = Identifier(h, spanID, MaxTraceID); err != nil {
		return err
	}
	if a.ParentSpanID, err = Identifier(h, ParentSpanID, MaxTraceID); err != nil {
		return err
	}
	if a.SpanName, err = Identifier(h, spanName, MaxSpanName); err != nil {
		return err
	}
	for _, name := range [...]string{Provider, virtualKey, Config, CustomHost} {
		if v := h[name]; len(v) > 1 {
			return fault.Invalid(strings.ToLower(name), "was sent %d times; send it once", len(v))
		}
	}
	a.Provider, a.VirtualKey = SingleHeader(h, Provider), SingleHeader(h, virtualKey)
	a.Config, a.CustomHost = SingleHeader(h, Config), SingleHeader(h, CustomHost)
	if v := SingleHeader(h, timeout); v != "" {
		// Not a number, zero and negative mean "no timeout", as documented.
		if ms, err := strconv.ParseInt(v, 10, 32); err == nil && ms > 0 {
			a.Timeout = time.Duration(ms) * time.Millisecond
		}
	}
	a.Lenient = SingleHeader(h, "X-Gateway-Strict-Open-Ai-Compliance") == "false" || SingleHeader(h, "X-Gateway-Strict-Openai-Compliance") == "false"
	a.NoBodies = SingleHeader(h, debug) == "false"
	if v := SingleHeader(h, Translation); v != "" {
		if v != "strict" {
			return fault.Invalid("x-gateway-translation", "must be strict, which rejects a request that cannot be translated without loss, or be omitted")
		}
		a.StrictTranslation = true
	}
	if v := SingleHeader(h, Refusals); v != "" && v != "event" {
		return fault.Invalid("x-gateway-refusals", "must be event, which sends final rejections of streamed requests as an event, or be omitted")
	}
	if v := SingleHeader(h, forward); v != "" {
		if a.Forward, err = forwardList(v); err != nil {
			return err
		}
	}
	if v := SingleHeader(h, sensitive); v != "" {
		a.Sensitive = canonicalList(v)
	}
	return a.readTrace(h)
}

// trace sets the trace id and the name of the span if the client sent none.
func (a *Headers) trace(req *http.Request) {
	if a.TraceID == "" {
		a.TraceID = newTraceID()
	}
	if a.Traced && a.SpanName == "" {
		name := req.Method + " " + audit.MaskPath(req.URL.Path)
		a.SpanName = strings.ToValidUTF8(name[:min(len(name), MaxSpanName)], "")
	}
}

// identify reads the trace id alone: that of a rejected caller.
func (a *Headers) identify(h http.Header) { a.TraceID, _ = Identifier(h, TraceID, MaxTraceID) }

// readTrace merges W3C trace context and the gateway's metadata headers; the gateway's own take
// precedence.
func (a *Headers) readTrace(h http.Header) error {
	if v := SingleHeader(h, Metadata); v != "" {
		if len(v) > maxMetadata {
			return fault.Invalid("x-gateway-metadata", "must have at most %d bytes", maxMetadata)
		}
		if !utf8.ValidString(v) {
			return fault.Invalid("x-gateway-metadata", "must be JSON in UTF-8")
		}
		var ok bool
		if a.Metadata, ok = wire.ParseMetadata(v); !ok && v != "null" && SingleHeader(h, lenient) != "true" {
			return fault.Invalid("x-gateway-metadata", `must be a JSON object such as {"team":"a"}`)
		}
	}
	if v := SingleHeader(h, "Baggage"); v != "" && len(v) <= maxMetadata {
		for k, val := range wire.ParseBaggage(v) {
			if a.Metadata == nil {
				a.Metadata = make(map[string]string)
			}
			if _, taken := a.Metadata[k]; !taken {
				a.Metadata[k] = val
			}
		}
	}
	for _, from := range [...]struct {
		name string
		to   *string
	}{{sessionID, &a.Session}, {agentID, &a.Agent}, {parentAgentID, &a.ParentAgent}} {
		if v, err := Identifier(h, from.name, MaxTraceID); err == nil { // it is informational, and no reason to reject the request
			*from.to = strings.ToValidUTF8(v, "")
		}
	}
	for _, name := range sessions {
		if a.Session != "" {
			break
		}
		if v, err := Identifier(h, name, MaxTraceID); err == nil {
			a.Session = strings.ToValidUTF8(v, "")
		}
	}
	a.named = a.TraceID != "" || a.ParentSpanID != ""
	if v := SingleHeader(h, "Traceparent"); v != "" {
		if parent, ok := wire.ParseTraceparent(v); ok {
			if a.TraceID == "" {
				a.TraceID = parent.TraceID
			}
			if a.ParentSpanID == "" {
				a.ParentSpanID = parent.ParentID
			}
			if a.SpanID == "" {
				a.SpanID = NewSpanID()
			}
			a.Traced, a.Sampled = true, parent.Flags
		}
	}
	return nil
}

// SingleHeader returns the first value of a header by its canonical name.
func SingleHeader(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// HeaderList returns all values of a header by its canonical name, as one comma-separated list: a
// client may send each in a separate header line (RFC 9110 §5.3).
func HeaderList(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 1 {
		return strings.Join(v, ",")
	}
	return SingleHeader(h, canonical)
}

// Identifier reads an id-like header: bounded, printable.
func Identifier(h http.Header, canonical string, max int) (string, error) {
	v := SingleHeader(h, canonical)
	if len(v) > max {
		return "", fault.Invalid(strings.ToLower(canonical), "must have at most %d characters", max)
	}
	for i := range len(v) {
		if v[i] < 0x20 || v[i] == 0x7f {
			return "", fault.Invalid(strings.ToLower(canonical), "must not contain control characters")
		}
	}
	return v, nil
}

// canonicalList reads a comma-separated or bracketed list of header names.
func canonicalList(v string) []string {
	names := wire.ParseList(v)
	for i, n := range names {
		names[i] = http.CanonicalHeaderKey(n)
	}
	return names
}

// rejectedForward are headers that must never be copied to a provider, because a metadata service
// would accept them as proof of a local caller.
var rejectedForward = map[string]bool{
	"Metadata-Flavor": true, "X-Aws-Ec2-Metadata-Token": true, "X-Google-Metadata-Request": true,
	"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": true, "Metadata": true,
}

// forwardList reads x-gateway-forward-headers.
func forwardList(v string) ([]string, error) {
	names := canonicalList(v)
	if len(names) > 64 {
		return nil, fault.Invalid("x-gateway-forward-headers", "must list at most 64 headers")
	}
	for _, n := range names {
		switch {
		case n == forward:
			return nil, fault.Invalid("x-gateway-forward-headers", "forward_headers must not contain the 'x-gateway-forward-headers' header")
		case rejectedForward[n]:
			return nil, fault.Invalid("x-gateway-forward-headers", "the header %s cannot be forwarded", strings.ToLower(n))
		}
	}
	return names, nil
}

// Within makes the request a child of the traceparent in its message, which takes precedence
// over that of the connection. A malformed one is ignored; so is any if the gateway's own
// headers name the trace.
func (a *Headers) Within(traceparent string) {
	parent, ok := wire.ParseTraceparent(traceparent)
	if !ok || a.named {
		return
	}
	a.TraceID, a.ParentSpanID, a.Traced, a.Sampled = parent.TraceID, parent.ParentID, true, parent.Flags
	if a.SpanID == "" {
		a.SpanID = NewSpanID()
	}
}

// Traceparent returns the W3C trace context for an upstream call; "" if the request had none, or
// has ids of another format.
func (a *Headers) Traceparent() string {
	if !a.Traced {
		return ""
	}
	v := "00-" + a.TraceID + "-" + a.SpanID + "-" + hex.EncodeToString([]byte{a.Sampled})
	if _, ok := wire.ParseTraceparent(v); !ok {
		return ""
	}
	return v
}

// NewSpanID returns an id as defined by W3C trace context: 16 hexadecimal digits.
func NewSpanID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
