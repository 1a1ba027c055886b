package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/routes"
	"gateway/shared/store"
)

// Admits reports whether the holder of a key may still run batches; maker is the creator of the
// batch. The fault is a 401 or 403. It is returned with closing, the former holder: on its
// behalf work may be ended, but not started.
func (m *Mux) Admits(ctx context.Context, sc store.Scope, key string, maker *batch.Maker) (closing *identity.Principal, left *fault.Fault, err error) {
	const scope = "completions.write"
	auth := m.relay.Auth
	who, err := auth.ByHash(ctx, key)
	switch {
	case err == nil && who.Has(scope):
		return nil, nil, nil
	case err == nil:
		left = fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", scope)
	default:
		if left = fault.From(err); left.Status() != http.StatusUnauthorized {
			return nil, nil, err
		}
	}
	if closing, err = auth.Former(ctx, sc, maker.KeyID, scope); err != nil {
		return nil, nil, err
	}
	closing.Type, closing.UserID, closing.WorkspaceSlug = identity.KeyType(maker.Type), maker.User, maker.Slug
	return closing, left, nil
}

// Run sends a request through the pipeline on behalf of a principal. Its response was truncated
// if broken is true; a panic truncates it as well, and ends nothing else. The request contains
// no credential of the gateway.
func (m *Mux) Run(w http.ResponseWriter, req *http.Request, behalf *admission.Behalf) (broken bool) {
	rt, id := m.Match(req.Method, req.URL.EscapedPath())
	if rt == nil {
		routes.NotFound(w)
		return false
	}
	return m.relay.run(w, req, rt, id, behalf)
}

// run sends a request through the pipeline on behalf of a principal: see Mux.Run.
func (r *Relay) run(w http.ResponseWriter, req *http.Request, rt *routes.Route, id string, behalf *admission.Behalf) (broken bool) {
	defer func() {
		v := recover()
		if broken = v != nil; broken && v != http.ErrAbortHandler {
			// No server recovers it, as for a client's request.
			slog.Error("request panicked", "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		}
	}()
	r.serveFor(w, req, rt, id, behalf)
	return false
}
