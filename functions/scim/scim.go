// Package scim is the family of identity providers that keep users and groups in step
// (SCIM 2.0): the protocol, its tokens, and which workspaces members of groups join.
package scim

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.mappings, f.tokens = f.describe(), f.describeTokens()
	return admin.Family{
		Prefix: "/scim/", Unknown: &rejections,
		Name: "scim", Doc: "Users and groups of an identity provider (SCIM 2.0), and mappings of groups to workspaces.",
		Routes: slices.Concat(f.mappings.Routes(), known().Routes(), f.tokens.Routes(), (&groups{&users{f}}).protocol()),
	}
}

// family holds the mappings, the tokens, and what every part of the protocol needs.
type family struct {
	Deps
	mappings *admin.Collection[membership.Mapping]
	tokens   *admin.Collection[token]
}

// users serves the users of the protocol, and changes their keys and memberships with them.
type users struct{ family *family }

// groups serves the groups of the protocol, and changes the workspaces that their members
// join.
type groups struct{ users *users }

type change = admin.Change[membership.Mapping]

// scopes are those of the organization's settings.
func scopes(action string) []string {
	if action == "list" || action == "read" {
		return []string{"organisation_settings.read"}
	}
	return []string{"organisation_settings.update"}
}

var (
	roles  = []string{membership.Admin, membership.Manager, membership.Member}
	paging = admin.Paging{Page: "page", Size: "page_size", DefaultSize: 100}
)

// mappingEnvelope is the form of the list.
var mappingEnvelope = admin.Envelope{
	Wrap: func(entries []any, total int, p admin.Page) any {
		return admin.Members{"mappings": entries, "total_count": total, "page": p.Number, "page_size": p.Size}
	},
	Schema: func(entry admin.Schema) admin.Schema {
		return admin.Closed(map[string]admin.Schema{"mappings": {"type": "array", "items": entry}, "total_count": {"type": "integer"}, "page": {"type": "integer"}, "page_size": {"type": "integer"}})
	},
}

// success is the response of a delete.
var success = admin.Closed(map[string]admin.Schema{"success": {"type": "boolean", "const": true}})

func (f *family) describe() *admin.Collection[membership.Mapping] {
	role := admin.Field{Name: "role", Required: true, Convert: spelled, Type: admin.String, Min: 1, Max: 16, Doc: "admin, manager or member, case-insensitive.", Form: admin.Schema{"type": "string", "example": "member"}}
	return &admin.Collection[membership.Mapping]{
		Kind: membership.KindMapping, Object: "scim-workspace-mapping", Path: "/scim/workspaces", Param: "mappingId", UUIDOnly: true,
		Scopes: scopes, Resource: "scim_mappings", Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin, Excluded: []string{"read", "update"},
		List: admin.List{Paging: paging, Envelope: &mappingEnvelope, Match: matches, Query: []admin.Field{
			{Name: "workspace_id", Type: admin.String, Min: 1, Max: 255, Doc: "Only those of this workspace, by id or slug."},
			{Name: "scim_group_id", Type: admin.String, Min: 1, Max: 64, Doc: "Only those of this group."},
			{Name: "role", Type: admin.String, Enum: roles, Doc: "Only those with this role."},
		}},
		Fields: []admin.Field{
			{Name: "workspace_id", Required: true, Type: admin.String, Min: 1, Max: 255, Doc: "Id or slug of the workspace.", Reference: "/admin/workspaces"}, role,
			{Name: "scim_group_id", Type: admin.String, Min: 1, Max: 64, Doc: "Id or name of the group."},
			{Name: "scim_group_name", Type: admin.String, Min: 1, Max: 255, Trigger: true, Example: "Engineering", Doc: "Name of the group, which is created if it does not exist."},
			{Name: "scim_group", Type: admin.String, UpdateOnly: true},
		},
		Before:  f.bind,
		Created: &admin.Reply{},
		Adjust: func(action string, r *admin.Route) {
			switch action {
			case "create":
				r.Doc = "Map a group to a workspace: its members join the workspace."
				create := r.Do
				r.Do = func(c *admin.Call) (any, error) {
					made, err := create(c)
					var taken *fault.Fault
					if errors.As(err, &taken) && taken.Code == fault.Conflict && taken.Field == "slug" {
						if err = f.joinAll(c); err == nil { // finishes what an earlier call left undone
							err = fault.New(fault.Conflict, "workspace_id", "the group is already mapped to this workspace")
						}
					}
					if err != nil {
						return nil, err
					}
					return made, f.joinAll(c)
				}
			case "delete":
				r.Doc, r.Response, r.Do = "Delete a mapping. Users who joined through it remain in the workspace.", success, f.mappings.WithItem("delete", f.remove)
			}
		},
	}
}

