package scim

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/scim"
	"gateway/shared/store"
)

// Deps is what the family works with.
type Deps struct {
	Loader    *resource.Loader
	Sessions  *signin.Sessions
	PublicURL string // where clients reach the gateway; "": where the request went
}

// NewDeps returns the dependencies in an installation.
func NewDeps(c *app.Core) Deps {
	return Deps{Loader: c.Loader, Sessions: signin.New(c.Loader, c.Resources), PublicURL: c.PublicURL}
}

// mediaType is that of the protocol.
const mediaType = "application/scim+json"

// provision is the scope of the protocol, which tokens of identity providers alone have.
const provision = "scim.provision"

// rejections are in the form of RFC 7644, 3.12.
var rejections = admin.Rejections{
	ContentType: mediaType, Challenge: "Bearer",
	Schema: admin.Closed(map[string]admin.Schema{
		"schemas": {"type": "array", "items": admin.Schema{"type": "string"}}, "status": {"type": "string"}, "scimType": {"type": []string{"string", "null"}}, "detail": {"type": "string"},
	}),
	Body: func(_ *admin.Call, f *fault.Fault) any {
		out := admin.Members{"schemas": []string{scim.ErrorURN}, "status": strconv.Itoa(f.Status()), "detail": detail(f)}
		if t := scim.TypeOf(f); t != "" {
			out["scimType"] = string(t)
		} else {
			out["scimType"] = nil
		}
		return out
	},
}

// detail puts all that is wrong into one text.
func detail(f *fault.Fault) string {
	if len(f.Details) < 2 {
		if f.Field != "" && f.Status() < 500 {
			return f.Field + ": " + f.Message
		}
		return f.Message
	}
	parts := make([]string, len(f.Details))
	for i, d := range f.Details {
		parts[i] = strings.TrimPrefix(d.Field+": "+d.Message, ": ")
	}
	return strings.Join(parts, "; ")
}

// caller finds the organization of a token, and the rank of who made it, at that time and now. A
// token from before ranks were stored has that of an admin of the organization.
func (f *family) caller(ctx context.Context, r *http.Request, _ string) (admin.Caller, error) {
	token, _, err := identity.Token(r.Header)
	if err != nil {
		return admin.Caller{}, err
	}
	refused := fault.New(fault.Unauthorized, "", "The token is not a SCIM token, or it was revoked")
	if len(token) != tokenLength || !strings.HasPrefix(token, tokenPrefix) {
		return admin.Caller{}, refused
	}
	found, ok, err := resource.LoadCredential(ctx, f.Loader, tokenCredential, identity.HashToken(token), func(it store.Item) (admin.Caller, error) {
		rank := cmp.Or(identity.Rank(it.String(rankOfToken)), identity.RankOrganisationAdmin)
		return admin.Caller{KeyID: it.String("id"), Type: "scim", Scope: store.Scope{Org: it.String("org")}, Scopes: only, Rank: rank}, nil
	})
	if err != nil {
		return admin.Caller{}, err
	}
	if !ok {
		return admin.Caller{}, refused
	}
	v, err := f.Loader.Fresh(ctx, found.Scope.Org)
	if err != nil {
		return admin.Caller{}, err
	}
	now, err := membership.LoadLimited(ctx, v, found.Scope, kindToken, found.KeyID, found.Rank, only)
	if err != nil {
		return admin.Caller{}, err
	}
	if identity.RankOrganisationAdmin.IsHigherThan(now.Rank) {
		return admin.Caller{}, fault.New(fault.NotAllowed, "", "The user who created this SCIM token is no longer an admin of the organization. An admin creates another token with POST /scim/tokens and deletes this one")
	}
	found.Rank, found.Sponsor = now.Rank, now.Sponsor
	return found, nil
}

var only = identity.NewScopeSet(provision)

