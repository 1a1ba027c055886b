package scim

import (
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/signin/scim"
	"gateway/shared/signin/sso"
	"gateway/shared/tenant"
)

// wanted is what a resource states about a user.
type wanted struct {
	login       *membership.Provisioned
	email       string
	first, last string
	role        string // "": it does not say
	demoted     bool
	active      bool
	groups      []string // nil: they are not written with users
}

// Bounds of users.
const (
	maxName    = 255
	maxLogin   = 254
	maxProfile = 16 << 10
)

// own are attributes that the gateway stores in the user's record or derives from it.
var own = []string{"schemas", "id", "meta", "userName", "externalId", "active", "displayName", "roles", "groups"}

// schema is that of users, by the organization's settings.
func (f *users) schema(c *admin.Call) (*scim.Schema, error) {
	org, err := tenant.FetchSettings(c.Context, c.Resources, c.Organisation())
	if err != nil {
		return nil, err
	}
	if org.Settings.UserGroups {
		return scim.WithGroups, nil
	}
	return &scim.Users, nil
}

// wanted reads a resource. now is the user as it is.
func (f *users) wanted(c *admin.Call, doc map[string]any, now *membership.User) (*wanted, error) {
	w := &wanted{login: &membership.Provisioned{UserName: strings.TrimSpace(scim.Text(doc, "userName")), ExternalID: scim.Text(doc, "externalId")}, active: !now.Stopped}
	if active, present := scim.Bool(doc, "active"); present {
		w.active = active
	}
	bad := w.name(doc)
	bad = append(bad, w.address(doc)...)
	if len(bad) == 0 && w.email != now.Email {
		_, domain := sso.DomainOf(w.email)
		allowed, err := sso.Allows(c.Context, c.Resources, c.Organisation(), domain)
		if err != nil {
			return nil, err
		}
		if !allowed {
			bad = append(bad, fault.Detail{Field: "emails", Message: "must have a verified domain of the organization, and " + domain + " is none"})
		}
	}
	w.role = roleOf(doc)
	w.demoted = w.role == membership.Member && now.IsOrganisationAdmin()
	more, err := f.groupsOf(c, w, doc)
	if err != nil {
		return nil, err
	}
	if bad = append(bad, more...); len(bad) == 0 {
		bad = w.profile(doc)
	}
	if refused := fault.Invalids(bad); refused != nil {
		return nil, refused.WithCause(scim.InvalidValue)
	}
	return w, nil
}

func (w *wanted) name(doc map[string]any) (bad []fault.Detail) {
	if w.login.UserName == "" {
		bad = append(bad, fault.Detail{Field: "userName", Message: "is required"})
	}
	if len(w.login.UserName) > maxLogin {
		bad = append(bad, fault.Detail{Field: "userName", Message: "must have at most 254 bytes"})
	}
	if len(w.login.ExternalID) > maxLogin {
		bad = append(bad, fault.Detail{Field: "externalId", Message: "must have at most 254 bytes"})
	}
	w.first, w.last = strings.TrimSpace(scim.Text(doc, "name.givenName")), strings.TrimSpace(scim.Text(doc, "name.familyName"))
	if w.first == "" && w.last == "" { // the last word of a full name is the last name
		whole := strings.Fields(scim.Text(doc, "name.formatted"))
		if len(whole) == 0 && scim.Text(doc, "displayName") != w.login.UserName {
			whole = strings.Fields(scim.Text(doc, "displayName"))
		}
		if n := len(whole); n > 1 {
			w.first, w.last = strings.Join(whole[:n-1], " "), whole[n-1]
		} else if n == 1 {
			w.first = whole[0]
		}
	}
	for field, s := range map[string]string{"name.givenName": w.first, "name.familyName": w.last} {
		if len([]rune(s)) > maxName {
			bad = append(bad, fault.Detail{Field: field, Message: "must have at most 255 characters"})
		}
	}
	return bad
}

func (w *wanted) address(doc map[string]any) []fault.Detail {
	field, raw := "emails", scim.Primary(doc, "emails")
	if raw == "" {
		if field, raw = "userName", w.login.UserName; raw == "" {
			return nil // reported already
		}
	}
	address, ok := notice.Address(raw)
	if !ok {
		return []fault.Detail{{Field: field, Message: "must be an e-mail address, unless emails has one"}}
	}
	w.email = address
	return nil
}

