// Package judge defines the interface of checks: their input, their verdict, and the makers
// that each package registers. Package chain calls them; only chain depends on hooks, denials
// and feedback.
package judge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/guard"
	"gateway/shared/provider"
)

// Subject is the input of one check. Checks must not change it; they return changed texts in
// their Verdict.
type Subject struct {
	Phase guard.Phase // either guard.Before or guard.After
	// Kind is the request type: chatComplete, complete, embed, messages, createModelResponse,
	// proxy...
	Kind string
	// Endpoints are the request types that a passed-through request reaches at the provider by
	// its path, or nil.
	Endpoints []string
	Provider  string
	Model     string
	Stream    bool
	Status    int // of the provider's response; zero before it
	TraceID   string
	// Texts are the texts to judge, one for each part of the message. A part that is not text
	// is "", so that a Verdict can change part by part.
	Texts []string
	// RequestTexts are the texts of the request in the same scope. They are set only after the
	// response.
	RequestTexts []string
	// Changed is set if an earlier check has changed the body of its phase.
	Changed bool
	// ToolCalls is set if the response calls tools.
	ToolCalls bool
	// Request and Response are the bodies as JSON; Response is nil before the response.
	Request, Response json.RawMessage
	Metadata          map[string]string
	// Headers are those of the client.
	Headers http.Header
	// Parameters are the validated parameters of the check. Credentials of the hook are in
	// "credentials".
	Parameters map[string]json.RawMessage
	// Client calls hosts that the customer configures, through the guarded dialer. Public calls
	// hosts that texts name, which are never trusted.
	Client, Public *http.Client
	Fetch          Fetch
	// Saved is set if the check belongs to a saved guardrail, and not to a config that may be
	// part of the request.
	Saved bool
	// Secrets fetches the values of secret mappings by their target fields; nil without a
	// secret manager.
	Secrets Secrets
}

// Fetch downloads an image of at most the given size, in base64. Its errors do not contain the
// address.
type Fetch func(ctx context.Context, address string, most int64) (mime, data string, err error)

// Secrets fetches the values of secret mappings. Its errors do not reveal secrets.
type Secrets func(ctx context.Context, of []provider.SecretMapping) (map[string]string, error)

// Verdict is the result of a check. If it has an error, the chain decides whether the check
// passes: see the parameter failOnError.
type Verdict struct {
	Pass bool
	Data any // the check's "data" in the response, as JSON
	Err  *Failure
	// Nothing is set if the error means that there is nothing to judge, such as a response that
	// only calls tools. Such an error does not make a hook that denies fail.
	Nothing bool
	// Texts replace the subject's texts part by part; a nil entry retains the part, a nil slice
	// all parts.
	Texts []*string
	// Body replaces the entire request or response.
	Body json.RawMessage
	// Restore maps the tokens in Texts to the values to restore in the response: see
	// mask.Restorer. Nil if nothing is restored.
	Restore map[string]string
	// Headers are added to the provider request.
	Headers http.Header
	Log     any
}

// Failure is an error of a check, with a documented name.
type Failure struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	// Answered is set if the service responded, but not with a verdict on this text. Unlike an
	// outage, a caller can cause this, for example by the length of the text.
	Answered bool `json:"-"`
}

// IsServiceStatus reports whether a service that responds with a status works: the others are those of
// an outage or of too many requests.
func IsServiceStatus(status int) bool {
	return status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooEarly && status != http.StatusTooManyRequests
}

// Names of failures of a check that is not configured correctly, as opposed to one whose service
// failed.
const (
	ParameterError   = "ParameterError"
	CredentialsError = "CredentialsError"
)

// FailsClosed reports whether the error fails a guardrail that denies and whose check does not set
// failOnError: the check cannot judge until its parameters or credentials change, or its service
// responded without a verdict. An outage does not fail it.
func (f *Failure) FailsClosed() bool {
	return f.Answered || f.Name == ParameterError || f.Name == CredentialsError
}

// Func runs one check. It ends with ctx, does not panic for any subject, and retains no part of
// the subject.
type Func func(ctx context.Context, s *Subject) Verdict

// Maker creates the function of a check of a guardrail. The function contains the compiled
// parameters and is called concurrently. Each Subject contains the same parameters. If a
// parameter is invalid, every verdict is an error.
type Maker func(parameters map[string]json.RawMessage) Func

// Failed returns a verdict with an error.
func Failed(name, message string) Verdict {
	return Verdict{Err: &Failure{Name: name, Message: message}}
}

// NoContent returns a verdict for a check that has nothing to judge.
func NoContent(message string) Verdict {
	v := Failed("Error", message)
	v.Nothing = true
	return v
}

// TooSlow returns the verdict for a check that timed out: see guard.ErrTime.
func TooSlow() Verdict { return Failed("TimeoutError", "The check took too long on this text") }

// Get returns a parameter, or standard if it is absent, null or of another type.
func Get[T any](p map[string]json.RawMessage, name string, standard T) T {
	v, ok := Read[T](p, name)
	if !ok {
		return standard
	}
	return v
}

// Read returns a parameter. ok is false if it is absent, null or of another type.
func Read[T any](p map[string]json.RawMessage, name string) (v T, ok bool) {
	raw := p[name]
	if len(raw) == 0 || string(raw) == "null" {
		return v, false
	}
	return v, json.Unmarshal(raw, &v) == nil
}

// Object returns a parameter that is an object or its JSON text.
func Object[T any](p map[string]json.RawMessage, name string) (v T, ok bool) {
	if text, is := Read[string](p, name); is {
		return v, json.Unmarshal([]byte(text), &v) == nil
	}
	return Read[T](p, name)
}

// List returns a parameter that is a list of strings or one string.
func List(p map[string]json.RawMessage, name string) []string {
	if one := Get(p, name, ""); one != "" {
		return []string{one}
	}
	return Get(p, name, []string(nil))
}

// Text returns all texts of the subject, each on a new line.
func (s *Subject) Text() string { return JoinTexts(s.Texts) }

// JoinTexts returns the texts that are not empty, each on a new line.
func JoinTexts(texts []string) string {
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0]
	}
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t)
	}
	return b.String()
}

// Forward copies headers of the client into a check's request to a host, except those that h
// already has. If a traceparent is requested and the client sent none, it is created from the
// trace id.
func (s *Subject) Forward(h http.Header, names []string) {
	for _, name := range names {
		v := s.Headers.Get(name)
		if v == "" && strings.EqualFold(name, "traceparent") && s.TraceID != "" {
			v = traceparent(s.TraceID)
		}
		if v != "" && h.Get(name) == "" {
			h.Set(name, v)
		}
	}
}

// traceparent returns the header for a trace: its id if it is valid, otherwise a hash of it.
func traceparent(trace string) string {
	sum := sha256.Sum256([]byte(trace))
	id := hex.EncodeToString(sum[:16])
	if len(trace) == 32 && strings.Trim(trace, "0123456789abcdef") == "" && strings.Trim(trace, "0") != "" {
		id = trace
	}
	return "00-" + id + "-" + hex.EncodeToString(sum[16:24]) + "-01"
}
