package fault

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Code names one kind of refusal; see catalogue for its status and types.
type Code string

// Source is the origin of an error: the gateway or the model provider.
type Source string

const (
	SourceGateway  Source = "gateway"
	SourceProvider Source = "provider"
)

// Detail is one field error of a validation that found several.
type Detail struct {
	Field   string // JSON path (a.b[0].c), header name or query parameter
	Message string // the fault and the allowed values
}

// Fault is an error that may be shown to a caller.
type Fault struct {
	Code       Code
	Message    string
	Field      string        // JSON path, header or query parameter at fault; empty if none
	Details    []Detail      // all field errors, when there are several
	RetryAfter time.Duration // > 0: sent as Retry-After, rounded up to seconds
	Source     Source        // empty means SourceGateway
	StatusCode int           // overrides the catalogue's status when not 0 (provider errors)
	Limit      *Limit        // the limit that refused; nil: none did
	Retried    bool          // the gateway has repeated the request, or tried other targets
	cause      error
}

// The makers of faults are not inlined: they are called in two thousand places that are
// seldom reached, where their bodies would add 0.1 MB to every binary.

// New returns a fault of code. field may be empty.
//
//go:noinline
func New(code Code, field, message string) *Fault {
	return &Fault{Code: code, Field: field, Message: message}
}

// Newf is New with a formatted message.
//
//go:noinline
func Newf(code Code, field, format string, args ...any) *Fault {
	return &Fault{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Invalid is a 400 on one field.
//
//go:noinline
func Invalid(field, format string, args ...any) *Fault {
	return Newf(InvalidRequest, field, format, args...)
}

// Internal wraps an unexpected error: the caller sees a fixed text, the cause
// goes to the log only.
//
//go:noinline
func Internal(cause error) *Fault {
	return &Fault{Code: InternalError, Message: "Something went wrong", cause: cause}
}

// Unavailable wraps a failure of something the gateway depends on (store,
// queue, key service): 503, worth a retry.
//
//go:noinline
func Unavailable(cause error) *Fault {
	if told := unavailable.Load(); told != nil {
		(*told)()
	}
	return &Fault{Code: ServiceUnavailable, Message: "A service that the gateway depends on did not answer; try again", RetryAfter: time.Second, cause: cause}
}

// unavailable is called for each failure of something the gateway depends on.
var unavailable atomic.Pointer[func()]

// OnUnavailable makes Unavailable call f for each fault that it makes. There is one such
// function per process, set by its main function.
func OnUnavailable(f func()) { unavailable.Store(&f) }

// Invalids joins field errors into one 400; nil when there are none.
func Invalids(details []Detail) *Fault {
	switch len(details) {
	case 0:
		return nil
	case 1:
		return &Fault{Code: InvalidRequest, Field: details[0].Field, Message: details[0].Message, Details: details}
	}
	msg := fmt.Sprintf("%s: %s (and %d more)", details[0].Field, details[0].Message, len(details)-1)
	return &Fault{Code: InvalidRequest, Field: details[0].Field, Message: msg, Details: details}
}

// WithCause returns f with the internal error that led to it, for the log.
//
//go:noinline
func (f *Fault) WithCause(err error) *Fault { f.cause = err; return f }

// Error is for logs and tests; callers see the rendered body instead.
func (f *Fault) Error() string {
	s := string(f.Code) + ": " + f.Message
	if f.Field != "" {
		s = string(f.Code) + " at " + f.Field + ": " + f.Message
	}
	if f.cause != nil {
		s += ": " + f.cause.Error()
	}
	return s
}

// Unwrap gives the internal cause.
func (f *Fault) Unwrap() error { return f.cause }

// Status is the HTTP status that the fault answers with.
func (f *Fault) Status() int {
	if f.StatusCode != 0 {
		return f.StatusCode
	}
	return entry(f.Code).status
}

// longWait is a wait that no client should sleep through.
const longWait = time.Minute

// Final reports whether the client should not retry automatically: the gateway would reject the
// request again, the wait is longer than a minute, or the gateway has already retried it. For a
// provider's errors the provider's headers decide.
func (f *Fault) Final() bool {
	status := f.Status()
	if status >= 500 {
		return f.Retried
	}
	if f.Source == SourceProvider {
		return false
	}
	switch status {
	case 400, 401, 402, 403, 404, 405, 412, 413, 422, 426, 446:
		return true
	case 429:
		return f.RetryAfter > longWait
	}
	return false
}

// Type is the OpenAI-style error type, such as invalid_request_error.
func (f *Fault) Type() string { return entry(f.Code).typ }

// AdminCode is the administration API's code, AB01 to AB09.
func (f *Fault) AdminCode() string { return entry(f.Code).admin }

// From returns err as a *Fault: itself when it is or wraps one, Internal(err)
// otherwise. From(nil) is nil.
func From(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return Internal(err)
}

// ByGuardrail reports whether err is or wraps the rejection of a response by a guardrail: one
// that denied it, or one that could not read all of it.
func ByGuardrail(err error) bool { return Is(err, GuardrailDenied) || Is(err, GuardrailUnread) }

// Is reports whether err is or wraps a fault of code.
func Is(err error, code Code) bool {
	var f *Fault
	return errors.As(err, &f) && f.Code == code
}
