package users

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/acceptance"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/signin/browser"
	"gateway/shared/tenant"
)

type (
	invite       = admin.Item[membership.Invite]
	inviteChange = admin.Change[membership.Invite]
)

// tokenKey is the name under which a call stores the token for its response and its mail.
const tokenKey = "token"

func (f *family) describeInvites() *admin.Collection[membership.Invite] {
	text := func(name string) admin.Field { return admin.Field{Name: name, Type: admin.String, Required: true} }
	return &admin.Collection[membership.Invite]{
		Kind: membership.KindInvite, Object: "invite", Path: "/admin/users/invites", Aliases: []string{"/users/invites", "/invites"}, UUIDOnly: true, ArchivedReachable: true,
		Scope: "organisation_users", Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin, Excluded: []string{"update"},
		List: admin.List{Paging: paging, Ended: true, Match: matchesInvite, Query: []admin.Field{
			{Name: "role", Type: admin.String, Enum: []string{membership.Admin, membership.Member}, Doc: "Only those with this role."}, emailQuery,
			{Name: "status", Type: admin.String, Enum: []string{membership.Pending, membership.Cancelled, membership.Accepted, membership.Expired}, Doc: "Only those in this state."},
		}},
		Fields: []admin.Field{
			{Name: "email", Required: true, Doc: "Who is invited."},
			{Name: "role", Required: true, Doc: "The role in the organization."},
			{Name: "workspaces", Doc: "Workspaces that the user joins.", Of: &admin.Field{Fields: []admin.Field{
				{Name: "id", Required: true, Reference: "/admin/workspaces"}, {Name: "role", Required: true},
			}}},
			{Name: "workspace_api_key_details", Doc: "Creates a key with these scopes in each workspace for the user who accepts.", Hidden: true},
		},
		Computed: []admin.ComputedField[membership.Invite]{
			{Field: admin.Field{Name: "status", Type: admin.String, Required: true, Enum: []string{membership.Pending, membership.Cancelled, membership.Accepted, membership.Expired}},
				Value: func(c *admin.Call, it invite) any { return it.Form.StateAt(c.Now) }},
			{Field: admin.Field{Name: "expires_at", Type: admin.Timestamp, Required: true}, Value: func(_ *admin.Call, it invite) any { return admin.FormatTime(it.Form.ExpiresAt) }},
			{Field: admin.Field{Name: "accepted_at", Type: admin.Timestamp}, Value: func(_ *admin.Call, it invite) any {
				if it.Form.AcceptedAt == nil {
					return nil
				}
				return admin.FormatTime(*it.Form.AcceptedAt)
			}},
			{Field: admin.Field{Name: "invited_by", Type: admin.String}, Value: func(_ *admin.Call, it invite) any { return admin.OrNull(it.Form.InvitedBy) }},
			{Field: admin.Field{Name: "workspaces", Type: admin.Array, Required: true, Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{{Name: "id", Type: admin.String, Required: true, Doc: "The workspace as named in the request: an id or a slug."}, text("workspace_id"), text("role")}}},
				Value: func(_ *admin.Call, it invite) any { return invitedTo(it.Form.Workspaces) }},
		},
		Adjust: func(action string, r *admin.Route) {
			switch action {
			case "create":
				r.Action, r.Resource = audit.Invite, "organisation_users"
				r.ResponseOf = withLink(r.ResponseOf)
				r.Doc = "Invite a user by email. The link is valid once, for 7 days."
				r.Do = f.respondWithLink(r.Do)
			case "delete":
				r.Doc, r.Do = "Cancel a pending invitation.", f.invites.WithItem("delete", f.cancel)
			}
		},
		Check:   checkInvite,
		Before:  f.prepare,
		Created: &admin.Reply{},
	}
}

// withLink adds the link to the schema of an invitation.
func withLink(invitation func() admin.Schema) func() admin.Schema {
	return func() admin.Schema {
		s := maps.Clone(invitation())
		members, _ := s["properties"].(map[string]admin.Schema)
		required, _ := s["required"].([]string)
		members = maps.Clone(members)
		members["invite_link"] = admin.Schema{"type": "string"}
		s["properties"], s["required"] = members, append(slices.Clone(required), "invite_link")
		return s
	}
}

// invitedTo are the workspaces of an invitation, each as it was named and by its id.
func invitedTo(all []membership.InvitedTo) any {
	out := make([]admin.Members, len(all))
	for i, to := range all {
		out[i] = admin.Members{"id": cmp.Or(to.Sent, to.ID), "workspace_id": to.ID, "role": to.Role}
	}
	return out
}

