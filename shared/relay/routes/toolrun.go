package routes

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
)

// ToolRun is how a route of conversations answers where the gateway itself calls the tools
// of MCP servers that the model asks for. The answer is made of those to other requests,
// which count as sent by the caller: each turn of the model is a request to the route
// itself, each list and call of tools one to Calls. Each is admitted, limited, guarded,
// booked and logged by itself.
type ToolRun struct {
	Calls *Route // by the slug of the server
	// Wants tells whether a request is one of these.
	Wants  func(h http.Header, body []byte) bool
	Answer func(*ToolDesk) error
}

// ToolDesk is what such an answer is made with.
type ToolDesk struct {
	Context context.Context // ends when the client has gone
	Body    []byte          // of the request; nothing of it may be kept
	ID      string          // of the request
	Now     func() time.Time
	// Approvals are the calls of tools that the workspace was asked to approve.
	Approvals *approval.Requests
	// Ask takes a body through the walk as the caller's own request for a turn of the
	// model. The answer is cut off when broken is true.
	Ask func(ctx context.Context, w http.ResponseWriter, body []byte) (broken bool)
	// Call likewise sends a message to a server. It may be called from several goroutines.
	Call func(ctx context.Context, w http.ResponseWriter, slug string, h http.Header, body []byte) (broken bool)
	// Judge has guardrails judge a result of a tool, an object of MCP, and returns what they
	// left of it. Nil: none judges results. It may be called from several goroutines.
	Judge func(ctx context.Context, tool string, result []byte) (now []byte, denied *fault.Fault)
	// Header is that of the answer, until it has begun.
	Header func() http.Header
	// Send answers. failure is why the answer is no good one; nil: it is.
	Send func(status int, media string, body []byte, failure *fault.Fault)
	// Event sends one event of a stream, which it begins; the last one ends it.
	Event func(event []byte, last bool, failure *fault.Fault)
	// Sign is a sign of life that clients of a stream ignore; nil: there is none.
	Sign []byte
	// StreamError returns what ends a stream of a response with an id, in the format of the
	// route. next is the number of its first event.
	StreamError func(f *fault.Fault, next int64, id string) []byte
}
