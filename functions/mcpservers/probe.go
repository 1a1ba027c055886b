package mcpservers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gateway/shared/admin"
	"gateway/shared/mcp"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
)

// Timeouts of a call to a server: of a test, and of a call that creates or changes an
// integration, which succeeds without the server.
const (
	testTime  = 20 * time.Second
	learnTime = 10 * time.Second
)

var probeSchema = admin.Closed(map[string]admin.Schema{
	"success": {"type": "boolean"}, "status_code": {"type": []string{"integer", "null"}}, "response_time_ms": {"type": "integer"}, "url": {"type": "string"},
	"server_name": {"type": []string{"string", "null"}}, "error": {"type": []string{"string", "null"}},
})

// probe inspects a server, stores its capabilities and returns the result.
func (f *family) probe(c *admin.Call, rec *resource.Record, in store.Scope) (any, error) {
	form, err := mcp.DecodeIntegration(*rec)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	snap, asked := f.look(c.Context, rec, in, testTime)
	out := admin.Members{
		"success": asked == nil, "status_code": 200, "response_time_ms": time.Since(began).Milliseconds(), "url": form.URL, "server_name": nil, "error": nil,
	}
	if asked == nil {
		out["server_name"] = admin.OrNull(snap.ServerName)
		return out, mcp.Store(c.Context, c.Resources, rec.Ref(), snap, c.Actor())
	}
	why, status, known := reason(asked)
	if !known {
		return nil, asked
	}
	if out["error"], out["status_code"] = why, nil; status != 0 {
		out["status_code"] = status
	}
	return out, mcp.StoreFailure(c.Context, c.Resources, rec.Ref(), why)
}

// reason returns why a server could not be inspected, without quoting it. known is false for a
// failure of the gateway.
func reason(err error) (why string, status int, known bool) {
	var failed *upstream.Failure
	var refused *mcp.Error
	switch {
	case errors.As(err, &failed):
		return failed.Why, failed.Status, true
	case errors.As(err, &refused):
		return "the server refuses with an error of its protocol", 200, true
	case errors.Is(err, mcp.ErrSignIn):
		return "the server needs a sign-in by each user", 0, true
	}
	return "", 0, false
}

func (f *family) look(ctx context.Context, rec *resource.Record, in store.Scope, within time.Duration) (*mcp.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return f.Opener.Inspect(ctx, rec, in)
}

// learn inspects the server of a new or changed integration. A failure is stored in its
// metadata.
func (f *family) learn(c *admin.Call, ref resource.Ref) {
	rec, ok, err := c.Resources.Get(c.Context, ref.Scope, ref.Kind, ref.ID)
	if err != nil || !ok {
		return
	}
	form, err := mcp.DecodeIntegration(rec)
	if err != nil || form.AuthType == mcp.AuthOAuth {
		return // inspected when the first user signs in
	}
	snap, err := f.look(c.Context, &rec, rec.Scope, learnTime)
	if err == nil {
		err = mcp.Store(c.Context, c.Resources, ref, snap, c.Actor())
	} else if why, _, known := reason(err); known {
		err = mcp.StoreFailure(c.Context, c.Resources, ref, why)
	}
	if err != nil {
		slog.Warn("inspecting an MCP server failed", "request_id", c.RequestID, "integration", ref.ID, "error", err.Error())
	}
}
