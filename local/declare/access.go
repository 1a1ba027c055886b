package declare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Access is who may use a gateway: what an import creates beside a document. Neither people
// nor keys can be declared, because an invitation is sent and a key is shown once.
type Access struct {
	Invites []Invite
	Keys    []Key
}

// Invite is a user who is invited.
type Invite struct {
	Email, Role string
	Workspaces  []Membership
}

// Membership is a role in a workspace, which is named as in the document.
type Membership struct{ Workspace, Role string }

// Key is a service key that is always created: the value of the old one cannot be read.
type Key struct {
	Source    string // id at the source
	Workspace string // named as in the document; "" for a key of the organization
	Name      string
	Fields    map[string]any // of the body, without name and workspace
}

// Nouns of steps.
const (
	nounInvite = "invitation"
	nounKey    = "API key"
)

// AddAccess adds steps for users who are neither members nor invited, and for keys with a name
// that does not exist in their workspace. keep gets the value of each new key, once.
func (p *Plan) AddAccess(ctx context.Context, a Access, store func(k Key, id, value string) error) error {
	known := map[string]bool{}
	if len(a.Invites) > 0 {
		for _, path := range []string{"/admin/users", "/admin/users/invites"} {
			rows, err := list(ctx, p.api, path, url.Values{"currentPage": nil})
			if err != nil {
				return err
			}
			for _, row := range rows {
				if email, ok := row["email"].(string); ok && row["status"] != "cancelled" && row["status"] != "expired" {
					known[strings.ToLower(email)] = true
				}
			}
		}
	}
	for _, in := range a.Invites {
		if known[strings.ToLower(in.Email)] {
			continue
		}
		known[strings.ToLower(in.Email)] = true
		p.Steps = append(p.Steps, &Step{Action: Create, Noun: nounInvite, Name: in.Email, run: func(ctx context.Context, p *Plan) error {
			spaces := []any{}
			for _, m := range in.Workspaces {
				spaces = append(spaces, map[string]any{"id": p.rewrite(m.Workspace), "role": m.Role})
			}
			_, err := call(ctx, p.api, "POST", "/admin/users/invites", map[string]any{"email": in.Email, "role": in.Role, "workspaces": spaces})
			return err
		}})
	}
	return p.addKeys(ctx, a.Keys, store)
}

func (p *Plan) addKeys(ctx context.Context, keys []Key, store func(k Key, id, value string) error) error {
	have := map[string][]string{} // names by live workspace
	for _, k := range keys {
		slug, _ := p.rewrite(k.Workspace).(string)
		if _, read := have[slug]; !read {
			names, err := p.keyNames(ctx, slug)
			if err != nil {
				return err
			}
			have[slug] = names
		}
		if slices.Contains(have[slug], k.Name) {
			continue
		}
		have[slug] = append(have[slug], k.Name)
		p.Steps = append(p.Steps, &Step{Action: Create, Noun: nounKey, Name: k.Name, Workspace: p.spaceName(k.Workspace), run: func(ctx context.Context, p *Plan) error {
			body, _ := p.rewrite(Native(k.Fields)).(map[string]any)
			path := "/api-keys/organisation/service"
			if body["name"] = k.Name; k.Workspace != "" {
				path = "/api-keys/workspace/service"
				if !p.own {
					body["workspace_id"] = p.rewrite(k.Workspace)
				}
			}
			out, err := call(ctx, p.api, "POST", path, body)
			if err != nil {
				return err
			}
			id, _ := out["id"].(string)
			value, _ := out["key"].(string)
			if value == "" {
				return errors.New("the response has no key")
			}
			return store(k, id, value)
		}})
	}
	return nil
}

// spaceName is how steps name a workspace of the document.
func (p *Plan) spaceName(label string) string {
	if name := p.names[label]; name != "" {
		return name
	}
	return label
}

// keyNames are the names of the keys of a live workspace, or of the organization.
func (p *Plan) keyNames(ctx context.Context, slug string) ([]string, error) {
	q := url.Values{}
	if slug != "" {
		q.Set("workspace_id", slug)
	}
	rows, err := list(ctx, p.api, "/api-keys", q)
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound || refused.Status == http.StatusBadRequest) && slug != "" {
		return nil, nil // a workspace that the plan creates
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, row := range rows {
		if p.own || empty(row["workspace_id"]) == (slug == "") {
			names = append(names, fmt.Sprint(row["name"]))
		}
	}
	return names, nil
}

