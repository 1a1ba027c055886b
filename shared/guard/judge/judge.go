package judge

import (
	"context"
	"encoding/json"
	"net/http"

	"gateway/shared/guard"
	"gateway/shared/provider"
)

// Subject is what one check is shown. It is read only: a check that changes texts
// says so in its Verdict.
type Subject struct {
	Phase guard.Phase // guard.Before or guard.After, one of them
	// Kind is the type of the request: chatComplete, complete, embed, messages,
	// createModelResponse, proxy...
	Kind     string
	Provider string
	Model    string
	Stream   bool
	Status   int // of the provider's answer; 0 before it
	TraceID  string
	// Texts are those to be judged, one for each part of the message, and "" for a
	// part that is no text, so that a Verdict can change part by part.
	Texts []string
	// Asked are, behind the answer, the texts of the request that the same check
	// would be shown before it; nil before the answer.
	Asked []string
	// Changed says that an earlier check has changed the body of its phase.
	Changed bool
	// ToolCalls says that the answer holds calls of tools.
	ToolCalls bool
	// Request and Response are the bodies as JSON; Response is nil before the answer.
	Request, Response json.RawMessage
	Metadata          map[string]string
	// Headers are those of the client, for checks that read or forward them.
	Headers http.Header
	// Parameters are those of the check, validated when they were saved; credentials
	// of the hook stand under "credentials".
	Parameters map[string]json.RawMessage
	// Client calls hosts that the customer names in its checks, through the guarded
	// dialer; Public those that texts name, which are never trusted.
	Client, Public *http.Client
	Fetch          Fetch
	// Saved says that the check is of a saved guardrail, and not of a config that may
	// have come with the request.
	Saved bool
	// Secrets fetches the values of secret mappings, by their target fields; nil where
	// no secret manager is asked.
	Secrets Secrets
}

// Fetch gets an image of at most so many bytes from the web, in base64. Its errors name
// no address.
type Fetch func(ctx context.Context, address string, most int64) (mime, data string, err error)

// Secrets fetches the values of secret mappings. Its error is a fault that tells nothing
// of a secret.
type Secrets func(ctx context.Context, of []provider.SecretMapping) (map[string]string, error)

// Verdict is what a check says. An error stands beside the verdict: the check then
// passes unless its parameter failOnError is true, which is the chain's to decide.
type Verdict struct {
	Pass bool
	Data any // what the answer tells of the check under "data"; marshalled as JSON
	Err  *Failure
	// Texts replace those of the subject part by part; nil keeps one. A nil slice
	// changes nothing.
	Texts []*string
	// Body replaces the whole request before it, or the whole answer behind it.
	Body json.RawMessage
	// Restore are the values that tokens in Texts stand for, to be put back into the
	// answer: see mask.Restorer. Nil where nothing is put back.
	Restore map[string]string
	// Headers are added to what is sent to the provider.
	Headers http.Header
	Log     any
}

// Failure is an error of a check, with names that its users know.
type Failure struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// Func runs one check. It ends with ctx, never panics for what a subject holds, and
// keeps no part of the subject.
type Func func(ctx context.Context, s *Subject) Verdict

// Maker makes the function of one check of a guardrail, once: what its parameters
// are compiled to is kept by the function, which many requests then call at the
// same time. The parameters are those that each Subject holds, too. A parameter that
// cannot be used is an error of every verdict, not of the making.
type Maker func(parameters map[string]json.RawMessage) Func

// Failed is a verdict that is an error.
func Failed(name, message string) Verdict {
	return Verdict{Err: &Failure{Name: name, Message: message}}
}