// spelled is a role in lower case.
func spelled(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	var s string
	if json.Unmarshal(raw, &s) != nil || !slices.Contains(roles, strings.ToLower(s)) {
		return nil, []fault.Detail{{Message: "must be one of " + strings.Join(roles, ", ")}}
	}
	out, err := json.Marshal(strings.ToLower(s))
	if err != nil {
		return nil, []fault.Detail{{Message: "cannot be stored"}}
	}
	return out, nil
}

// workspaceValue is the name under which a call stores the workspace that it requests.
const workspaceValue = "workspace"

func matches(c *admin.Call, row *resource.Row) bool {
	if c.Query.HasValue("workspace_id") {
		id, _ := c.Value(workspaceValue).(string)
		if id == "" {
			id = c.Query.Text("workspace_id")
			if ws, ok, err := c.Workspace(id); err == nil && ok {
				id = ws.ID
			}
			c.SetValue(workspaceValue, id)
		}
		if row.Fields[membership.FieldWorkspace] != id {
			return false
		}
	}
	return (!c.Query.HasValue("scim_group_id") || row.Fields[membership.FieldGroup] == c.Query.Text("scim_group_id")) &&
		(!c.Query.HasValue("role") || row.Fields[membership.FieldRole] == c.Query.Text("role"))
}

// bind finds workspace and group of a new mapping.
func (f *family) bind(c *admin.Call, tx *resource.Tx, ch *change) error {
	if c.Body.HasValue("scim_group_id") == c.Body.HasValue("scim_group_name") {
		return fault.Invalid("scim_group_id", "or scim_group_name is required; send one of them")
	}
	ws, ok, err := c.Workspace(ch.Form.WorkspaceID)
	if err != nil {
		return err
	}
	if !ok || ws.Archived() {
		return fault.Invalid("workspace_id", "must name a workspace of the organization")
	}
	ch.Form.WorkspaceID = ws.ID
	if err := c.Caller.Grantor().Grant("role", membership.PermissionsOf(identity.Rank(ch.Form.Role))); err != nil {
		return err
	}
	var of resource.Record
	var g *membership.Group
	if c.Body.HasValue("scim_group_name") {
		name := strings.TrimSpace(c.Body.Text("scim_group_name"))
		if name == "" {
			return fault.Invalid("scim_group_name", "must not be blank")
		}
		of, g, err = membership.GroupByName(tx, c.Organisation(), name, c.Actor())
	} else {
		of, g, err = membership.GroupByID(tx, c.Organisation(), c.Body.Text("scim_group_id"))
	}
	if err != nil {
		return err
	}
	c.SetValue(mapped, of.ID)
	g.Remap()
	return membership.Map(tx, ch.Rec, ch.Form, of, g, c.Actor())
}

// mapped is the name under which a call stores the group that it maps.
const mapped = "group"

// joinAll makes all members of a group that was mapped join the workspace.
func (f *family) joinAll(c *admin.Call) error {
	group, _ := c.Value(mapped).(string)
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), membership.KindGroup, group)
	if err != nil || !ok {
		return err
	}
	g, err := membership.DecodeGroup(rec)
	if err != nil || !g.Remapped {
		return err
	}
	ids, err := membership.InGroup(c.Context, c.Resources, c.Organisation(), group)
	if err != nil {
		return err
	}
	if err := f.settle(c, g.EndedOf(group), false, ids...); err != nil {
		return err
	}
	return f.membersSettled(c, group)
}

func (f *family) remove(c *admin.Call) (any, error) {
	return admin.Members{"success": true}, c.Change(func(tx *resource.Tx) error {
		it, err := f.mappings.FindIn(c, tx)
		if err != nil {
			return err
		}
		return membership.Unmap(tx, it.Record, it.Form, c.Actor())
	})
}