// ReadAccess reads the people and the service keys of a gateway, to create them in another
// one. Workspaces are named by their slugs.
func ReadAccess(ctx context.Context, api API) (Access, error) {
	var a Access
	rows, err := list(ctx, api, "/admin/workspaces", url.Values{"name_format": {"plain"}})
	if err != nil {
		return a, err
	}
	members := map[string][]Membership{}
	slices.Reverse(rows)
	for _, row := range rows {
		slug, _ := row["slug"].(string)
		if row["status"] == "archived" {
			continue
		}
		users, err := list(ctx, api, "/admin/workspaces/"+url.PathEscape(slug)+"/users", nil)
		if err != nil {
			return a, err
		}
		for _, u := range users {
			email, _ := u["email"].(string)
			role, _ := u["role"].(string)
			members[email] = append(members[email], Membership{slug, role})
		}
		keys, err := list(ctx, api, "/api-keys", url.Values{"workspace_id": {slug}})
		if err != nil {
			return a, err
		}
		for _, k := range slices.Backward(keys) {
			if k["type"] == "workspace-service" {
				a.Keys = append(a.Keys, keyOf(k, slug))
			}
		}
	}
	users, err := list(ctx, api, "/admin/users", nil)
	if err != nil {
		return a, err
	}
	for _, u := range slices.Backward(users) {
		email, _ := u["email"].(string)
		role := "member"
		if u["role"] == "admin" || u["role"] == "owner" {
			role = "admin" // an owner is made by an owner
		}
		if email != "" {
			a.Invites = append(a.Invites, Invite{email, role, members[email]})
		}
	}
	return a, nil
}

// keyOf is a key to create as one that is read.
func keyOf(row map[string]any, workspace string) Key {
	k := Key{Workspace: workspace, Fields: map[string]any{}}
	k.Source, _ = row["id"].(string)
	k.Name, _ = row["name"].(string)
	for _, n := range []string{"description", "scopes", "rate_limits", "usage_limits", "defaults", "alert_emails", "expires_at"} {
		if v := row[n]; !empty(v) {
			stripAll(v, limitState)
			k.Fields[n] = withoutNull(v)
		}
	}
	if d, ok := k.Fields["defaults"].(map[string]any); ok {
		delete(d, "config_id") // an id of the source
		if len(d) == 0 {
			delete(k.Fields, "defaults")
		}
	}
	return k
}

// withoutNull removes null members.
func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else {
				v[k] = withoutNull(e)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}

// deletions plans the deletion of resources that are not declared.
func (b *planner) deletions(d *Document, live *state, spaces []*space) {
	if !b.o.Prune {
		return
	}
	drop := func(sections map[string][]*Resource, items []*item, workspace string) {
		for _, k := range slices.Backward(kinds) {
			list, declared := sections[k.section]
			if !declared {
				continue
			}
			for _, it := range slices.Backward(items) {
				if it.kind == k && !it.builtIn && !slices.ContainsFunc(list, func(r *Resource) bool { return findItem(k, r.Fields, items) == it }) {
					b.Steps = append(b.Steps, &Step{Action: Delete, Noun: k.noun, Name: it.name(), Workspace: workspace, run: func(ctx context.Context, p *Plan) error {
						_, err := call(ctx, p.api, "DELETE", it.path(""), nil)
						return err
					}})
				}
			}
		}
	}
	for i, w := range d.Workspaces {
		if spaces[i] != nil {
			drop(w.Sections, spaces[i].items, spaces[i].name)
		}
	}
	for _, sp := range live.spaces {
		if d.listsWorkspaces && !slices.Contains(spaces, sp) && !sp.isDefault {
			b.Steps = append(b.Steps, &Step{Action: Delete, Noun: nounWorkspace, Name: sp.name, run: func(ctx context.Context, p *Plan) error {
				_, err := call(ctx, p.api, "DELETE", "/admin/workspaces/"+sp.slug, map[string]any{"name": sp.name, "force_delete": true})
				return err
			}})
		}
	}
	if d.Organization != nil {
		drop(d.Organization.Sections, live.items, "")
	}
}

// Check returns an error if the plan cannot be carried out: it lacks secrets, or has a change
// that the gateway does not make.
func (p *Plan) Check() error {
	if missing := p.Missing(); len(missing) > 0 {
		return fmt.Errorf("no value for %s: set them in the environment; nothing was written", strings.Join(missing, ", "))
	}
	for _, s := range p.Steps {
		if s.rejected != "" {
			return fmt.Errorf("%s: %s; nothing was written", s, s.rejected)
		}
	}
	return nil
}

// Apply carries out a plan. It stops at the first step that fails; a further plan continues
// from there. done is called after each step. Nothing is written if Check fails.
func (p *Plan) Apply(ctx context.Context, done func(*Step)) error {
	if err := p.Check(); err != nil {
		return err
	}
	for i, s := range p.Steps {
		if err := s.run(ctx, p); err != nil {
			return fmt.Errorf("%s: %w (%d of %d steps are done; run the command again to go on)", s, err, i, len(p.Steps))
		}
		done(s)
	}
	return nil
}
