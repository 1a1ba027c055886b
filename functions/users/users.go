// Package users is the family of the organization's users and of those who are
// invited to become one: list, read, change and remove; invite, resend, accept.
package users

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// Deps is what the family works with.
type Deps struct {
	// Mailer carries invitations; nil: their links are in responses only.
	Mailer notice.Mailer
	// PublicURL is where people reach the gateway, such as
	// https://gateway.example.com/v1; "": where the request went.
	PublicURL string
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.users, f.invites = f.describeUsers(), f.describeInvites()
	routes := slices.Concat(f.users.Routes(), f.ownershipRoutes(), f.invites.Routes())
	return admin.Family{Name: "users", Doc: "Users of the organization, and invitations.", Routes: append(routes, f.inviteRoutes()...)}
}

type family struct {
	Deps
	users   *admin.Collection[membership.User]
	invites *admin.Collection[membership.Invite]
}

type item = admin.Item[membership.User]

// paging is that of both lists.
var paging = admin.Paging{DefaultSize: 100, CamelToo: true}

var emailQuery = admin.Field{Name: "email", Type: admin.String, Max: 254, Doc: "Only the one with this address."}

func (f *family) describeUsers() *admin.Collection[membership.User] {
	return &admin.Collection[membership.User]{
		Kind: membership.KindUser, Object: "user", Path: "/admin/users", Aliases: []string{"/users"}, UUIDOnly: true,
		Scope: "organisation_users", Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin, Excluded: []string{"create"},
		List: admin.List{Paging: paging, Match: matches, Query: []admin.Field{
			{Name: "role", Type: admin.String, Enum: []string{membership.Owner, membership.Admin, membership.Member}, Doc: "Only those with this role."}, emailQuery,
		}},
		Fields: []admin.Field{
			{Name: "email", Fixed: true}, {Name: "first_name", Fixed: true, Absent: ""}, {Name: "last_name", Fixed: true, Absent: ""},
			{Name: "role", Enum: []string{membership.Owner, membership.Admin, membership.Member}},
		},
		Computed: []admin.ComputedField[membership.User]{
			{Field: admin.Field{Name: "workspace_ids", Type: admin.Array, Of: &admin.Field{Type: admin.String}, Required: true, Doc: "Workspaces that the user is a member of; all of them for owners and admins."}, Value: workspaces},
		},
		Adjust: func(action string, r *admin.Route) {
			switch action {
			case "update":
				r.Body = []admin.Field{{Name: "role", Type: admin.String, Required: true, Enum: []string{membership.Admin, membership.Member}, Doc: "The role in the organization."}}
				r.BodyMode, r.Doc, r.Do = admin.CompleteBody, "Change the role of a user. For ownership use /admin/users/{id}/ownership.", f.users.WithItem("update", f.setRole)
			case "delete":
				r.Doc = "Remove a user with all memberships and keys. The last owner cannot be removed, nor an owner who last saved an SSO configuration or auth_settings.jwks_url or jwks (409) until another owner saves or removes it."
				r.Do = f.users.WithItem("delete", f.remove)
			}
		},
	}
}

// byHand refuses to change the list of users where only the identity provider may do that.
func byHand(c *admin.Call, tx *resource.Tx) error {
	org, err := tenant.ReadSettings(tx, c.Organisation())
	if err == nil && org.Settings.ScimOnly {
		err = fault.New(fault.Conflict, "", "Users and their roles are managed only by the identity provider (scim_settings.scim_only)")
	}
	return err
}

// matches compares an address as it is stored, in one spelling.
func matches(c *admin.Call, row *resource.Row) bool {
	return (!c.Query.HasValue("role") || row.Fields["role"] == c.Query.Text("role")) && (!c.Query.HasValue("email") || row.Fields["email"] == membership.NormalizeEmail(c.Query.Text("email")))
}

// allWorkspaces is the name under which a call stores the ids of all workspaces.
const allWorkspaces = "all workspaces"

func workspaces(c *admin.Call, it item) any {
	if !it.Form.IsOrganisationAdmin() {
		return admin.OrEmpty(it.Form.Workspaces)
	}
	if ids := c.Value(allWorkspaces); ids != nil {
		return ids
	}
	rows, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return admin.OrEmpty(it.Form.Workspaces) // the best response that is known
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	c.SetValue(allWorkspaces, ids)
	return ids
}

// setRole makes a user an admin or a member of the organization. A user who is no longer an
// admin loses its keys in workspaces where it is not a member.
func (f *family) setRole(c *admin.Call) (any, error) {
	role := c.Body.Text("role")
	changed := false
	return nil, admin.Rounds(c, func(tx *resource.Tx) (more bool, err error) {
		it, err := f.users.FindIn(c, tx)
		if err == nil {
			err = byHand(c, tx)
		}
		if err != nil {
			return false, err
		}
		u := it.Form
		if err := c.Caller.Grantor().Grant("role", membership.OrganisationRights(role)); err != nil {
			return false, err
		}
		switch {
		case u.Role == membership.Owner:
			return false, fault.New(fault.NotAllowed, "role", "The role of an owner cannot be changed here; first send owner false to PUT /v1/admin/users/{id}/ownership")
		case u.Role == role && !changed:
			return false, nil
		case u.Role == role: // finishes a demotion
			return membership.Sweep(tx, c.Resources, it.Record, u)
		}
		if err := membership.SetRole(tx, it.Record, u, role, c.Actor()); err != nil {
			return false, err
		}
		changed = role == membership.Member
		return changed, nil
	})
}

