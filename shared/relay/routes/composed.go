package routes

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// Composed is a route with a response composed from the responses to other requests. They count
// as sent by its caller: each is admitted, limited, guarded, charged and logged separately.
type Composed struct {
	Of     *Route // of the other requests
	Answer func(*Composition) ([]byte, error)
}

// Composition holds the request and the operations of such a route.
type Composition struct {
	Context context.Context
	Scope   store.Scope
	View    *resource.View
	Store   store.Store
	Now     func() time.Time
	ID      string // the variable of the route's path
	Body    []byte // of the request; it must not be retained
	// Ask sends a request through the pipeline as the caller's own, with the caller's headers
	// that affect how requests are served. id is the variable of its path. The response was
	// truncated if broken is true.
	Ask func(ctx context.Context, w http.ResponseWriter, id string, body []byte) (broken bool)
	// Guard reports whether a saved guardrail passes on a response, or without one on the
	// request.
	Guard func(ctx context.Context, name, endpoint string, request, response []byte) (passes bool, err error)
}

// At returns the path of the route with the given value of its variable.
func (rt *Route) At(id string) string {
	before, rest, _ := strings.Cut(rt.Path, "{")
	_, after, _ := strings.Cut(rest, "}")
	return before + url.PathEscape(id) + after
}