// known lists the groups that the identity provider has brought, or a mapping has named.
func known() *admin.Collection[membership.Group] {
	return &admin.Collection[membership.Group]{
		Kind: membership.KindGroup, Object: "scim-group", Path: "/scim/groups", Param: "groupId",
		Scopes: scopes, Resource: "scim_groups", Level: admin.InOrganisation, ReadRole: admin.Admin, Excluded: []string{"create", "read", "update", "delete"},
		List:   admin.List{Paging: paging, Search: true},
		Fields: []admin.Field{admin.NameField(255)},
		Computed: []admin.ComputedField[membership.Group]{
			{Field: admin.Field{Name: "role", Type: admin.String, Doc: "The role that its mappings grant."}, Value: func(_ *admin.Call, it admin.Item[membership.Group]) any { return admin.OrNull(it.Form.Role) }},
			{Field: admin.Field{Name: "mappings", Type: admin.Integer, Required: true, Doc: "Number of workspaces that its members join."}, Value: func(_ *admin.Call, it admin.Item[membership.Group]) any { return it.Form.Mappings }},
		},
	}
}

// kindToken is the kind of the tokens of identity providers.
const kindToken resource.Kind = "SCIM_TOKEN"

// token is the stored form of a token, which cannot be read back. Rank is that of its creator,
// and empty in tokens from before ranks were stored.
type token struct {
	Hash   string        `json:"hash"`
	Masked string        `json:"masked_token"`
	Rank   identity.Rank `json:"rank,omitempty"`
	// Sponsor answers for the token, as for a service key.
	Sponsor string `json:"sponsor,omitempty"`
}

// Tokens, and the partition kind of the rows that they are found by.
const (
	tokenPrefix     = "scim-"
	tokenLength     = len(tokenPrefix) + 43
	tokenCredential = "SCIM"
	rankOfToken     = "rank" // member of these rows
)

// maxTokens is how many an organization may have.
const maxTokens = 200

// tokens lets an organization's admins hand tokens to identity providers.
func (f *family) describeTokens() *admin.Collection[token] {
	return &admin.Collection[token]{
		Kind: kindToken, Object: "scim-token", Path: "/scim/tokens", Param: "tokenId", UUIDOnly: true,
		Scopes: scopes, Resource: "scim_tokens", Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin, Excluded: []string{"update"},
		Fields: []admin.Field{admin.NameField(255)},
		Computed: []admin.ComputedField[token]{
			{Field: admin.Field{Name: "masked_token", Type: admin.String, Required: true, Doc: "Its first and last characters."}, Value: func(_ *admin.Call, it admin.Item[token]) any { return it.Form.Masked }},
		},
		Before: func(c *admin.Call, tx *resource.Tx, ch *admin.Change[token]) error {
			if !ch.Creates() {
				return nil
			}
			// A token makes admins of the organization.
			if err := c.Caller.Grantor().Grant("", membership.PermissionsOf(identity.RankOrganisationAdmin)); err != nil {
				return err
			}
			rows, err := tx.List(c.Organisation(), kindToken)
			if err != nil {
				return err
			}
			if len(rows) >= maxTokens {
				return fault.Newf(fault.QuotaReached, "", "an organization has at most %d tokens: delete one first", maxTokens)
			}
			var b [32]byte
			_, _ = rand.Read(b[:]) // never fails (crypto/rand)
			raw := tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
			ch.Form.Rank, ch.Form.Sponsor = c.Caller.Rank, cmp.Or(c.Caller.ResponsibleUser(), identity.NoSponsor)
			ch.Form.Hash, ch.Form.Masked = identity.HashToken(raw), identity.Mask(raw)
			c.SetValue(tokenCredential, raw)
			return tx.CreateCredential(store.Row{Key: store.Credential(tokenCredential, ch.Form.Hash), Item: store.Item{"org": ch.Rec.Scope.Org, "id": ch.Rec.ID, rankOfToken: string(ch.Form.Rank)}})
		},
		Retire: func(_ *admin.Call, tx *resource.Tx, it admin.Item[token]) error {
			tx.DeleteCredential(store.Credential(tokenCredential, it.Form.Hash))
			return nil
		},
		Adjust: func(action string, r *admin.Route) {
			r.Recent = action == "create" || action == "delete"
			switch action {
			case "delete":
				r.Doc = "Revoke a token. It becomes invalid within two seconds."
			case "create":
				r.Doc = "Create a token for an identity provider, which calls /scim with it as a bearer token. Only this response contains it. Only a token created by an owner can create, change and deactivate owners. It is rejected with 403 while its creator is no admin of the organization."
				r.Response = admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "token": {"type": "string"}})
				create := r.Do
				r.Do = func(c *admin.Call) (any, error) {
					made, err := create(c)
					if err != nil {
						return nil, err
					}
					return admin.Members{"id": made.(admin.Members)["id"], "token": c.Value(tokenCredential)}, nil
				}
			}
		},
		Created: &admin.Reply{Members: []string{"id"}},
	}
}