// joinedTo are the workspaces that an accepted invitation opened.
func joinedTo(all []membership.InvitedTo) any {
	out := make([]admin.Members, len(all))
	for i, to := range all {
		out[i] = admin.Members{"workspace_id": to.ID, "role": to.Role}
	}
	return out
}

func matchesInvite(c *admin.Call, row *resource.Row) bool {
	return matches(c, row) && (!c.Query.HasValue("status") || membership.StateOf(row, c.Now) == c.Query.Text("status"))
}

// checkInvite returns the faults of the workspaces and scopes of a body.
func checkInvite(_ *admin.Call, ch *inviteChange) (bad []fault.Detail) {
	form := ch.Form
	if form.Keys == nil {
		return bad
	}
	if len(form.Keys.Scopes) == 0 {
		bad = append(bad, fault.Detail{Field: "workspace_api_key_details.scopes", Message: "must have an entry"})
	}
	for i, s := range form.Keys.Scopes {
		if !identity.WorkspaceUser.Grantable(identity.NormalScope(s)) {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("workspace_api_key_details.scopes[%d]", i), Message: "is not a scope that keys of users may hold"})
		}
	}
	return bad
}

// mayInvite checks that everything that an invitation gives is within the rights of the
// caller, who could accept the link itself.
func mayInvite(c *admin.Call, form *membership.Invite) error {
	by := c.Caller.Grantor()
	if err := by.Grant("role", membership.OrganisationRights(form.Role)); err != nil {
		return err
	}
	for i, to := range form.Workspaces {
		if err := by.Grant(fmt.Sprintf("workspaces[%d].role", i), membership.PermissionsOf(identity.Rank(to.Role))); err != nil {
			return err
		}
	}
	if form.Keys == nil {
		return nil
	}
	return by.GrantScopes("workspace_api_key_details.scopes", form.Keys.Scopes, nil)
}

// prepare checks the workspaces of a new invitation and gives it its token.
func (f *family) prepare(c *admin.Call, tx *resource.Tx, ch *inviteChange) error {
	if err := byHand(c, tx); err != nil {
		return err
	}
	form := ch.Form
	var bad []fault.Detail
	seen := map[string]bool{}
	for i := range form.Workspaces {
		to, at := &form.Workspaces[i], fmt.Sprintf("workspaces[%d].id", i)
		ws, ok, err := tx.Get(c.Organisation(), tenant.KindWorkspace, to.ID)
		switch {
		case err != nil:
			return err
		case !ok || ws.Archived():
			bad = append(bad, fault.Detail{Field: at, Message: "must name a workspace of the organization"})
		case seen[ws.ID]:
			bad = append(bad, fault.Detail{Field: at, Message: "must not be listed twice"})
		}
		if to.ID != ws.ID {
			to.Sent = to.ID
		}
		to.ID, seen[ws.ID] = ws.ID, true
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	if err := mayInvite(c, form); err != nil {
		return err
	}
	if form.Keys != nil {
		form.Keys.Scopes = identity.NewScopeSet(form.Keys.Scopes...).Sorted()
	}
	form.InvitedBy, form.Rank, form.Sponsor = c.Actor(), c.Caller.Rank, cmp.Or(c.Caller.ResponsibleUser(), identity.NoSponsor)
	token, err := membership.PrepareInvite(tx, ch.Rec, form)
	c.SetValue(tokenKey, token)
	c.SetValue("invite", *form)
	if err != nil {
		return err
	}
	return stageNotice(tx, ch.Rec, form)
}

// stageNotice stages the notice of a sent invitation.
func stageNotice(tx *resource.Tx, rec *resource.Record, i *membership.Invite) error {
	a, err := notice.Stage(i.Notice(rec, notice.InviteSent, i.Email+" was invited"), tx.Now())
	if err == nil {
		tx.Do(a, nil)
	}
	return err
}

// inviteRoutes are the routes of one invitation beside those that every record
// has.
func (f *family) inviteRoutes() []admin.Route {
	var aliases, accepts []string
	for _, p := range []string{"/users/invites", "/invites"} {
		aliases, accepts = append(aliases, p+"/{id}/resend"), append(accepts, p+"/accept")
	}
	routes := f.invites.ItemRoutes(admin.Route{
		Method: "POST", Path: "/admin/users/invites/{id}/resend", Aliases: aliases, Name: "resendInvite", Action: audit.Resend, Errors: []int{409},
		Doc:      "Resend an invitation with a new link and a new validity period. The previous link becomes invalid.",
		Response: admin.Closed(map[string]admin.Schema{"invite_link": {"type": "string"}, "inviteLink": {"type": "string"}}), Do: f.invites.WithItem("update", f.resend),
	})
	token := admin.Field{Name: "token", Type: admin.String, Max: 256, Doc: "The token of the link; not needed with the query parameter."}
	query := []admin.Field{{Name: "token", Type: admin.String, Max: 256, Doc: "The token of the link."}}
	accept := admin.Route{
		Method: "POST", Path: "/admin/users/invites/accept", Aliases: accepts, Name: "acceptInvite", Public: true, Action: actionAccept, Resource: "organisation_users",
		Doc:   "Accept an invitation: the user joins the organization and the workspaces, and gets a key if the invitation includes one.",
		Query: query, Errors: []int{403, 404, 409}, Response: acceptedResponse, Do: f.accept, BodyMode: admin.OptionalBody,
		Body: []admin.Field{token, {Name: "first_name", Type: admin.String, Max: 255}, {Name: "last_name", Type: admin.String, Max: 255}},
	}
	page := admin.Route{
		Method: "GET", Path: accept.Path, Aliases: accepts, Name: "showInvite", Public: true, Errors: []int{404}, Produces: "text/html; charset=utf-8", Query: query,
		Doc: "Show the page of an invitation link, with status 404 if the link is not valid. Opening it does not accept the invitation.", Response: admin.Schema{"type": "string"}, Do: f.page,
	}
	return append(routes, accept, page)
}

// respondWithLink sends the mail of a new invitation and responds with its link.
func (f *family) respondWithLink(create func(*admin.Call) (any, error)) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) {
		made, err := create(c)
		if err != nil {
			var conflict *fault.Fault
			if errors.As(err, &conflict) && conflict.Code == fault.Conflict && conflict.Field == "slug" {
				err = fault.New(fault.Conflict, "email", "already has a pending invitation: resend or delete it")
			}
			return nil, err
		}
		form := c.Value("invite").(membership.Invite)
		out := made.(admin.Members)
		out["invite_link"] = f.deliver(c, &form, c.Value(tokenKey).(string))
		return out, nil
	}
}

