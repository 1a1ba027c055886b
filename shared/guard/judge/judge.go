package judge

import (
	"context"
	"encoding/json"
	"net/http"

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
	// Reached are the request types that a passed-through request reaches at the provider by
	// its path, or nil.
	Reached  []string
	Provider string
	Model    string
	Stream   bool
	Status   int // of the provider's response; zero before it
	TraceID  string
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
}

// Names of failures of a check that is not configured correctly, as opposed to one whose service
// failed.
const (
	ParameterError   = "ParameterError"
	CredentialsError = "CredentialsError"
)

// Misconfigured reports whether the check cannot judge until its parameters or credentials change.
// It fails a guardrail that denies, unless failOnError is set.
func (f *Failure) Misconfigured() bool {
	return f.Name == ParameterError || f.Name == CredentialsError
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

// Nothing returns a verdict for a check that has nothing to judge.
func Nothing(message string) Verdict {
	v := Failed("Error", message)
	v.Nothing = true
	return v
}

// TooSlow returns the verdict for a check that timed out: see guard.ErrTime.
func TooSlow() Verdict { return Failed("TimeoutError", "The check took too long on this text") }
