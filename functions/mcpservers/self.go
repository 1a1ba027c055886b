package mcpservers

import (
	"encoding/json"
	"errors"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/oauthclient"
	"gateway/shared/resource"
)

// Connection states of a user at a server.
const (
	stateConnected    = "connected"
	stateNotConnected = "not_connected"
	stateNotRequired  = "not_required"
)

// userCheck reports whether a user may use a server.
type userCheck struct {
	Object    string  `json:"object"`
	ServerID  string  `json:"mcp_server_id"`
	UserID    *string `json:"user_id" doc:"null for a key without a user, for which rules about users do not count."`
	HasAccess bool    `json:"has_access"`
	Reason    *string `json:"reason" doc:"Why there is no access."`
	State     string  `json:"connection_status" doc:"Whether the user has signed in at the server; not_required if the server needs no sign-in of users, or there is no user." enum:"connected,not_connected,not_required"`
}

// clientInfo describes the gateway as a client of a server's authorization server.
type clientInfo struct {
	Object      string  `json:"object"`
	ServerID    string  `json:"mcp_server_id"`
	AuthType    string  `json:"auth_type"`
	SignIn      bool    `json:"sign_in_required" doc:"Whether each user signs in at the server."`
	ClientID    *string `json:"client_id" doc:"That the integration configures; null if the gateway registers itself, or without OAuth."`
	RedirectURI string  `json:"redirect_uri"`
	Document    string  `json:"client_metadata_url"`
}

// tokenState describes the tokens of a user at a server, without the tokens.
type tokenState struct {
	Object    string         `json:"object"`
	ServerID  string         `json:"mcp_server_id"`
	UserID    *string        `json:"user_id"`
	Connected bool           `json:"connected"`
	Created   *admin.Instant `json:"created_at"`
	Updated   *admin.Instant `json:"last_updated_at"`
}

// actsAsUser are the scopes of which one is needed to change the account with which the server is
// called for a user: those of a session, of calls to the server, and of changes of it.
var actsAsUser = []string{"auth.self", authz.Invoke, scopeServers + ".update"}

// selfRoutes are the routes about the caller at one server.
func (f *family) selfRoutes() []admin.Route {
	const item = "/mcp-servers/{serverId}"
	user := admin.Field{Name: "user_id", Type: admin.String, Min: 1, Max: 64, Reference: "/admin/users", Doc: "Another user than the caller; for managers."}
	routes := f.servers.ItemRoutes(
		admin.Route{Method: "GET", Path: item + "/user-access/check", Name: "checkMcpServerUserAccess", Doc: "Check whether the user of the key may use a server.", Query: []admin.Field{user}, ResponseOf: admin.SchemaOf[userCheck], Do: f.servers.WithItem("read", f.checkUser)},
		admin.Route{Method: "GET", Path: item + "/client-info", Name: "getMcpServerClientInfo", Doc: "Read the gateway's client registration at the server's authorization server.", ResponseOf: admin.SchemaOf[clientInfo], Do: f.servers.WithItem("read", f.with(readClientInfo))},
		admin.Route{Method: "GET", Path: item + "/tokens", Name: "getMcpServerTokens", Doc: "Read whether the user of the key has tokens of the server. Tokens are never shown.", ResponseOf: admin.SchemaOf[tokenState], Do: f.servers.WithItem("read", f.with(getTokens))},
		admin.Route{Method: "PUT", Path: item + "/tokens", Name: "setMcpServerTokens", Doc: "Store an access token of the server for the user of the key, in place of a sign-in.", Action: audit.Update, ResponseOf: admin.SchemaOf[tokenState], Do: f.servers.WithItem("read", f.with(setTokens)),
			Body: []admin.Field{
				{Name: "access_token", Type: admin.String, Required: true, Min: 1, Max: 16 << 10, Doc: "Sent only to the present address of the integration, and never shown."},
				{Name: "expires_in", Type: admin.Integer, Min: 1, Max: 10 * 365 * 86400, Doc: "Seconds for which it is valid; without it until the server rejects it."},
				{Name: "token_type", Type: admin.String, Enum: []string{"Bearer", "bearer"}},
				{Name: "refresh_token", Type: admin.String, Max: 16 << 10, Doc: "Accepted and not stored: the gateway renews only tokens of a sign-in that it made itself."},
				{Name: "scope", Type: admin.String, Max: 4096, Doc: "Accepted and not stored."},
			}},
		admin.Route{Method: "DELETE", Path: item + "/tokens", Name: "deleteMcpServerTokens", Doc: "Delete the tokens of the user of the key.", Action: audit.Delete, Response: admin.Closed(map[string]admin.Schema{"success": {"type": "boolean", "const": true}}), Do: f.servers.WithItem("read", f.with(deleteTokens))},
	)
	for i := range routes { // about the caller: whoever may read the server
		if routes[i].Scopes, routes[i].Role = f.servers.ScopesFor("read"), admin.Member; routes[i].Action != "" {
			routes[i].Scopes = actsAsUser // a key that only reads must not replace a user's account
		}
	}
	return routes
}

