package egress

import (
	"context"
	"hash/maphash"
	"net/http"
	"strings"
)

// Lane is a context that identifies the tenant of a call. Connections are only reused
// within a lane: if a provider mixes up the responses on a connection, no other tenant
// receives them. The zero tenant is a lane too.
type Lane struct {
	context.Context
	Tenant, Workspace string
}

// laneKey is the context key of *Lane.
type laneKey struct{}

// Value implements context.Context.
func (l *Lane) Value(key any) any {
	if key == (laneKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// LaneOf returns the lane of ctx; nil if it has none.
func LaneOf(ctx context.Context) *Lane {
	l, _ := ctx.Value(laneKey{}).(*Lane)
	return l
}

// WithLane returns ctx with the lane l: calls end with ctx and use the connections of l. A
// nil lane returns ctx itself. The parameters have different types, so that the context
// that ends a call and the one that only names its lane cannot be confused.
func WithLane(ctx context.Context, l *Lane) context.Context {
	if l == nil {
		return ctx
	}
	return &Lane{Context: ctx, Tenant: l.Tenant, Workspace: l.Workspace}
}

// lane identifies the tenant, the workspace and the credential of a request.
type lane struct {
	tenant, workspace string
	credential        uint64
}

var laneSeed = maphash.MakeSeed()

// credentialHeaders are the headers in which providers expect the credential.
var credentialHeaders = [...]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Ocp-Apim-Subscription-Key"}

// laneOf is the lane of a request.
func laneOf(req *http.Request) (l lane) {
	if of := LaneOf(req.Context()); of != nil {
		l.tenant, l.workspace = of.Tenant, of.Workspace
	}
	for i, name := range credentialHeaders {
		for _, v := range req.Header[name] {
			l.credential = l.credential*31 + uint64(i+1) + maphash.String(laneSeed, stablePart(v))
		}
	}
	if key := queryKey(req.URL.RawQuery); key != "" {
		l.credential = l.credential*31 + maphash.String(laneSeed, key)
	}
	return l
}

// stablePart is the part of a credential that is the same in each request: AWS signatures
// change with what they sign, but the signer stays the same.
func stablePart(v string) string {
	if !strings.HasPrefix(v, "AWS4-") {
		return v
	}
	_, who, _ := strings.Cut(v, "Credential=")
	who, _, _ = strings.Cut(who, "/")
	return who
}

// queryKey is the API key in a query, as Google has it.
func queryKey(query string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if key, ok := strings.CutPrefix(pair, "key="); ok {
			return key
		}
	}
	return ""
}
