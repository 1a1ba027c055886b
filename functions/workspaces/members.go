package workspaces

import (
	"fmt"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
)

// member is a membership with the user's id as its own.
type member = admin.Item[membership.Membership]

// maxMembers is how many one call adds.
const maxMembers = 1000

var memberRoles = []string{membership.Admin, membership.Manager, membership.Member}

// describeMembers are the members of a workspace. Owners and admins of the organization are
// admins of it without being members.
func (f *family) describeMembers() *admin.Collection[membership.Membership] {
	text := func(name, doc string) admin.ComputedField[membership.Membership] {
		return admin.ComputedField[membership.Membership]{Field: admin.Field{Name: name, Type: admin.String, Doc: doc, Absent: ""}}
	}
	return &admin.Collection[membership.Membership]{
		Kind: membership.KindMember, Object: "workspace-user", Path: "/admin/workspaces/{id}/users", Aliases: []string{"/workspaces/{id}/users"}, Param: "userId", UUIDOnly: true,
		Scope: "workspace_users", Level: admin.Shared, WriteRole: admin.Manager, Parent: f.workspaces.AsWorkspace(), Excluded: []string{"create"},
		List: admin.List{Query: []admin.Field{
			{Name: "role", Type: admin.String, Enum: memberRoles, Doc: "Only those with this role."}, {Name: "email", Type: admin.String, Max: 254, Doc: "Only the one with this address."},
		}, Match: func(c *admin.Call, row *resource.Row) bool {
			return (!c.Query.HasValue("role") || row.Fields["role"] == c.Query.Text("role")) && (!c.Query.HasValue("email") || row.Fields["email"] == membership.NormalizeEmail(c.Query.Text("email")))
		}},
		Fields: []admin.Field{{Name: "email", Fixed: true}, {Name: "role", Enum: memberRoles}},
		Computed: []admin.ComputedField[membership.Membership]{
			text("first_name", ""), text("last_name", ""), text("org_role", "owner, admin or member."),
			{Field: admin.Field{Name: "workspace_id", Type: admin.String, Required: true}, Value: func(_ *admin.Call, it member) any { return it.Scope.Workspace }},
			{Field: admin.Field{Name: "scopes", Type: admin.Array, Of: &admin.Field{Type: admin.String}, Required: true, Doc: "Permissions of the role."}, Value: func(_ *admin.Call, it member) any { return membership.ScopesOf(it.Form.Role) }},
			{Field: admin.Field{Name: "settings", Type: admin.Object, Open: true}, Value: func(*admin.Call, member) any { return nil }},
		},
		Decorate: names,
		Adjust: func(action string, r *admin.Route) {
			switch action {
			case "update":
				r.Body = []admin.Field{{Name: "role", Type: admin.String, Required: true, Enum: memberRoles, Example: membership.Member, Doc: "The role in the workspace."}}
				r.BodyMode, r.Doc, r.Do = admin.CompleteBody, "Change the role of a member. It cannot exceed the caller's own role.", f.members.WithItem("update", f.setMemberRole)
			case "delete":
				r.Doc, r.Do = "Remove a member. The user's keys in the workspace are deleted.", f.members.WithItem("delete", f.removeMember)
			}
		},
	}
}

// addRoute makes users of the organization members of a workspace.
func (f *family) addRoute() admin.Route {
	r := f.members.ItemRoutes(admin.Route{
		Method: "POST", Path: "/admin/workspaces/{id}/users", Aliases: []string{"/workspaces/{id}/users"}, Name: "addWorkspaceUsers", Action: audit.Create,
		Makes: "/admin/workspaces/{id}/users/{userId}", Named: map[string]string{"userId": "$request.body#/users/0/id"},
		Doc:    "Add users of the organization to a workspace, or change the roles of members. Roles cannot exceed the caller's own.",
		Scopes: f.members.ScopesFor("create"), Response: admin.EmptyResponse, Errors: []int{409}, Do: f.members.WithItem("create", f.addMembers),
		Body: []admin.Field{{Name: "users", Type: admin.Array, Required: true, Min: 1, Max: maxMembers, Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
			{Name: "id", Type: admin.String, Required: true, Min: 1, Max: 64, Reference: "/admin/users", Doc: "Id of the user."}, {Name: "role", Type: admin.String, Required: true, Enum: memberRoles, Example: membership.Member},
		}}}},
	})
	return r[0]
}

// usersField are the members of a workspace that is read alone.
var usersField = admin.Field{Name: "users", Type: admin.Array, Single: true, Optional: true, Doc: "The members, newest first, for callers with the scope workspace_users.list.", Form: admin.Schema{"type": "array", "items": admin.Closed(map[string]admin.Schema{
	"id": {"type": "string"}, "email": {"type": "string"}, "role": {"type": "string", "enum": memberRoles},
})}}

// showUsers adds the members to a workspace that is read alone, for who may list them.
func showUsers(c *admin.Call, items []item, objects []admin.Members) error {
	if c.Route.Name != "getWorkspace" || len(items) != 1 || !c.Caller.HasAny([]string{"workspace_users.list"}) {
		return nil
	}
	rows, err := c.Resources.List(c.Context, inside(items[0].Record), membership.KindMember)
	if err != nil {
		return err
	}
	users := make([]any, len(rows))
	for i := range rows {
		users[i] = admin.Members{"id": rows[i].ID, "email": rows[i].Fields["email"], "role": rows[i].Fields["role"]}
	}
	objects[0][usersField.Name] = users
	return nil
}

