// Package fault contains the gateway's only error type and the catalog of its codes.
//
// Every error that a caller can see is a *Fault made from a Code of the catalog: the code
// determines the HTTP status, the OpenAI-style type and the administration code (AB01 ...
// AB09), the message states the fault and the allowed values, and Field its location. The
// renderers write the body format of the API that responds (data plane, Anthropic routes,
// administration).
//
// Messages must not contain secrets, prompts, keys or complete bodies.
package fault

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Code names one kind of rejection; see catalog for its status and types.
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
	StatusCode int           // overrides the catalog's status when not 0 (provider errors)
	Limit      *Limit        // the limit that rejected; nil: none did
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
	if observe := unavailable.Load(); observe != nil {
		(*observe)()
	}
	return &Fault{Code: ServiceUnavailable, Message: "A service that the gateway depends on did not respond; try again", RetryAfter: time.Second, cause: cause}
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

// Status is the HTTP status that the fault responds with.
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

// The catalog. Adding a code is adding a constant and a row.
const (
	InvalidRequest          Code = "invalid_request"
	InvalidConfig           Code = "invalid_config"
	InvalidContentType      Code = "invalid_content_type"
	MissingProvider         Code = "missing_provider"
	UnknownProvider         Code = "unknown_provider"
	UnsupportedOperation    Code = "unsupported_operation"
	UnsupportedResponse     Code = "unsupported_response_format"
	TranslationLoss         Code = "translation_loss"
	ThreadUnsupported       Code = "thread_unsupported_request"
	ThreadNotFound          Code = "thread_not_found"
	BlockedHost             Code = "blocked_host"
	ConfigOverrideRefused   Code = "config_override_refused"
	InlineConfigBlocked     Code = "inline_config_blocked"
	InlineProviderBlocked   Code = "inline_provider_blocked"
	InlineHostBlocked       Code = "inline_custom_host_blocked"
	InlineURLBlocked        Code = "inline_provider_url_blocked"
	InlineForwardBlocked    Code = "inline_forward_headers_blocked"
	Unauthorized            Code = "invalid_api_key"
	KeyExpired              Code = "api_key_expired"
	KeyPaused               Code = "api_key_paused"
	SubscriptionExhausted   Code = "subscription_exhausted"
	NotAllowed              Code = "not_allowed"
	SignInAgain             Code = "sign_in_again"
	InsufficientScope       Code = "insufficient_scope"
	ModelNotAllowed         Code = "model_not_allowed"
	NotFound                Code = "not_found"
	ReferenceNotFound       Code = "reference_not_found"
	RouteNotFound           Code = "route_not_found"
	MethodNotAllowed        Code = "method_not_allowed"
	RequestTimeout          Code = "request_timeout"
	Conflict                Code = "conflict"
	QuotaReached            Code = "quota_reached"
	BudgetExhausted         Code = "budget_exhausted"
	UnpricedModel           Code = "unpriced_model"
	UnboundedRequest        Code = "unbounded_request"
	BodyTooLarge            Code = "body_too_large"
	RateLimited             Code = "rate_limit_exceeded"
	GuardrailDenied         Code = "guardrail_denied"
	GuardrailUnread         Code = "guardrail_unread"
	InternalError           Code = "internal_error"
	InvalidProviderResponse Code = "invalid_provider_response"
	ProviderUnreachable     Code = "provider_unreachable"
	ProviderError           Code = "provider_error"
	ServiceUnavailable      Code = "service_unavailable"
)

type row struct {
	status int
	typ    string // OpenAI-style error.type
	admin  string // administration errorCode
}

var catalog = map[Code]row{
	InvalidRequest:          {400, "invalid_request_error", "AB01"},
	InvalidConfig:           {400, "invalid_request_error", "AB01"},
	InvalidContentType:      {400, "invalid_request_error", "AB01"},
	MissingProvider:         {400, "invalid_request_error", "AB01"},
	UnknownProvider:         {400, "invalid_request_error", "AB01"},
	UnsupportedOperation:    {400, "invalid_request_error", "AB01"},
	UnsupportedResponse:     {400, "invalid_request_error", "AB01"},
	TranslationLoss:         {400, "invalid_request_error", "AB01"},
	ThreadUnsupported:       {400, "invalid_request_error", "AB01"},
	ThreadNotFound:          {404, "not_found_error", "AB08"},
	BlockedHost:             {400, "invalid_request_error", "AB01"},
	ConfigOverrideRefused:   {400, "invalid_request_error", "AB01"},
	InlineConfigBlocked:     {400, "invalid_request_error", "AB01"},
	InlineProviderBlocked:   {400, "invalid_request_error", "AB01"},
	InlineHostBlocked:       {400, "invalid_request_error", "AB01"},
	InlineURLBlocked:        {400, "invalid_request_error", "AB01"},
	InlineForwardBlocked:    {400, "invalid_request_error", "AB01"},
	Unauthorized:            {401, "authentication_error", "AB05"},
	KeyExpired:              {401, "authentication_error", "AB05"},
	KeyPaused:               {401, "authentication_error", "AB05"},
	SubscriptionExhausted:   {402, "insufficient_quota", "AB09"},
	NotAllowed:              {403, "permission_error", "AB03"},
	SignInAgain:             {403, "permission_error", "AB03"},
	InsufficientScope:       {403, "permission_error", "AB03"},
	ModelNotAllowed:         {403, "permission_error", "AB03"},
	NotFound:                {404, "not_found_error", "AB08"},
	ReferenceNotFound:       {404, "not_found_error", "AB02"},
	RouteNotFound:           {404, "not_found_error", "AB08"},
	MethodNotAllowed:        {405, "invalid_request_error", "AB01"},
	RequestTimeout:          {408, "timeout_error", "AB04"},
	Conflict:                {409, "conflict_error", "AB07"},
	QuotaReached:            {409, "conflict_error", "AB07"},
	BudgetExhausted:         {412, "insufficient_quota", "AB09"},
	UnpricedModel:           {412, "insufficient_quota", "AB09"},
	UnboundedRequest:        {412, "insufficient_quota", "AB09"},
	BodyTooLarge:            {413, "invalid_request_error", "AB01"},
	RateLimited:             {429, "rate_limit_error", "AB06"},
	GuardrailDenied:         {446, "hooks_failed", "AB03"},
	GuardrailUnread:         {403, "permission_error", "AB03"},
	InternalError:           {500, "api_error", "AB04"},
	InvalidProviderResponse: {502, "api_error", "AB04"},
	ProviderUnreachable:     {503, "api_error", "AB04"},
	ProviderError:           {502, "api_error", "AB04"},
	ServiceUnavailable:      {503, "api_error", "AB04"},
}

// IsKnown reports whether a code is in the catalog; providers have other codes.
func IsKnown(c Code) bool {
	_, ok := catalog[c]
	return ok
}

func entry(c Code) row {
	if r, ok := catalog[c]; ok {
		return r
	}
	return catalog[InternalError]
}