// protocol are the routes of RFC 7644.
func (f *groups) protocol() []admin.Route {
	text := func(name, doc string, most int64) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	one := []admin.Field{text("attributes", "Only these attributes, comma-separated.", 2048), text("excludedAttributes", "Without these attributes, comma-separated.", 2048)}
	list := append([]admin.Field{
		text("filter", "Condition, such as userName eq \"ann@example.com\" (RFC 7644, 3.4.2.2).", scim.MaxFilter),
		{Name: "startIndex", Type: admin.Integer, Doc: "Number of the first resource, from 1."}, {Name: "count", Type: admin.Integer, Doc: "Number of resources, at most 200."},
	}, one...)
	routes := []admin.Route{
		{Method: "GET", Path: "/scim/Users", Name: "scimListUsers", Doc: "List users, including deactivated ones.", Query: list, Do: f.users.listUsers},
		{Method: "POST", Path: "/scim/Users", Name: "scimCreateUser", Doc: "Create a user. A pending invitation of the address is accepted.", Status: http.StatusCreated, Query: one, Body: userBody, Action: audit.Create, Errors: []int{409}, Do: f.users.createUser},
		{Method: "GET", Path: "/scim/Users/{scimId}", Name: "scimGetUser", Doc: "Read a user.", Query: one, Errors: []int{304}, Do: f.users.getUser},
		{Method: "PUT", Path: "/scim/Users/{scimId}", Name: "scimReplaceUser", Doc: "Replace a user. active false deactivates it with its keys, sessions and memberships; active true restores them.", Query: one, Body: userBody, Action: audit.Update, Errors: []int{409, 412}, Do: f.users.putUser},
		{Method: "PATCH", Path: "/scim/Users/{scimId}", Name: "scimPatchUser", Doc: "Change a user.", Query: one, Body: patchBody(userExample), Action: audit.Update, Errors: []int{409, 412}, Do: f.users.patchUser},
		{Method: "DELETE", Path: "/scim/Users/{scimId}", Name: "scimDeleteUser", Doc: "Delete a user with all memberships and keys.", Status: http.StatusNoContent, Action: audit.Delete, Errors: []int{412}, Do: f.users.deleteUser},
		{Method: "GET", Path: "/scim/Groups", Name: "scimListGroups", Doc: "List groups.", Query: list, Do: f.listGroups},
		{Method: "POST", Path: "/scim/Groups", Name: "scimCreateGroup", Doc: "Create a group. Depending on its name it is automatically mapped to a workspace and a role.", Status: http.StatusCreated, Query: one, Body: groupBody, Action: audit.Create, Errors: []int{409}, Do: f.createGroup},
		{Method: "GET", Path: "/scim/Groups/{scimId}", Name: "scimGetGroup", Doc: "Read a group.", Query: one, Errors: []int{304}, Do: f.getGroup},
		{Method: "PUT", Path: "/scim/Groups/{scimId}", Name: "scimReplaceGroup", Doc: "Replace a group and its members.", Query: one, Body: groupBody, Action: audit.Update, Errors: []int{409, 412}, Do: f.putGroup},
		{Method: "PATCH", Path: "/scim/Groups/{scimId}", Name: "scimPatchGroup", Doc: "Change a group or its members.", Query: one, Body: patchBody(groupExample), Action: audit.Update, Errors: []int{409, 412}, Do: f.patchGroup},
		{Method: "DELETE", Path: "/scim/Groups/{scimId}", Name: "scimDeleteGroup", Doc: "Delete a group. Users who were members of a workspace only through it are removed from the workspace; a workspace created for its name is archived if no other group maps to it.", Status: http.StatusNoContent, Action: audit.Delete, Errors: []int{412}, Do: f.deleteGroup},
		{Method: "POST", Path: "/scim/Bulk", Name: "refuseScimBulk", Doc: "Reject bulk operations: send them as separate requests.", Body: bulkBody, Action: audit.Update, Errors: []int{501}, Do: rejectBulk},
	}
	routes = append(routes, f.users.family.discovery()...)
	for i := range routes {
		r := &routes[i]
		r.Scopes, r.Level, r.Authenticate, r.Rejections, r.Produces = []string{provision}, admin.InOrganisation, f.users.family.caller, &rejections, mediaType
		if r.ResponseOf == nil && r.Status != http.StatusNoContent {
			r.Response = admin.Schema{"type": "object"}
		}
		if r.Action != "" {
			r.Resource = "scim_users"
			if strings.Contains(r.Path, "/Groups") {
				r.Resource = "scim_groups"
			}
		}
		if r.Body != nil {
			r.BodyMode = admin.OptionalBody // the protocol reports a missing body in its own way
		}
	}
	return routes
}

func rejectBulk(c *admin.Call) (any, error) {
	out := fault.New(fault.UnsupportedOperation, "", "Bulk operations are not supported; send each operation as a separate request")
	out.StatusCode = http.StatusNotImplemented
	return admin.Response{Status: out.StatusCode, JSON: rejections.Body(c, out)}, nil // a response nevertheless, not a failure
}

