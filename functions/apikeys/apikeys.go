// Package apikeys is the family of API keys: create, list, read, change, delete
// and rotate. A raw key is shown when it is made and when it is rotated, and
// never again.
package apikeys

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// families are the scope families of the key types.
var families = map[identity.KeyType]string{
	identity.OrganisationService: identity.OrganisationService.ScopeFamily(),
	identity.WorkspaceService:    identity.WorkspaceService.ScopeFamily(),
	identity.WorkspaceUser:       identity.WorkspaceUser.ScopeFamily(),
}

// anyOf are the scopes of which an action needs one; which one depends on the
// key, and is checked once that is known.
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
	keys   admin.Collection[identity.Key]
}

// New makes the family.
func New(l *ledger.Ledger) admin.Family {
	f := &family{ledger: l}
	f.describe()
	routes := f.keys.Routes()
	for i := range routes {
		f.place(&routes[i])
	}
	routes = append(routes, f.rotateRoute(), f.collectRoute())
	return admin.Family{Name: "apikeys", Doc: "API keys.", Routes: routes}
}

func (f *family) describe() {
	f.keys = admin.Collection[identity.Key]{
		Kind: identity.KindKey, Object: "api-key", Path: "/api-keys", UUIDOnly: true,
		Scopes: anyOf, Resource: "api_keys", Where: admin.InEither, WriteRole: admin.Manager,
		Fields: fields(),
		List:   admin.List{Query: []admin.Field{{Name: "ids", Type: admin.Array, Of: &admin.Field{Type: admin.String, Max: 64}, Max: 1000, Doc: "Only these keys: ids with commas."}}},
		New: func(c *admin.Call) identity.Key {
			t, _ := typeOf(c) // placeNew has refused what is none
			return identity.Key{Type: t, CreationMode: "api"}
		},
		Check:        check,
		BeforeCreate: f.beforeCreate, AfterCreate: f.stage,
		BeforeUpdate: f.beforeUpdate,
		AfterUpdate: func(c *admin.Call, tx *resource.Tx, _, rec *resource.Record, _, k *identity.Key) error {
			return f.stage(c, tx, rec, k)
		},
		BeforeDelete: f.beforeDelete,
		Render:       f.render, Created: f.created, CreatedSchema: createdSchema,
		ExtraShown: shown(),
	}
}

// place lets callers that reach the whole organisation name a key by its id
// alone, and moves the create route to its two-part path.
func (f *family) place(r *admin.Route) {
	do := r.Do
	switch {
	case r.Method == "POST":
		r.Path = "/api-keys/{type}/{subType}"
		r.WhereOf = placeOf
		r.Body = append(slices.Clone(r.Body), admin.Field{Name: workspaceID, Type: admin.String, Max: 255, Trigger: true})
		r.Doc = "Create an API key: organisation/service, workspace/service or workspace/user. The raw key is in this answer only."
		r.Do = func(c *admin.Call) (any, error) {
			if err := f.placeNew(c); err != nil {
				return nil, err
			}
			return do(c)
		}
	case strings.Contains(r.Path, "{"):
		action := map[string]string{"GET": "read", "PUT": "update", "DELETE": "delete"}[r.Method]
		r.Do = func(c *admin.Call) (any, error) {
			if err := f.find(c, action); err != nil {
				return nil, err
			}
			return do(c)
		}
	default:
		r.Do = f.list
	}
}

// typeOf is the key type of a path.
func typeOf(c *admin.Call) (identity.KeyType, error) {
	t := identity.KeyType(c.Param("type") + "-" + c.Param("subType"))
	if _, ok := families[t]; !ok {
		return "", fault.Invalid("type", "there are keys of organisation/service, workspace/service and workspace/user")
	}
	return t, nil
}

// placeOf is where a path says that a new key lives. One that names no type is
// refused once the caller is known to be allowed to make keys.
func placeOf(c *admin.Call) admin.Where {
	switch t, err := typeOf(c); {
	case err != nil:
		return admin.InEither
	case t == identity.OrganisationService:
		return admin.InOrganisation
	}
	return admin.InWorkspace
}

// check gives what the key's own rules say. A date that was stored and has passed
// since is no error of a change that does not name it: an expired key can be
// renamed, and renewed.
func check(c *admin.Call, rec *resource.Record, k *identity.Key) []fault.Detail {
	return slices.DeleteFunc(k.Validate(rec.Name, c.Now), func(d fault.Detail) bool {
		field, _, _ := strings.Cut(d.Field, ".")
		return rec.Rev > 0 && (field == "expires_at" || field == "rotation_policy") && !c.Body.Has(field)
	})
}

// placeNew checks that the caller may make a key of the path's type.
func (f *family) placeNew(c *admin.Call) error {
	t, err := typeOf(c)
	if err != nil {
		return err
	}
	c.AuditAs(families[t])
	if !c.Caller.HasAny([]string{families[t] + ".create"}) {
		return admin.Denied()
	}
	if t == identity.OrganisationService && (c.Body.Text(workspaceID) != "" || c.Request.URL.Query().Get(workspaceID) != "") {
		// Ignoring it would give a key that reaches more than was asked for.
		return fault.Invalid(workspaceID, "is for workspace keys: an organisation key reaches every workspace")
	}
	return nil
}

