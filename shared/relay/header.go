package relay

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Names of the gateway's own headers, in canonical form, so that a look-up is
// one map access.
const (
	headerTrace         = "X-Gateway-Trace-Id"
	headerSpan          = "X-Gateway-Span-Id"
	headerParentSpan    = "X-Gateway-Parent-Span-Id"
	headerSpanName      = "X-Gateway-Span-Name"
	headerMetadata      = "X-Gateway-Metadata"
	headerProvider      = "X-Gateway-Provider"
	headerVirtualKey    = "X-Gateway-Virtual-Key"
	headerConfig        = "X-Gateway-Config"
	headerCustomHost    = "X-Gateway-Custom-Host"
	headerTimeout       = "X-Gateway-Request-Timeout"
	headerForward       = "X-Gateway-Forward-Headers"
	headerSensitive     = "X-Gateway-Sensitive-Headers"
	headerDebug         = "X-Gateway-Debug"
	headerRetryCount    = "X-Gateway-Retry-Attempt-Count"
	headerCacheStatus   = "X-Gateway-Cache-Status"
	headerOptionIndex   = "X-Gateway-Last-Used-Option-Index"
	headerException     = "X-Gateway-Gateway-Exception"
	headerTranslation   = "X-Gateway-Translation"
	headerProviderReqID = "X-Gateway-Provider-Request-Id"
	prefixProviderLimit = "X-Gateway-Provider-"
)

// Bounds of header values, in bytes.
const (
	maxTraceID  = 256
	maxSpanName = 256
	maxMetadata = 16 << 10
)

// asked is what the gateway's headers of one request ask for.
type asked struct {
	TraceID, SpanID, ParentSpanID, SpanName string
	Traced                                  bool // by traceparent

	Provider, VirtualKey, Config, CustomHost string
	Timeout                                  time.Duration // 0: none
	Lenient                                  bool          // strict compliance switched off
	NoBodies                                 bool          // x-gateway-debug: false
	NoLoss                                   bool          // a target that cannot be told everything is refused
	Forward                                  []string      // canonical header names
	Sensitive                                []string
	Metadata                                 map[string]string // nil when none was sent
}

// readHeaders reads the gateway's headers. It allocates only for what is there.
func (a *asked) readHeaders(h http.Header) error {
	*a = asked{}
	var err error
	if a.TraceID, err = identifier(h, headerTrace, maxTraceID); err != nil {
		return err
	}
	if a.SpanID, err = identifier(h, headerSpan, maxTraceID); err != nil {
		return err
	}
	if a.ParentSpanID, err = identifier(h, headerParentSpan, maxTraceID); err != nil {
		return err
	}
	if a.SpanName, err = identifier(h, headerSpanName, maxSpanName); err != nil {
		return err
	}
	for _, name := range [...]string{headerProvider, headerVirtualKey, headerConfig, headerCustomHost} {
		if v := h[name]; len(v) > 1 {
			return fault.Invalid(strings.ToLower(name), "was sent %d times; send it once", len(v))
		}
	}
	a.Provider, a.VirtualKey = one(h, headerProvider), one(h, headerVirtualKey)
	a.Config, a.CustomHost = one(h, headerConfig), one(h, headerCustomHost)
	if v := one(h, headerTimeout); v != "" {
		// Not a number, zero and negative mean "no timeout", as documented.
		if ms, err := strconv.ParseInt(v, 10, 32); err == nil && ms > 0 {
			a.Timeout = time.Duration(ms) * time.Millisecond
		}
	}
	a.Lenient = one(h, "X-Gateway-Strict-Open-Ai-Compliance") == "false" || one(h, "X-Gateway-Strict-Openai-Compliance") == "false"
	a.NoBodies = one(h, headerDebug) == "false"
	if v := one(h, headerTranslation); v != "" {
		if v != "strict" {
			return fault.Invalid("x-gateway-translation", "must be strict, which refuses what a provider cannot be told, or be left out")
		}
		a.NoLoss = true
	}
	if v := one(h, headerForward); v != "" {
		if a.Forward, err = forwardList(v); err != nil {
			return err
		}
	}
	if v := one(h, headerSensitive); v != "" {
		a.Sensitive = canonicalList(v)
	}
	return a.readTrace(h)
}

// readTrace merges W3C trace context and metadata: the gateway's own headers win.
func (a *asked) readTrace(h http.Header) error {
	if v := one(h, headerMetadata); v != "" {
		if len(v) > maxMetadata {
			return fault.Invalid("x-gateway-metadata", "must have at most %d bytes", maxMetadata)
		}
		if !utf8.ValidString(v) {
			return fault.Invalid("x-gateway-metadata", "must be JSON in UTF-8")
		}
		a.Metadata, _ = wire.ParseMetadata(v) // what is no JSON object counts as empty
	}
	if v := one(h, "Baggage"); v != "" && len(v) <= maxMetadata {
		for k, val := range wire.ParseBaggage(v) {
			if a.Metadata == nil {
				a.Metadata = make(map[string]string)
			}
			if _, taken := a.Metadata[k]; !taken {
				a.Metadata[k] = val
			}
		}
	}
	if v := one(h, "Traceparent"); v != "" {
		if parent, ok := wire.ParseTraceparent(v); ok {
			if a.TraceID == "" {
				a.TraceID = parent.TraceID
			}
			if a.ParentSpanID == "" {
				a.ParentSpanID = parent.ParentID
			}
			if a.SpanID == "" {
				a.SpanID = newSpanID()
			}
			a.Traced = true
		}
	}
	return nil
}

// one is the first value of a header given by its canonical name.
func one(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// identifier reads an id-like header: bounded, printable.
func identifier(h http.Header, canonical string, max int) (string, error) {
	v := one(h, canonical)
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

// refusedForward are headers that must never be copied to a provider, because a
// metadata service would take them for proof of a local caller.
var refusedForward = map[string]bool{
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
		case n == headerForward:
			return nil, fault.Invalid("x-gateway-forward-headers", "forward_headers must not contain the 'x-gateway-forward-headers' header")
		case refusedForward[n]:
			return nil, fault.Invalid("x-gateway-forward-headers", "the header %s cannot be forwarded", strings.ToLower(n))
		}
	}
	return names, nil
}