// Bodies as the document shows them. The package scim reads and checks them, in which names
// match in any case.
var (
	userExample = map[string]any{"schemas": []string{scim.PatchURN}, "Operations": []any{map[string]any{"op": "replace", "path": "active", "value": false}}}

	groupExample = map[string]any{"schemas": []string{scim.PatchURN}, "Operations": []any{map[string]any{"op": "replace", "path": "displayName", "value": "Engineering"}}}

	userBody = []admin.Field{
		anything("schemas", "Names of the schemas.", []string{scim.UserURN}), anything("userName", "The identity provider's name of the user.", "ann@example.com"),
		anything("externalId", "Id of the user at the identity provider.", "00u1"), anything("name", "Name of the user.", map[string]any{"givenName": "Ann", "familyName": "Lee"}),
		anything("displayName", "The full name.", "Ann Lee"), anything("active", "false deactivates the user.", true), anything("emails", "Addresses; the primary one is the user's.", []any{map[string]any{"value": "ann@example.com", "type": "work", "primary": true}}),
		anything("roles", "owner, admin or member.", []any{map[string]any{"value": "member"}}), anything("groups", "Groups, if users are written with their groups.", nil),
	}
	bulkBody = []admin.Field{
		anything("schemas", "Names of the message's schemas.", []string{"urn:ietf:params:scim:api:messages:2.0:BulkRequest"}), anything("failOnErrors", "Number of errors after which to stop.", 1),
		anything("Operations", "What to do: RFC 7644, 3.7.", []any{map[string]any{"method": "DELETE", "path": "/Users/00u1"}}),
	}
	groupBody = []admin.Field{
		anything("schemas", "Names of the schemas.", []string{scim.GroupURN}), anything("displayName", "Name of the group.", "Engineering"), anything("externalId", "Id of the group at the identity provider.", "00g1"),
		anything("members", "Users in the group.", []any{}),
	}
)

func anything(name, doc string, example any) admin.Field {
	return admin.Field{Name: name, Type: admin.Any, Doc: doc, Example: example}
}

func patchBody(example map[string]any) []admin.Field {
	return []admin.Field{anything("schemas", "Names of the message's schemas.", example["schemas"]), anything("Operations", "What to add, replace and remove: RFC 7644, 3.5.2.", example["Operations"])}
}

// base is the address of the protocol.
func (f *family) base(c *admin.Call) string { return admin.Address(f.PublicURL, c.Request) + "/scim" }

// version is the entity tag of a record.
func version(rec *resource.Record) string { return `W/"` + strconv.FormatInt(rec.Rev, 10) + `"` }

// meta is what every resource states about itself.
func meta(kind, location string, rec *resource.Record) map[string]any {
	return map[string]any{
		"resourceType": kind, "created": admin.FormatTime(rec.Created), "lastModified": admin.FormatTime(rec.Changed()), "location": location, "version": version(rec),
	}
}

// tagged reports whether a list of entity tags contains a record's.
func tagged(header string, rec *resource.Record) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(version(rec), "W/") {
			return true
		}
	}
	return false
}

// unchanged refuses to change a resource that is no longer as the client has seen it.
func unchanged(c *admin.Call, rec *resource.Record) error {
	if tags := c.Request.Header.Values("If-Match"); len(tags) > 0 && !tagged(strings.Join(tags, ","), rec) {
		out := fault.New(fault.Conflict, "if-match", "the resource has changed since it was read")
		out.StatusCode = http.StatusPreconditionFailed
		return out.WithCause(scim.Type(""))
	}
	return nil
}

// respond returns a resource with its entity tag.
func respond(c *admin.Call, rec *resource.Record, doc map[string]any) admin.Response {
	h := http.Header{"Etag": {version(rec)}}
	if at, ok := doc["meta"].(map[string]any); ok {
		if location, ok := at["location"].(string); ok {
			h.Set("Location", location)
		}
	}
	if c.Request.Method == http.MethodGet {
		if tags := c.Request.Header.Values("If-None-Match"); len(tags) > 0 && tagged(strings.Join(tags, ","), rec) {
			return admin.Response{Status: http.StatusNotModified, Header: h}
		}
	}
	filterAttributes(c, doc)
	return admin.Response{JSON: doc, Header: h}
}

// filterAttributes removes attributes that the client did not request.
func filterAttributes(c *admin.Call, docs ...map[string]any) {
	only, without := names(c.Query.Text("attributes")), names(c.Query.Text("excludedAttributes"))
	for _, doc := range docs {
		scim.Select(doc, only, without)
	}
}