// pending finds the invitation of the path, if it can still be changed.
func (f *family) pending(c *admin.Call, tx *resource.Tx, states ...string) (invite, error) {
	it, err := f.invites.FindIn(c, tx)
	if err != nil {
		return it, err
	}
	if state := it.Form.StateAt(tx.Now()); it.Archived() || !slices.Contains(states, state) {
		return it, fault.Newf(fault.Conflict, "id", "the invitation is %s", state)
	}
	return it, nil
}

func (f *family) cancel(c *admin.Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := f.pending(c, tx, membership.Pending, membership.Expired)
		if err != nil {
			return err
		}
		return membership.Close(tx, it.Record, it.Form, membership.Cancelled, c.Actor())
	})
}

func (f *family) resend(c *admin.Call) (any, error) {
	var token string
	var form membership.Invite
	err := c.Change(func(tx *resource.Tx) error {
		it, err := f.pending(c, tx, membership.Pending, membership.Expired)
		if err != nil {
			return err
		}
		if err := mayInvite(c, it.Form); err != nil { // who gets the link may accept it
			return err
		}
		it.Form.Sponsor = cmp.Or(c.Caller.ResponsibleUser(), identity.NoSponsor)
		if token, err = membership.Renew(tx, it.Record, it.Form); err != nil {
			return err
		}
		form = *it.Form
		if err := stageNotice(tx, it.Record, it.Form); err != nil {
			return err
		}
		return f.invites.Save(c, tx, it)
	})
	if err != nil {
		return nil, err
	}
	link := f.deliver(c, &form, token)
	return admin.Members{"invite_link": link, "inviteLink": link}, nil // as a create names it, and as this route always did
}

// accept accepts an invitation by its token. The audit log names the new user as the actor.
func (f *family) accept(c *admin.Call) (any, error) {
	if !browser.SameOrigin(c.Request, f.PublicURL) {
		return nil, fault.New(fault.NotAllowed, "origin", "An invitation is accepted on the gateway's own page, or by a program. Open the link")
	}
	token := c.Body.Text("token")
	if token == "" {
		token = c.Query.Text("token")
	}
	if token == "" {
		return nil, fault.Invalid("token", "is required: the token of the link")
	}
	a, err := acceptance.Accept(c, token, c.Body.Text("first_name"), c.Body.Text("last_name"))
	if err != nil {
		return nil, err
	}
	keys := []admin.Members{}
	for _, k := range a.Keys {
		keys = append(keys, admin.Members{"id": k.ID, "workspace_id": k.Workspace, "key": k.Secret})
	}
	return admin.Members{
		"object": "invite-acceptance", "user_id": a.User, "organisation_id": a.Org.Org, "email": a.Invite.Email, "role": a.Invite.Role,
		"workspaces": joinedTo(a.Invite.Workspaces), "api_keys": keys,
	}, nil
}

// until writes a time for membership.
func until(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }
