// Package mcpservers is the administration API of registered MCP servers: integrations of the
// organization or a workspace, and servers, which are integrations in one workspace, with their
// capabilities and access.
package mcpservers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity/signing"
	"gateway/shared/mcp"
	"gateway/shared/mcp/cors"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/store"
	"gateway/shared/tenant/upstream"
)

// Deps are the dependencies of the package.
type Deps struct {
	// CheckURL is the egress rule for hosts that users configure.
	CheckURL provider.URLCheck
	// Opener calls servers to test and inspect them.
	Opener *mcp.Opener
	// PublicURL is the gateway's public address, such as https://gateway.example.com/v1; empty
	// for the address of the request.
	PublicURL string
	// MCPAddress is the address of MCP servers, as cors.Public returns it.
	MCPAddress string
	// Sessions and Loader identify the user and the browser of a sign-in.
	Sessions *signin.Sessions
	Loader   *resource.Loader
	// Signing are the keys with published public halves.
	Signing *signing.Keys
}

// NewDeps returns the dependencies in an installation. secrets connects to secret managers.
func NewDeps(c *app.Core, secrets *provider.Loaded) Deps {
	return Deps{
		CheckURL: c.Egress.CheckURL, PublicURL: c.PublicURL, MCPAddress: cors.Public(c.PublicURL), Sessions: signin.New(c.Loader, c.Resources), Loader: c.Loader, Signing: c.Signing,
		Opener: &mcp.Opener{Sealer: c.Sealer, Transport: c.Transport, Hosts: c.TrustedTransport, Now: c.Now, Secrets: secrets},
	}
}

// New returns the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.integrations, f.servers = f.describeIntegrations(), f.describeServers()
	f.known, f.overrides, f.connections = f.describeKnown(), f.describeOverrides(), f.describeConnections()
	return admin.Family{
		Name: "mcpservers", Doc: "MCP integrations and servers.",
		Routes: slices.Concat(f.integrations.Routes(), f.integrationRoutes(), f.servers.Routes(), f.serverRoutes(), signIn{f}.routes(), directory{f}.routes(), (&published{Keys: f.Signing}).routes()),
	}
}

type family struct {
	Deps
	integrations *admin.Collection[mcp.Integration]
	servers      *admin.Collection[mcp.Server]
	known        *admin.Collection[mcp.Capability]
	overrides    *admin.Collection[mcp.Override]
	connections  *admin.Collection[mcp.Connection]
}

// Items and changes of integrations and servers.
type (
	integration       = admin.Item[mcp.Integration]
	integrationChange = admin.Change[mcp.Integration]
	server            = admin.Item[mcp.Server]
	serverChange      = admin.Change[mcp.Server]
)

// base returns the address below which servers are reached.
func (f *family) base(r *http.Request) string { return admin.Address(f.PublicURL, r) }

// issuer returns the address of the authorization server.
func (f *family) issuer(c *admin.Call) string { return oauthserver.Issuer(f.MCPAddress, c.Request) }

func text(name string) admin.Field {
	return admin.Field{Name: name, Type: admin.String, Optional: false}
}

// pathKeys is the path of the gateway's public keys.
const pathKeys = "/.well-known/jwks.json"

// published is the cached key set for verifying the gateway's signatures.
type published struct {
	Keys *signing.Keys

	mu   sync.Mutex
	text json.RawMessage
	made *admin.Document // of the text
}

func (p *published) routes() []admin.Route {
	text := admin.Schema{"type": "string"}
	key := admin.ObjectSchema(map[string]admin.Schema{"kty": text, "use": text, "alg": text, "kid": text, "n": text, "e": text, "crv": text, "x": text, "y": text})
	return []admin.Route{{
		Method: "GET", Path: pathKeys, Name: "getSigningKeys", Public: true, Errors: []int{304, 503},
		Doc:      "Read the public signing keys of the gateway, for identities sent to MCP servers (RS256) and agent cards (ES256).",
		Response: admin.Closed(map[string]admin.Schema{"keys": {"type": "array", "items": key}}),
		Do:       func(c *admin.Call) (any, error) { return p.document(c) },
	}}
}