func (f *family) remove(c *admin.Call) (any, error) {
	begun := false
	return nil, admin.Rounds(c, func(tx *resource.Tx) (more bool, err error) {
		it, err := f.users.FindIn(c, tx)
		if err != nil {
			if begun && fault.Is(err, fault.NotAllowed) {
				return false, nil // another call has finished it
			}
			return false, err
		}
		if err := byHand(c, tx); err != nil && !begun {
			return false, err
		}
		if it.Form.Role == membership.Owner {
			if !c.Caller.AtLeast(admin.Owner) {
				return false, admin.Denied()
			}
			if err := membership.CheckNotResponsible(tx, it.Record); err != nil {
				return false, err
			}
		}
		begun = true
		return membership.Remove(tx, c.Resources, it.Record, it.Form, c.Actor())
	})
}

var acceptedResponse = admin.Closed(map[string]admin.Schema{
	"object": {"type": "string", "const": "invite-acceptance"}, "user_id": {"type": "string"}, "organisation_id": {"type": "string"},
	"email": {"type": "string"}, "role": {"type": "string"},
	"workspaces": {"type": "array", "items": admin.Closed(map[string]admin.Schema{"workspace_id": {"type": "string"}, "role": {"type": "string"}})},
	"api_keys": {"type": "array", "items": admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "workspace_id": {"type": "string"}, "key": {"type": "string"},
	}), "description": "Keys created for the user. Only this response contains them."},
})

const actionAccept = audit.Accept

// ownershipRoutes make owners of users, and admins of owners. A transfer takes both, one
// after the other: between them there are two owners, and never none.
func (f *family) ownershipRoutes() []admin.Route {
	routes := f.users.ItemRoutes(admin.Route{
		Method: "PUT", Path: "/admin/users/{id}/ownership", Aliases: []string{"/users/{id}/ownership"}, Name: "setOwnership", Action: audit.Update, Errors: []int{409},
		Doc:  "Promote a user to owner of the organization, or demote an owner to admin. For owners, and for organization keys created by owners. The last owner cannot be demoted, nor an owner who last saved an SSO configuration or auth_settings.jwks_url or jwks (409) until another owner saves or removes it.",
		Body: []admin.Field{{Name: "owner", Type: admin.Boolean, Required: true, Doc: "Whether the user is an owner."}},
		Do:   f.users.WithItem("update", f.setOwnership),
	})
	for i := range routes {
		routes[i].Role, routes[i].Recent = admin.Owner, true
	}
	return routes
}

func (f *family) setOwnership(c *admin.Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := f.users.FindIn(c, tx)
		if err == nil {
			err = byHand(c, tx)
		}
		if err != nil {
			return err
		}
		owner := c.Body.Bool("owner")
		switch {
		case it.Form.Leaving:
			return fault.New(fault.Conflict, "id", "the user is being removed")
		case owner == (it.Form.Role == membership.Owner):
			return fault.Invalid("owner", "must differ from the present state of the user")
		}
		role := membership.Admin
		if owner {
			role = membership.Owner
		}
		if err := c.Caller.Grantor().Grant("owner", membership.OrganisationRights(role)); err != nil {
			return err
		}
		if !owner {
			if err := membership.CheckNotResponsible(tx, it.Record); err != nil {
				return err
			}
		}
		return membership.SetRole(tx, it.Record, it.Form, role, c.Actor())
	})
}

// mailTime bounds how long a call waits for its mail to be taken.
const mailTime = 10 * time.Second

// deliver sends the mail of an invitation and gives its link. A failed mail does not undo
// the invitation: its maker has the link and can send it again.
func (f *family) deliver(c *admin.Call, i *membership.Invite, token string) string {
	link := f.base(c.Request) + "/invites/accept?token=" + url.QueryEscape(token)
	if f.Mailer == nil {
		return link
	}
	ctx, cancel := context.WithTimeout(c.Context, mailTime)
	defer cancel()
	d, err := f.describe(c, c.Organisation(), i)
	if err == nil {
		err = f.Mailer.Send(ctx, invitation(d, i, link))
	}
	if err != nil {
		slog.Warn("an invitation could not be sent by mail", "request_id", c.RequestID, "error", err.Error())
	}
	return link
}

// base is the address that links begin with.
func (f *family) base(r *http.Request) string { return admin.Address(f.PublicURL, r) }

// plain replaces control characters, so that a name stays within one line of a mail.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

func invitation(d *described, i *membership.Invite, link string) notice.Mail {
	name, offer, end := plain(d.organization), plain(d.offer()), until(i.ExpiresAt)
	return notice.Mail{
		To: []string{i.Email}, Subject: "Invitation to " + name + " on the AI gateway",
		Text: fmt.Sprintf("%s invites you to join %s on the AI gateway %s.\n\nOpen this link to accept. It works once, until %s:\n\n%s\n\nIf you do not expect this invitation, leave it unopened.\n", plain(d.inviter), name, offer, end, link),
		HTML: fmt.Sprintf("<p>%s invites you to join <b>%s</b> on the AI gateway %s.</p><p><a href=\"%s\">Accept the invitation</a></p><p>The link works once, until %s. If you do not expect this invitation, leave it unopened.</p>",
			html.EscapeString(plain(d.inviter)), html.EscapeString(name), html.EscapeString(offer), html.EscapeString(link), html.EscapeString(end)),
	}
}