// names shows who the members are; the users of a page are read together.
func names(c *admin.Call, items []member, objects []admin.Members) error {
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), membership.KindUser, ids)
	if err != nil {
		return err
	}
	users := make(map[string]*membership.User, len(recs))
	for i := range recs {
		if users[recs[i].ID], err = membership.DecodeUser(recs[i]); err != nil {
			return err
		}
	}
	for i := range items {
		if u := users[items[i].ID]; u != nil {
			objects[i]["first_name"], objects[i]["last_name"], objects[i]["org_role"] = u.FirstName, u.LastName, u.Role
		}
	}
	return nil
}

// within returns an error if a role of the workspace is above the caller's own.
func within(c *admin.Call, role string) error {
	return c.Caller.Grantor().Grant("", authority.Permissions{Rank: identity.Rank(role)})
}

// mayGive returns an error unless the caller may give a role of the workspace, with all
// that the role allows.
func mayGive(c *admin.Call, field, role string) error {
	return c.Caller.Grantor().Grant(field, membership.PermissionsOf(identity.Rank(role)))
}

func (f *family) addMembers(c *admin.Call) (any, error) {
	sent := c.Body.Objects("users")
	seen := map[string]bool{}
	var bad []fault.Detail
	for i, in := range sent {
		if err := mayGive(c, fmt.Sprintf("users[%d].role", i), in.Text("role")); err != nil {
			return nil, err
		}
		if id := in.Text("id"); seen[id] {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("users[%d].id", i), Message: "must not be listed twice"})
		} else {
			seen[id] = true
		}
	}
	if err := f.allUsers(c, sent, bad); err != nil {
		return nil, err
	}
	type entry struct {
		at int
		in admin.Values
	}
	entries := make([]entry, len(sent))
	for i := range sent {
		entries[i] = entry{i, sent[i]}
	}
	return nil, admin.InChunks(c, entries, 6+identity.RowsOfKey, func(tx *resource.Tx, part []entry) error {
		if err := tx.Require(c.ParentRecord().Ref()); err != nil {
			return err
		}
		for _, e := range part {
			if err := f.addMember(c, tx, e.in.Text("id"), e.in.Text("role"), fmt.Sprintf("users[%d].id", e.at)); err != nil {
				return err
			}
		}
		return nil
	})
}

// allUsers rejects entries that name no user, before anything is written.
func (f *family) allUsers(c *admin.Call, sent []admin.Values, bad []fault.Detail) error {
	rows, err := c.Resources.List(c.Context, c.Organisation(), membership.KindUser)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(rows))
	for i := range rows {
		known[rows[i].ID] = true
	}
	for i, in := range sent {
		if !known[in.Text("id")] {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("users[%d].id", i), Message: "must name a user of the organization"})
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return nil
}

func (f *family) addMember(c *admin.Call, tx *resource.Tx, id, role, field string) error {
	user, u, ok, err := membership.ByID(tx, c.Organisation(), id)
	if err != nil {
		return err
	}
	if !ok || u.Leaving {
		return fault.Invalid(field, "must name a user of the organization")
	}
	if u.MemberOf(c.Scope.Workspace) {
		was, there, err := tx.Get(c.Scope, membership.KindMember, id)
		if err != nil {
			return err
		}
		if there {
			if err := withinMember(c, &was); err != nil {
				return err
			}
		}
	}
	joined, err := membership.Join(tx, &user, u, c.Scope.Workspace, role, c.Actor())
	if err != nil || !joined {
		return err
	}
	creates, err := membership.Creates(tx, c.Scope)
	if err != nil || !creates {
		return err
	}
	_, _, err = membership.CreateUserKey(tx, c.Resources, c.Sealer, c.Scope, &user, nil, c.Caller.Rank, c.Actor())
	return err
}

// withinMember rejects changes to a member with a role above the caller's.
func withinMember(c *admin.Call, rec *resource.Record) error {
	form, err := membership.DecodeMembership(*rec)
	if err != nil {
		return err
	}
	return within(c, form.Role)
}

func (f *family) setMemberRole(c *admin.Call) (any, error) {
	role := c.Body.Text("role")
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := f.members.FindIn(c, tx)
		if err != nil {
			return err
		}
		if err := within(c, it.Form.Role); err != nil {
			return err
		}
		if err := mayGive(c, "role", role); err != nil {
			return err
		}
		return membership.SetMemberRole(tx, it.Record, role, c.Actor())
	})
}

func (f *family) removeMember(c *admin.Call) (any, error) {
	begun := false
	return nil, admin.Rounds(c, func(tx *resource.Tx) (more bool, err error) {
		it, err := f.members.FindIn(c, tx)
		if err != nil {
			if begun && fault.Is(err, fault.NotAllowed) {
				return false, nil // another call has finished it
			}
			return false, err
		}
		if err := within(c, it.Form.Role); err != nil {
			return false, err
		}
		begun = true
		return membership.EndMembership(tx, c.Resources, it.Record, c.Actor())
	})
}

// startWith makes the users that a new workspace names its admins.
func (f *family) startWith(c *admin.Call, tx *resource.Tx, ch *change) error {
	ids := c.Body.Texts("users")
	if len(ids) > 0 {
		if err := mayGive(c, "users", membership.Admin); err != nil {
			return err
		}
	}
	slices.Sort(ids)
	for i, id := range slices.Compact(ids) {
		user, u, ok, err := membership.ByID(tx, c.Organisation(), id)
		if err != nil {
			return err
		}
		if !ok || u.Leaving {
			return fault.Invalid(fmt.Sprintf("users[%d]", i), "must name a user of the organization")
		}
		if _, err := membership.Join(tx, &user, u, ch.Rec.ID, membership.Admin, c.Actor()); err != nil {
			return err
		}
	}
	return nil
}

// maxFirst is how many users a new workspace begins with.
const maxFirst = 8
