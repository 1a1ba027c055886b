package scim

import (
	"slices"
	"strings"
)

// Names of schemas and messages.
const (
	UserURN       = "urn:ietf:params:scim:schemas:core:2.0:User"
	GroupURN      = "urn:ietf:params:scim:schemas:core:2.0:Group"
	EnterpriseURN = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
	schemaURN     = "urn:ietf:params:scim:schemas:core:2.0:Schema"
	PatchURN      = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	ListURN       = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	ErrorURN      = "urn:ietf:params:scim:api:messages:2.0:Error"
)

// attribute is an attribute of a schema: RFC 7643, 7.
type attribute struct {
	name, doc  string
	kind       string // string, boolean, complex or reference; empty means string
	multi      bool
	required   bool
	exact      bool   // case-sensitive
	mutability string // empty means readWrite
	returned   string // empty means default
	unique     string // empty means none
	values     []string
	refers     []string
	sub        []attribute
}

func (a *attribute) readOnly() bool { return a.mutability == "readOnly" }

// Schema describes a kind of resource.
type Schema struct {
	URN, Name, Doc string
	attributes     []attribute
	// Extension is the schema's extension, or nil.
	Extension *Schema
}

// plural returns a multi-valued attribute with types and a primary value.
func plural(name, doc string, types ...string) attribute {
	return attribute{name: name, doc: doc, kind: "complex", multi: true, sub: []attribute{
		{name: "value", doc: "The value."}, {name: "display", doc: "Human-readable value."}, {name: "type", doc: "Purpose of the value.", values: types},
		{name: "primary", kind: "boolean", doc: "Whether it is the primary value."},
	}}
}

func text(name, doc string) attribute { return attribute{name: name, doc: doc} }

// enterprise is the extension of users.
var enterprise = Schema{URN: EnterpriseURN, Name: "EnterpriseUser", Doc: "Users of organisations", attributes: []attribute{
	text("employeeNumber", "Number of the employee."), text("costCenter", "Cost center."), text("organization", "Organisation."),
	text("division", "Division."), text("department", "Department."),
	{name: "manager", kind: "complex", doc: "Who manages the user.", sub: []attribute{
		text("value", "Id of the manager."), {name: "$ref", kind: "reference", refers: []string{"User"}, exact: true, doc: "Address of the manager."}, {name: "displayName", mutability: "readOnly", doc: "Name of the manager."},
	}},
}}

// Users is the schema of users.
var Users = Schema{URN: UserURN, Name: "User", Doc: "Users of the organization", Extension: &enterprise, attributes: []attribute{
	{name: "userName", required: true, unique: "server", doc: "Name of the user at the identity provider; default: the address."},
	{name: "name", kind: "complex", doc: "Name of the user.", sub: []attribute{
		text("formatted", "The full name."), text("familyName", "Last name."), text("givenName", "First name."), text("middleName", "Middle name."),
		text("honorificPrefix", "Prefix of the name."), text("honorificSuffix", "Suffix of the name."),
	}},
	text("displayName", "First and last name."), text("nickName", "Nickname."),
	{name: "profileUrl", kind: "reference", refers: []string{"external"}, exact: true, doc: "URL of the user's profile."},
	text("title", "Title, such as Vice President."), text("userType", "Kind of user, such as Contractor."), text("preferredLanguage", "Language, such as en-US."),
	text("locale", "Locale, such as en-US."), text("timezone", "Time zone, such as Europe/Berlin."),
	{name: "active", kind: "boolean", doc: "Whether the user may sign in and use keys."},
	plural("emails", "Addresses; the primary one, of a verified domain, is the user's.", "work", "home", "other"),
	plural("phoneNumbers", "Telephone numbers.", "work", "home", "mobile", "fax", "pager", "other"),
	{name: "addresses", kind: "complex", multi: true, doc: "Addresses of the user.", sub: []attribute{
		text("formatted", "The whole address."), text("streetAddress", "Street."), text("locality", "City."), text("region", "State."), text("postalCode", "Postal code."),
		text("country", "Country."), {name: "type", values: []string{"work", "home", "other"}, doc: "Purpose of the value."}, {name: "primary", kind: "boolean", doc: "Whether it is the primary value."},
	}},
	{name: "groups", kind: "complex", multi: true, mutability: "readOnly", doc: "Groups of the user. They can be written if the organization's settings allow it.", sub: []attribute{
		{name: "value", mutability: "readOnly", doc: "Id of the group."}, {name: "$ref", kind: "reference", refers: []string{"Group"}, exact: true, mutability: "readOnly", doc: "Address of the group."},
		{name: "display", mutability: "readOnly", doc: "Name of the group."}, {name: "type", mutability: "readOnly", values: []string{"direct", "indirect"}, doc: "Whether the user is a direct member."},
	}},
	plural("entitlements", "Entitlements of the user."),
	plural("roles", "owner, admin or member of the organization, case-insensitive. The highest of several applies; unknown values mean member."),
}}

// WithGroups is the schema of users with their groups.
var WithGroups = withGroups()

func withGroups() *Schema {
	out := Users
	out.attributes = slices.Clone(Users.attributes)
	g := find(out.attributes, "groups")
	g.mutability, g.sub = "", slices.Clone(g.sub)
	for i := range g.sub {
		g.sub[i].mutability = ""
	}
	return &out
}

