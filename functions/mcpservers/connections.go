package mcpservers

import (
	"slices"
	"strconv"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/resource"
)

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
	routes := f.connections.Below(
		admin.Route{Method: "GET", Path: path, Name: "listMcpServerConnections", Doc: "List the users who have signed in. Members see only themselves.",
			Query: append(connectionPaging.Fields(), user), Answer: admin.MoreEnvelope.Schema(admin.Closed(map[string]admin.Schema{
				"user_id": {"type": "string"}, "connected": {"type": "boolean"}, "created_at": {"type": "string", "format": "date-time"}, "last_updated_at": {"type": "string", "format": "date-time"},
			})), Do: f.connections.At("read", f.listConnections)},
		admin.Route{Method: "DELETE", Path: path, Name: "deleteMcpServerConnection", Doc: "Delete the sign-in of a user.", Action: audit.Delete,
			Query: []admin.Field{user}, Answer: admin.Closed(map[string]admin.Schema{"success": {"type": "boolean", "const": true}}), Do: f.connections.At("update", f.deleteConnection)},
	)
	routes[1].Scopes = []string{scopeServers + ".delete"}
	return routes
}

// whose returns the user that a call may act for, or "" for any user.
func whose(c *admin.Call) (string, error) {
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
	user, err := whose(c)
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
	user, err := whose(c)
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