func (f *family) checkUser(c *admin.Call) (any, error) {
	user, err := actingUser(c)
	if err != nil {
		return nil, err
	}
	if user == "" {
		user = c.Caller.UserID
	}
	it, err := f.servers.Find(c)
	if err != nil {
		return nil, err
	}
	out := userCheck{Object: "mcp-server-user-access", ServerID: it.ID, UserID: admin.NullIfZero(user), State: stateNotRequired}
	v, err := f.Loader.Fresh(c.Context, it.Scope.Org)
	if err != nil {
		return nil, err
	}
	who := &identity.Principal{Type: identity.WorkspaceService, Scope: it.Scope, Scopes: identity.NewScopeSet(authz.Invoke)}
	if user != "" {
		who.Type, who.UserID = identity.WorkspaceUser, user
		if user != c.Caller.UserID {
			if _, ok, err := membership.LoadRank(c.Context, v, it.Scope, user); err != nil || !ok {
				out.Reason = admin.NullIfZero("the user is not a member of this workspace")
				return out, err
			}
		}
	}
	facts, err := authz.Load(c.Context, v, who, it.Slug)
	switch {
	case fault.Is(err, fault.NotFound):
		out.Reason = admin.NullIfZero("the server or its integration is not available in this workspace")
		return out, nil
	case err != nil:
		return nil, err
	}
	if out.HasAccess = facts.Decide(authz.Capability{}) == authz.Allowed; !out.HasAccess {
		out.Reason = admin.NullIfZero("the user has no access to this server")
	}
	if user != "" && facts.Integration != nil && facts.Integration.AuthType == mcp.AuthOAuth {
		signedIn, err := connected(c, it.Record, []string{user})
		if err != nil {
			return nil, err
		}
		if out.State = stateNotConnected; signedIn[user] {
			out.State = stateConnected
		}
	}
	return out, nil
}

// with returns an action of the family.
func (f *family) with(do func(*family, *admin.Call) (any, error)) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) { return do(f, c) }
}

func readClientInfo(f *family, c *admin.Call) (any, error) {
	it, of, err := f.ofServer(c)
	if err != nil {
		return nil, err
	}
	ours := signIn{family: f}.ours(c)
	out := clientInfo{Object: "mcp-client-info", ServerID: it.ID, AuthType: of.Form.AuthType, RedirectURI: ours.Callback, Document: ours.Document}
	_, conf, err := f.Opener.Open(c.Context, of.Record, it.Scope)
	switch {
	case errors.Is(err, mcp.ErrSignIn):
		out.SignIn = true
	case err != nil:
		return nil, err
	}
	if conf != nil {
		if client := oauthclient.Configured(conf); client != nil {
			out.ClientID = &client.ID
		}
	}
	return out, nil
}

func getTokens(f *family, c *admin.Call) (any, error) {
	it, err := f.servers.Find(c)
	if err != nil {
		return nil, err
	}
	return stateOfTokens(c, it)
}

