package chat

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/fault"
)

// Codes of provider errors that clients recognize, in addition to those of package fault. Their
// status is always set on the fault.
const (
	Overloaded        fault.Code = "overloaded"
	InsufficientQuota fault.Code = "insufficient_quota"
	ContextLength     fault.Code = "context_length_exceeded"
	ContentFilter     fault.Code = "content_filter"
)

// ProviderError is a provider's description of a failure. It is the cause of the fault that
// DecodeError returns.
type ProviderError struct {
	Status  int
	Type    string
	Param   string
	Code    string
	Message string
	Inner   json.RawMessage // further details that a client may need (innererror)
}

// Error is for logs. It omits the message, which may quote the request.
func (e *ProviderError) Error() string {
	return "provider answered " + strconv.Itoa(e.Status) + " " + e.Type + " " + e.Code
}

// ProviderErrorOf returns the provider's error in err, or nil if the gateway created err.
func ProviderErrorOf(err error) *ProviderError {
	var p *ProviderError
	if errors.As(err, &p) {
		return p
	}
	return nil
}

// RetryAfter returns the wait that a provider requests, or 0.
func RetryAfter(h http.Header) time.Duration {
	if h == nil {
		return 0
	}
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return bounded(ms / 1000)
	}
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return bounded(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// bounded returns a number of seconds as a duration between zero and a day.
func bounded(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, 86400) * float64(time.Second))
}

// CompleteFault completes the fault of an error response. Its status is the provider's, regardless of
// the error text, because configs and breakers list the statuses that the provider sends. A
// wait in the headers takes precedence over one in the text.
func CompleteFault(f *fault.Fault, status int, h http.Header) *fault.Fault {
	f.Source, f.StatusCode = fault.SourceProvider, ErrorStatus(status)
	if wait := RetryAfter(h); wait > 0 {
		f.RetryAfter = wait
	}
	return f
}

// ErrorStatus returns the status for a response that is not a success: the response's status if
// it is an error status, otherwise bad gateway.
func ErrorStatus(status int) int {
	if status >= 400 && status <= 599 {
		return status
	}
	return http.StatusBadGateway
}

// NotJSON returns the fault for an error response that is not JSON, from a proxy or the host's
// load balancer.
func NotJSON(status int, h http.Header) *fault.Fault {
	f := fault.New(fault.InvalidProviderResponse, "", "The provider answered with an error that is not JSON (status "+strconv.Itoa(status)+")")
	return CompleteFault(f, status, h)
}