const workspaceID = "workspace_id"

// find moves the call to the scope that the key lives in and checks the scope
// that the key's type needs.
func (f *family) find(c *admin.Call, action string) error {
	id := c.Param("id")
	if c.Caller.OfOrganisation() && c.Scope.Workspace == "" {
		sc, ok, err := identity.ScopeOf(c.Context, c.Resources.Store(), c.Caller.Scope.Org, id)
		if err != nil {
			return err
		}
		if ok {
			c.Scope = sc
		}
	}
	_, k, err := f.keys.Find(c)
	if err != nil {
		return err
	}
	c.AuditAs(families[k.Type])
	return mayTouch(c, k, action)
}

// mayTouch checks the scope of a key's own type. A user reaches its own keys
// only, unless its role manages the workspace.
func mayTouch(c *admin.Call, k *identity.Key, action string) error {
	need := []string{families[k.Type] + "." + action}
	if action == "rotate" { // collecting what a rotation made is a part of it
		need = append(need, families[k.Type]+".update")
	}
	if !c.Caller.HasAny(need) {
		return admin.Denied()
	}
	if c.Caller.UserID != "" && k.UserID != c.Caller.UserID && !c.Caller.AtLeast(admin.Manager) {
		return admin.Denied()
	}
	return nil
}

func (f *family) beforeCreate(c *admin.Call, tx *resource.Tx, rec *resource.Record, k *identity.Key) error {
	t := k.Type
	if k.UserID == "" && t == identity.WorkspaceUser {
		k.UserID = c.Caller.UserID
	}
	switch {
	case t == identity.WorkspaceUser && k.UserID == "":
		return fault.Invalid("user_id", "is required for a user key")
	case t != identity.WorkspaceUser && k.UserID != "":
		return fault.Invalid("user_id", "is for workspace/user keys only")
	}
	if err := checkUser(c, k); err != nil {
		return err
	}
	if err := withinOwnRights(c, k.Scopes, nil); err != nil {
		return err
	}
	if err := f.checkConfig(tx, rec, k); err != nil {
		return err
	}
	raw, secret := identity.NewSecret()
	k.Secret = secret
	k.Scopes = identity.NewScopeSet(k.Scopes...).Sorted()
	if k.UsageLimits != nil {
		k.UsageLimits.Prepare(nil, c.Now)
	}
	if k.Rotation != nil {
		k.Rotation.NextAt = k.Rotation.Next(c.Now)
	}
	rec.Fields = map[string]string{"type": string(t), "user": k.UserID}
	c.Keep(rawKey, raw)
	return identity.Reschedule(tx, rec.Ref(), nil, k)
}

// userForm is the form of a user's id.
var userForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// checkUser refuses an owner that cannot be a user of the workspace. What is
// stored of users are their keys: a user belongs to a workspace when it has a
// key there. A key of the organisation may bring in a new one, by its UUID; keys
// of a workspace name themselves or a user that the workspace has.
func checkUser(c *admin.Call, k *identity.Key) error {
	if k.UserID == "" || k.UserID == c.Caller.UserID {
		return nil
	}
	if !userForm.MatchString(k.UserID) {
		return fault.Invalid("user_id", "must be the UUID of a user")
	}
	if c.Caller.OfOrganisation() {
		return nil
	}
	rows, err := c.Resources.List(c.Context, c.Scope, identity.KindKey)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(rows, func(r resource.Row) bool { return r.Fields["user"] == k.UserID }) {
		return fault.Invalid("user_id", "is no user of the workspace; a key of the organisation can make the first key of a user")
	}
	return nil
}

// rawKey is where a call keeps the raw key for its answer.
const rawKey = "raw key"

// withinOwnRights refuses scopes that the caller does not hold itself; those
// that the key had before may stay.
func withinOwnRights(c *admin.Call, scopes, had []string) error {
	before := identity.NewScopeSet(had...)
	var bad []fault.Detail
	for i, s := range scopes {
		s = identity.NormalScope(s)
		if before.Has(s) || c.Caller.HasAny([]string{s}) || dataPlaneOnly(c, s) {
			continue
		}
		bad = append(bad, fault.Detail{Field: "scopes[" + itoa(i) + "]", Message: "goes beyond the rights of the key that asks for it"})
	}
	if len(bad) > 0 {
		f := fault.Invalids(bad)
		f.Code = fault.NotAllowed
		return f
	}
	return nil
}

// dataPlaneOnly are scopes that an organisation key cannot hold itself but may
// give to workspace keys, since it reaches every workspace.
func dataPlaneOnly(c *admin.Call, scope string) bool {
	return c.Caller.OfOrganisation() && !identity.OrganisationService.Grantable(scope)
}