func stateOfTokens(c *admin.Call, it server) (*tokenState, error) {
	out := &tokenState{Object: "mcp-tokens", ServerID: it.ID, UserID: admin.NullIfZero(c.Caller.UserID)}
	if out.UserID == nil {
		return out, nil
	}
	rec, ok, err := c.Resources.Get(c.Context, it.Scope, mcp.KindConnection.Of(it.ID), c.Caller.UserID)
	if err != nil || !ok {
		return out, err
	}
	created, updated := admin.Instant(rec.Created), admin.Instant(rec.Updated)
	out.Connected, out.Created, out.Updated = true, &created, &updated
	return out, nil
}

// setTokens stores a token as the callback of a sign-in does.
func setTokens(f *family, c *admin.Call) (any, error) {
	it, of, err := f.ofServer(c)
	if err != nil {
		return nil, err
	}
	user := c.Caller.UserID
	switch {
	case user == "":
		return nil, fault.New(fault.InvalidRequest, "", "This key belongs to no user; tokens of an MCP server are a user's: send the key or session of a user")
	case !c.Caller.Is(user):
		return nil, sharedKey()
	case of.Form.AuthType != mcp.AuthOAuth:
		return nil, fault.New(fault.InvalidRequest, "serverId", "users do not sign in at this server: its auth_type is "+of.Form.AuthType)
	}
	held := &oauthclient.StoredTokens{Target: of.Form.URL, Access: c.Body.Text("access_token")}
	if s := c.Body.Int("expires_in"); s > 0 {
		held.Expires = c.Now.Add(time.Duration(s) * time.Second).Unix()
	}
	err = c.Change(func(tx *resource.Tx) error {
		if err := tx.Require(it.Ref()); err != nil {
			return err
		}
		kind := mcp.KindConnection.Of(it.ID)
		rec, there, err := tx.Get(it.Scope, kind, user)
		if err != nil {
			return err
		}
		form := &mcp.Connection{Serial: resource.NewID()}
		stage := tx.Update
		if !there {
			rec = resource.Record{Scope: it.Scope, Kind: kind, ID: user, Name: user, Status: "active", CreatedBy: user}
			stage = tx.Create
		}
		if rec.Body, err = json.Marshal(form); err != nil {
			return err
		}
		rec.UpdatedBy = user
		if err := stage(&rec); err != nil {
			return err
		}
		return held.Stage(c.Context, tx, c.Sealer, oauthclient.UserKey{Scope: it.Scope, Server: it.ID, User: user}, form.Serial)
	})
	if err != nil {
		return nil, err
	}
	return stateOfTokens(c, it)
}

// sharedKey returns the fault for a user's key that others may know, as on the MCP gateway.
func sharedKey() error {
	return fault.New(fault.NotAllowed, "", "Other users may have seen this key, so it cannot act for its user at MCP servers; its user must rotate it first")
}

// deleteTokens deletes the caller's tokens. The response is the same if there are none.
func deleteTokens(f *family, c *admin.Call) (any, error) {
	it, err := f.servers.Find(c)
	if err != nil {
		return nil, err
	}
	done := admin.Members{"success": true}
	if c.Caller.UserID == "" {
		return done, nil
	}
	if !c.Caller.Is(c.Caller.UserID) {
		return nil, sharedKey()
	}
	return done, c.Change(func(tx *resource.Tx) error { return endConnection(tx, it.Record, c.Caller.UserID) })
}

// endConnection deletes a user's connection to a server, with its tokens.
func endConnection(tx *resource.Tx, server *resource.Record, user string) error {
	rec, ok, err := tx.Get(server.Scope, mcp.KindConnection.Of(server.ID), user)
	if err != nil || !ok {
		return err
	}
	oauthclient.StageEnd(tx, oauthclient.UserKey{Scope: server.Scope, Server: server.ID, User: user})
	return tx.Delete(&rec)
}
