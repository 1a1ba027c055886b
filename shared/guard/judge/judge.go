package judge

import (
	"context"
	"encoding/json"
	"net/http"

	"gateway/shared/guard"
	"gateway/shared/provider"
)

// Subject is what one check is given. A check only reads it; if it changes texts, it says
// so in its Verdict.
type Subject struct {
	Phase guard.Phase // guard.Before or guard.After, one of them
	// Kind is the type of the request: chatComplete, complete, embed, messages,
	// createModelResponse, proxy...
	Kind string
	// Reached are the types of requests that a request which is passed through reaches at the
	// provider by its path; nil: Kind says what it is.
	Reached  []string
	Provider string
	Model    string
	Stream   bool
	Status   int // of the provider's response; 0 before it
	TraceID  string
	// Texts are the texts to be judged, one for each part of the message. A part that is not
	// text has "", so that a Verdict can change part by part.
	Texts []string
	// Asked are, after the response, the texts of the request that the same check would have
	// been given before it; nil before the response.
	Asked []string
	// Changed says that an earlier check has changed the body of its phase.
	Changed bool
	// ToolCalls says that the response holds calls of tools.
	ToolCalls bool
	// Request and Response are the bodies as JSON; Response is nil before the response.
	Request, Response json.RawMessage
	Metadata          map[string]string
	// Headers are those of the client, for checks that read or forward them.
	Headers http.Header
	// Parameters are the check's parameters, validated when they were saved. Credentials of
	// the hook are in "credentials".
	Parameters map[string]json.RawMessage
	// Client calls hosts that the customer names in its checks, through the guarded dialer.
	// Public calls hosts that texts name, which are never trusted.
	Client, Public *http.Client
	Fetch          Fetch
	// Saved says that the check belongs to a saved guardrail, and not to a config that may
	// have come with the request.
	Saved bool
	// Secrets fetches the values of secret mappings, by their target fields; nil if there is
	// no secret manager.
	Secrets Secrets
}

// Fetch gets an image of at most so many bytes from the web, in base64. Its errors name
// no address.
type Fetch func(ctx context.Context, address string, most int64) (mime, data string, err error)

// Secrets fetches the values of secret mappings. Its error is a fault that reveals nothing
// of a secret.
type Secrets func(ctx context.Context, of []provider.SecretMapping) (map[string]string, error)

// Verdict is the result of a check. If there is also an error, the chain decides whether the
// check passes: see its parameter failOnError.
type Verdict struct {
	Pass bool
	Data any // what the response shows of the check under "data"; marshalled as JSON
	Err  *Failure
	// Nothing says that the error means that there is nothing to judge, such as a response that
	// only calls tools. Such an error does not make a hook that denies fail.
	Nothing bool
	// Texts replace the subject's texts part by part; a nil entry keeps the part, a nil slice
	// all of them.
	Texts []*string
	// Body replaces the whole request, or after the response the whole response.
	Body json.RawMessage
	// Restore are the values behind the tokens in Texts, to be put back into the response: see
	// mask.Restorer. Nil if nothing is put back.
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

// Func runs one check. It ends with ctx, does not panic whatever the subject holds, and
// keeps no part of the subject.
type Func func(ctx context.Context, s *Subject) Verdict

// Maker makes the function of one check of a guardrail, once. The function keeps its
// compiled parameters, and many requests call it at the same time. The parameters are also
// those in each Subject. If a parameter cannot be used, every verdict is an error; making
// the function is not.
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

// TooSlow returns the verdict for a check whose time is over: see guard.ErrTime.
func TooSlow() Verdict { return Failed("TimeoutError", "The check took too long on this text") }
