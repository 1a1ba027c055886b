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

// Composed is a route whose answer is made of the answers to other requests. They count as
// sent by its caller: each is admitted, limited, guarded, booked and logged by itself.
type Composed struct {
	Of     *Route // of the other requests
	Answer func(*Desk) ([]byte, error)
}

// Desk is what such a route works with.
type Desk struct {
	Context context.Context
	Scope   store.Scope
	View    *resource.View
	Store   store.Store
	Now     func() time.Time
	ID      string // the variable of the route's path
	Body    []byte // of the request; nothing of it may be kept
	// Ask takes a request through the walk as the caller's own, with the headers of the
	// caller's that say how requests are to be served. id is the variable of its path.
	// The answer is cut off when broken is true.
	Ask func(ctx context.Context, w http.ResponseWriter, id string, body []byte) (broken bool)
	// Guard tells whether a saved guardrail passes on an answer, or with none on the
	// request alone.
	Guard func(ctx context.Context, name, endpoint string, request, response []byte) (passes bool, err error)
}

// At is the path of the route with the given value of its variable.
func (rt *Route) At(id string) string {
	before, rest, _ := strings.Cut(rt.Path, "{")
	_, after, _ := strings.Cut(rest, "}")
	return before + url.PathEscape(id) + after
}
