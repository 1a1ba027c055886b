// Package apikeys is the family of API keys: create, list, read, change, delete
// and rotate. A raw key is shown when it is created and when it is rotated, and
// never again. The raw key of a user is shown to that user alone: if another caller
// creates or rotates the key, the user collects it. rights.go has the rules.
package apikeys

import (
	"fmt"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// families are the scope families of the key types.
var families = map[identity.KeyType]string{
	identity.OrganisationService: identity.OrganisationService.ScopeFamily(),
	identity.WorkspaceService:    identity.WorkspaceService.ScopeFamily(),
	identity.WorkspaceUser:       identity.WorkspaceUser.ScopeFamily(),
}

// anyOf are the scopes of which an action needs one. Which one depends on the key, and is
// checked once the key is known.
func anyOf(action string) []string {
	var out []string
	for _, t := range []identity.KeyType{identity.OrganisationService, identity.WorkspaceService, identity.WorkspaceUser} {
		out = append(out, families[t]+"."+action)
	}
	return out
}

// family is the description with what its hooks work with.
type family struct {
	ledger *ledger.Ledger
	keys   *admin.Collection[identity.Key]
}

// item and change are a key and what happens to it.
type (
	item   = admin.Item[identity.Key]
	change = admin.Change[identity.Key]
)

// New makes the family.
func New(l *ledger.Ledger) admin.Family {
	f := &family{ledger: l}
	f.keys = f.describe()
	return admin.Family{Name: "apikeys", Doc: "API keys.", Routes: slices.Concat(f.keys.Routes(), f.secretRoutes(), []admin.Route{scopeRoute(), f.selfRoute()})}
}

func (f *family) describe() *admin.Collection[identity.Key] {
	return &admin.Collection[identity.Key]{
		Kind: identity.KindKey, Object: "api-key", Path: "/api-keys", UUIDOnly: true,
		Scopes: anyOf, Resource: "api_keys", Level: admin.InEither, WriteRole: admin.Manager,
		Fields: fields(), Computed: shown(), Limits: f.limits(),
		List:       admin.List{IDs: "ids"},
		Admit:      f.admit,
		Authorize:  may,
		ListScopes: across,
		Adjust: func(action string, r *admin.Route) {
			if action == "create" {
				r.Recent = true // its response shows a key
				r.Path, r.LevelOf = "/api-keys/{type}/{subType}", placeOf
				r.Params = []admin.Field{{Name: "type", Type: admin.String, Enum: []string{"organisation", "workspace"}}, {Name: "subType", Type: admin.String, Enum: []string{"service", "user"}}}
				r.Body = append(slices.Clone(r.Body), admin.Field{Name: workspaceID, Type: admin.String, Max: 255, Trigger: true, Reference: "/admin/workspaces"})
				r.Doc = "Create an API key: organisation/service, workspace/service or workspace/user. Only this response contains the raw key. For another user's key it is null, and the user collects it."
			}
		},
		New: func(c *admin.Call) identity.Key {
			t, _ := typeOf(c) // admit has rejected invalid types
			return identity.Key{Type: t, CreationMode: "api"}
		},
		Check: check, Before: f.before, After: stage, Retire: retire, Decorate: showLastUse,
		Created: &admin.Reply{Members: []string{"id", "key", "object"}},
	}
}

// typeOf is the key type of a path.
func typeOf(c *admin.Call) (identity.KeyType, error) {
	t := identity.KeyType(c.Param("type") + "-" + c.Param("subType"))
	if _, ok := families[t]; !ok {
		return "", fault.Invalid("type", "must be organisation/service, workspace/service or workspace/user")
	}
	return t, nil
}

// placeOf returns where a path creates a new key. One that names no type is
// rejected once the caller is known to be allowed to make keys.
func placeOf(c *admin.Call) admin.Level {
	switch t, err := typeOf(c); {
	case err != nil:
		return admin.InEither
	case t == identity.OrganisationService:
		return admin.InOrganisation
	}
	return admin.InWorkspace
}

// check gives the faults by the key's own rules. A stored date that has passed since is no
// fault of a change that does not name it, so an expired key can be renamed and renewed.
func check(c *admin.Call, ch *change) []fault.Detail {
	return slices.DeleteFunc(ch.Form.Validate(ch.Rec.Name, c.Now), func(d fault.Detail) bool {
		field, _, _ := strings.Cut(d.Field, ".")
		return !ch.Creates() && (field == "expires_at" || field == "rotation_policy") && !c.Body.Has(field)
	})
}

// admit checks a new key, and moves other calls to the scope of the key: callers that can
// access the entire organization name a key by its id alone.
func (f *family) admit(c *admin.Call, action string) error {
	switch {
	case action == "create":
		return placeNew(c)
	case action == "list" || !c.Caller.OfOrganisation() || c.Scope.Workspace != "":
		return nil
	}
	sc, ok, err := identity.ScopeOf(c.Context, c.Resources.Store(), c.Caller.Scope.Org, c.Param("id"))
	if ok {
		c.Scope = sc
	}
	return err
}

// placeNew checks that the caller may make a key of the path's type.
func placeNew(c *admin.Call) error {
	t, err := typeOf(c)
	if err != nil {
		return err
	}
	c.AuditAs(families[t])
	if !c.Caller.HasAny([]string{families[t] + ".create"}) || t != identity.WorkspaceUser && !c.Caller.AtLeast(admin.Manager) {
		return admin.Denied() // members have keys of their own at most
	}
	if t == identity.OrganisationService && (c.Body.Text(workspaceID) != "" || c.Request.URL.Query().Get(workspaceID) != "") {
		// If it were ignored, the key would have more access than requested.
		return fault.Invalid(workspaceID, "is only allowed for workspace keys: an organization key has access to every workspace")
	}
	return nil
}

const workspaceID = "workspace_id"

// may checks the scope that a key's own type needs. A user reaches only its own keys,
// unless its role manages the workspace.
func may(c *admin.Call, action string, row *resource.Row) bool {
	of := families[identity.KeyType(row.Fields["type"])]
	if action != "list" {
		c.AuditAs(of)
	}
	need := []string{of + "." + action}
	if action == "rotate" { // collecting what a rotation made is a part of it
		need = append(need, of+".update")
	}
	return c.Caller.HasAny(need) && c.Caller.MayAccessKeysOf(row.Fields["user"])
}

// across covers the named workspace or the caller's own, or with an organization
// key the organization and every workspace.
func across(c *admin.Call) ([]store.Scope, error) {
	scopes, err := admin.WorkspaceScopes(c)
	if c.Scope.Workspace == "" {
		scopes = append([]store.Scope{c.Organisation()}, scopes...)
	}
	return scopes, err
}

func (f *family) before(c *admin.Call, tx *resource.Tx, ch *change) error {
	k := ch.Form
	if ch.Creates() {
		if err := begin(c, ch); err != nil {
			return err
		}
	}
	if err := byTheRules(c, tx, ch); err != nil {
		return err
	}
	if err := grants(c, tx, ch); err != nil {
		return err
	}
	if err := useConfig(tx, ch); err != nil {
		return err
	}
	sponsor(c, k)
	k.Scopes = normalScopes(k.Scopes)
	if k.Rotation != nil && (ch.OldForm.Rotation == nil || c.Body.Has("rotation_policy")) {
		policy, _ := c.Body.Object("rotation_policy")
		k.Rotation.NextSent = policy.Text("next_rotation_at")
		if was := ch.OldForm.Rotation; was != nil && k.Rotation.NextSent == fmt.Sprint(nextRotation(was)) {
			k.Rotation.NextSent = was.NextSent // a read that is sent back changes nothing
		}
		k.Rotation.NextAt = k.Rotation.Next(c.Now)
	}
	setPaused(c, ch)
	if ch.Rec.Status == identity.StatusExpired && (k.ExpiresAt == nil || k.ExpiresAt.After(c.Now)) {
		ch.Rec.Status = identity.StatusActive
	}
	return identity.Reschedule(tx, ch.Rec.Ref(), ch.OldForm, k)
}

// setPaused pauses or resumes a key as specified by the body. A key that expired while it was paused
// resumes as an expired one, and a rotation that was due meanwhile is at its next date.
func setPaused(c *admin.Call, ch *change) {
	rec, k := ch.Rec, ch.Form
	switch paused := rec.Status == identity.StatusPaused; {
	case c.Body.Text("status") == identity.StatusPaused && rec.Status == identity.StatusActive:
		rec.Status = identity.StatusPaused
	case c.Body.Text("status") == identity.StatusActive && paused:
		if rec.Status = identity.Live(identity.StatusActive, k, c.Now); k.Rotation != nil && k.Rotation.NextAt != nil && !k.Rotation.NextAt.After(c.Now) {
			k.Rotation.NextAt = k.Rotation.Next(c.Now)
		}
	}
}

// normalScopes returns scopes by their present names, each once, in the order of the client.
func normalScopes(scopes []string) []string {
	out := make([]string, 0, len(scopes))
	for _, s := range scopes {
		if s = identity.NormalScope(s); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// begin gives a new key its owner and its secret.
func begin(c *admin.Call, ch *change) error {
	k := ch.Form
	if k.UserID == "" && k.Type == identity.WorkspaceUser {
		k.UserID = c.Caller.UserID
	}
	switch {
	case k.Type == identity.WorkspaceUser && k.UserID == "":
		return fault.Invalid("user_id", "is required for a user key")
	case k.Type != identity.WorkspaceUser && k.UserID != "":
		return fault.Invalid("user_id", "is only allowed for workspace/user keys")
	}
	var raw string
	raw, k.Secret = identity.NewSecret()
	k.Rank = rankOfNew(c, k)
	ch.Rec.Fields = map[string]string{"type": string(k.Type), "user": k.UserID}
	show, err := deliver(c, ch.Rec, k, raw)
	c.SetValue(rawKey, show)
	return err
}

// useConfig makes sure that a default config exists in the key's workspace, and
// notes the use.
func useConfig(tx *resource.Tx, ch *change) error {
	was, now := ch.OldForm.Defaults.ConfigID, ch.Form.Defaults.ConfigID
	if was == now {
		return nil
	}
	if ch.Rec.Scope.Workspace == "" {
		return nil // organization keys call no models: it is stored and has no effect
	}
	_, err := admin.AddReference(tx, ch.Rec.Ref(), ch.Rec.Scope, route.KindConfig, "defaults.config_id", was, now)
	return err
}

func retire(_ *admin.Call, tx *resource.Tx, it item) error {
	if it.Scope.Workspace != "" {
		if _, err := admin.AddReference(tx, it.Ref(), it.Scope, route.KindConfig, "", it.Form.Defaults.ConfigID, ""); err != nil {
			return err
		}
	}
	if err := identity.Reschedule(tx, it.Ref(), it.Form, nil); err != nil {
		return err
	}
	identity.StageDelete(tx, it.Record, it.Form)
	return nil
}

// stage writes the rows that requests find the key by.
func stage(c *admin.Call, tx *resource.Tx, ch *change) error {
	rec, k, slug := ch.Rec, ch.Form, ""
	if rec.Scope.Workspace != "" {
		ws, ok, err := tx.Get(c.Organisation(), tenant.KindWorkspace, rec.Scope.Workspace)
		if err != nil {
			return err
		}
		if !ok {
			return admin.Denied()
		}
		slug = ws.Slug
	}
	var gone []identity.Secret
	if k.Previous != nil && k.Previous.ExpiresAt != nil && !k.Previous.ExpiresAt.After(c.Now) {
		gone = append(gone, *k.Previous)
		k.Previous = nil
	}
	if was := ch.OldForm; was != nil {
		for _, s := range []*identity.Secret{&was.Secret, was.Previous} {
			if s != nil && s.Hash != k.Secret.Hash && (k.Previous == nil || s.Hash != k.Previous.Hash) {
				gone = append(gone, *s)
			}
		}
	}
	return identity.Stage(tx, rec, k, slug, gone...)
}
