package routes

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
)

// ToolRun serves conversations in which the gateway itself calls the tools of MCP servers for
// the model. The response is composed from those to other requests, which count as sent by the
// caller: each turn of the model is a request to the route itself, each list and call of tools
// one to Calls. Each is admitted, limited, guarded, charged and logged separately.
type ToolRun struct {
	Calls *Route // by the slug of the server
	// Wants reports whether a request is one of these.
	Wants  func(h http.Header, body []byte) bool
	Answer func(*ToolDesk) error
}

// ToolDesk holds the request and the operations of such a run.
type ToolDesk struct {
	Context context.Context // ends when the client disconnects
	Body    []byte          // of the request; it must not be retained
	ID      string          // of the request
	Now     func() time.Time
	// Approvals are the workspace's approval requests for tool calls.
	Approvals *approval.Requests
	// Ask sends a body through the pipeline as the caller's own request for a turn of the model.
	// The response was truncated if broken is true.
	Ask func(ctx context.Context, w http.ResponseWriter, body []byte) (broken bool)
	// Call sends a message to a server in the same way. It is safe for concurrent use.
	Call func(ctx context.Context, w http.ResponseWriter, slug string, h http.Header, body []byte) (broken bool)
	// Judge has guardrails judge the result of a tool, an MCP object, and returns it as they
	// changed it. Nil: none judges results. It is safe for concurrent use.
	Judge func(ctx context.Context, tool string, result []byte) (now []byte, denied *fault.Fault)
	// Header returns the headers of the response, until it has started.
	Header func() http.Header
	// Send sends the response. failure is the reason if it is not a success; nil if it is.
	Send func(status int, media string, body []byte, failure *fault.Fault)
	// Event sends one event of a stream, which it starts; the last one ends it.
	Event func(event []byte, last bool, failure *fault.Fault)
	// Sign is a keep-alive that clients of a stream ignore; nil: there is none.
	Sign []byte
	// StreamError returns the bytes that end a stream of a response with an id, in the format of
	// the route. next is the number of its first event.
	StreamError func(f *fault.Fault, next int64, id string) []byte
}