func names(list string) (out []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// isRequested reports whether an attribute is requested.
func isRequested(c *admin.Call, attribute string) bool {
	has := func(list []string) bool {
		for _, n := range list {
			n = n[strings.LastIndexByte(n, ':')+1:]
			if first, _, _ := strings.Cut(n, "."); strings.EqualFold(first, attribute) {
				return true
			}
		}
		return false
	}
	if only := names(c.Query.Text("attributes")); len(only) > 0 {
		return has(only)
	}
	for _, n := range names(c.Query.Text("excludedAttributes")) {
		if strings.EqualFold(n, attribute) {
			return false
		}
	}
	return true
}

// Bounds of lists.
const (
	standardCount = 100
	maxCount      = 200
)

// page returns the requested range of a list.
func page(c *admin.Call, total int) (from, until, start int) {
	start, count := 1, standardCount
	if c.Query.HasValue("startIndex") {
		start = int(min(max(c.Query.Int("startIndex"), 1), 1<<30))
	}
	if c.Query.HasValue("count") {
		count = int(min(max(c.Query.Int("count"), 0), maxCount))
	}
	from = min(start-1, total)
	return from, min(from+count, total), start
}

func listed(total, start int, docs []map[string]any) map[string]any {
	if docs == nil {
		docs = []map[string]any{}
	}
	return map[string]any{"schemas": []string{scim.ListURN}, "totalResults": total, "startIndex": start, "itemsPerPage": len(docs), "Resources": docs}
}

// rounds makes a change in several parts, without the audit record of the call.
func (f *family) rounds(c *admin.Call, step func(tx *resource.Tx) (more bool, err error)) error {
	for {
		var more bool
		err := c.Resources.Change(c.Context, c.Organisation(), func(tx *resource.Tx) (err error) {
			more, err = step(tx)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// missing is the rejection of an id that does not exist, or not in this organization.
func missing(c *admin.Call) error {
	return fault.New(fault.NotFound, "id", "there is no resource "+fault.Clip(c.Param("scimId"), 64))
}

// discovery describes the service to clients: RFC 7644, 4.
func (f *family) discovery() []admin.Route {
	return []admin.Route{
		{Method: "GET", Path: "/scim/ServiceProviderConfig", Name: "getScimServiceProviderConfig", Doc: "Read the supported parts of the protocol.", Do: func(c *admin.Call) (any, error) { return providerConfig(f.base(c)), nil }},
		{Method: "GET", Path: "/scim/ResourceTypes", Name: "listScimResourceTypes", Doc: "List resource types.", Do: func(c *admin.Call) (any, error) {
			all := resourceTypes(f.base(c))
			return listed(len(all), 1, all), nil
		}},
		{Method: "GET", Path: "/scim/ResourceTypes/{resourceType}", Name: "getScimResourceType", Doc: "Read a resource type.", Params: []admin.Field{{Name: "resourceType", Type: admin.String, Enum: []string{"User", "Group"}}}, Do: func(c *admin.Call) (any, error) {
			return byID(resourceTypes(f.base(c)), c.Param("resourceType"))
		}},
		{Method: "GET", Path: "/scim/Schemas", Name: "listScimSchemas", Doc: "List schemas.", Do: func(c *admin.Call) (any, error) {
			all := schemas(f.base(c))
			return listed(len(all), 1, all), nil
		}},
		{Method: "GET", Path: "/scim/Schemas/{schemaUrn}", Name: "getScimSchema", Doc: "Read a schema.", Params: []admin.Field{{Name: "schemaUrn", Type: admin.String, Enum: []string{scim.UserURN, scim.EnterpriseURN, scim.GroupURN}}}, Do: func(c *admin.Call) (any, error) {
			return byID(schemas(f.base(c)), c.Param("schemaUrn"))
		}},
	}
}

func byID(all []map[string]any, id string) (any, error) {
	for _, one := range all {
		if s, _ := one["id"].(string); strings.EqualFold(s, id) {
			return one, nil
		}
	}
	return nil, fault.New(fault.NotFound, "", "there is no "+fault.Clip(id, 64))
}

func schemas(base string) (out []map[string]any) {
	for _, s := range scim.All() {
		out = append(out, s.Document(base+"/Schemas"))
	}
	return out
}

func resourceTypes(base string) []map[string]any {
	one := func(id, endpoint, schema, doc string) map[string]any {
		return map[string]any{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"}, "id": id, "name": id, "endpoint": endpoint, "description": doc, "schema": schema,
			"meta": map[string]any{"resourceType": "ResourceType", "location": base + "/ResourceTypes/" + id},
		}
	}
	user := one("User", "/Users", scim.UserURN, "Users of the organization")
	user["schemaExtensions"] = []any{map[string]any{"schema": scim.EnterpriseURN, "required": false}}
	return []map[string]any{user, one("Group", "/Groups", scim.GroupURN, "Groups of users")}
}

func providerConfig(base string) map[string]any {
	yes, no := map[string]any{"supported": true}, map[string]any{"supported": false}
	return map[string]any{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"patch":   yes, "sort": no, "etag": yes, "changePassword": no,
		"bulk":   map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter": map[string]any{"supported": true, "maxResults": maxCount},
		"authenticationSchemes": []any{map[string]any{
			"type": "oauthbearertoken", "name": "Bearer token", "description": "A token of the organization, created with POST /scim/tokens", "specUri": "https://www.rfc-editor.org/rfc/rfc6750", "primary": true,
		}},
		"meta": map[string]any{"resourceType": "ServiceProviderConfig", "location": base + "/ServiceProviderConfig"},
	}
}
