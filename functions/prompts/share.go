package prompts

import (
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/resource"
	"gateway/shared/store"
)

const (
	sharedKey  = "prompts that are shared with the workspace"
	ownersKey  = "workspaces of shared prompts"
	defaultKey = "default collection of the workspace"
	labelsKey  = "labels of the organization and the workspace"
	fromKey    = "workspace of the call"
)

var showShare = admin.Field{Name: "show_prompt_share", Type: admin.Boolean, Doc: "true adds prompt_share: the other workspaces that see the prompt."}

var shareSchema = admin.Schema{"type": []string{"object", "null"}, "properties": map[string]any{
	"organisation": map[string]any{"type": "boolean"}, "workspaces": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
}}

// admit finds what a call of the workspace may see, which includes reading prompts of
// others that are shared with it.
func (f *family) admit(c *admin.Call, action string) error {
	if err := prompt.EnsureLabels(c.Context, c.Resources, c.Scope.Org); err != nil {
		return err
	}
	if c.Scope.Workspace != "" {
		id, err := prompt.DefaultCollection(c.Context, c.Resources, c.Scope)
		if err != nil {
			return err
		}
		c.SetValue(defaultKey, id)
	}
	switch action {
	case "read":
		if err := f.follow(c); err != nil {
			return err
		}
	case "list":
		if err := f.narrow(c); err != nil {
			return err
		}
	}
	return storeLabels(c)
}

func storeLabels(c *admin.Call) error {
	known := map[string]bool{}
	for _, sc := range []store.Scope{c.Scope, c.Organisation()} {
		rows, err := c.Resources.List(c.Context, sc, prompt.KindLabel)
		if err != nil {
			return err
		}
		for i := range rows {
			known[rows[i].ID] = true
		}
	}
	c.SetValue(labelsKey, known)
	return nil
}

// follow moves the call to the workspace of a shared prompt, unless the workspace has a prompt
// with that name.
func (f *family) follow(c *admin.Call) error {
	name := prompt.ParseReference(c.Param("promptId")).Name
	shares, err := c.Resources.List(c.Context, c.Organisation(), prompt.KindShare)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(shares, func(r resource.Row) bool { return r.ID == name || r.Slug == name })
	if n < 0 {
		return nil
	}
	if _, own, err := c.Resources.Get(c.Context, c.Scope, prompt.KindPrompt, name); err != nil || own {
		return err
	}
	_, share, err := f.share(c, c.Resources, shares[n].ID)
	if err == nil && share != nil && share.OpenTo(c.Scope.Workspace) {
		c.SetValue(fromKey, c.Scope)
		c.Scope.Workspace = share.Owner
	}
	return err
}

// share reads the share of a prompt; nil without one.
func (f *family) share(c *admin.Call, r *resource.Resources, id string) (*resource.Record, *prompt.Share, error) {
	rec, ok, err := r.Get(c.Context, c.Organisation(), prompt.KindShare, id)
	if err != nil || !ok {
		return nil, nil, err
	}
	share := new(prompt.Share)
	if err := json.Unmarshal(rec.Body, share); err != nil {
		return nil, nil, fmt.Errorf("prompts: stored share %s: %w", id, err)
	}
	return &rec, share, nil
}

// narrow settles what a list is about.
func (f *family) narrow(c *admin.Call) error {
	if c.Query.HasValue("collection_id") {
		rec, _, err := c.Resources.Get(c.Context, c.Scope, prompt.KindCollection, c.Query.Text("collection_id"))
		if err != nil {
			return err
		}
		c.SetValue(collectionKey, rec.ID)
	}
	if c.Query.Text("type") != "shared" {
		return nil
	}
	if c.Scope.Workspace == "" {
		return fault.Invalid("workspace_id", "is required with type shared: the workspace that sees the prompts")
	}
	rows, err := c.Resources.List(c.Context, c.Organisation(), prompt.KindShare)
	if err != nil {
		return err
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), prompt.KindShare, ids)
	if err != nil {
		return err
	}
	shared, owners := map[string]bool{}, []store.Scope{}
	for i := range recs {
		var s prompt.Share
		if json.Unmarshal(recs[i].Body, &s) != nil || !s.OpenTo(c.Scope.Workspace) {
			continue
		}
		shared[recs[i].ID] = true
		if sc := (store.Scope{Org: c.Scope.Org, Workspace: s.Owner}); !slices.Contains(owners, sc) {
			owners = append(owners, sc)
		}
	}
	c.SetValue(sharedKey, shared)
	c.SetValue(ownersKey, owners)
	return nil
}

// across are the workspaces of a list.
func across(c *admin.Call) ([]store.Scope, error) {
	if owners, ok := c.Value(ownersKey).([]store.Scope); ok {
		return owners, nil
	}
	return admin.WorkspaceScopes(c)
}

// decorate adds the other workspaces that see the prompts, on request.
func (f *family) decorate(c *admin.Call, items []item, objects []admin.Members) error {
	if !c.Query.Bool(showShare.Name) || c.Route.Method != "GET" {
		return nil
	}
	for i, it := range items {
		_, share, err := f.share(c, c.Resources, it.ID)
		if err != nil {
			return err
		}
		objects[i]["prompt_share"] = nil
		if share != nil {
			objects[i]["prompt_share"] = admin.Members{"organisation": share.Organisation, "workspaces": admin.OrEmpty(share.Workspaces)}
		}
	}
	return nil
}