// roleOf is the highest of the roles that a resource gives; "": it gives none.
func roleOf(doc map[string]any) (role string) {
	for _, s := range scim.Values(doc, "roles") {
		var whole struct{ Value string }
		if strings.HasPrefix(s, "{") && json.Unmarshal([]byte(s), &whole) == nil { // some providers write it so
			s = whole.Value
		}
		switch s = strings.ToLower(strings.TrimSpace(s)); s {
		case membership.Owner, membership.Admin:
		default:
			s = membership.Member
		}
		if membership.IsHigher(s, role) {
			role = s
		}
	}
	return role
}

// groupsOf reads the groups of a user, where they are written with users.
func (f *users) groupsOf(c *admin.Call, w *wanted, doc map[string]any) (bad []fault.Detail, err error) {
	schema, err := f.schema(c)
	if err != nil || schema == &scim.Users || doc["groups"] == nil && c.Request.Method != http.MethodPatch {
		return nil, err
	}
	rows, err := c.Resources.List(c.Context, c.Organisation(), membership.KindGroup)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range rows {
		known[rows[i].ID] = true
	}
	w.groups = []string{}
	for _, id := range scim.Values(doc, "groups") {
		if !known[id] {
			bad = append(bad, fault.Detail{Field: "groups", Message: "names a group that does not exist: " + fault.Clip(id, 64)})
			continue
		}
		w.groups = append(w.groups, id)
	}
	return bad, nil
}

// profile returns the attributes that the gateway stores without using them.
func (w *wanted) profile(doc map[string]any) []fault.Detail {
	rest, _ := scim.Copy(doc).(map[string]any)
	for _, name := range own {
		delete(rest, name)
	}
	if name, ok := rest["name"].(map[string]any); ok {
		for _, part := range []string{"givenName", "familyName", "formatted"} {
			delete(name, part)
		}
		if len(name) == 0 {
			delete(rest, "name")
		}
	}
	if len(rest) == 0 {
		return nil
	}
	raw, err := json.Marshal(rest)
	if err != nil || len(raw) > maxProfile {
		return []fault.Detail{{Message: "the resource must have at most 16384 bytes"}}
	}
	w.login.Profile = raw
	return nil
}

// userDoc is a user as a resource.
func userDoc(base string, rec *resource.Record, u *membership.User, groups map[string]string) (map[string]any, error) {
	doc := map[string]any{}
	login := &membership.Provisioned{UserName: u.Email}
	if u.Provisioned != nil {
		login = u.Provisioned
	}
	if len(login.Profile) > 0 {
		if err := json.Unmarshal(login.Profile, &doc); err != nil {
			return nil, fault.Internal(err)
		}
	}
	schemas := []any{scim.UserURN}
	if doc[scim.EnterpriseURN] != nil {
		schemas = append(schemas, scim.EnterpriseURN)
	}
	location := base + "/Users/" + rec.ID
	whole := strings.TrimSpace(u.FirstName + " " + u.LastName)
	doc["schemas"], doc["id"], doc["meta"] = schemas, rec.ID, meta("User", location, rec)
	doc["userName"], doc["active"], doc["roles"] = login.UserName, !u.Stopped, []any{map[string]any{"value": u.Role, "primary": true}}
	if login.ExternalID != "" {
		doc["externalId"] = login.ExternalID
	}
	name, _ := doc["name"].(map[string]any)
	if name == nil {
		name = map[string]any{}
	}
	for part, s := range map[string]string{"givenName": u.FirstName, "familyName": u.LastName, "formatted": whole} {
		if s != "" {
			name[part] = s
		}
	}
	if len(name) > 0 {
		doc["name"] = name
	}
	if doc["displayName"] = whole; whole == "" {
		doc["displayName"] = login.UserName
	}
	if doc["emails"] == nil && u.Email != "" {
		doc["emails"] = []any{map[string]any{"value": u.Email, "type": "work", "primary": true}}
	}
	in := make([]any, 0, len(u.Groups))
	for _, id := range u.Groups {
		if groups[id] != "" {
			in = append(in, map[string]any{"value": id, "display": groups[id], "type": "direct", "$ref": base + "/Groups/" + id})
		}
	}
	if len(in) > 0 {
		doc["groups"] = in
	}
	return doc, nil
}
