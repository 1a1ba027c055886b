package sharing

import (
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
)

// Users describes the routes by which a server of a workspace is opened to users.
type Users[T any] struct {
	Of     *admin.Collection[T]
	Path   string // of the routes: /mcp-servers/{serverId}/user-access
	Object string // the word of an entry: mcp-server-user
	Name   string // in operation ids: McpServer
	Kind   resource.Kind
	Scope  string // family of scopes; "": those of the server
	// Default is the member of the server's form that holds for users without an
	// entry.
	Default func(form *T) *string
	// Connected returns which users have signed in upstream; if nil, responses omit the fields
	// about it.
	Connected func(c *admin.Call, server *resource.Record, users []string) (map[string]bool, error)
}

// Paging of lists that count from one.
var fromOne = admin.Paging{Page: "page", Size: "page_size", First: 1, DefaultSize: 100, MaxSize: 500}

// FromOne is the paging of capabilities, skills and user access.
func FromOne() admin.Paging { return fromOne }

const defaultAccess = "default_user_access"

// Routes are GET and PUT.
func (u Users[T]) Routes() []admin.Route {
	entries := &admin.Collection[access.User]{
		Kind: u.Kind, Object: u.Object, Path: u.Path, Param: "userId", Scope: u.Scope, Parent: u.Of.AsParent(),
		WriteRole: u.Of.WriteRole, Fields: []admin.Field{{Name: "enabled", Required: true}}, Before: u.before,
	}
	search := admin.Field{Name: "search", Type: admin.String, Min: 1, Max: 255, Doc: "Part of the e-mail address."}
	get := entries.ItemRoutes(admin.Route{
		Method: "GET", Path: u.Path, Name: "list" + u.Name + "UserAccess", Doc: "List the members of the workspace with their access.",
		Query: append(fromOne.Fields(), search), Response: u.schema(), Do: entries.WithItem("list", u.list),
	})
	put := entries.BulkRoute(admin.BulkWrite{
		Name: "update" + u.Name + "UserAccess", Doc: "Grant or revoke access of users, and set the default for all others.", Field: "user_access", Key: "user_id", Reference: "/admin/users", Max: maxNamed,
		More:     []admin.Field{{Name: defaultAccess, Type: admin.String, Enum: []string{access.Allow, access.Deny}, Doc: "Access of users without an entry."}},
		Response: Done, Reply: admin.Members{"success": true}, Finish: u.finish,
	})
	put.BodyMode = admin.PartialBody
	return append(get, put)
}

// Done is the response {"success":true}.
var Done = admin.Closed(map[string]admin.Schema{"success": {"type": "boolean", "const": true}})

func (u Users[T]) schema() admin.Schema {
	entry := map[string]admin.Schema{
		"user_id": {"type": "string"}, "first_name": {"type": "string"}, "last_name": {"type": "string"}, "enabled": {"type": "boolean"}, "has_override": {"type": "boolean"},
	}
	if u.Connected != nil {
		entry["connection_status"] = admin.Schema{"type": "string", "enum": []string{"connected", "not_connected"}}
	}
	return admin.Closed(map[string]admin.Schema{
		"data": {"type": "array", "items": admin.Closed(entry)}, defaultAccess: {"type": "string", "enum": []string{access.Allow, access.Deny}},
		"total": {"type": "integer"}, "has_more": {"type": "boolean"},
	})
}

// before rejects an entry for a user who is not a member of the workspace.
func (u Users[T]) before(c *admin.Call, tx *resource.Tx, ch *admin.Change[access.User]) error {
	if !ch.Creates() {
		return nil
	}
	_, user, ok, err := membership.ByID(tx, c.Organisation(), ch.Rec.ID)
	if err != nil {
		return err
	}
	if !ok || !user.IsOrganisationAdmin() && !user.MemberOf(c.Scope.Workspace) {
		return fault.Invalid("user_id", "must name a member of the workspace")
	}
	return nil
}

func (u Users[T]) finish(c *admin.Call, tx *resource.Tx) error {
	if !c.Body.HasValue(defaultAccess) {
		return nil
	}
	parent := c.ParentRecord()
	_, err := admin.Amend(tx, parent.Scope, parent.Kind, parent.ID, func(form *T) { *u.Default(form) = c.Body.Text(defaultAccess) })
	return err
}

func (u Users[T]) list(c *admin.Call) (any, error) {
	page, err := fromOne.Of(c.Query)
	if err != nil {
		return nil, err
	}
	parent := c.ParentRecord()
	it, err := u.Of.Find(c)
	if err != nil {
		return nil, err
	}
	members, err := c.Resources.List(c.Context, store.Scope{Org: parent.Scope.Org, Workspace: parent.Scope.Workspace}, membership.KindMember)
	if err != nil {
		return nil, err
	}
	part := strings.ToLower(c.Query.Text("search"))
	var ids []string
	for i := range members {
		if part == "" || strings.Contains(strings.ToLower(members[i].Name), part) {
			ids = append(ids, members[i].ID)
		}
	}
	cut := admin.Cut(ids, page)
	byDefault := *u.Default(it.Form)
	if byDefault == "" {
		byDefault = access.Allow
	}
	entries, err := u.entries(c, parent, cut, byDefault)
	if err != nil {
		return nil, err
	}
	return admin.Members{"data": entries, defaultAccess: byDefault, "total": len(ids), "has_more": page.Number*page.Size < int64(len(ids))}, nil
}

// entries are the users of a page, which are read together.
func (u Users[T]) entries(c *admin.Call, server *resource.Record, ids []string, byDefault string) ([]admin.Members, error) {
	own, err := c.Resources.GetMany(c.Context, server.Scope, u.Kind.Of(server.ID), ids)
	if err != nil {
		return nil, err
	}
	overrides := make(map[string]*access.User, len(own))
	for i := range own {
		if overrides[own[i].ID], err = access.DecodeUser(own[i]); err != nil {
			return nil, err
		}
	}
	users, err := c.Resources.GetMany(c.Context, c.Organisation(), membership.KindUser, ids)
	if err != nil {
		return nil, err
	}
	names := make(map[string]*membership.User, len(users))
	for i := range users {
		if names[users[i].ID], err = membership.DecodeUser(users[i]); err != nil {
			return nil, err
		}
	}
	connected := map[string]bool{}
	if u.Connected != nil {
		if connected, err = u.Connected(c, server, ids); err != nil {
			return nil, err
		}
	}
	out := make([]admin.Members, len(ids))
	for i, id := range ids {
		first, last := "", ""
		if user := names[id]; user != nil {
			first, last = user.FirstName, user.LastName
		}
		out[i] = admin.Members{"user_id": id, "first_name": first, "last_name": last, "enabled": access.Permits(byDefault, overrides[id]), "has_override": overrides[id] != nil}
		if u.Connected != nil {
			out[i]["connection_status"] = map[bool]string{true: "connected", false: "not_connected"}[connected[id]]
		}
	}
	return out, nil
}