// document returns the current set, rendered once per change.
func (p *published) document(c *admin.Call) (*admin.Document, error) {
	text, err := p.Keys.Set(c.Context)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil || !bytes.Equal(p.text, text) {
		made, err := admin.NewDocument(text)
		if err != nil {
			return nil, err
		}
		p.text, p.made = text, made
	}
	return p.made, nil
}

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
	snap, callErr := f.look(c.Context, rec, in, testTime)
	out := admin.Members{
		"success": callErr == nil, "status_code": 200, "response_time_ms": time.Since(began).Milliseconds(), "url": form.URL, "server_name": nil, "error": nil,
	}
	if callErr == nil {
		out["server_name"] = admin.OrNull(snap.ServerName)
		return out, mcp.Store(c.Context, c.Resources, rec.Ref(), snap, c.Actor())
	}
	why, status, known := reason(callErr)
	if !known {
		return nil, callErr
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
		return "the server responds with a protocol error", 200, true
	case errors.Is(err, mcp.ErrSignIn):
		return "the server requires a sign-in by each user", 0, true
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

func itoa(n int) string { return strconv.Itoa(n) }

// describeConnections describes the sign-ins of users at a server's upstream.
func (f *family) describeConnections() *admin.Collection[mcp.Connection] {
	return &admin.Collection[mcp.Connection]{
		Kind: mcp.KindConnection, Object: "mcp-connection", Path: "/mcp-servers/{serverId}/connections", Param: "userId", Parent: f.servers.AsParent(),
	}
}

var connectionPaging = admin.Paging{DefaultSize: 100, MaxSize: 500}

func (f *family) connectionRoutes() []admin.Route {
	const path = "/mcp-servers/{serverId}/connections"
	user := admin.Field{Name: "user_id", Type: admin.String, Min: 1, Max: 64, Doc: "Only that of this user; default: the caller's own."}
	routes := f.connections.ItemRoutes(
		admin.Route{Method: "GET", Path: path, Name: "listMcpServerConnections", Doc: "List the users who have signed in. Members see only themselves.",
			Query: append(connectionPaging.Fields(), user), Response: admin.MoreEnvelope.Schema(admin.Closed(map[string]admin.Schema{
				"user_id": {"type": "string"}, "connected": {"type": "boolean"}, "created_at": {"type": "string", "format": "date-time"}, "last_updated_at": {"type": "string", "format": "date-time"},
			})), Do: f.connections.WithItem("read", f.listConnections)},
		admin.Route{Method: "DELETE", Path: path, Name: "deleteMcpServerConnection", Doc: "Delete the sign-in of a user.", Action: audit.Delete,
			Query: []admin.Field{user}, Response: admin.Closed(map[string]admin.Schema{"success": {"type": "boolean", "const": true}}), Do: f.connections.WithItem("update", f.deleteConnection)},
	)
	routes[1].Scopes = []string{scopeServers + ".delete"}
	return routes
}

// actingUser returns the user that a call may act for, or "" for any user.
func actingUser(c *admin.Call) (string, error) {
	named := c.Query.Text("user_id")
	if c.Caller.AtLeast(admin.Manager) {
		return named, nil
	}
	if named != "" && named != c.Caller.UserID {
		return "", admin.Denied()
	}
	return c.Caller.UserID, nil
}

func (f *family) listConnections(c *admin.Call) (any, error) {
	page, err := connectionPaging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	user, err := actingUser(c)
	if err == nil && user == "" && !c.Caller.AtLeast(admin.Manager) {
		err = admin.Denied() // a service key of a member's rank has no sign-ins of its own
	}
	if err != nil {
		return nil, err
	}
	parent := c.ParentRecord()
	kind := mcp.KindConnection.Of(parent.ID)
	rows, err := c.Resources.List(c.Context, parent.Scope, kind)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range rows {
		if user == "" || rows[i].ID == user {
			ids = append(ids, rows[i].ID)
		}
	}
	slices.Sort(ids)
	recs, err := c.Resources.GetMany(c.Context, parent.Scope, kind, admin.Cut(ids, page))
	if err != nil {
		return nil, err
	}
	entries := make([]any, len(recs))
	for i := range recs {
		entries[i] = admin.Members{"user_id": recs[i].ID, "connected": true, "created_at": admin.FormatTime(recs[i].Created), "last_updated_at": admin.FormatTime(recs[i].Updated)}
	}
	return admin.MoreEnvelope.Wrap(entries, len(ids), page), nil
}

// deleteConnection deletes a user's tokens. The response is the same if there are none, so that
// it does not reveal who has signed in.
func (f *family) deleteConnection(c *admin.Call) (any, error) {
	user, err := actingUser(c)
	if err != nil {
		return nil, err
	}
	if user == "" {
		if user = c.Caller.UserID; user == "" {
			return nil, fault.Invalid("user_id", "is required: the user with the sign-in to delete")
		}
	}
	parent := c.ParentRecord()
	return admin.Members{"success": true}, c.Change(func(tx *resource.Tx) error { return endConnection(tx, parent, user) })
}

// connected returns which of some users have signed in.
func connected(c *admin.Call, server *resource.Record, users []string) (map[string]bool, error) {
	recs, err := c.Resources.GetMany(c.Context, server.Scope, mcp.KindConnection.Of(server.ID), users)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(recs))
	for i := range recs {
		out[recs[i].ID] = true
	}
	return out, nil
}