// sharing are the routes by which other workspaces get to see a prompt.
func (f *family) sharing() []admin.Route {
	const at = "/prompts/{promptId}"
	who := []admin.Field{
		{Name: "organisation", Type: admin.Boolean, Example: true, Doc: "true: all workspaces of the organization see it."},
		{Name: "workspaces", Type: admin.Array, Max: 1000, Of: &admin.Field{Type: admin.String, Min: 1, Max: 255, Reference: "/admin/workspaces"}, Doc: "Workspaces that see it, by id or slug."},
	}
	own := func(do func(*admin.Call, *prompt.Share, []string) error) func(*admin.Call) (any, error) {
		return f.prompts.WithItem("update", func(c *admin.Call) (any, error) { return nil, f.change(c, do) })
	}
	routes := []admin.Route{
		{Method: "POST", Path: at + "/share", Name: "sharePrompt", Doc: "Share a prompt with more workspaces, to read and to fork.", Body: who, BodyMode: admin.PartialBody, Action: audit.Manage, Do: own(widen)},
		{Method: "PUT", Path: at + "/share", Name: "setPromptShare", Doc: "Replace the workspaces with which a prompt is shared.", Body: who, BodyMode: admin.PartialBody, Action: audit.Manage, Do: own(replace)},
		{Method: "DELETE", Path: at + "/share", Name: "deletePromptShare", Doc: "Stop sharing a prompt.", Action: audit.Manage, Do: own(drop)},
		{Method: "POST", Path: at + "/unshare", Name: "unsharePrompt", Doc: "Stop sharing a prompt with workspaces; without a body, with all of them.", Body: who, BodyMode: admin.OptionalBody, Action: audit.Manage, Do: own(narrowed)},
		{Method: "POST", Path: at + "/fork", Name: "forkPrompt", Doc: "Copy a prompt that is visible to the workspace. The copy has a separate version history.", Action: audit.Duplicate, BodyMode: admin.OptionalBody,
			Scopes: []string{"prompts.create"}, Body: []admin.Field{
				{Name: "name", Type: admin.String, Min: 1, Max: prompt.MaxName, Doc: "Defaults to the name of the prompt."},
				{Name: "collection_id", Type: admin.String, Max: 255, Reference: "/collections", Doc: "Defaults to the default collection of the workspace."},
				{Name: "virtual_key", Type: admin.String, Max: 255, Reference: "/providers", Doc: "Saved provider of the workspace; default the one of the same slug."},
			}, Do: f.prompts.WithItem("read", f.fork)},
	}
	for i := range routes {
		if routes[i].Response = admin.EmptyResponse; routes[i].Name == "forkPrompt" {
			routes[i].Response, routes[i].Errors = forkSchema, []int{409}
		}
	}
	return f.prompts.ItemRoutes(routes...)
}

// change changes the share of the prompt that the path names.
func (f *family) change(c *admin.Call, do func(*admin.Call, *prompt.Share, []string) error) error {
	if !c.Caller.OfOrganisation() {
		return admin.Denied() // it concerns other workspaces than the caller's
	}
	named, err := workspaces(c)
	if err != nil {
		return err
	}
	return c.Change(func(tx *resource.Tx) error {
		it, err := f.prompts.FindIn(c, tx)
		if err != nil {
			return err
		}
		org := c.Organisation()
		rec, ok, err := tx.Get(org, prompt.KindShare, it.ID)
		if err != nil {
			return err
		}
		share := prompt.Share{Owner: it.Scope.Workspace}
		if ok {
			if err := json.Unmarshal(rec.Body, &share); err != nil {
				return fmt.Errorf("prompts: stored share %s: %w", it.ID, err)
			}
		} else {
			rec = resource.Record{Scope: org, Kind: prompt.KindShare, ID: it.ID, Slug: it.Slug, Name: it.Name, Status: "active", CreatedBy: c.Actor()}
		}
		if err := do(c, &share, named); err != nil {
			return err
		}
		slices.Sort(share.Workspaces)
		share.Workspaces = slices.Compact(share.Workspaces)
		if rec.Body, err = json.Marshal(share); err != nil {
			return fmt.Errorf("prompts: encode: %w", err)
		}
		rec.UpdatedBy = c.Actor()
		switch nobody := !share.Organisation && len(share.Workspaces) == 0; {
		case nobody && ok:
			return tx.Delete(&rec)
		case nobody:
			return nil
		case ok:
			return tx.Update(&rec)
		}
		if err := tx.RequireExists(it.Ref()); err != nil {
			return err
		}
		return tx.Create(&rec)
	})
}

// workspaces are the ids of those that the body names.
func workspaces(c *admin.Call) ([]string, error) {
	var out []string
	var bad []fault.Detail
	for i, name := range c.Body.Texts("workspaces") {
		rec, ok, err := c.Workspace(name)
		if err != nil {
			return nil, err
		}
		switch {
		case !ok || rec.Archived():
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("workspaces[%d]", i), Message: "must name a workspace of the organization"})
		case rec.ID == c.Scope.Workspace:
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("workspaces[%d]", i), Message: "is the workspace of the prompt"})
		default:
			out = append(out, rec.ID)
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return nil, refused
	}
	return out, nil
}

func widen(c *admin.Call, s *prompt.Share, named []string) error {
	s.Organisation = s.Organisation || c.Body.Bool("organisation")
	s.Workspaces = append(s.Workspaces, named...)
	return nil
}

func replace(c *admin.Call, s *prompt.Share, named []string) error {
	s.Organisation, s.Workspaces = c.Body.Bool("organisation"), named
	return nil
}

func drop(_ *admin.Call, s *prompt.Share, _ []string) error {
	s.Organisation, s.Workspaces = false, nil
	return nil
}

func narrowed(c *admin.Call, s *prompt.Share, named []string) error {
	if c.Body.Empty() {
		return drop(c, s, nil)
	}
	s.Organisation = s.Organisation && !c.Body.Bool("organisation")
	s.Workspaces = slices.DeleteFunc(s.Workspaces, func(id string) bool { return slices.Contains(named, id) })
	return nil
}