// checkConfig makes sure that a default config exists in the key's workspace,
// and notes the use.
func (f *family) checkConfig(tx *resource.Tx, rec *resource.Record, k *identity.Key) error {
	ref := k.Defaults.ConfigID
	if ref == "" {
		return nil
	}
	if rec.Scope.Workspace == "" {
		return fault.Invalid("defaults.config_id", "is for workspace keys only")
	}
	cfg, ok, err := tx.Get(rec.Scope, kindConfig, ref)
	if err != nil {
		return err
	}
	if !ok || cfg.Archived() {
		return fault.Invalid("defaults.config_id", "there is no such config in the workspace of the key")
	}
	return tx.Use(cfg.Ref(), rec.Ref())
}

func (f *family) beforeUpdate(c *admin.Call, tx *resource.Tx, old, rec *resource.Record, was, k *identity.Key) error {
	k.Type, k.UserID, k.Secret, k.Previous = was.Type, was.UserID, was.Secret, was.Previous
	if err := withinOwnRights(c, k.Scopes, was.Scopes); err != nil {
		return err
	}
	if was.Defaults.ConfigID != k.Defaults.ConfigID {
		if err := f.unuseConfig(tx, rec, was); err != nil {
			return err
		}
		if err := f.checkConfig(tx, rec, k); err != nil {
			return err
		}
	}
	k.Scopes = identity.NewScopeSet(k.Scopes...).Sorted()
	if k.UsageLimits != nil {
		k.UsageLimits.Prepare(was.UsageLimits, c.Now)
		if c.Body.Bool("reset_usage") {
			k.UsageLimits.ResetUsage(c.Now)
			now := c.Now.UTC()
			k.LastResetAt = &now
		}
	}
	if k.Rotation != nil && (was.Rotation == nil || c.Body.Has("rotation_policy")) {
		k.Rotation.NextAt = k.Rotation.Next(c.Now)
	}
	if rec.Status == identity.StatusExpired && (k.ExpiresAt == nil || k.ExpiresAt.After(c.Now)) {
		rec.Status = identity.StatusActive
	}
	return identity.Reschedule(tx, rec.Ref(), was, k)
}

func (f *family) unuseConfig(tx *resource.Tx, rec *resource.Record, k *identity.Key) error {
	if k.Defaults.ConfigID == "" {
		return nil
	}
	cfg, ok, err := tx.Get(rec.Scope, kindConfig, k.Defaults.ConfigID)
	if err != nil || !ok {
		return err
	}
	return tx.Unuse(cfg.Ref(), rec.Ref())
}

func (f *family) beforeDelete(_ *admin.Call, tx *resource.Tx, rec *resource.Record, k *identity.Key) error {
	if err := f.unuseConfig(tx, rec, k); err != nil {
		return err
	}
	if err := identity.Reschedule(tx, rec.Ref(), k, nil); err != nil {
		return err
	}
	identity.Unstage(tx, rec, k)
	return nil
}

// stage writes the rows that requests find the key by.
func (f *family) stage(c *admin.Call, tx *resource.Tx, rec *resource.Record, k *identity.Key) error {
	slug := ""
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
	return identity.Stage(tx, rec, k, slug, gone...)
}

func (f *family) created(c *admin.Call, rec *resource.Record, _ *identity.Key) (any, error) {
	raw, _ := c.Kept(rawKey).(string)
	return map[string]any{"id": rec.ID, "key": raw, "object": "api-key"}, nil
}

// list gives the keys that the caller may list: of the named workspace, of its
// own, or with an organisation key the organisation's and every workspace's.
func (f *family) list(c *admin.Call) (any, error) {
	page, err := admin.Paging{}.Of(c.Query)
	if err != nil {
		return nil, err
	}
	rows, err := f.rows(c)
	if err != nil {
		return nil, err
	}
	part := admin.Cut(rows, page)
	data := make([]any, 0, len(part))
	for _, r := range part {
		rec, ok, err := c.Resources.Get(c.Context, r.scope, identity.KindKey, r.ID)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		var k identity.Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			return nil, err
		}
		obj, err := f.render(c, &rec, &k)
		if err != nil {
			return nil, err
		}
		data = append(data, obj)
	}
	return admin.ListEnvelope(data, len(rows), page), nil
}

// placed is a list row with the scope that it is in.
type placed struct {
	resource.Row
	scope store.Scope
}

func (f *family) rows(c *admin.Call) ([]placed, error) {
	scopes := []store.Scope{c.Scope}
	if c.Caller.OfOrganisation() && c.Scope.Workspace == "" {
		spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
		if err != nil {
			return nil, err
		}
		for _, w := range spaces {
			scopes = append(scopes, store.Scope{Org: c.Scope.Org, Workspace: w.ID})
		}
	}
	wanted := c.Query.Texts("ids")
	var out []placed
	for _, sc := range scopes {
		rows, err := c.Resources.List(c.Context, sc, identity.KindKey)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			k := identity.Key{Type: identity.KeyType(r.Fields["type"]), UserID: r.Fields["user"]}
			if len(wanted) > 0 && !slices.Contains(wanted, r.ID) || mayTouch(c, &k, "list") != nil {
				continue
			}
			out = append(out, placed{r, sc})
		}
	}
	slices.SortStableFunc(out, func(a, b placed) int { return b.Created.Compare(a.Created) })
	return out, nil
}