// Groups is the schema of groups.
var Groups = Schema{URN: GroupURN, Name: "Group", Doc: "Groups of users", attributes: []attribute{
	{name: "displayName", required: true, unique: "server", doc: "Name of the group."},
	{name: "members", kind: "complex", multi: true, doc: "Users in the group.", sub: []attribute{
		{name: "value", mutability: "immutable", exact: true, doc: "Id of the user."}, {name: "$ref", kind: "reference", refers: []string{"User"}, exact: true, mutability: "immutable", doc: "Address of the user."},
		{name: "type", mutability: "immutable", values: []string{"User"}, doc: "What it is."}, {name: "display", mutability: "readOnly", doc: "Human-readable name of the user."},
	}},
}}

// common are the attributes of every resource.
var common = []attribute{
	{name: "schemas", multi: true, exact: true}, {name: "id", exact: true, mutability: "readOnly"}, {name: "externalId", exact: true},
	{name: "meta", kind: "complex", mutability: "readOnly", sub: []attribute{
		{name: "resourceType", exact: true}, {name: "created"}, {name: "lastModified"}, {name: "location", exact: true}, {name: "version", exact: true},
	}},
}

// ignoredAttributes are attributes of RFC 7643 that are accepted but not stored.
var ignoredAttributes = []string{"password", "ims", "photos", "x509Certificates"}

func find(list []attribute, name string) *attribute {
	for i := range list {
		if strings.EqualFold(list[i].name, name) {
			return &list[i]
		}
	}
	return nil
}

// attribute returns an attribute by its path, or nil.
func (s *Schema) attribute(p attrPath) *attribute {
	list := s.attributes
	if p.urn != "" && !strings.EqualFold(p.urn, s.URN) {
		if s.Extension == nil || !strings.EqualFold(p.urn, s.Extension.URN) {
			return nil
		}
		list = s.Extension.attributes
	}
	a := find(list, p.name)
	if a == nil && p.urn == "" {
		a = find(common, p.name)
	}
	if a == nil || p.sub == "" {
		return a
	}
	return find(a.sub, p.sub)
}

// coreURN reports whether the attributes of a schema are at the top level.
func coreURN(urn string) bool {
	return strings.EqualFold(urn, UserURN) || strings.EqualFold(urn, GroupURN)
}

// caseExact reports whether comparisons of an attribute are case-sensitive.
func caseExact(p attrPath, inside bool) bool {
	if inside {
		return p.name == "$ref"
	}
	for _, s := range []*Schema{&Users, &Groups} {
		if a := s.attribute(p); a != nil {
			return a.exact
		}
	}
	return false
}

// Document returns the schema in the form of RFC 7643, 8.7.
func (s *Schema) Document(location string) map[string]any {
	return map[string]any{
		"schemas": []string{schemaURN}, "id": s.URN, "name": s.Name, "description": s.Doc, "attributes": described(s.attributes),
		"meta": map[string]any{"resourceType": "Schema", "location": location + "/" + s.URN},
	}
}

func described(list []attribute) []any {
	out := make([]any, len(list))
	for i := range list {
		a := &list[i]
		or := func(s, standard string) string {
			if s == "" {
				return standard
			}
			return s
		}
		m := map[string]any{
			"name": a.name, "type": or(a.kind, "string"), "multiValued": a.multi, "description": a.doc, "required": a.required,
			"mutability": or(a.mutability, "readWrite"), "returned": or(a.returned, "default"),
		}
		if a.kind != "complex" && a.kind != "boolean" {
			m["caseExact"], m["uniqueness"] = a.exact, or(a.unique, "none")
		}
		if len(a.values) > 0 {
			m["canonicalValues"] = a.values
		}
		if len(a.refers) > 0 {
			m["referenceTypes"] = a.refers
		}
		if len(a.sub) > 0 {
			m["subAttributes"] = described(a.sub)
		}
		out[i] = m
	}
	return out
}

// All lists all schemas.
func All() []*Schema { return []*Schema{&Users, &enterprise, &Groups} }

// Select keeps the attributes of a resource that a client requests, or removes those that it
// excludes (RFC 7644, 3.9). id, schemas and meta stay.
func Select(resource map[string]any, only, without []string) {
	always := []string{"id", "schemas"}
	if len(only) > 0 {
		filterAttributes(resource, only, always)
		return
	}
	for _, name := range without {
		p, ok := parseName(name)
		if !ok || slices.ContainsFunc(always, func(a string) bool { return strings.EqualFold(a, p.name) }) {
			continue
		}
		drop(resource, p)
	}
}

func filterAttributes(resource map[string]any, only, always []string) {
	for k, v := range resource {
		if slices.ContainsFunc(always, func(a string) bool { return strings.EqualFold(a, k) }) {
			continue
		}
		var subs []string
		whole := false
		for _, name := range only {
			p, ok := parseName(name)
			switch {
			case strings.EqualFold(name, k):
				whole = true
			case ok && p.urn != "" && !coreURN(p.urn) && strings.EqualFold(p.urn, k):
				subs = append(subs, p.name)
			case ok && (p.urn == "" || coreURN(p.urn)) && strings.EqualFold(p.name, k):
				whole = whole || p.sub == ""
				subs = append(subs, p.sub)
			}
		}
		switch {
		case whole:
		case len(subs) == 0:
			delete(resource, k)
		default:
			for _, e := range each(v) {
				if m, ok := e.(map[string]any); ok {
					filterAttributes(m, subs, nil)
				}
			}
		}
	}
}

func drop(in map[string]any, p attrPath) {
	of := in
	if p.urn != "" && !coreURN(p.urn) {
		of, _ = member(in, p.urn).(map[string]any)
	}
	for k, v := range of {
		if !strings.EqualFold(k, p.name) {
			continue
		}
		if p.sub == "" {
			delete(of, k)
			continue
		}
		for _, e := range each(v) {
			if m, ok := e.(map[string]any); ok {
				drop(m, attrPath{name: p.sub})
			}
		}
	}
}
